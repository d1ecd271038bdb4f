// Fallback: what happens to calls that no server answers, or that it cannot take.
//
// It counts the calls in progress of this session, under tokens of the server and local ones, and
// local calls a second in one window that begins anew when it is over.

import { Refused } from './errors.js';
import { named } from './items.js';
import { WINDOW_MS } from './rules.js';

const WINDOWS_MAX = 10_000;

/** A value of one type is never one of another. */
function keyOf(flowId, param) {
  const kind = Number.isInteger(param) || typeof param === 'bigint' ? 'integer' : typeof param;
  return `${typeof flowId}:${kind}:${String(flowId).length}:${flowId}${param}`;
}

/** Nothing is known that could limit the flow. */
class Unknown extends Error {}

/** Admits up to this process's share of a limit, as `mode` says. */
export class Fallback {
  granted = 0;
  refused = 0;
  passed = 0;
  #rules;
  #configured; // A Map of levels by flow.
  #inProgress = new Map();
  #windows = new Map();

  constructor(mode, levels, rules) {
    this.mode = mode;
    this.#configured = levels;
    this.#rules = rules;
  }

  get active() {
    return this.mode !== 'fail';
  }

  get followsRules() {
    return this.mode === 'rule' || this.mode === 'local';
  }

  // Calls in progress.

  enter(held) {
    const key = keyOf(held.flowId, held.param);
    this.#inProgress.set(key, (this.#inProgress.get(key) ?? 0) + held.count);
  }

  leave(held) {
    const key = keyOf(held.flowId, held.param);
    const left = (this.#inProgress.get(key) ?? 0) - held.count;
    if (left > 0) this.#inProgress.set(key, left);
    else this.#inProgress.delete(key);
  }

  // Decisions.

  /** Local tokens, null for a rate; or null if there is no fallback. May throw Refused. */
  decideAcquire(call, sessions, now, make) {
    const taken = [];
    try {
      for (const item of call.items) {
        if (item.rate) {
          this.#pass(item, sessions, now);
          taken.push(null);
        } else {
          taken.push(this.#take(call, item, sessions, make));
        }
      }
      return taken;
    } catch (error) {
      taken.forEach((held, index) => this.#giveBack(call.items[index], held));
      if (error instanceof Unknown) return null;
      throw error;
    }
  }

  /** As decideAcquire. */
  decideRate(call, sessions, now) {
    const values = call.values ?? [null];
    const passed = [];
    try {
      for (const param of values) {
        const item = { flowId: call.flowId, calls: call.count, param, rate: true };
        this.#pass(item, sessions, now);
        passed.push(item);
      }
      return { remaining: -1, wait: 0 };
    } catch (error) {
      for (const item of passed) this.#giveBack(item, null);
      if (error instanceof Unknown) return null;
      throw error;
    }
  }

  #take(call, item, sessions, make) {
    const before = this.#inProgress.get(keyOf(item.flowId, item.param)) ?? 0;
    const level = this.#judge(item, before, this.#share(item, sessions), 'level');
    const held = make(call, item);
    held.local = true;
    held.nowCalls = before + item.calls;
    held.level = level;
    this.enter(held);
    return held;
  }

  #pass(item, sessions, now) {
    const share = this.#share(item, sessions);
    const key = keyOf(item.flowId, item.param);
    let { begin, calls } = this.#windows.get(key) ?? { begin: now, calls: 0 };
    if (now - begin >= this.#windowMs(item)) [begin, calls] = [now, 0];
    this.#judge(item, calls, share, item.param === null ? 'rate' : 'param');
    if (this.#windows.size >= WINDOWS_MAX && !this.#windows.has(key)) this.#windows.clear();
    this.#windows.set(key, { begin, calls: calls + item.calls });
  }

  #giveBack(item, held) {
    if (held !== null) {
      this.leave(held);
      return;
    }
    const window = this.#windows.get(keyOf(item.flowId, item.param));
    if (window !== undefined) window.calls = Math.max(0, window.calls - item.calls);
  }

  /** null: calls pass. Throws Unknown if nothing is known that could limit them. */
  #share(item, sessions) {
    if (this.mode === 'pass') return null;
    const configured = this.#configured.get(item.flowId);
    if (configured !== undefined) return configured;
    const rule = this.#rules.find(item.flowId, item.param !== null);
    if (this.mode === 'rule' && !rule?.fallbackToLocal) return null;
    if (rule === null) throw new Unknown();
    return item.rate ? rule.windowShare(item.param, sessions) : rule.share(item.param, sessions);
  }

  #windowMs(item) {
    return this.#rules.find(item.flowId, item.param !== null)?.windowMs ?? WINDOW_MS;
  }

  /** Returns the level: 0 if calls pass, whatever is in progress. */
  #judge(item, before, share, limit) {
    if (share === null) {
      this.passed += 1;
      return 0;
    }
    if (before + item.calls > share) {
      this.refused += 1;
      const flow = named(item.flowId);
      throw new Refused(
        `flow ${flow} refused by the local share: ${before} of ${share} in progress`,
        { flowId: item.flowId, refusedBy: limit, nowCalls: before, level: share, local: true },
      );
    }
    this.granted += 1;
    return share;
  }
}
