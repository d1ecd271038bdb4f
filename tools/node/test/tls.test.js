// Clients that speak TLS or show a secret, with servers that are the right one, another one, or
// speak otherwise.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { before, test } from 'node:test';
import tls from 'node:tls';
import { spawnSync } from 'node:child_process';
import { inspect } from 'node:util';

import { BadRequest, Client, PermissionDenied } from '../index.js';
import { Authority, openssl } from '../testing/certificates.js';
import {
  BIN_DIR,
  ScriptedServer,
  Server,
  atEnd,
  clientOf,
  recorder,
  rule,
  temporary,
  until,
} from '../testing/support.js';

const SECRET = 'nc-0123456789abcdef';
const PEER = { alpn: 'nowcalls/1' };
let authority;
let other;

before(() => {
  authority = new Authority();
  other = new Authority();
});

function answer(method) {
  if (method === 'hello') return [null, ['1.0', 9, 1, 0]];
  if (method === 'identify') return [null, ['checkout', 'client', 'secret', null]];
  return method === 'ping' ? [null, [5]] : null;
}

function contextOf({ certificate, key }, more = {}) {
  const files = { cert: fs.readFileSync(certificate), key: fs.readFileSync(key) };
  return { ...files, ALPNProtocols: [PEER.alpn], ...more };
}

const serverOf = (names = 'IP:127.0.0.1', { days, ...more } = {}) =>
  ScriptedServer.started(answer, contextOf(authority.issue(names, days), more));

/** The call ends for the reason, and the server was told nothing. */
async function fails(server, message, { kind, patience = null, ...settings } = {}) {
  const own = { tls: authority.file, timeout: 700, fallback: 'fail' };
  const address = typeof server === 'string' ? server : server.address;
  const client = clientOf(address, { ...own, ...settings });
  await assert.rejects(client.acquire(1, { timeout: patience }), (error) => {
    assert.match(error.message, message);
    if (kind !== undefined) assert.ok(error instanceof kind, error.stack);
    return true;
  });
  await client.close();
  assert.deepEqual(server.requests ?? [], []);
}

test('a server whose CA is given is spoken to by TLS', async () => {
  const server = await serverOf();
  const context = tls.createSecureContext({ ca: fs.readFileSync(authority.file) });
  for (const setting of [authority.file, context]) {
    const client = clientOf(server.address, { tls: setting });
    assert.equal(await client.ping(), 5);
    await client.close();
  }
});

test('the environment says what settings leave out', async () => {
  const server = await serverOf();
  process.env.NOWCALLS_TLS_CA = authority.file;
  try {
    const client = clientOf(server.address);
    assert.equal(await client.ping(), 5);
    await client.close();
  } finally {
    delete process.env.NOWCALLS_TLS_CA;
  }
});

test('a server that another CA has signed is told nothing', async () => {
  const believed = /its certificate is not believed: /;
  await fails(await serverOf(), believed, { tls: other.file, secret: SECRET });
  await fails(await serverOf(), believed, { tls: true });
  const self = await serverOf('IP:127.0.0.1', { days: -1 });
  await fails(self, /its certificate is not believed: certificate has expired/);
});

test('a certificate must have the name', async () => {
  const server = await serverOf('DNS:a.test,IP:127.0.0.2');
  await fails(
    server,
    /not believed: IP address mismatch, certificate is not valid for '127.0.0.1'/,
  );
  const named = `localhost:${server.address.split(':')[1]}`;
  await fails(named, /not believed: Hostname mismatch, certificate is not valid for 'localhost'/);
  await fails(server, /Hostname mismatch/, { tlsServerName: 'b.test' });
  // A common name counts for nothing.
  await fails(await serverOf(''), /Hostname mismatch/, { tlsServerName: 'common.test' });
  for (const tlsServerName of ['a.test', 'a.test.', '127.0.0.2']) {
    const client = clientOf(server.address, { tls: authority.file, tlsServerName });
    assert.equal(await client.ping(), 5);
    await client.close();
  }
});

test('a server may ask for a certificate of the client', async () => {
  const ca = fs.readFileSync(authority.file);
  const asks = { ca, requestCert: true, rejectUnauthorized: true };
  const { certificate, key } = authority.issue('URI:spiffe://prod/checkout');
  const server = await serverOf('IP:127.0.0.1', asks);
  const shown = { tls: authority.file, tlsCertificate: certificate, tlsKey: key };
  const client = clientOf(server.address, shown);
  assert.equal(await client.ping(), 5);
  await client.close();
  assert.deepEqual(
    server.requests.map(([method]) => method),
    ['hello', 'ping'],
  );
});

test('a client whose certificate is refused gets no call past the server', async () => {
  const given = ['--tls-cert', '--tls-key', '--tls-client-ca', '--tls-client', '--plain'];
  const { certificate, key } = authority.issue('IP:127.0.0.1');
  const values = [certificate, key, authority.file, 'required', 'off'];
  const options = given.flatMap((name, i) => [name, values[i]]);
  const server = await Server.started(...options, '--tls-min', '1.2');
  const settings = { kind: PermissionDenied, fallback: 'pass', timeout: 5000 };
  const none = /^127\.0\.0\.1:\d+: it asks for a client certificate, and none was shown; set tlsC/;
  await fails(server.address, none, settings);
  const wrong = other.issue('URI:spiffe://prod/checkout');
  const shown = { tlsCertificate: wrong.certificate, tlsKey: wrong.key };
  await fails(server.address, /it refuses the client's certificate/, { ...settings, ...shown });
  // TLS 1.2 tells it within the handshake.
  const [cert, privateKey] = [wrong.certificate, wrong.key].map((file) => fs.readFileSync(file));
  const ca = fs.readFileSync(authority.file);
  const older = tls.createSecureContext({ ca, cert, key: privateKey, maxVersion: 'TLSv1.2' });
  await fails(server.address, /it refuses the client's certificate/, { ...settings, tls: older });
  const right = authority.issue('URI:spiffe://prod/checkout');
  const files = { tlsCertificate: right.certificate, tlsKey: right.key };
  const client = clientOf(server.address, { tls: authority.file, ...files });
  assert.ok((await client.ping()) > 0);
  await client.close();
});

test('files that were renewed are used by the next dial', async () => {
  const server = await serverOf();
  const file = path.join(temporary('renewed'), 'ca.pem');
  fs.copyFileSync(other.file, file);
  const client = clientOf(server.address, { tls: file, fallback: 'local', timeout: 10_000 });
  await assert.rejects(client.acquire(1), /not believed/);
  fs.copyFileSync(authority.file, file);
  assert.equal(await client.ping(), 5);
  await client.close();
});

test('files that are missing or wrong are named at once', () => {
  const { certificate, key } = authority.issue('IP:127.0.0.1');
  const locked = authority.path('locked.key');
  openssl('pkey', '-in', key, '-aes256', '-passout', 'pass:secret', '-out', locked);
  const refused = (settings, message) =>
    assert.throws(
      () => new Client({ tls: authority.file, ...settings }),
      (error) => {
        assert.ok(error instanceof BadRequest);
        assert.match(error.message, message);
        return true;
      },
    );
  refused({ tls: key }, /^tls: .* is no PEM file of certificates: no certificate begins in it$/);
  refused({ tlsCertificate: certificate }, /is set without tlsKey or \w+; give both, or none$/);
  const pair = (tlsCertificate, tlsKey) => ({ tlsCertificate, tlsKey });
  refused(pair(certificate, '/no'), /^tls: cannot read \/no: No such file or directory$/);
  refused(pair(certificate, locked), /locked\.key has a passphrase; give a key without one$/);
  refused(pair(certificate, certificate), /are no PEM files of a certificate and its key: /);
  refused(pair(key, key), /are no PEM files of a certificate and its key: /);
  const foreign = other.issue('IP:127.0.0.1');
  refused(pair(certificate, foreign.key), /^tlsKey or \w+: .* is not the key of .*\.pem$/);
  const context = tls.createSecureContext();
  refused({ tls: context, tlsKey: key }, /^tls is a context, so it must have what tlsKey says it/);
});

/** A server that takes each connection, reads once, sends the same bytes and closes. */
async function oneAnswer(data) {
  const listener = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(data));
  });
  await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve));
  atEnd(() => listener.close());
  return `127.0.0.1:${listener.address().port}`;
}

test('a peer that speaks otherwise is told by its answer or its end', async () => {
  await fails(await oneAnswer('HTTP/1.1 400 Bad Request\r\n\r\n'), /it does not speak TLS$/);
  const closes = /the server closed the connection in the TLS handshake; does it speak TLS\?$/;
  await fails(await oneAnswer(''), closes);
  const silent = await ScriptedServer.started(() => null);
  // A dial takes no longer than the timeout of the client.
  const late = { timeout: 300, patience: 1500 };
  await fails(silent, /the TLS handshake timed out; does it speak TLS\?$/, late);
  await until(() => silent.sockets.size === 0);
  const plain = { tls: false };
  await fails(
    await oneAnswer(Buffer.from([0x15, 3, 1, 0, 2, 2, 0x46])),
    /it speaks TLS; so/,
    plain,
  );
  await fails(await serverOf(), /or does it speak TLS only\?$/, plain);
});

test('a secret leaves over TLS and to this machine', async () => {
  const plain = await ScriptedServer.started(answer);
  for (const [server, setting] of [
    [await serverOf(), authority.file],
    [plain, false],
  ]) {
    const client = clientOf(server.address, { tls: setting, secret: SECRET });
    assert.equal(await client.ping(), 5);
    await client.close();
    assert.deepEqual(
      server.requests.map(([method]) => method),
      ['identify', 'hello', 'ping'],
    );
    assert.deepEqual(server.requests[0][1], [SECRET]);
  }
});

/** A real server with principals, and the secret of `shop`, which is a client of shop*. */
async function guarded(...given) {
  const directory = temporary('access');
  const file = path.join(directory, 'access.toml');
  const command = path.join(BIN_DIR, 'nowcalls-admin');
  const add = (...options) => {
    const done = spawnSync(command, ['access', 'add', ...options, '--access', file], {
      encoding: 'utf8',
    });
    assert.equal(done.status, 0, done.stderr);
    return done.stdout.trim();
  };
  const secret = add('shop', '--role', 'client', '--namespace', 'shop*');
  const watcher = add('watcher', '--role', 'observer');
  for (const namespace of ['shop', 'bank']) {
    const rules = [rule(namespace === 'shop' ? 1 : 2, 2)];
    fs.writeFileSync(path.join(directory, `${namespace}.json`), JSON.stringify(rules));
  }
  const rules = ['shop', 'bank'].flatMap((n) => ['--rules', `${n}=${directory}/${n}.json`]);
  const server = await Server.started('--access', file, ...rules, ...given);
  return { server, secret, watcher };
}

test('a server lets in who shows the right secret, to its own flows', async () => {
  const { server, secret, watcher } = await guarded();
  const settings = { namespace: 'shop', fallback: 'pass', timeout: 10_000 };
  const logger = recorder();
  const client = clientOf(server.address, { ...settings, secret: () => secret, logger });
  const permit = await client.acquire(1);
  assert.equal(permit.local, false);
  await assert.rejects(client.acquire(2), (error) => {
    assert.ok(error instanceof PermissionDenied && error.code === 9);
    return /^PERMISSION: /.test(error.message);
  });
  await permit.release();
  await client.close();
  assert.match(logger.lines.join('\n'), /info: connected to .* as 'shop', session \d+, 0 tokens/);
  assert.doesNotMatch(logger.lines.join('\n') + inspect(client, { depth: 9 }), new RegExp(secret));

  const noSecret = clientOf(server.address, settings);
  await assert.rejects(noSecret.acquire(1), PermissionDenied);
  await noSecret.close();
  const observer = clientOf(server.address, { ...settings, secret: watcher, logger: recorder() });
  await assert.rejects(observer.acquire(1), PermissionDenied);
  await observer.close();
});

test('a wrong secret is no admission, and a mended one is taken later', async () => {
  const { server, secret } = await guarded();
  const logger = recorder();
  let shown = 'nc-wrong';
  const settings = { namespace: 'shop', fallback: 'pass', secret: () => shown, logger };
  const client = clientOf(server.address, { ...settings, timeout: 10_000 });
  await assert.rejects(client.acquire(1), (error) => {
    assert.ok(error instanceof PermissionDenied, error.stack);
    assert.match(error.message, /^127\.0\.0\.1:\d+: identify refused: PERMISSION: /);
    return true;
  });
  await assert.rejects(client.request(1), PermissionDenied);
  shown = secret;
  await until(() => client.stats().connected);
  await client.run(1, (permit) => assert.equal(permit.local, false));
  await client.close();
  assert.doesNotMatch(logger.lines.join('\n'), /nc-wrong/);
  assert.equal(logger.lines.filter((line) => line.includes('not let in')).length, 1);
});
