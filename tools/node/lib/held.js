// Held: a token of a session, or a local stand-in; HeldTokens: those of the server, and when to
// look after each.
//
// A token is surely the client's until `validUntil`, by the client's own clock:
//
//     min(sent time of the last confirmed grant or keep + hold,
//         sent time of the latest request that was answered + clientOfflineTime), less a margin

import { after } from './clock.js';
import { Heap } from './heap.js';

// LOST: by this client's own clock, so the server is still to be told when the owner lets go.
export const HELD = 'held';
export const LOST = 'lost';
export const RELEASING = 'releasing';
export const ENDED = 'ended';
// resourceTimeoutStrategy.
const RELEASES = 1;
const KEEPS = 2;

const KEEP_PAUSE_MS = 10; // Between two keeps of a token, whatever hold a server tells.
const MARGIN_MS = 2; // And a hundredth of the span.
const RELEASE_MARGIN_MS = 50; // So that the server does not count a release as late.

/** The time of a server that a client counts on. */
export function span(ms) {
  return ms - Math.floor(ms / 100) - MARGIN_MS;
}

/** The live tokens of an acquire of which an attempt may still arrive. */
export class Stray {
  constructor(requestId, tokens) {
    this.requestId = requestId;
    this.tokens = new Set(tokens);
  }
}

export class Held {
  constructor(item, contact) {
    this.flowId = item.flowId;
    this.count = item.calls;
    this.param = item.param;
    this.tokenId = 0n;
    this.fence = 0n;
    this.holdMs = 0;
    this.nowCalls = 0;
    this.level = 0;
    this.local = false;
    this.terms = null; // What its rule says of it: strategy, resourceTimeoutMs, offlineMs.
    this.keep = false; // true: as the rule has it. "always": kept. false: not kept.
    this.onLost = null;
    this.stray = null;
    this.state = HELD;
    this.toldLost = false; // By the session.
    this.foundLost = false; // By whoever asked first.
    this.dropped = false; // Its program forgot the permit, rather than to release it.
    this.lostReason = null;
    this.grantedAt = 0;
    this.confirmedAt = 0;
    this.keepAt = Infinity; // When to keep it next.
    this.dueAt = Infinity; // When to look after it, unless contact ends before.
    this.contact = contact;
    this.grip = null; // A WeakRef of its permit.
    this.lostSignal = null; // An AbortController, once its program asked for the signal.
  }

  get permit() {
    return this.grip?.deref() ?? null;
  }

  get holdUntil() {
    return this.local ? Infinity : after(this.confirmedAt, span(this.holdMs));
  }

  get contactUntil() {
    if (this.local || this.terms === null) return Infinity;
    return after(this.contact.at, span(this.terms.offlineMs));
  }

  get validUntil() {
    return Math.min(this.holdUntil, this.contactUntil);
  }

  /** Final: once it has been true, no answer of the server makes it false. */
  get lost() {
    if (this.state === HELD && this.contact.clock() >= this.validUntil) this.foundLost = true;
    return this.toldLost || this.foundLost;
  }

  get reason() {
    if (this.toldLost || this.local) return this.lostReason;
    return this.holdUntil <= this.contactUntil ? 'resource_timeout' : 'client_offline';
  }

  /** Whether the server, or the fallback, is still to be told that its owner let go. */
  get open() {
    return this.state === HELD || this.state === LOST;
  }

  get isKept() {
    if (this.keep === true) return this.terms === null || this.terms.strategy === KEEPS;
    return this.keep === 'always';
  }

  /** When the client is to release it: a little before the rule's resourceTimeout. */
  get releaseAt() {
    if (this.keep !== true || this.terms === null) return Infinity;
    if (this.terms.strategy !== RELEASES) return Infinity;
    const timeout = this.terms.resourceTimeoutMs;
    const margin = Math.min(RELEASE_MARGIN_MS, Math.floor(timeout / 10));
    return after(this.grantedAt, timeout - margin);
  }

  planKeep(since) {
    const pause = Math.max(Math.floor(this.holdMs / 3) + 1, KEEP_PAUSE_MS);
    this.keepAt = this.isKept ? after(since, pause) : Infinity;
  }
}

export class HeldTokens {
  #tokens = new Map();
  #due = new Heap(); // Most entries are outdated.
  #offline = new Map(); // Numbers of tokens by their clientOfflineTime.

  get size() {
    return this.#tokens.size;
  }

  find(tokenId) {
    return this.#tokens.get(tokenId);
  }

  all() {
    return [...this.#tokens.values()].sort((a, b) => (a.tokenId < b.tokenId ? -1 : 1));
  }

  add(held) {
    this.#tokens.set(held.tokenId, held);
    this.#count(held, 1);
  }

  remove(held) {
    if (this.#tokens.get(held.tokenId) !== held) return false;
    this.#tokens.delete(held.tokenId);
    this.#count(held, -1);
    return true;
  }

  changeTerms(held, terms) {
    this.#count(held, -1);
    held.terms = terms;
    this.#count(held, 1);
  }

  /** The smallest clientOfflineTime, or null if none is known. */
  get offlineMs() {
    return this.#offline.size > 0 ? Math.min(...this.#offline.keys()) : null;
  }

  /** When the first token is lost unless there is contact. */
  contactUntil(contact) {
    const offlineMs = this.offlineMs;
    return offlineMs === null ? Infinity : after(contact.at, span(offlineMs));
  }

  /** Looks after it when its next moment comes. */
  plan(held) {
    held.dueAt = Math.min(held.keepAt, held.releaseAt, held.holdUntil);
    this.#due.push([held.dueAt, held.tokenId]);
    if (this.#due.size > 64 + 4 * this.#tokens.size) {
      this.#due.filter((entry) => this.#isCurrent(entry));
    }
  }

  get nextAt() {
    while (this.#due.size > 0 && !this.#isCurrent(this.#due.first)) this.#due.pop();
    return this.#due.size > 0 ? this.#due.first[0] : Infinity;
  }

  /** One whose moment has come, or null. It must be planned again, or removed. */
  takeDue(now) {
    return this.nextAt > now ? null : this.#tokens.get(this.#due.pop()[1]);
  }

  #isCurrent(entry) {
    return this.#tokens.get(entry[1])?.dueAt === entry[0];
  }

  #count(held, change) {
    if (held.terms === null) return;
    const offlineMs = held.terms.offlineMs;
    const number = (this.#offline.get(offlineMs) ?? 0) + change;
    if (number > 0) this.#offline.set(offlineMs, number);
    else this.#offline.delete(offlineMs);
  }
}
