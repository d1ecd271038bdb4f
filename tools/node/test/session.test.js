// The session by itself: what the vectors cannot tell, such as who a client is and what texts say.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { decodeMulti, encode } from '@msgpack/msgpack';

import { BadRequest, PermissionDenied, Refused, Unavailable } from '../index.js';
import { Ping, RateRequest, Release, acquireOf } from '../lib/calls.js';
import { makeConfig } from '../lib/config.js';
import { Permit } from '../lib/permit.js';
import { PLAIN } from '../lib/secret.js';
import { Session } from '../lib/session.js';
import { recorder } from '../testing/support.js';

const SECRET = 'nc-0123456789abcdef';
const IDENTITY = ['checkout', 'client', 'secret', null];
const WELCOME = ['1.0', 12, 1, 0];
const grant = (token, terms = [2, 60_000, 60_000]) => [
  ...[0, token, 5, 1, 2, 120_000, null, null],
  terms,
];

/** A session and its server, which answers in the order in which it was asked. */
class Peer {
  now = 1000;
  logger = recorder();
  waiting = [];

  constructor(settings = {}) {
    const given = { address: 'a:1', fallback: 'fail', logger: this.logger, ...settings };
    let ids = 0n;
    this.session = new Session(makeConfig(given), {
      makePermit: (held) => new Permit(held, null),
      now: this.now,
      uniform: (low) => low,
      requestIds: () => (ids += 1n),
      clock: () => this.now,
    });
  }

  /** The methods that were asked since the last time. */
  asked() {
    if (!this.session.hasOutput) return [];
    const came = [...decodeMulti(this.session.takeOutput(), { useBigInt64: true })];
    this.waiting.push(...came.map(([, msgid]) => msgid));
    return came.map(([, , method]) => method);
  }

  answer(result, error = null) {
    const message = [1, this.waiting.shift(), error, result];
    return this.session.received(Buffer.from(encode(message, { useBigInt64: true })), this.now);
  }

  connect() {
    this.session.connected(this.now);
    this.asked();
    if (this.session.config.secret !== null) this.answer(IDENTITY);
    assert.equal(this.answer(WELCOME), null);
  }

  ask(call, timeout) {
    this.session.ask(call, this.now, timeout);
    return call;
  }

  acquire(options, timeout) {
    return this.ask(acquireOf(111, 1, null, options), timeout);
  }

  disconnect(reason = 'it broke') {
    this.waiting = [];
    this.session.disconnected(this.now, reason);
  }
}

test('a secret is shown before hello, without a wait for its answer', () => {
  const peer = new Peer({ secret: SECRET });
  assert.equal(peer.session.connected(peer.now), null);
  assert.deepEqual(peer.asked(), ['identify', 'hello']);
  assert.equal(peer.answer(IDENTITY), null);
  assert.equal(peer.session.ready, false);
  assert.equal(peer.answer(WELCOME), null);
  assert.deepEqual(peer.logger.lines, [
    "info: connected to a:1 as 'checkout', session 12, 0 tokens",
  ]);
});

test('a secret does not leave over a plain connection to another host', () => {
  const peer = new Peer({ secret: SECRET, fallback: 'pass' });
  const call = peer.acquire();
  assert.equal(peer.session.connected(peer.now, false), PLAIN);
  assert.deepEqual(peer.asked(), []);
  peer.disconnect(PLAIN);
  assert.ok(call.error instanceof BadRequest);
  assert.equal(call.error.message, `a:1: ${PLAIN}`);
  const plain = new Peer();
  assert.equal(plain.session.connected(plain.now, false), null);
  assert.deepEqual(plain.asked(), ['hello']);
});

test('an older server which knows no secrets is taken as it is', () => {
  const peer = new Peer({ secret: SECRET });
  peer.session.connected(peer.now);
  peer.asked();
  assert.equal(peer.answer(null, [2, 'UNKNOWN_METHOD', 'identify']), null);
  assert.equal(peer.answer(WELCOME), null);
  assert.equal(peer.session.ready, true);
});

test('a server that repeats the secret does not get it into a log or an error', () => {
  const peer = new Peer({ secret: SECRET });
  const call = peer.acquire();
  peer.session.connected(peer.now);
  peer.asked();
  const broken = peer.answer(null, [9, 'PERMISSION', `${SECRET} is wrong: ${SECRET}`]);
  peer.disconnect(broken);
  const words = 'identify refused: PERMISSION: ... is wrong: ...';
  assert.equal(broken, words);
  assert.equal(call.error.message, `a:1: ${words}`);
  assert.doesNotMatch(peer.logger.lines.join('\n'), /nc-/);
  peer.session.connected(peer.now);
  peer.asked();
  const echo = Buffer.from(encode([0, 1, 'identify', [SECRET]]));
  assert.doesNotMatch(peer.session.received(echo, peer.now), /nc-/);
});

test('no answer that repeats the secret gets it into a log or an error', () => {
  const answers = [
    [null, [1, 'MALFORMED', `not understood: ${SECRET}`]],
    [null, [5, 'OVERLOADED', SECRET]],
    [null, [3, SECRET, 'why']],
    [null, SECRET],
    [SECRET, null],
    [[[SECRET], 'client', 'secret'], null],
  ];
  for (const answer of answers) {
    for (const isGreeted of [false, true]) {
      const peer = new Peer({ secret: SECRET });
      if (isGreeted) peer.connect();
      const call = peer.acquire({}, 1000);
      if (!isGreeted) peer.session.connected(peer.now);
      peer.asked();
      const broken = peer.answer(...answer);
      if (broken !== null) peer.disconnect(broken);
      peer.session.tick(peer.now + 1000);
      const told = [call.error.message, broken, ...peer.logger.lines].join('\n');
      assert.match(told, /\.\.\./);
      assert.doesNotMatch(told, /nc-/);
    }
  }
  const peer = new Peer({ secret: SECRET });
  peer.session.connected(peer.now);
  peer.asked();
  peer.answer([SECRET, ...IDENTITY.slice(1)]);
  peer.answer(WELCOME);
  peer.acquire();
  peer.asked();
  peer.answer(grant(7));
  const lost = encode([2, 'lost', [7, 111, SECRET]]);
  peer.session.received(Buffer.from(lost), peer.now);
  peer.session.takeLost();
  assert.deepEqual(peer.logger.lines, [
    "info: connected to a:1 as '...', session 12, 0 tokens",
    'warn: lost token 7 of flow 111: ...',
  ]);
});

test('who is not let in gets no call past the server, whatever the fallback is', () => {
  for (const fallback of ['rule', 'local', 'pass', 'fail']) {
    const peer = new Peer({ secret: SECRET, fallback, localLevels: { 111: 5 } });
    const calls = [peer.acquire()];
    peer.session.connected(peer.now);
    peer.asked();
    peer.disconnect(peer.answer(null, [9, 'PERMISSION', 'because']));
    calls.push(peer.acquire(), peer.ask(new RateRequest(111, 1)));
    peer.session.connectFailed(peer.now, 'Connection refused');
    calls.push(peer.acquire({ wait: 100 }));
    for (const call of calls) {
      assert.ok(call.error instanceof PermissionDenied, fallback);
      assert.equal(call.error.code, 9);
      assert.equal(call.error.message, 'a:1: identify refused: PERMISSION: because');
    }
    assert.equal(new Set(calls.map((call) => call.error)).size, calls.length);
    assert.equal(peer.logger.lines.filter((line) => line.includes('not let in')).length, 1);
    // An operator has mended it.
    peer.connect();
    const call = peer.acquire();
    for (const method of peer.asked()) peer.answer(method === 'acquire' ? grant(77) : [[], null]);
    assert.equal(call.value.tokenId, 77n);
    peer.disconnect();
    peer.session.connectFailed(peer.now, 'Connection refused');
    const local = peer.acquire();
    assert.equal(local.done && local.error === null, fallback !== 'fail', fallback);
  }
});

test('a call that is not permitted is not admitted by a fallback', () => {
  const peer = new Peer({ fallback: 'pass' });
  peer.connect();
  const calls = [peer.acquire(), peer.ask(new RateRequest(111, 1)), peer.ask(new Ping())];
  for (const method of peer.asked()) {
    if (method === 'rules_list') peer.answer([[], null]);
    else assert.equal(peer.answer(null, [9, 'PERMISSION', 'flow 111']), null);
  }
  for (const call of calls) assert.equal(call.error.message, 'PERMISSION: flow 111');
  assert.equal(peer.session.ready, true);
});

test('a server may take a second longer for a wrong secret', () => {
  const peer = new Peer({ secret: SECRET });
  peer.session.connected(peer.now);
  assert.equal(peer.session.wakeup(), 7000);
  assert.equal(peer.session.tick(6999), null);
  assert.match(peer.session.tick(7000), /^no answer to hello; is that a nowcalls-server\?/);
});

test('until hello is answered nothing else counts as a sign of life', () => {
  const peer = new Peer();
  peer.session.connected(peer.now);
  peer.now += 3000;
  assert.equal(peer.session.received(Buffer.from([0x94]), peer.now), null);
  assert.equal(peer.session.wakeup(), 6000);
});

test('a call whose time ends before its secret is answered does not fall back', () => {
  const peer = new Peer({ secret: SECRET, fallback: 'pass' });
  peer.session.connected(peer.now);
  const call = peer.acquire();
  peer.session.tick(peer.now + 5000);
  assert.ok(call.error instanceof Unavailable);
});

test('the certificate of a client is not let in', () => {
  const peer = new Peer({ fallback: 'pass' });
  const call = peer.acquire();
  peer.session.denied(peer.now, 'it refuses the certificate');
  peer.session.connectFailed(peer.now, 'it refuses the certificate');
  assert.ok(call.error instanceof PermissionDenied);
  assert.equal(call.error.message, 'a:1: it refuses the certificate');
  assert.ok(peer.acquire().error instanceof PermissionDenied);
});

test('all tokens lost for one reason are one line of the log', () => {
  const peer = new Peer();
  peer.connect();
  for (let token = 1; token <= 5; ++token) peer.acquire();
  peer.asked().forEach((_, index) => peer.answer(grant(index + 1)));
  peer.disconnect();
  peer.logger.lines.length = 0;
  peer.connect(); // Which resumes none.
  assert.equal(peer.session.takeLost().length, 5);
  assert.equal(peer.logger.lines.at(-1), 'warn: lost 5 tokens (1, 2, 3, ...): it had ended');
});

test('who saw it lost never sees it held again', () => {
  const peer = new Peer();
  peer.connect();
  const call = peer.acquire({}, 1000);
  peer.asked();
  peer.answer(grant(7, [2, 1000, 1000]));
  const permit = call.value;
  assert.equal(permit.lost, false);
  peer.now = permit.validUntil;
  assert.deepEqual([permit.lost, permit.lostReason], [true, 'client_offline']);
  peer.now -= 1;
  assert.equal(permit.lost, true);
  peer.session.received(Buffer.from(encode([2, 'news', []])), peer.now);
  assert.equal(permit.lost, true);
  assert.match(String(Object.keys(permit)), /^$/);
});

test('the time left is a delay that a timer takes, however long the hold', () => {
  const MONTH_MS = 30 * 86_400_000;
  const peer = new Peer();
  peer.connect();
  const call = peer.acquire({ keep: false });
  peer.asked();
  peer.answer([0, 7, 5, 1, 2, 2 * MONTH_MS, null, null, [0, 2 * MONTH_MS, 2 * MONTH_MS]]);
  const permit = call.value;
  assert.equal(permit.validFor, 2 ** 31 - 1);
  peer.now = permit.validUntil - 1500;
  assert.equal(permit.validFor, 1500);
});

test('a token that the client has released by its rule is not released twice', () => {
  const peer = new Peer();
  peer.connect();
  const call = peer.acquire();
  peer.asked();
  peer.answer(grant(7, [1, 1000, 60_000]));
  peer.now += 950;
  peer.session.tick(peer.now);
  assert.deepEqual(peer.asked(), ['release']);
  const release = new Release(Permit.heldOf(call.value));
  peer.session.release(release, peer.now);
  assert.deepEqual([release.done, release.value, peer.asked()], [true, false, []]);
});

test('a message that is too long is refused when it would be sent', () => {
  const peer = new Peer();
  peer.connect();
  const call = peer.ask(acquireOf(111, 1, 'x'.repeat(70_000)));
  assert.ok(call.error instanceof BadRequest);
  assert.match(call.error.message, /^acquire: \d+ bytes are too many$/);
  assert.deepEqual(peer.asked(), []);
});

test('statuses and errors become errors', () => {
  const outcome = (result, error) => {
    const peer = new Peer();
    peer.connect();
    const call = peer.acquire();
    peer.asked();
    assert.equal(peer.answer(result, error), null);
    return call.error;
  };
  const refused = (status, word) => [status, 0, 0, 2, 2, 0, word];
  assert.equal(
    outcome(refused(1, 'level')).message,
    'flow 111 refused by level: 2 of 2 in progress',
  );
  assert.equal(outcome([-1, 0, 0, 0, 0, 0, null]).message, 'flow 111 refused by -1');
  assert.ok(outcome(refused(-2, 'token_limit')) instanceof Refused);
  assert.equal(
    outcome(refused(-4, 'param')).message,
    'flow 111: the server calls the request wrong, refused by param',
  );
  const answered = [
    [3, BadRequest],
    [4, BadRequest],
    [5, Unavailable],
    [7, Unavailable],
    [8, Unavailable],
    [9, PermissionDenied],
    [99, Unavailable],
  ];
  for (const [code, kind] of answered) {
    assert.equal(outcome(null, [code, 'NAME', 'why', 'more']).constructor, kind, `${code}`);
  }
});
