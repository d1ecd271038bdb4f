// Messages of a connection: whatever bytes come, they lead to messages or to Wrong.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { encode } from '@msgpack/msgpack';

import { Frames } from '../lib/frames.js';
import {
  ANSWER_BYTES_MAX,
  Exchange,
  TooLong,
  Wrong,
  hold,
  id,
  integer,
  uint,
} from '../lib/wire.js';

const pack = (value) => Buffer.from(encode(value, { useBigInt64: true }));
const ANSWER = [1, 7, null, [0, 'text', 'x'.repeat(300), -5, 70_000, { key: [true, 0.5, {}] }, []]];

test('a stream may be cut anywhere', () => {
  const stream = Buffer.concat([pack(ANSWER), pack([2, 'lost', [5, 1, 'admin']]), pack(ANSWER)]);
  const whole = [...new Exchange().receive(stream)];
  assert.deepEqual(whole, [ANSWER, [2, 'lost', [5, 1, 'admin']], ANSWER]);
  for (let cut = 0; cut <= stream.length; ++cut) {
    const exchange = new Exchange();
    const begin = [...exchange.receive(stream.subarray(0, cut))];
    const end = [...exchange.receive(stream.subarray(cut))];
    assert.deepEqual([...begin, ...end], whole, `cut at ${cut}`);
  }
  const exchange = new Exchange();
  const bytes = [...stream].flatMap((byte) => [...exchange.receive(Buffer.from([byte]))]);
  assert.deepEqual(bytes, whole);
});

test('a long answer in small pieces takes no longer than its length', () => {
  const long = pack([1, 1, null, Array.from({ length: 4000 }, (_, i) => `${i}`.repeat(200))]);
  const exchange = new Exchange();
  const begin = performance.now();
  const came = [];
  for (let at = 0; at < long.length; at += 100) {
    came.push(...exchange.receive(long.subarray(at, at + 100)));
  }
  assert.equal(came.length, 1);
  assert.equal(came[0][3].length, 4000);
  assert.ok(performance.now() - begin < 5000);
});

test('what no server sends is refused', () => {
  const refused = [
    [Buffer.from([0xc1]), /a byte 0xc1/],
    [pack([1, 1, null, Buffer.from('binary')]), /a byte 0xc4/],
    [Buffer.from([0x94, 1, 1, 0xc0, 0xd4, 5, 5]), /a byte 0xd4/],
    [Buffer.from([0xdd, 0xff, 0xff, 0xff, 0xff]), /an array or map of 4294967295/],
    [Buffer.from([0xdf, 0, 0, 0x20, 0]), /an array or map of 8192/],
    [Buffer.alloc(40, 0x91), /nested too deep/],
    [Buffer.from([0xdb, 0x7f, 0xff, 0xff, 0xff]), /a message of 2147483652 bytes/],
    [pack([3, 1, 2, 3]), /a message is \[ 3, 1, 2, 3 \]/],
    [pack([1, -1, null, 1]), /msgid is -1/],
    [pack([1, 'a', null, 1]), /msgid is 'a'/],
    [pack([1, 1, null]), /a message is/],
    [pack([2, 5, []]), /method is 5/],
    [pack([2, 'lost', null]), /params is null/],
    [pack([0, 1, 'identify', ['secret']]), /^it sends requests back$/],
    [pack({ a: 1 }), /a message is/],
    [pack(5), /a message is 5/],
    [Buffer.from([0x94, 1, 1, 0xc0, 0x81, 0xa9, ...Buffer.from('__proto__'), 1]), /__proto__/],
    [Buffer.from([0x94, 1, 1, 0xc0, 0x81, 0xc0, 1]), /key/],
    [Buffer.from('HTTP/1.1 400 Bad Request'), /it speaks HTTP; the token port/],
    [Buffer.from('SSH-2.0-OpenSSH'), /it speaks SSH/],
    [Buffer.from('-ERR unknown command'), /it speaks Redis's protocol/],
    [Buffer.from([0x15, 3, 1, 0, 2]), /it speaks TLS; so must the client \(tls: true\)/],
  ];
  for (const [bytes, message] of refused) {
    assert.throws(
      () => [...new Exchange().receive(bytes)],
      (error) => error instanceof Wrong && message.test(error.message),
      `${message}`,
    );
  }
});

test('memory is bounded by the longest message', () => {
  const frames = new Frames(1000);
  assert.equal([...frames.take(pack('x'.repeat(900)))].length, 1);
  assert.throws(() => [...frames.take(pack('x'.repeat(1100)).subarray(0, 10))], Wrong);
  const exchange = new Exchange();
  const text = Buffer.concat([Buffer.from([0xdb, 0, 1, 0, 0]), Buffer.alloc(64 * 1024)]);
  const begun = exchange.receive(Buffer.from([0xdd, 0, 0, 16, 0]));
  assert.deepEqual([...begun], []);
  assert.throws(() => {
    for (let times = 0; times < 200; ++times) assert.deepEqual([...exchange.receive(text)], []);
  }, /^Error: a message of 8\d+ bytes or more$/);
  assert.ok(ANSWER_BYTES_MAX < 200 * 64 * 1024);
});

test('random bytes lead to messages or to Wrong', () => {
  let seed = 1;
  const next = (most) => {
    seed = (seed * 48271) % 2147483647;
    return seed % most;
  };
  for (let round = 0; round < 20_000; ++round) {
    const bytes = Buffer.from(pack(ANSWER));
    for (let change = 0; change <= next(4); ++change) bytes[next(bytes.length)] = next(256);
    try {
      for (const message of new Exchange().receive(bytes)) assert.ok(Array.isArray(message));
    } catch (error) {
      assert.ok(error instanceof Wrong, error.stack);
    }
  }
});

test('integers are sent in the shortest form', () => {
  const sent = (value) => {
    const exchange = new Exchange();
    exchange.request('m', [value]);
    return exchange.takeOutput().subarray(6).toString('hex');
  };
  const forms = [
    [5, '05'],
    [5n, '05'],
    [-1n, 'ff'],
    [4294967295n, 'ceffffffff'],
    [2 ** 32, 'cf0000000100000000'],
    [2 ** 53 - 1, 'cf001fffffffffffff'],
    [2n ** 63n - 1n, 'cf7fffffffffffffff'],
    [-(2 ** 31), 'd280000000'],
    [-(2 ** 31) - 1, 'd3ffffffff7fffffff'],
    [-(2n ** 63n), 'd38000000000000000'],
    [0.5, 'cb3fe0000000000000'],
    [{ request_id: 5n }, '81aa726571756573745f696405'],
  ];
  for (const [value, hex] of forms) assert.equal(sent(value), hex);
});

test('a message that is too long is not sent', () => {
  const exchange = new Exchange();
  assert.throws(() => exchange.request('acquire', ['x'.repeat(65_536)]), TooLong);
  assert.equal(exchange.hasOutput, false);
  assert.equal(exchange.request('ping', []), 1);
});

test('what is no integer of the kind is refused', () => {
  for (const value of [-1, 0.5, 2 ** 53, '5', null, true, -5n, 2n ** 64n]) {
    assert.throws(() => id('an id', value), Wrong);
  }
  assert.deepEqual([id('an id', 5), id('an id', 2n ** 63n)], [5n, 2n ** 63n]);
  for (const value of [-1, 0.5, 2 ** 53, '5', null, -(2n ** 60n)]) {
    assert.throws(() => uint('a number', value), Wrong);
  }
  assert.deepEqual([uint('a', 5n), uint('a', 2n ** 60n), integer('a', -5n)], [5, Infinity, -5]);
  assert.equal(hold(2n ** 63n), 1e12);
});
