// Dialing: which address a session dials next, and when.
//
// Addresses are tried in rows. Between rows, and after a connection that was of no use, comes a
// random pause whose bound doubles. So clients that lose a server do not come back in step.

import { after } from './clock.js';

const PAUSE_MIN_MS = 50;
const PAUSE_MAX_MS = 2000;
const DOUBLINGS_MAX = 10;

export class Dialing {
  #addresses;
  #uniform;
  #index = 0;
  #failures = 0; // Attempts and useless connections since the last useful one.

  /** at: when to dial; infinite while the client dials or is connected. */
  constructor(addresses, now, uniform) {
    this.at = now;
    this.#addresses = addresses;
    this.#uniform = uniform;
  }

  get address() {
    return this.#addresses[this.#index % this.#addresses.length];
  }

  get name() {
    return `${this.address.host}:${this.address.port}`;
  }

  get allFailed() {
    return this.#failures >= this.#addresses.length;
  }

  begin() {
    this.at = Infinity;
  }

  failed(now) {
    this.#index += 1;
    this.#failures += 1;
    const rows = Math.floor(this.#failures / this.#addresses.length);
    let bound = 0;
    if (this.#failures % this.#addresses.length === 0) {
      bound = Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(rows, DOUBLINGS_MAX));
    }
    this.at = after(now, this.#uniform(0, bound));
  }

  /** A useful connection ended: its address comes first again, after a short pause. */
  ended(now) {
    this.#failures = 0;
    this.at = after(now, this.#uniform(0, PAUSE_MIN_MS));
  }
}
