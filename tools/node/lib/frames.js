// Frames: cuts a stream of MessagePack values into whole messages, without decoding them.
//
// Each byte is looked at once, however the stream is cut. Memory is bounded by the longest message.
// What servers never send is refused: binary, extension types, and arrays and maps that are too
// long or too deep.

import { Wrong } from './wrong.js';

const NONE = Buffer.alloc(0);
const ELEMENTS_MAX = 4096; // Of an array or map; servers send at most 1024.
const DEPTH_MAX = 32;

// Of the types 0xc0 to 0xdf: bytes that follow; or the bytes of a length, as a negative number.
const FIXED = { 0xc0: 0, 0xc2: 0, 0xc3: 0, 0xca: 4, 0xcb: 8, 0xcc: 1, 0xcd: 2, 0xce: 4, 0xcf: 8 };
Object.assign(FIXED, { 0xd0: 1, 0xd1: 2, 0xd2: 4, 0xd3: 8 });
const TEXTS = { 0xd9: 1, 0xda: 2, 0xdb: 4 };
const GROUPS = { 0xdc: 2, 0xdd: 4, 0xde: 2, 0xdf: 4 };

export class Frames {
  #most;
  #bytes = NONE;
  #length = 0; // Of what has come and belongs to no whole message yet.
  #owned = false; // Whether there may be room behind it.
  #at = 0; // Where the next header begins; beyond the length: a text has not come whole.
  #left = []; // Values that are still to come, by level.

  constructor(most) {
    this.#most = most;
  }

  /** The messages that have come whole, each as bytes. Throws Wrong. */
  *take(data) {
    this.#append(data);
    let begin = 0;
    while (this.#advance(begin)) {
      const end = this.#at;
      yield this.#bytes.subarray(begin, end);
      begin = end;
    }
    this.#forget(begin);
    const needed = Math.max(this.#at, this.#length);
    if (needed > this.#most) throw new Wrong(`a message of ${needed} bytes or more`);
  }

  #append(data) {
    const total = this.#length + data.length;
    if (this.#length === 0) {
      this.#bytes = data;
      this.#owned = false;
    } else {
      if (!this.#owned || total > this.#bytes.length) {
        const larger = Buffer.allocUnsafe(2 * total);
        this.#bytes.copy(larger, 0, 0, this.#length);
        this.#bytes = larger;
        this.#owned = true;
      }
      data.copy(this.#bytes, this.#length);
    }
    this.#length = total;
  }

  #forget(bytes) {
    this.#length -= bytes;
    this.#at -= bytes;
    this.#bytes = this.#length > 0 ? this.#bytes.subarray(bytes) : NONE;
  }

  /** Goes on to the end of the message. False: there are not enough bytes. */
  #advance(begin) {
    for (;;) {
      if (this.#at > begin && this.#left.length === 0) return this.#at <= this.#length;
      if (this.#at >= this.#length) return false;
      const inside = this.#header();
      if (inside < 0) return false;
      if (inside === 0) {
        this.#valueEnds();
      } else {
        if (this.#left.length >= DEPTH_MAX) throw new Wrong('a message that is nested too deep');
        this.#left.push(inside);
      }
    }
  }

  #valueEnds() {
    while (this.#left.length > 0) {
      const last = this.#left.length - 1;
      if (--this.#left[last] > 0) return;
      this.#left.pop();
    }
  }

  /**
   * Passes one header, and a text or number with it. Returns how many values are inside; -1: wait.
   */
  #header() {
    const first = this.#bytes[this.#at];
    if (first < 0x80 || first >= 0xe0) return this.#pass(1, 0);
    if (first < 0x90) return this.#pass(1, 2 * (first & 15));
    if (first < 0xa0) return this.#pass(1, first & 15);
    if (first < 0xc0) return this.#pass(1 + (first & 31), 0);
    if (first in FIXED) return this.#pass(1 + FIXED[first], 0);
    const bytes = TEXTS[first] ?? GROUPS[first];
    if (bytes === undefined) throw new Wrong(`a byte 0x${first.toString(16)} begins a value`);
    if (this.#at + 1 + bytes > this.#length) return -1;
    const length = this.#bytes.readUIntBE(this.#at + 1, bytes);
    if (first in TEXTS) return this.#pass(1 + bytes + length, 0);
    if (length > ELEMENTS_MAX) throw new Wrong(`an array or map of ${length} elements`);
    return this.#pass(1 + bytes, first >= 0xde ? 2 * length : length);
  }

  #pass(bytes, inside) {
    this.#at += bytes;
    return inside;
  }
}
