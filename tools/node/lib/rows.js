// Rows of listings: as servers send them, with ids as bigint and other integers as numbers.

import { isMap, numberIfExact } from './wire.js';

const IDS = ['token_id', 'fence', 'session', 'instance', 'request_id'];

export function rowOf(value, name = '') {
  if (Array.isArray(value)) return value.map((item) => rowOf(item));
  if (isMap(value)) {
    const entries = Object.entries(value).map(([key, item]) => [key, rowOf(item, key)]);
    return Object.fromEntries(entries);
  }
  if (typeof value === 'bigint') return IDS.includes(name) ? value : numberIfExact(value);
  return IDS.includes(name) && Number.isSafeInteger(value) ? BigInt(value) : value;
}
