// Client: what programs call. A link does the rest.

import { AcquireAll, Keep, Page, Ping, RateRequest, Release, Row, acquireOf } from './calls.js';
import { now } from './clock.js';
import { checkCallback, checkKeep, checkKeys, checkTime, makeConfig } from './config.js';
import { BadRequest, NowcallsError, OutcomeUnknown, Unavailable } from './errors.js';
import { HELD } from './held.js';
import { checkedFlow, valuesOf } from './items.js';
import { Link } from './link.js';
import { ASYNC_DISPOSE, Permit, describe } from './permit.js';
import { rowOf } from './rows.js';
import { whenAborted } from './signals.js';
import { show } from './text.js';

const PAGE_ROWS = 100;

// The options of calls, and what holds where they are left out.
const WAITS = { timeout: null, signal: null };
const OF_PERMITS = { wait: null, prioritized: false, keep: null, onLost: null, ...WAITS };
const OF_ACQUIRE = { count: 1, param: null, ...OF_PERMITS };
const OF_ACQUIRE_ALL = { sleep: true, ...OF_PERMITS };
const OF_REQUEST = { count: 1, prioritized: false, sleep: true, ...WAITS };
const OF_REQUEST_PARAM = { count: 1, sleep: true, ...WAITS };
const OF_TOKENS = { flowId: null, clientId: null };

/** A client of one namespace. index.d.ts tells of its methods. */
export class Client {
  #config;
  #link;
  #closing = null; // A promise.

  constructor(settings = {}) {
    this.#config = makeConfig(settings);
    this.#link = new Link(this.#config, this, (held) => this.#tellLost(held));
  }

  // Permits.

  async acquire(flowId, options = {}) {
    const given = optionsOf('acquire', options, OF_ACQUIRE);
    const call = acquireOf(flowId, given.count, given.param, given);
    return this.#acquire(call, given);
  }

  async acquireAll(items, options = {}) {
    const given = optionsOf('acquireAll', options, OF_ACQUIRE_ALL);
    if (!Array.isArray(items)) throw new BadRequest(`items must be an array, not ${show(items)}`);
    return this.#acquire(new AcquireAll(items, given), given);
  }

  async run(flowId, ...rest) {
    const [options, work] = rest.length > 1 ? rest : [{}, rest[0]];
    if (typeof work !== 'function') {
      throw new BadRequest(`run takes a function, not ${show(work)}`);
    }
    const permit = await this.acquire(flowId, options);
    let outcome = 'ok';
    try {
      return await work(permit);
    } catch (error) {
      outcome = ['AbortError', 'TimeoutError'].includes(error?.name) ? 'timeout' : 'failed';
      throw error;
    } finally {
      await this.leaveHeld(Permit.heldOf(permit), outcome);
    }
  }

  #acquire(call, { keep, onLost, timeout, signal }) {
    call.keep = keep ?? this.#config.keep;
    checkKeep(call.keep);
    checkCallback(onLost);
    call.onLost = onLost;
    return this.#ask(call, timeout, signal);
  }

  // Calls a second.

  async request(flowId, options = {}) {
    const given = optionsOf('request', options, OF_REQUEST);
    return this.#ask(new RateRequest(flowId, given.count, given), given.timeout, given.signal);
  }

  async requestParam(flowId, values, options = {}) {
    const given = optionsOf('requestParam', options, OF_REQUEST_PARAM);
    const call = new RateRequest(flowId, given.count, { ...given, values: valuesOf(values) });
    return this.#ask(call, given.timeout, given.signal);
  }

  // What the server knows.

  async ping(options = {}) {
    const { timeout, signal } = optionsOf('ping', options, WAITS);
    return this.#ask(new Ping(), timeout, signal);
  }

  async flow(flowId, options = {}) {
    const { timeout, signal } = optionsOf('flow', options, WAITS);
    return rowOf(await this.#ask(new Row('flow', [checkedFlow(flowId)]), timeout, signal));
  }

  flows() {
    return this.#rows('flows');
  }

  sessions() {
    return this.#rows('sessions');
  }

  tokens(options = {}) {
    const { flowId, clientId } = optionsOf('tokens', options, OF_TOKENS);
    const filter = {};
    if (flowId !== null) filter.flow_id = checkedFlow(flowId);
    if (clientId !== null) filter.client_id = clientId;
    return this.#rows('tokens', filter);
  }

  history() {
    return this.#rows('history');
  }

  stats() {
    return this.#link.session.stats();
  }

  // The end.

  close() {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close() {
    try {
      await this.#link.drain(this.#config.timeout);
    } finally {
      this.#link.stop();
    }
  }

  [ASYNC_DISPOSE]() {
    return this.close();
  }

  // For permits.

  async releaseHeld(held, outcome, options) {
    const { timeout, signal } = optionsOf('release', options, WAITS);
    return this.#release(held, new Release(held, outcome), timeout, signal);
  }

  async keepHeld(held, options) {
    const { timeout, signal } = optionsOf('keep', options, WAITS);
    if (held.local || held.state !== HELD || held.lost) return held.local && held.state === HELD;
    return (await this.#ask(new Keep(held), timeout, signal)) !== null;
  }

  async leaveHeld(held, outcome) {
    try {
      await this.#release(held, new Release(held, outcome, true), null, null);
    } catch (error) {
      if (!(error instanceof Unavailable || error instanceof OutcomeUnknown)) throw error;
      const how = this.#closing === null ? 'released in the background' : 'not released';
      this.#config.logger.warn(`${describe(held)} is ${how}: ${error.message}`);
    }
  }

  // Calls.

  async #release(held, call, timeout, signal) {
    if (!held.open) return !held.lost;
    const { session } = this.#link;
    const ask = () => session.release(call, now(), timeout);
    return this.#outcome(call, ask, timeout, signal, () => session.drop(held, now()));
  }

  #ask(call, timeout, signal) {
    if (this.#closing !== null) throw new BadRequest('the client is closed');
    const { session } = this.#link;
    const ask = () => session.ask(call, now(), timeout);
    return this.#outcome(call, ask, timeout, signal, () => session.abandon(call, now()));
  }

  /** Asks, and waits for the outcome. leave: of a call whose caller does not want it any more. */
  #outcome(call, ask, timeout, signal, leave) {
    if (timeout !== null) checkTime('timeout', timeout);
    checkSignal(signal);
    return new Promise((resolve, reject) => {
      const aborted = () => {
        call.notify = null;
        leave();
        this.#link.pumpSoon();
        reject(signal.reason);
      };
      if (signal?.aborted) {
        aborted();
        return;
      }
      const stop = signal === null ? () => {} : whenAborted(signal, aborted);
      call.notify = () => {
        stop();
        if (call.error !== null) reject(call.error);
        else resolve(call.take());
      };
      ask();
      this.#link.pumpSoon();
    });
  }

  async *#rows(method, ...head) {
    let cursor = null;
    let patience = now() + this.#config.timeout;
    for (;;) {
      const call = new Page(method, [...head, PAGE_ROWS, cursor]);
      const [rows, next] = await this.#ask(call, null, null);
      yield* rows.map((row) => rowOf(row));
      if (next === null) return;
      if (rows.length > 0) patience = now() + this.#config.timeout;
      if (next === cursor || now() > patience) {
        throw new NowcallsError(`${method}: the server's pages do not end`);
      }
      cursor = next;
    }
  }

  #tellLost(held) {
    const { permit } = held;
    if (permit === null) return;
    const { logger } = this.#config;
    const failed = (error) =>
      logger.error(`onLost of ${describe(held)} failed: ${error?.stack ?? error}`);
    for (const callback of [held.onLost, this.#config.onLost]) {
      if (callback === null) continue;
      try {
        Promise.resolve(callback(permit)).catch(failed);
      } catch (error) {
        failed(error);
      }
    }
  }
}

function optionsOf(method, given, defaults) {
  checkKeys(method, given, defaults);
  const options = { ...defaults };
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined) options[name] = value;
  }
  if (options.wait !== undefined && options.wait !== null) checkTime('wait', options.wait);
  for (const name of ['prioritized', 'sleep']) {
    if (name in options && typeof options[name] !== 'boolean') {
      throw new BadRequest(`${name} must be true or false, not ${show(options[name])}`);
    }
  }
  return options;
}

function checkSignal(signal) {
  if (signal !== null && typeof signal?.addEventListener !== 'function') {
    throw new BadRequest(`signal must be an AbortSignal, not ${show(signal)}`);
  }
}
