// Wrong settings and arguments are refused, and the message says which and why.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { BadRequest, Client, rate } from '../index.js';
import { makeConfig, parseAddress } from '../lib/config.js';
import { isPrivate, staysHere } from '../lib/secret.js';
import { clientOf, temporary } from '../testing/support.js';

function refused(make, message) {
  assert.throws(make, (error) => {
    assert.ok(error instanceof BadRequest, error.stack);
    assert.match(error.message, message);
    return true;
  });
}

test('settings', () => {
  const wrong = [
    [5, /^settings must be an object, not 5$/],
    [{ adress: 'a' }, /^settings: adress is not known$/],
    [{ address: [] }, /^there is no address$/],
    [{ address: 5 }, /^address must be a string, not 5$/],
    [{ address: 'http://a:1' }, /is not HOST:PORT or \[IPV6\]:PORT; it has no http:\/\/$/],
    [{ address: 'a:0' }, /^address 'a:0' is not HOST:PORT/],
    [{ address: 'a:65536' }, /is not HOST:PORT/],
    [{ address: 'a:x' }, /is not HOST:PORT/],
    [{ address: ':1' }, /is not HOST:PORT/],
    [{ address: 'a..b:1' }, /is not HOST:PORT/],
    [{ address: `${'x'.repeat(64)}:1` }, /is not HOST:PORT/],
    [{ address: '1:2:3' }, /is not HOST:PORT/],
    [{ namespace: '' }, /^namespace must be a text of 1 to 128 bytes$/],
    [{ namespace: 'ä'.repeat(65) }, /^namespace must be a text of 1 to 128 bytes$/],
    [{ namespace: 'a\n' }, /^namespace must not have control characters or surrogates$/],
    [{ namespace: '\ud800' }, /^namespace must not have control/],
    [{ clientId: 5 }, /^clientId must be a text/],
    [{ clientId: '@me' }, /^clientId must not begin with @$/],
    [{ timeout: 0 }, /^timeout must be above 0$/],
    [{ timeout: -1 }, /^timeout must be 0 to 3600000 ms, not -1$/],
    [{ timeout: NaN }, /^timeout must be 0 to 3600000 ms, not NaN$/],
    [{ timeout: Infinity }, /^timeout must be/],
    [{ timeout: '5' }, /^timeout must be 0 to 3600000 ms, not '5'$/],
    [{ keep: 'never' }, /^keep must be true, false or "always", not 'never'$/],
    [{ fallback: 'none' }, /^fallback must be one of rule, local, pass, fail, not 'none'$/],
    [{ localLevels: 5 }, /^localLevels must be an object or a Map, not 5$/],
    [{ localLevels: { 1001: -1 } }, /^localLevels\[1001\] must be an integer from 0 on, not -1$/],
    [{ localLevels: { a: 0.5 } }, /^localLevels\['a'\] must be an integer/],
    [{ exclusive: 1 }, /^exclusive must be true or false, not 1$/],
    [{ rejoin: 'yes' }, /^rejoin must be true or false/],
    [{ onLost: 5 }, /^onLost must be a function, not 5$/],
    [{ logger: {} }, /^logger must have info\(text\), as console has$/],
    [{ tls: 5 }, /^tls must be true, false, the path of a CA file or a secure context, not 5$/],
    [{ tls: false, tlsServerName: 'a' }, /^tlsServerName is set, but tls is false$/],
    [{ tls: true, tlsServerName: '.a' }, /^tlsServerName must be a host's name or address/],
    [{ tls: true, tlsKey: 5 }, /^tlsKey must be the path of a file, not 5$/],
    [{ tls: '/nonexistent' }, /^tls: cannot read \/nonexistent: No such file or directory$/],
    [{ tls: true, tlsKey: '/k' }, /^tlsKey or \w+ is set without tlsCertificate or \w+; give both/],
    [{ secret: 5 }, /^secret must be a string, not number$/],
    [{ secret: '' }, /^secret must have 1 to 256 bytes$/],
    [{ secret: 'a\n' }, /^secret must not have control characters, such as the end of a line/],
    [{ secret: async () => 'a' }, /^secret must be a string or a function, not an async function$/],
  ];
  for (const [settings, message] of wrong) refused(() => new Client(settings), message);
});

test('addresses', () => {
  const known = {
    a: ['a', 18730],
    'a:1': ['a', 1],
    'a.:1': ['a.', 1],
    'bücher.example:65535': ['bücher.example', 65535],
    '::1': ['::1', 18730],
    '[::1]:7': ['::1', 7],
    '[fe80::1%eth0]': ['fe80::1%eth0', 18730],
    'under_score:1': ['under_score', 1],
  };
  for (const [text, [host, port]] of Object.entries(known)) {
    assert.deepEqual(parseAddress(text), { host, port });
  }
});

test('levels by number and by name', () => {
  const levels = { 1001: 3, checkout: 2, '9007199254740993': 1 };
  const ofObject = makeConfig({ localLevels: levels }).localLevels;
  assert.deepEqual([...ofObject.keys()], [1001, 'checkout', 9007199254740993n]);
  const ofMap = makeConfig({
    localLevels: new Map([
      [5n, 1],
      ['5', 2],
    ]),
  }).localLevels;
  assert.deepEqual([...ofMap.keys()], [5, '5']);
});

test('arguments', async () => {
  const client = clientOf('127.0.0.1:1', { timeout: 1000 });
  const wrong = [
    [() => client.acquire(0), /^flowId must be 1 to 9223372036854775807, not 0$/],
    [() => client.acquire(2n ** 63n), /^flowId must be 1 to/],
    [() => client.acquire(2 ** 60), /^flowId is rounded; give \d+ as a bigint$/],
    [() => client.acquire(1.5), /^flowId must be an integer or a string, not 1.5$/],
    [() => client.acquire(null), /^flowId must be an integer or a string, not null$/],
    [() => client.acquire(), /^flowId must be/],
    [() => client.acquire(''), /^flowId must be 1 to 1024 bytes, not 0$/],
    [() => client.acquire('x'.repeat(1025)), /^flowId must be 1 to 1024 bytes, not 1025$/],
    [() => client.acquire('\ud800'), /^flowId must not have half characters$/],
    [() => client.acquire(1, 5), /^acquire must be an object, not 5$/],
    [() => client.acquire(1, { waits: 1 }), /^acquire: waits is not known$/],
    [() => client.acquire(1, { count: 0 }), /^count must be 1 to 2147483647, not 0$/],
    [() => client.acquire(1, { count: '1' }), /^count must be an integer, not '1'$/],
    [() => client.acquire(1, { wait: -1 }), /^wait must be 0 to 3600000 ms, not -1$/],
    [() => client.acquire(1, { wait: '5' }), /^wait must be/],
    [() => client.acquire(1, { timeout: NaN }), /^timeout must be/],
    [() => client.acquire(1, { keep: 1 }), /^keep must be/],
    [() => client.acquire(1, { prioritized: 1 }), /^prioritized must be true or false, not 1$/],
    [() => client.acquire(1, { onLost: 1 }), /^onLost must be a function/],
    [() => client.acquire(1, { signal: 1 }), /^signal must be an AbortSignal, not 1$/],
    [() => client.acquire(1, { param: {} }), /^param must be a number, bigint, boolean or string/],
    [() => client.acquire(1, { param: NaN }), /^param must not be NaN$/],
    [() => client.acquire(1, { param: 2 ** 53 }), /^param is rounded/],
    [() => client.acquire(1, { param: 2n ** 63n }), /^param must be an integer of 64 bits/],
    [() => client.acquireAll([]), /^acquireAll takes 1 to 64 items, not 0$/],
    [() => client.acquireAll(Array(65).fill(1)), /^acquireAll takes 1 to 64 items, not 65$/],
    [() => client.acquireAll('ab'), /^items must be an array, not 'ab'$/],
    [() => client.acquireAll([[1, 2, 3, 4]]), /^an item is \[flowId, count, param\], not/],
    [() => client.acquireAll([[]]), /^an item is/],
    [() => client.requestParam(1, 'ab'), /^values must be an array of values, not 'ab'$/],
    [() => client.requestParam(1, [Symbol('a')]), /^a value must be a number/],
    [() => client.request(1, { sleep: 0 }), /^sleep must be true or false, not 0$/],
    [() => client.run(1, 5), /^run takes a function, not 5$/],
    [async () => rate(0), /^flowId must be/],
    [async () => client.tokens({ flow: 1 }), /^tokens: flow is not known$/],
  ];
  for (const [ask, message] of wrong) {
    await assert.rejects(ask, (error) => {
      assert.ok(error instanceof BadRequest, error.stack);
      assert.match(error.message, message);
      return true;
    });
  }
});

test('the secret of a file', () => {
  const file = path.join(temporary('secret'), 'secret');
  process.env.NOWCALLS_SECRET_FILE = file;
  try {
    refused(() => makeConfig(), /^NOWCALLS_SECRET_FILE: cannot read .*: No such file/);
    fs.writeFileSync(file, 'nc-1\r\nanother\n', { mode: 0o600 });
    assert.equal(makeConfig().secret.read(), 'nc-1');
    assert.equal(makeConfig({ secret: 'own' }).secret.read(), 'own');
    for (const [text, message] of [
      ['\n', /has no secret in its first line$/],
      [Buffer.from([0xff, 0x41]), /the first line of .* must be UTF-8$/],
      ['x'.repeat(257), /the first line of .* must have 1 to 256 bytes$/],
      ['x'.repeat(5000), /has more than 4096 bytes$/],
    ]) {
      fs.writeFileSync(file, text);
      refused(() => makeConfig(), message);
    }
    fs.chmodSync(file, 0o644);
    refused(() => makeConfig(), /others than its owner may read or write .*; run: chmod 600/);
  } finally {
    delete process.env.NOWCALLS_SECRET_FILE;
  }
  assert.equal(isPrivate({ mode: 0o100440, uid: 0, gid: 5 }, [5]), true);
  assert.equal(isPrivate({ mode: 0o100440, uid: 1, gid: 5 }, [5]), false);
  assert.equal(isPrivate({ mode: 0o100460, uid: 0, gid: 5 }, [5]), false);
});

test('a secret is shown to nobody else', () => {
  const { secret } = makeConfig({ secret: () => 'nc-1' });
  assert.equal(secret.read(), 'nc-1');
  assert.doesNotMatch(JSON.stringify(makeConfig({ secret: 'nc-hidden' })), /nc-hidden/);
  const failing = makeConfig({
    secret() {
      throw new TypeError('nc-1 is wrong');
    },
  }).secret;
  refused(() => failing.read(), /^secret: its function threw TypeError$/);
  const empty = makeConfig({ secret: () => undefined }).secret;
  refused(() => empty.read(), /returned what is no secret: it must be a string, not undefined$/);
  const ends = [
    ['127.0.0.1', '127.0.0.1', true],
    ['127.8.8.8', '10.0.0.1', true],
    ['::1', '::1', true],
    ['::ffff:127.0.0.1', '::ffff:127.0.0.1', true],
    ['10.0.0.1', '10.0.0.1', true],
    ['10.0.0.2', '10.0.0.1', false],
    ['::127.0.0.1', '::2', false],
    ['2001::1', '2001::2', false],
  ];
  for (const [remoteAddress, localAddress, stays] of ends) {
    assert.equal(staysHere({ remoteAddress, localAddress }), stays, remoteAddress);
  }
  assert.equal(staysHere({}), true);
});

test('the environment turns TLS on', () => {
  const kept = { ...process.env };
  try {
    process.env.NOWCALLS_TLS = 'yes';
    refused(() => makeConfig(), /^NOWCALLS_TLS: 'yes' is neither on nor off$/);
    process.env.NOWCALLS_TLS = 'on';
    assert.notEqual(makeConfig().tls, null);
    assert.equal(makeConfig({ tls: false }).tls, null);
    process.env.NOWCALLS_TLS = 'off';
    process.env.NOWCALLS_TLS_CA = '/nonexistent';
    assert.equal(makeConfig().tls, null);
    delete process.env.NOWCALLS_TLS;
    refused(() => makeConfig(), /^tls: cannot read \/nonexistent/);
  } finally {
    process.env = kept;
  }
});
