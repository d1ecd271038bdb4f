// Contact: what a session has heard of its server, and when it must ask for a sign of life.
//
// A ping is due after 10 s of silence. While tokens are held, it is also due when no answer has
// confirmed the session for a third of the smallest clientOfflineTime.

import { after } from './clock.js';

export const PING_AFTER_MS = 10_000; // Of silence.
const PING_PAUSE_MS = 10; // Whatever clientOfflineTime a server tells.

export class Contact {
  /** at: when the latest request that was answered had been sent, by `clock`. */
  constructor(now, clock) {
    this.at = now;
    this.clock = clock;
    this.heardAt = now;
    this.pingedAt = now; // Or the connection began.
    this.probedAt = null; // A ping that has met silence so far.
  }

  /** A connection stands. */
  begin(now) {
    this.heard(now);
    this.pingedAt = now;
  }

  /** Any byte of the server counts. */
  heard(now) {
    this.heardAt = now;
    this.probedAt = null;
  }

  pinged(now) {
    this.pingedAt = now;
    this.probedAt ??= now;
  }

  answered(sentAt) {
    this.at = Math.max(this.at, sentAt);
  }

  get probes() {
    return this.probedAt !== null;
  }

  /** When the silence has lasted too long. */
  silentAt(timeout) {
    return this.probedAt === null ? Infinity : after(this.probedAt, timeout);
  }

  /** offlineMs: the smallest clientOfflineTime of a token, or null. */
  pingAt(offlineMs) {
    const at = this.probes ? Infinity : after(this.heardAt, PING_AFTER_MS);
    if (offlineMs === null) return at;
    const asked = Math.max(this.at, this.pingedAt);
    return Math.min(at, after(asked, Math.max(Math.floor(offlineMs / 3), PING_PAUSE_MS)));
  }
}
