// Items: the flows, counts and values that a program names, checked.

import { BadRequest } from './errors.js';
import { bytesOf, isWellFormed, show } from './text.js';
import { INT_MAX, numberIfExact } from './wire.js';

export const ITEMS_MAX = 64;
const RESOURCE_BYTES_MAX = 1024;
const COUNT_MAX = 2 ** 31 - 1;

export class Item {
  constructor(flowId, calls, param, isRate) {
    this.flowId = checkedFlow(flowId);
    this.calls = checkedCount(calls);
    this.param = checkedScalar('param', param);
    this.rate = isRate;
  }
}

/** An item of acquireAll that asks for calls a second, and holds nothing. */
export function rate(flowId, count = 1, param = null) {
  return new Item(flowId, count, param, true);
}

/** Of a flow, or [flow, count], or [flow, count, param], or a rate. */
export function itemOf(item) {
  if (item instanceof Item) return item;
  const parts = Array.isArray(item) ? item : [item];
  if (parts.length < 1 || parts.length > 3) {
    throw new BadRequest(`an item is [flowId, count, param], not ${show(item)}`);
  }
  const [flowId, count = 1, param = null] = parts;
  return new Item(flowId, count, param, false);
}

/** What is neither a number nor a name would not reach a server. */
export function checkedFlow(flowId) {
  if (typeof flowId !== 'string') {
    return checkedInteger('flowId', flowId, INT_MAX, 'an integer or a string');
  }
  const size = bytesOf(flowId);
  if (size < 1 || size > RESOURCE_BYTES_MAX) {
    throw new BadRequest(`flowId must be 1 to ${RESOURCE_BYTES_MAX} bytes, not ${size}`);
  }
  if (!isWellFormed(flowId)) throw new BadRequest('flowId must not have half characters');
  return flowId;
}

export function checkedCount(count) {
  return checkedInteger('count', count, COUNT_MAX, 'an integer');
}

function checkedInteger(what, value, most, kind) {
  const known = typeof value === 'bigint' ? numberIfExact(value) : value;
  if (typeof known !== 'bigint' && !Number.isInteger(known)) {
    throw new BadRequest(`${what} must be ${kind}, not ${show(value)}`);
  }
  if (!(known >= 1 && known <= most)) {
    throw new BadRequest(`${what} must be 1 to ${most}, not ${value}`);
  }
  if (typeof known === 'number' && !Number.isSafeInteger(known)) {
    throw new BadRequest(`${what} is rounded; give ${value} as a bigint`);
  }
  return known;
}

/** A value of a parameter, or null. The server closes a connection for types it does not know. */
export function checkedScalar(what, value) {
  if (value === null || value === undefined) return null;
  if (typeof value === 'bigint') {
    if (value < -INT_MAX - 1n || value > INT_MAX) {
      throw new BadRequest(`${what} must be an integer of 64 bits, not ${value}`);
    }
    return numberIfExact(value);
  }
  if (!['number', 'boolean', 'string'].includes(typeof value)) {
    throw new BadRequest(
      `${what} must be a number, bigint, boolean or string, not ${show(value, 60)}`,
    );
  }
  if (Number.isNaN(value)) throw new BadRequest(`${what} must not be NaN`);
  if (typeof value === 'string' && !isWellFormed(value)) {
    throw new BadRequest(`${what} must not have half characters`);
  }
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new BadRequest(`${what} is rounded; give an integer above 2^53 as a bigint`);
  }
  return value;
}

/** The values of a request by parameter, checked. */
export function valuesOf(values) {
  if (!Array.isArray(values)) {
    throw new BadRequest(`values must be an array of values, not ${show(values)}`);
  }
  return values.map((value) => checkedScalar('a value', value));
}

/** A flow in a message. */
export function named(flowId) {
  return typeof flowId === 'string' ? `'${flowId}'` : String(flowId);
}
