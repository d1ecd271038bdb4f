// Calls: what a client asks, and how answers become values or errors. No sockets, no clock.

import { randomBytes } from 'node:crypto';

import { after } from './clock.js';
import {
  BadRequest,
  NoRule,
  OutcomeUnknown,
  PermissionDenied,
  Refused,
  Unavailable,
} from './errors.js';
import { ITEMS_MAX, Item, checkedCount, checkedFlow, itemOf, named } from './items.js';
import { show } from './text.js';
import { INT_MAX, Wrong, array, hold, id, integer, isMap, text, textOrNull, uint } from './wire.js';

// Statuses and error codes of PROTOCOL.md.
const BAD_REQUEST = -4;
export const TOO_MANY_REQUEST = -2;
export const FAIL = -1;
const OK = 0;
export const BLOCKED = 1;
const SHOULD_WAIT = 2;
const NO_RULE_EXISTS = 3;
const NOT_AVAILABLE = 5;
const RELEASE_OK = 6;
export const MALFORMED = 1;
export const UNKNOWN_METHOD = 2;
export const BAD_PARAMS = 3;
const HELLO_STATE = 4;
const UNSUPPORTED = 6;
const PERMISSION = 9;

const DEFECTS = [MALFORMED, UNKNOWN_METHOD, BAD_PARAMS, HELLO_STATE, UNSUPPORTED];

const OUTCOMES = ['ok', 'failed', 'timeout'];

/** An attempt before was granted, and some of its tokens have ended since. */
export class TokenGone extends Error {}

/** The server ends, and the call was not carried out: ask again on the next connection. */
export class AskAgain extends Error {}

/** The error for `error` of a response. What it answers was not carried out. */
export function errorOf(answer) {
  const parts = array('an error', answer, 3);
  const code = integer('an error code', parts[0]);
  const message = `${text('an error', parts[1])}: ${text('an error', parts[2])}`;
  if (code === PERMISSION) return new PermissionDenied(message, code);
  if (DEFECTS.includes(code)) return new BadRequest(message, code);
  return new Unavailable(message); // OVERLOADED, CONFLICT, INTERNAL, or of a later server.
}

/** The error for a status that is neither OK nor NOT_AVAILABLE. */
function refusal(flowId, status, refusedBy, nowCalls = 0, level = 0) {
  const flow = named(flowId);
  if (status === NO_RULE_EXISTS) {
    return new NoRule(`flow ${flow} has no rule`, { flowId, status });
  }
  if (status === BAD_REQUEST) {
    const reason = refusedBy ? `, refused by ${refusedBy}` : '';
    return new BadRequest(`flow ${flow}: the server calls the request wrong${reason}`);
  }
  const full = level || nowCalls ? `: ${nowCalls} of ${level} in progress` : '';
  const message = `flow ${flow} refused by ${refusedBy || status}${full}`;
  return new Refused(message, { flowId, status, refusedBy, nowCalls, level });
}

/** One request and its outcome: a value or an error, set once. */
export class Call {
  repeatable = true; // Asked again on the next connection when this one breaks.
  persistent = false; // Asked until a server answers, although nobody waits any more.
  wantsRoom = false; // It may fall back, but not while it mayWait.
  patience = 0; // Time that the server may take, beyond the timeout.
  number = 0; // The order in which calls were asked; 0: not yet.
  deadline = Infinity; // When the session gives it up.
  attempts = 0; // How often it was sent.
  unsettled = false; // It was sent, and no answer told whether it was carried out.
  strayed = false; // An attempt was left on a connection that broke, and may still arrive.
  left = false; // Its caller will not take the outcome.
  wakeAt = null; // When its caller, who sleeps, is to have the outcome.
  sentAt = 0;
  done = false;
  value = null;
  error = null;
  notify = null; // Called once the outcome is set; set by whoever waits.

  constructor(method, params = []) {
    this.method = method;
    this.given = params;
  }

  /** Whether its caller said that it may wait for room beyond `now`. */
  mayWait() {
    return false;
  }

  params() {
    return this.given;
  }

  /** The value of an answer, or throws NowcallsError, AskAgain or Wrong. */
  decode(result) {
    return result;
  }

  settle(value = null, error = null) {
    if (this.done) return;
    this.done = true;
    this.value = value;
    this.error = error;
    this.notify?.();
  }

  /** For the caller, once: the call keeps no permit from being dropped. */
  take() {
    if (this.error !== null) throw this.error;
    const value = this.value;
    this.value = null;
    return value;
  }

  /** The error for a call that gets no answer any more. */
  noAnswer(reason) {
    if (this.unsettled) {
      return new OutcomeUnknown(`${this.method}: no answer, perhaps it was carried out: ${reason}`);
    }
    return new Unavailable(`${this.method}: not carried out: ${reason}`);
  }
}

export class Ping extends Call {
  constructor() {
    super('ping');
  }

  decode(result) {
    return uint('ledger_ms', array('an answer', result, 1)[0]);
  }
}

/** Asks for one map. */
export class Row extends Call {
  decode(result) {
    if (!isMap(result)) throw new Wrong(`the answer to ${this.method} is ${show(result, 60)}`);
    return result;
  }
}

/** Asks for rows, and the cursor of those behind them. */
export class Page extends Call {
  decode(result) {
    const [rows, cursor] = array('a page', result, 2);
    if (!array('rows', rows).every(isMap)) throw new Wrong('a row is no map');
    return [rows, cursor];
  }
}

function termsOf(value) {
  if (value === undefined || value === null) return null; // An older server.
  const parts = array('terms', value, 3);
  return {
    strategy: uint('a strategy', parts[0]),
    resourceTimeoutMs: hold(parts[1]),
    offlineMs: hold(parts[2]),
  };
}

/** What an acquire was answered for one item. tokenId is 0n for a rate. */
function grantOf(item, tokenId, fence, holdMs, terms) {
  if (item.rate) {
    id('the token of a rate', tokenId, 0n);
    return { tokenId: 0n, fence: 0n, holdMs: 0, terms: null, wait: hold(holdMs) };
  }
  const token = id('token_id', tokenId, INT_MAX);
  if (token === 0n) throw new Wrong('an acquire was answered with token 0');
  const granted = { tokenId: token, fence: id('fence', fence), holdMs: hold(holdMs) };
  return { ...granted, terms: termsOf(terms), wait: 0 };
}

/** An acquire under a request id of its own, so that asking again gives the same token. */
export class Acquire extends Call {
  wantsRoom = true;
  requestId = 0n; // Set by the session, as startedAt. The wait is counted over all attempts.
  startedAt = 0;
  keep = true;
  sleep = true;
  refusals = 0;
  refusal = null; // The last one after which it was asked once more.
  confirmed = false; // It was granted late, and asked again for what is left of its hold.
  waitUntil = 0; // When the calls of its rates may be made.
  granted = []; // Its tokens, until its caller has them.
  onLost = null;

  constructor(items, { wait = null, prioritized = false, hold: holdMs = 0 } = {}) {
    super('acquire');
    this.items = items;
    this.wait = wait;
    this.prioritized = prioritized;
    this.holdMs = holdMs;
    this.patience = wait ?? 0;
  }

  isByValue(flowId) {
    return this.items.some((item) => item.flowId === flowId && item.param !== null);
  }

  mayWait(now) {
    return this.wait !== null && now < after(this.startedAt, this.wait);
  }

  params(now) {
    const item = this.items[0];
    return [item.flowId, item.calls, this.options(now, item.param)];
  }

  options(now, param = null) {
    const options = {};
    if (this.prioritized) options.prioritized = true;
    if (this.wait !== null) {
      // A repeated acquire without wait would lose its place in the queue.
      const left = Math.ceil(Math.round((this.startedAt + this.wait - now) * 1000) / 1000);
      options.wait_ms = this.wait > 0 ? Math.max(left, 1) : 0;
    }
    options.request_id = this.requestId;
    if (this.holdMs) options.hold_ms = this.holdMs;
    if (param !== null) options.param = param;
    return options;
  }

  /** Returns { grants, nowCalls, level }. */
  decode(result) {
    const parts = array('an answer', result, 7);
    const status = integer('status', parts[0]);
    const nowCalls = uint('now_calls', parts[3]);
    const level = uint('level', parts[4]);
    if (status === OK) {
      const grant = grantOf(this.items[0], parts[1], parts[2], parts[5], parts[8]);
      return { grants: [grant], nowCalls, level };
    }
    if (status === NOT_AVAILABLE) throw new AskAgain();
    const refusedBy = textOrNull('refused_by', parts[6]);
    throw refusal(this.items[0].flowId, status, refusedBy, nowCalls, level);
  }

  /** What the caller gets. */
  outcome(permits) {
    return permits[0];
  }
}

export function acquireOf(flowId, count, param, options) {
  return new Acquire([new Item(flowId, count, param, false)], options);
}

/** An acquire of one token for each item that is no rate, of all or of none. */
export class AcquireAll extends Acquire {
  constructor(items, options = {}) {
    const listed = [...items].map(itemOf);
    if (listed.length < 1 || listed.length > ITEMS_MAX) {
      throw new BadRequest(`acquireAll takes 1 to ${ITEMS_MAX} items, not ${listed.length}`);
    }
    super(listed, options);
    this.method = 'acquire_all';
    this.sleep = options.sleep ?? true;
    // A repeat of rates alone takes anew.
    this.repeatable = !listed.every((item) => item.rate);
  }

  params(now) {
    const asked = this.items.map(({ flowId, calls, param, rate }) => {
      if (rate) return [flowId, calls, param, 1];
      return param === null ? [flowId, calls] : [flowId, calls, param];
    });
    return [asked, this.options(now)];
  }

  decode(result) {
    const parts = array('an answer', result, 6);
    const status = integer('status', parts[0]);
    const nowCalls = uint('now_calls', parts[4]);
    const level = uint('level', parts[5]);
    if (status === OK) {
      const tokens = array('tokens', parts[1]);
      if (tokens.length !== this.items.length) {
        throw new Wrong(`${tokens.length} tokens for ${this.items.length} items`);
      }
      const grants = tokens.map((token, index) =>
        grantOf(this.items[index], ...array('a token', token, 3).slice(0, 4)),
      );
      return { grants, nowCalls, level };
    }
    if (status === NOT_AVAILABLE) throw new AskAgain();
    const refusedBy = textOrNull('refused_by', parts[2]);
    if (refusedBy === 'request_id' && this.attempts > 1) throw new TokenGone();
    const flowId = this.#asked(integer('flow_id', parts[3]));
    throw refusal(flowId, status, refusedBy, nowCalls, level);
  }

  /** The name that was asked for, where the number of a refusal leaves no doubt. */
  #asked(flowId) {
    const flows = new Set(this.items.map((item) => item.flowId));
    const names = [...flows].filter((flow) => typeof flow === 'string');
    return names.length === 1 && flowId !== 0 && !flows.has(flowId) ? names[0] : flowId;
  }

  outcome(permits) {
    return permits;
  }
}

/** Ends whatever a request id stands for; nobody waits for it. */
export class Cancel extends Call {
  persistent = true;

  constructor(requestId) {
    super('cancel', [requestId]);
  }
}

/** Gives a token back. Value: true, or false if the token had ended before. */
export class Release extends Call {
  persistent = true;

  /** leaves: for the end of a block, which does not wait for a server that is not there. */
  constructor(held, outcome = 'ok', leaves = false) {
    if (!OUTCOMES.includes(outcome)) {
      throw new BadRequest(`outcome must be one of ${OUTCOMES.join(', ')}, not ${show(outcome)}`);
    }
    super('release', outcome === 'ok' ? [held.tokenId] : [held.tokenId, { outcome }]);
    this.held = held;
    this.leaves = leaves;
  }

  forgetOutcome() {
    this.given.length = 1;
  }

  decode(result) {
    // After a first attempt without an answer, "gone" may be the work of that attempt.
    const status = integer('status', array('an answer', result, 1)[0]);
    return status === RELEASE_OK || this.attempts > 1;
  }
}

/**
 * Renews a token's hold. Value: { holdMs, terms }, or null if the token has ended.
 *
 * Not asked again: the next connection begins with a keep of its own.
 */
export class Keep extends Call {
  repeatable = false;

  constructor(held) {
    super('keep', [held.tokenId]);
    this.held = held;
  }

  decode(result) {
    const parts = array('an answer', result, 2);
    if (integer('status', parts[0]) !== OK) return null;
    return { holdMs: hold(parts[1]), terms: termsOf(parts[2]) };
  }
}

/** Calls a second. Not asked again: each time counts. Value: { remaining, wait }. */
export class RateRequest extends Call {
  repeatable = false;
  wantsRoom = true;
  passed = null;

  constructor(flowId, count, { values = null, prioritized = false, sleep = true } = {}) {
    const flow = checkedFlow(flowId);
    const calls = checkedCount(count);
    super(values === null ? 'request' : 'request_param', [flow, calls]);
    this.flowId = flow;
    this.count = calls;
    this.values = values;
    this.sleep = sleep;
    if (values !== null) this.given.push(values);
    if (prioritized) this.given.push(true);
  }

  decode(result) {
    const parts = array('an answer', result, 4);
    const status = integer('status', parts[0]);
    const remaining = integer('remaining', parts[1]);
    const wait = hold(parts[2]);
    if (status === OK || status === SHOULD_WAIT) return { remaining, wait };
    throw refusal(this.flowId, status, textOrNull('refused_by', parts[3]));
  }
}

/** 63 random bits, never 0: unique also across processes that share a client id. */
export function newRequestId() {
  return randomBytes(8).readBigUInt64BE() >> 1n || 1n;
}
