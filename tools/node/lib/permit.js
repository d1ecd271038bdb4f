// Permit: what a program holds of a token.

import { NowcallsError } from './errors.js';
import { HELD } from './held.js';
import { named } from './items.js';

const ASYNC_DISPOSE = Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose');
const INSPECT = Symbol.for('nodejs.util.inspect.custom');
const DELAY_MAX_MS = 2 ** 31 - 1; // Of setTimeout, which takes 1 ms for a longer one.

/** One token, or a local stand-in for it when no server answers. */
export class Permit {
  #held;
  #client;
  #wait = 0;

  /** client: has releaseHeld and keepHeld. */
  constructor(held, client) {
    this.#held = held;
    this.#client = client;
  }

  static heldOf(permit) {
    return permit.#held;
  }

  static setWait(permit, wait) {
    permit.#wait = wait;
  }

  /** As asked for, as count and param. */
  get flowId() {
    return this.#held.flowId;
  }

  get count() {
    return this.#held.count;
  }

  get param() {
    return this.#held.param;
  }

  /** The server's id of the token; 0n for a local permit. */
  get tokenId() {
    return this.#held.tokenId;
  }

  /**
   * Grows with each grant; 0n for a local permit. A resource that remembers the highest fence it
   * has seen can refuse stale holders.
   */
  get fence() {
    return this.#held.fence;
  }

  /** After so many ms without a keep the server takes the token back; 0 for a local permit. */
  get holdMs() {
    return this.#held.holdMs;
  }

  /** Calls in progress at the grant, this one included. */
  get nowCalls() {
    return this.#held.nowCalls;
  }

  /** Their limit. */
  get level() {
    return this.#held.level;
  }

  /** Granted by the fallback of this process. */
  get local() {
    return this.#held.local;
  }

  /**
   * The token ended, and this client did not release it; or this client, by its own clock, cannot
   * be sure of it any more. Once true it stays so.
   */
  get lost() {
    return this.#held.lost;
  }

  /** The server's word for the reason, such as "admin"; null if it is not known. */
  get lostReason() {
    return this.#held.lost ? this.#held.reason : null;
  }

  /** An AbortSignal that is aborted when the permit is lost. */
  get signal() {
    const held = this.#held;
    held.lostSignal ??= new AbortController();
    if (held.lost) tellSignal(held);
    return held.lostSignal.signal;
  }

  /**
   * Until when the token is surely this client's, in ms of now(). Each keep and each answer of the
   * server moves it on. Infinity for a local permit.
   */
  get validUntil() {
    return this.#held.validUntil;
  }

  /**
   * Milliseconds until then; 0 once it is lost or released. At most the longest delay that
   * setTimeout takes, which is that of a local permit.
   */
  get validFor() {
    const held = this.#held;
    if (held.state !== HELD || held.lost) return 0;
    return Math.min(Math.max(0, held.validUntil - held.contact.clock()), DELAY_MAX_MS);
  }

  /** Whether release was called. */
  get released() {
    return this.#held.state !== HELD && !this.#held.lost;
  }

  /**
   * Milliseconds to sleep before the call; above 0 only in a group with rates whose calls were told
   * to wait, and that was not to sleep.
   */
  get wait() {
    return this.#wait;
  }

  /** Gives the token back; a second time does nothing. See index.d.ts. */
  release(outcome = 'ok', options = {}) {
    return this.#client.releaseHeld(this.#held, outcome, options);
  }

  /** Renews holdMs now. False if the token is lost. */
  keep(options = {}) {
    return this.#client.keepHeld(this.#held, options);
  }

  /** The end of a block, which has done its work whether or not the server is there. */
  [ASYNC_DISPOSE]() {
    return this.#client.leaveHeld(this.#held, 'ok');
  }

  [INSPECT]() {
    return describe(this.#held);
  }
}

/** Aborts what works under a token that was lost. */
export function tellSignal(held) {
  if (held.lostSignal === null || held.lostSignal.signal.aborted) return;
  const why = held.reason ?? 'it had ended';
  const text = `lost token ${held.tokenId} of flow ${named(held.flowId)}: ${why}`;
  held.lostSignal.abort(new NowcallsError(text));
}

export function describe(held) {
  const state = held.lost ? 'lost' : held.local ? 'local' : held.state;
  return `<Permit flow ${named(held.flowId)} token ${held.tokenId} fence ${held.fence}, ${state}>`;
}

export { ASYNC_DISPOSE };
