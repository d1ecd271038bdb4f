// Wire: messages of one connection, and checks of what a server answers.
//
// Whatever bytes come, they lead to a value of the type asked for or to Wrong, within bounded
// memory. Ids and fences are bigint; all other integers are numbers.

import { Decoder, Encoder } from '@msgpack/msgpack';

import { Frames } from './frames.js';
import { show } from './text.js';
import { Wrong } from './wrong.js';

export { Wrong };

export const MESSAGE_BYTES_MAX = 64 * 1024; // The server closes the connection beyond it.
export const ANSWER_BYTES_MAX = 8 * 1024 * 1024; // The server sends at most half of it.
export const HOLD_MS_MAX = 1e12;
export const UINT_MAX = 2n ** 64n - 1n;
export const INT_MAX = 2n ** 63n - 1n;
export const USUAL_PORT = 'the token port of a nowcalls-server is usually 18730';

// What a peer speaks that begins so.
const OTHERS = [
  ['HTTP/', 'HTTP'],
  ['\x15\x03', 'TLS; so must the client (tls: true), if that is a nowcalls-server'],
  ['SSH-', 'SSH'],
  ['-ERR', "Redis's protocol"],
];
const ERROR_TEXT_MAX = 1000; // Of a message in an error.

const encoder = new Encoder({ useBigInt64: true });
const decoder = new Decoder({ useBigInt64: true });

function wrong(what, value) {
  return new Wrong(`${what} is ${show(value, 60)}`);
}

/** An id or a fence. */
export function id(what, value, most = UINT_MAX) {
  const known = Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof known !== 'bigint' || known < 0n || known > most) throw wrong(what, value);
  return known;
}

/** An integer from 0 on; one that a number does not hold exactly becomes Infinity. */
export function uint(what, value) {
  const known = integer(what, value);
  if (known < 0) throw wrong(what, value);
  return typeof known === 'bigint' ? Infinity : known;
}

/** A number, or a bigint where a number does not hold it exactly. */
export function integer(what, value) {
  if (typeof value === 'bigint') return numberIfExact(value);
  if (!Number.isSafeInteger(value)) throw wrong(what, value);
  return value;
}

export function numberIfExact(value) {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

export function text(what, value) {
  if (typeof value !== 'string') throw wrong(what, value);
  return value.slice(0, ERROR_TEXT_MAX);
}

export function textOrNull(what, value) {
  return value === null || value === undefined ? null : text(what, value);
}

export function array(what, value, least = 0) {
  if (!Array.isArray(value) || value.length < least) throw wrong(what, value);
  return value;
}

export function isMap(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function hold(value) {
  return Math.min(uint('hold_ms', value), HOLD_MS_MAX);
}

/** Of a field that may be missing or of another type. */
export function numberOr(value, otherwise) {
  const known = typeof value === 'bigint' ? Number(value) : value;
  if (typeof known !== 'number' || !Number.isFinite(known)) return otherwise;
  return Math.max(Math.min(known, 1e18), -1e18);
}

/** With integers in the shortest form, as a server sends them. */
function shortest(value) {
  if (typeof value === 'bigint') {
    return value >= -(2n ** 31n) && value < 2n ** 32n ? Number(value) : value;
  }
  if (typeof value === 'number') {
    const isLong = Number.isSafeInteger(value) && (value >= 2 ** 32 || value < -(2 ** 31));
    return isLong ? BigInt(value) : value;
  }
  if (Array.isArray(value)) return value.map(shortest);
  if (!isMap(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shortest(item)]));
}

export class TooLong extends Error {}

/** The requests and answers of one connection. msgids count from 1. */
export class Exchange {
  #output = [];
  #lastMsgid = 0;
  #heard = false;
  #frames = new Frames(ANSWER_BYTES_MAX);

  get hasOutput() {
    return this.#output.length > 0;
  }

  /** Bytes to send, which the caller has from now on. */
  takeOutput() {
    const output = this.#output;
    this.#output = [];
    return output.length === 1 ? output[0] : Buffer.concat(output);
  }

  /** Returns the msgid. Throws TooLong for what no message can hold. */
  request(method, params) {
    const msgid = (this.#lastMsgid % 0xffffffff) + 1;
    const message = encoder.encode([0, msgid, method, shortest(params)]);
    if (message.length > MESSAGE_BYTES_MAX) {
      throw new TooLong(`${method}: ${message.length} bytes are too many`);
    }
    this.#lastMsgid = msgid;
    this.#output.push(Buffer.from(message.buffer, message.byteOffset, message.length));
    return msgid;
  }

  /** The messages that have come whole. Throws Wrong. */
  *receive(data) {
    for (const [begin, name] of this.#heard ? [] : OTHERS) {
      if (data.subarray(0, begin.length).toString('latin1') === begin) {
        throw new Wrong(`it speaks ${name}; ${USUAL_PORT}`);
      }
    }
    this.#heard = true;
    for (const frame of this.#frames.take(data)) yield messageOf(frame);
  }
}

/** [1, msgid, error, result] or [2, method, params]. */
function messageOf(frame) {
  let decoded;
  try {
    decoded = decoder.decode(frame);
  } catch (error) {
    throw new Wrong(`${error.name}: ${String(error.message).slice(0, 100)}`);
  }
  if (Array.isArray(decoded)) {
    if (decoded[0] === 1 && decoded.length >= 4) {
      decoded[1] = uint('msgid', decoded[1]);
      return decoded;
    }
    if (decoded[0] === 2 && decoded.length === 3) {
      text('method', decoded[1]);
      array('params', decoded[2]);
      return decoded;
    }
    if (decoded[0] === 0) throw new Wrong('it sends requests back'); // Perhaps with the secret.
  }
  throw wrong('a message', decoded);
}
