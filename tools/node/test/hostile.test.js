// Servers that do not speak the protocol, or speak it wrongly: calls end with a clear error, and
// the client goes on with the next connection.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { encode } from '@msgpack/msgpack';

import { OutcomeUnknown, Refused, Unavailable } from '../index.js';
import { ScriptedServer, clientOf, recorder, until } from '../testing/support.js';

const HELLO = [null, ['1.0', 9, 1, 0]];
const GRANT = [null, [0, 77, 5, 1, 2, 60_000, null, null, [2, 30_000, 30_000]]];

/** A server that answers hello, and `method` by what `answer` does with the socket. */
function serverOf(answers) {
  return ScriptedServer.started((method, params, socket, msgid) => {
    if (method === 'hello' && !answers.hello) return HELLO;
    const answer = answers[method];
    if (answer === undefined) return null;
    return typeof answer === 'function' ? answer(socket, msgid, params) : answer;
  });
}

const writes = (bytes) => (socket) => {
  socket.write(bytes);
  return null;
};
const sends = (make) => (socket, msgid) => {
  socket.write(encode(make(msgid)));
  return null;
};

const WRONG = {
  garbage: [writes(Buffer.from([0xc1, 0xff])), /does not speak nowcalls: a byte 0xc1 begins/],
  'another protocol': [writes('HTTP/1.1 200 OK\r\n'), /does not speak nowcalls: a message is 72/],
  'a message that is too long': [writes(Buffer.from([0xdb, 1, 0, 0, 0])), /a message of 16777221/],
  'a msgid that nobody asked': [
    sends((id) => [1, id + 1000, null, [0]]),
    /it answers a request \d+ that awaits no answer/,
  ],
  'a request instead of an answer': [sends((id) => [0, id, 'a', []]), /it sends requests back/],
  'text for an answer': [[null, 'yes'], /an answer is 'yes'/],
  'too few elements': [[null, [0, 77]], /an answer is \[ 0, 77 \]/],
  'token 0': [[null, [0, 0, 5, 1, 2, 60_000, null]], /an acquire was answered with token 0/],
  'a token that is no id': [[null, [0, 'a', 5, 1, 2, 60_000, null]], /token_id is 'a'/],
  'a token beyond 63 bits': [[null, [0, 2n ** 63n, 5, 1, 2, 6000, null]], /token_id is 9223/],
  'terms of the wrong type': [[null, [0, 77, 5, 1, 2, 60_000, null, null, 5]], /terms is 5/],
  'an error of the wrong type': [['no', null], /an error is 'no'/],
  'an error without a text': [[[5, 'OVERLOADED', 7], null], /an error is 7/],
};

for (const [name, [answer, message]] of Object.entries(WRONG)) {
  test(`${name} ends the connection, and the call is asked again`, async () => {
    let times = 0;
    const server = await serverOf({
      acquire: (...given) => {
        times += 1;
        if (times > 1) return GRANT;
        if (typeof answer !== 'function') {
          given[0].write(encode([1, given[1], ...answer], { useBigInt64: true }));
          return null;
        }
        return answer(...given);
      },
      release: [null, [6]],
      cancel: [null, [7]],
    });
    const logger = recorder();
    const client = clientOf(server.address, { logger });
    const permit = await client.acquire(1);
    assert.equal(permit.tokenId, 77n);
    assert.match(logger.lines.join('\n'), message);
    assert.equal(client.stats().askedAgain, 1);
    await client.close();
  });
}

test('an answer that comes twice ends the connection', async () => {
  const server = await serverOf({
    acquire: (socket, msgid) => {
      socket.write(encode([1, msgid, ...GRANT]));
      return GRANT;
    },
  });
  const logger = recorder();
  const client = clientOf(server.address, { logger });
  await client.acquire(1);
  await until(() => client.stats().disconnects === 1);
  assert.match(logger.lines.join('\n'), /it answers a request 2 that awaits no answer/);
  await client.close();
});

test('the same token for two acquires ends the connection', async () => {
  const server = await serverOf({ hello: [null, ['1.0', 9, 1, 1]], acquire: GRANT });
  const client = clientOf(server.address, { timeout: 500 });
  await client.acquire(1);
  await assert.rejects(client.acquire(1), OutcomeUnknown);
  assert.ok(client.stats().disconnects >= 1);
  await client.close();
});

test('a half answer and silence end with the time of the call', async () => {
  const half = Buffer.from([0x94, 1]);
  for (const answer of [writes(half), null, undefined]) {
    const server = await serverOf({ acquire: answer ?? (() => null) });
    const client = clientOf(server.address, { timeout: 300 });
    await assert.rejects(client.acquire(1), (error) => {
      assert.ok(error instanceof OutcomeUnknown, error.stack);
      assert.equal(
        error.message,
        'acquire: no answer, perhaps it was carried out: the server did not answer in time',
      );
      return true;
    });
    // It is cancelled, and a silent server is dialled anew.
    await until(() => server.requests.some(([method]) => method === 'cancel'));
    if (answer === null) await until(() => client.stats().disconnects > 0);
    await client.close();
  }
});

test('a server that does not answer hello is named', async () => {
  const silent = await serverOf({ hello: () => null });
  const client = clientOf(silent.address, { timeout: 300 });
  await assert.rejects(client.acquire(1), (error) => {
    assert.ok(error instanceof Unavailable, error.stack);
    assert.match(error.message, /^acquire: not carried out: 127\.0\.0\.1:\d+: no answer to hello/);
    assert.match(error.message, /is usually 18730; or does it speak TLS only\?$/);
    return true;
  });
  await client.close();
});

test('a server that closes at once is named', async () => {
  const closing = await serverOf({
    hello: (socket) => {
      socket.end();
      return null;
    },
  });
  const client = clientOf(closing.address, { timeout: 300 });
  await assert.rejects(client.acquire(1), /closed the connection, before hello was answered; is/);
  await client.close();
});

test('nobody listens', async () => {
  const client = clientOf('127.0.0.1:1', { timeout: 300 });
  await assert.rejects(client.acquire(1), {
    message: 'acquire: not carried out: 127.0.0.1:1: Connection refused',
  });
  await client.close();
  const nowhere = clientOf('no-such-host.invalid:1', { timeout: 1000 });
  await assert.rejects(nowhere.acquire(1), /not-?.* carried out: no-such-host\.invalid:1: .+/);
  await nowhere.close();
});

test('an error that cannot be mended ends the calls', async () => {
  const server = await serverOf({ hello: [[3, 'BAD_PARAMS', 'hello: namespace'], null] });
  const client = clientOf(server.address, { timeout: 3000 });
  await assert.rejects(client.acquire(1), {
    name: 'BadRequest',
    code: 3,
    message: 'hello refused: BAD_PARAMS: hello: namespace',
  });
  await client.close();
});

test('what the server says of losses that concern nobody is ignored', async () => {
  const server = await serverOf({ acquire: GRANT, release: [null, [6]] });
  const client = clientOf(server.address);
  const permit = await client.acquire(1);
  server.notify('lost', 1234, 1, 'admin');
  server.notify('news', 'of a later server');
  server.notify('lost', 77, 1, 'a later reason');
  await until(() => permit.lost);
  assert.equal(permit.lostReason, 'a later reason');
  assert.equal(await permit.release(), false);
  await client.close();
});

test('a refusal by a word of a later server is a refusal', async () => {
  const server = await serverOf({ acquire: [null, [1, 0, 0, 1, 2, 0, 'moon', null, null, 5]] });
  const client = clientOf(server.address);
  await assert.rejects(client.acquire(1), (error) => {
    assert.ok(error instanceof Refused);
    return error.refusedBy === 'moon';
  });
  await client.close();
});

test('pages that do not end are left', async () => {
  const server = await serverOf({ flows: [null, [[{ flow_id: 1 }], 5]] });
  const client = clientOf(server.address);
  const rows = [];
  await assert.rejects(async () => {
    for await (const row of client.flows()) rows.push(row);
  }, /flows: the server's pages do not end/);
  assert.equal(rows.length, 2);
  await client.close();
});
