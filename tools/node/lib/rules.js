// Rule: what a client must know of a rule, and Rules, those that it has seen. The fields are those
// of rules_list (PROTOCOL.md, "The client's half of a rule").

import { Call } from './calls.js';
import { isMap, numberIfExact, numberOr } from './wire.js';

const FLOWS_MAX = 10_000;
const FRESH_MS = 30_000;
export const WINDOW_MS = 1000;

// acquireRefuseStrategy.
export const ONCE_MORE = 1;
export const UNTIL_DEADLINE = 2;

class Rule {
  /** Fields of other types count as left out. */
  constructor(row) {
    const config = isMap(row.clusterConfig) ? row.clusterConfig : {};
    this.acquireRefuse = Math.trunc(numberOr(config.acquireRefuseStrategy, 0));
    this.fallbackToLocal = config.fallbackToLocalWhenFail === true;
    this.isGlobal = config.thresholdType === 1;
    this.limit = countOf(row);
    this.items = itemsOf(row); // Counts of values, by their text.
    this.countPerWindow = config.countPerWindow === true;
    let windowMs = numberOr(config.windowIntervalMs, WINDOW_MS);
    if ('threshold' in row) {
      // sentinel-golang has its window beside it.
      this.countPerWindow = true;
      windowMs = numberOr(row.statIntervalInMs, 1000 * numberOr(row.durationInSec, 1));
    }
    this.windowMs = Math.trunc(windowMs);
  }

  /** The calls that one of the sessions may have in progress. */
  share(param, sessions) {
    return this.#part(this.#countOf(param), sessions);
  }

  /** The calls that one of the sessions may make in a window. */
  windowShare(param, sessions) {
    const calls = this.#countOf(param);
    return this.#part(this.countPerWindow ? calls : (calls * this.windowMs) / 1000, sessions);
  }

  #countOf(param) {
    return param === null ? this.limit : (this.items.get(String(param)) ?? this.limit);
  }

  #part(calls, sessions) {
    if (calls <= 0) return 0;
    return Math.trunc(this.isGlobal ? Math.max(1, calls / Math.max(1, sessions)) : calls);
  }
}

/** Of Sentinel's rules, or sentinel-golang's. */
function countOf(fields) {
  return numberOr(fields.count, numberOr(fields.threshold, 0));
}

function itemsOf(row) {
  const items = new Map();
  for (const [name, value] of [
    ['paramFlowItemList', 'object'],
    ['specificItems', 'valStr'],
  ]) {
    for (const item of Array.isArray(row[name]) ? row[name] : []) {
      if (isMap(item) && typeof item[value] === 'string') items.set(item[value], countOf(item));
    }
  }
  return items;
}

/** Servers that know no kinds do not say it, but a key of the rule does. */
function isByValue(row) {
  if ('kind' in row) return row.kind === 'value';
  return 'paramIdx' in row || 'paramIndex' in row;
}

/**
 * Asks for the rules of a flow: it may have one of all calls and one by value.
 *
 * A number is found behind a cursor, as in every version; a name by servers that know names.
 */
export class RuleCall extends Call {
  constructor(flowId) {
    const isName = typeof flowId === 'string';
    const behind = typeof flowId === 'bigint' ? flowId - 1n : flowId - 1;
    super('rules_list', isName ? [null, 2, null, flowId] : [null, 2, behind]);
    this.flowId = flowId;
  }

  /** A Map by whether it is the rule by value; none of what is not clearly one of this flow. */
  decode(result) {
    const rules = new Map();
    const page = Array.isArray(result) ? result[0] : null;
    for (const row of Array.isArray(page) ? page.filter(isMap) : []) {
      const config = isMap(row.clusterConfig) ? row.clusterConfig : {};
      let flow = typeof this.flowId === 'string' ? row.resource : config.flowId;
      if (typeof flow === 'bigint') flow = numberIfExact(flow);
      if (flow === this.flowId) rules.set(isByValue(row), new Rule(row));
    }
    return rules;
  }
}

/** Rules by flow, with the moment when they were seen. The oldest are forgotten. */
export class Rules {
  #seen = new Map();

  learn(flowId, rules, now) {
    this.#seen.delete(flowId);
    this.#seen.set(flowId, { rules, at: now });
    if (this.#seen.size > FLOWS_MAX) this.#seen.delete(this.#seen.keys().next().value);
  }

  isStale(flowId, now) {
    const seen = this.#seen.get(flowId);
    return seen === undefined || now - seen.at > FRESH_MS;
  }

  find(flowId, byValue) {
    return this.#seen.get(flowId)?.rules.get(byValue) ?? null;
  }
}
