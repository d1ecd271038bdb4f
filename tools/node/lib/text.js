// Text: how values are shown in messages.

import { domainToASCII } from 'node:url';
import { getSystemErrorMap, inspect } from 'node:util';

const LABEL_BYTES_MAX = 63;
const OF_NAMES = new Map([
  ['ENOTFOUND', 'Name or service not known'],
  ['EAI_AGAIN', 'Temporary failure in name resolution'],
]);

/** A value as it is written in a program, cut. */
export function show(value, most = 100) {
  const text = inspect(value, { depth: 1, breakLength: Infinity, maxArrayLength: 20 });
  return text.length > most ? text.slice(0, most) : text;
}

export function isWellFormed(text) {
  return !/\p{Surrogate}/u.test(text);
}

/** Whether it has control characters or half characters. */
export function hasControls(text) {
  return /[\p{Cc}\p{Cs}]/u.test(text);
}

export function bytesOf(text) {
  return Buffer.byteLength(text);
}

/** Whether a resolver takes it. */
export function isHost(host) {
  if (hasControls(host) || /\s/.test(host)) return false;
  const name = domainToASCII(host).replace(/\.$/, '');
  return name.split('.').every((label) => label.length > 0 && label.length <= LABEL_BYTES_MAX);
}

/** What the system says of an error. */
export function systemWords(error) {
  const [, words] = getSystemErrorMap().get(error.errno) ?? [];
  if (words === undefined) return OF_NAMES.get(error.code) ?? error.message;
  return OF_NAMES.get(error.code) ?? words[0].toUpperCase() + words.slice(1);
}
