// Callers that leave, clients that are closed, programs that forget: nothing is left on the server,
// and nothing in the process.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import { before, test } from 'node:test';
import { promisify, types } from 'node:util';
import v8 from 'node:v8';
import vm from 'node:vm';

import { Client, NowcallsError, rate } from '../index.js';
import { whenAborted } from '../lib/signals.js';
import {
  Proxy,
  ScriptedServer,
  Server,
  clientOf,
  recorder,
  rule,
  until,
} from '../testing/support.js';

const run = promisify(execFile);
const INDEX = new URL('../index.js', import.meta.url);
let server;

before(async () => {
  server = await Server.started();
  const paced = { controlBehavior: 1, maxQueueingTimeMs: 300_000, durationInSec: 60 };
  await server.load('shop', rule(1, 1), rule(2, 10), {
    ...paced,
    resource: 'paced',
    threshold: 1,
    metricType: 1,
    clusterMode: true,
    clusterConfig: { flowId: 3, thresholdType: 1 },
  });
});

const nothingLeft = (flow) =>
  until(async () => (await server.nowCalls(flow)) === 0 && (await server.waiters(flow)) === 0);

test('a signal that was aborted before asks nothing', async () => {
  const client = clientOf(server.address, { namespace: 'shop' });
  const signal = AbortSignal.abort(new Error('not now'));
  for (const ask of [
    () => client.acquire(1, { signal }),
    () => client.acquireAll([1], { signal }),
    () => client.request(1, { signal }),
    () => client.ping({ signal }),
    () => client.run(1, { signal }, () => assert.fail('it ran')),
  ]) {
    await assert.rejects(ask, { message: 'not now' });
  }
  assert.equal(client.stats().waiting, 0);
  const permit = await client.acquire(1);
  await assert.rejects(permit.release('ok', { signal }), { message: 'not now' });
  await nothingLeft(1);
  await client.close();
});

test('a caller leaves at any moment, and holds nothing', async () => {
  const client = clientOf(server.address, { namespace: 'shop' });
  await client.ping();
  let granted = 0;
  for (let round = 0; round < 60; ++round) {
    const leaving = new AbortController();
    const options = { signal: leaving.signal, wait: 1000 };
    const calls = [client.acquire(2, options), client.acquireAll([1, 2], options)];
    setTimeout(() => leaving.abort(), round % 6);
    for (const outcome of await Promise.allSettled(calls)) {
      if (outcome.status === 'rejected') {
        assert.equal(outcome.reason.name, 'AbortError');
        continue;
      }
      granted += 1;
      for (const permit of [outcome.value].flat()) await permit.release();
    }
  }
  assert.ok(granted > 0 && granted < 120, `${granted} granted`);
  await nothingLeft(1);
  await nothingLeft(2);
  assert.deepEqual([client.stats().held, client.stats().waiting], [0, 0]);
  await client.close();
});

test('many calls may share a signal', async () => {
  const warnings = [];
  const note = (warning) => warnings.push(warning.name);
  process.on('warning', note);
  const client = clientOf(server.address, { namespace: 'shop', timeout: 20_000 });
  const leaving = new AbortController();
  const { signal } = leaving;
  const done = Array.from({ length: 40 }, () => client.run(2, { signal, wait: 20_000 }, () => {}));
  await Promise.all(done);
  const held = await client.acquire(1);
  const calls = Array.from({ length: 40 }, () => client.acquire(1, { signal, wait: 20_000 }));
  const ended = Promise.all(calls.map((call) => assert.rejects(call, { name: 'AbortError' })));
  await until(async () => (await server.waiters(1)) === 40);
  leaving.abort();
  await ended;
  await held.release();
  await nothingLeft(1);
  process.off('warning', note);
  assert.deepEqual(warnings, []);
  await client.close();
});

test('a call that has ended hears of its signal no more', () => {
  const leaving = new AbortController();
  const heard = [];
  const stop = whenAborted(leaving.signal, () => heard.push('ended'));
  whenAborted(leaving.signal, () => heard.push('waits'));
  stop();
  leaving.abort();
  assert.deepEqual(heard, ['waits']);
});

test('a caller leaves the line', async () => {
  const client = clientOf(server.address, { namespace: 'shop' });
  const held = await client.acquire(1);
  const leaving = new AbortController();
  const waits = client.acquire(1, { wait: 60_000, signal: leaving.signal });
  await until(() => server.waiters(1));
  leaving.abort();
  await assert.rejects(waits, { name: 'AbortError' });
  await until(async () => !(await server.waiters(1)));
  await held.release();
  await nothingLeft(1);
  await client.close();
});

test('a caller leaves before there is a connection', async () => {
  const client = clientOf('127.0.0.1:1', { namespace: 'shop' });
  const leaving = new AbortController();
  const waits = client.acquire(1, { signal: leaving.signal });
  leaving.abort();
  await assert.rejects(waits, { name: 'AbortError' });
  assert.deepEqual([client.stats().waiting, client.stats().unsettled], [0, 0]);
  await client.close();
});

test('a caller leaves while it sleeps for a rate', async () => {
  const client = clientOf(server.address, { namespace: 'shop', timeout: 3_600_000 });
  await client.requestParam(3, ['key']);
  const leaving = new AbortController();
  const { signal } = leaving;
  const sleeps = [
    client.requestParam(3, ['key'], { signal }),
    client.acquireAll([2, rate(3, 1, 'key')], { signal }),
  ];
  await until(async () => (await server.nowCalls(2)) === 1);
  leaving.abort();
  for (const call of sleeps) await assert.rejects(call, { name: 'AbortError' });
  await nothingLeft(2);
  const told = await client.requestParam(3, ['key'], { sleep: false });
  assert.ok(told.wait > 60_000, `${told.wait}`);
  await client.close();
});

test('a caller leaves a release and a keep that get no answer', async () => {
  const proxy = await Proxy.started(server);
  const client = clientOf(proxy.address, { namespace: 'shop' });
  const permit = await client.acquire(1);
  proxy.answers = false;
  const leaving = new AbortController();
  const { signal } = leaving;
  const kept = permit.keep({ signal });
  const released = permit.release('failed', { signal });
  await nothingLeft(1);
  leaving.abort();
  await assert.rejects(kept, { name: 'AbortError' });
  await assert.rejects(released, { name: 'AbortError' });
  assert.equal(client.stats().unsettled, 1);
  proxy.answers = true;
  proxy.cut();
  await until(() => client.stats().unsettled === 0);
  await client.close();
});

test('close ends all calls, in every state', async () => {
  const silent = await ScriptedServer.started(() => null);
  const deaf = await ScriptedServer.started((method) =>
    method === 'hello' ? [null, ['1.0', 1, 1, 0]] : null,
  );
  const states = {
    dials: ['127.0.0.1:1', async () => {}],
    'dials an address that drops packets': ['192.0.2.1:1', async () => {}],
    'finds a name': ['no-such-host.invalid:1', async () => {}],
    'says hello': [silent.address, () => until(() => silent.requests.length > 0)],
    'is connected': [deaf.address, (client) => until(() => client.stats().connected)],
    waits: [deaf.address, () => until(() => deaf.requests.some(([m]) => m === 'acquire'))],
  };
  for (const [name, [address, reached]] of Object.entries(states)) {
    const client = clientOf(address, { timeout: 500 });
    const asks = [
      () => client.acquire(1, { wait: 60_000 }),
      () => client.acquireAll([1, 2]),
      () => client.request(1),
      () => client.ping(),
      () => client.flow(1),
      () => client.flows().next(),
    ];
    const calls = asks.map((ask) => assert.rejects(ask, NowcallsError));
    await reached(client);
    const begin = performance.now();
    await client.close();
    assert.ok(performance.now() - begin < 2000, name);
    await Promise.all(calls);
    await assert.rejects(client.acquire(1), { message: 'the client is closed' });
  }
});

test('a callback may release, close and fail', async () => {
  const logger = recorder();
  const client = clientOf(server.address, { namespace: 'shop', logger });
  const outcomes = [];
  const permit = await client.acquire(1, {
    onLost: async (lost) => {
      outcomes.push(await lost.release());
      await client.close();
      throw new Error('on purpose');
    },
  });
  server.admin('reclaim', String(permit.tokenId), '--reason', 'test', '--yes');
  await until(() => logger.lines.some((line) => line.includes('on purpose')));
  assert.deepEqual(outcomes, [false]);
  assert.match(logger.lines.at(-1), /^error: onLost of <Permit flow 1 .*, lost> failed: Error: on/);
});

test('a permit that the program forgets is released, with a warning', async () => {
  v8.setFlagsFromString('--expose-gc');
  const collect = vm.runInNewContext('gc');
  const logger = recorder();
  const client = clientOf(server.address, { namespace: 'shop', logger });
  await (async () => {
    await client.acquire(1);
  })();
  await until(async () => {
    collect();
    return (await server.nowCalls(1)) === 0;
  });
  assert.match(logger.lines.join('\n'), /warn: token \d+ of flow 1 was dropped, so it is released/);
  await client.close();
});

test('clients leave no socket and no timer', async () => {
  const descriptors = () => fs.readdirSync('/proc/self/fd').length;
  const resources = () => process.getActiveResourcesInfo().length;
  const closed = async () => {
    await Promise.all(
      Array.from({ length: 10 }, async (_, index) => {
        const where = index % 3 === 0 ? '127.0.0.1:1' : server.address;
        const client = new Client({ address: where, namespace: 'shop', logger: null });
        const options = index % 3 === 0 ? {} : { wait: 5000 };
        await client.run(2, options, () => {});
        if (index % 2) await (await client.acquire(2, options)).release();
        await client.close();
      }),
    );
  };
  await closed();
  const atFirst = [descriptors(), resources()];
  for (let round = 0; round < 5; ++round) await closed();
  await until(
    () => descriptors() <= atFirst[0] && resources() <= atFirst[1],
    `${atFirst} before, now ${process.getActiveResourcesInfo()}`,
  );
  assert.equal(types.isPromise(new Client({ logger: null }).close()), true);
  await nothingLeft(2);
});

test('an idle client and a held permit keep no process alive, a call does', async () => {
  const program = (what) => `
    const { Client } = await import(${JSON.stringify(INDEX)});
    const client = new Client({ address: '${server.address}', namespace: 'shop' });
    ${what}
  `;
  const outcome = async (what) => {
    const given = ['--input-type=module', '-e', program(what)];
    const { stdout } = await run(process.execPath, given, { timeout: 30_000 }); // Else it hangs.
    return stdout.trim();
  };
  const idle = await outcome('console.log("made");');
  assert.equal(idle, 'made');
  const connected = await outcome(
    'while (!client.stats().connected) await new Promise((done) => setTimeout(done, 5));' +
      'console.log("connected");',
  );
  assert.equal(connected, 'connected');
  const held = await outcome('console.log((await client.acquire(2)).level);');
  assert.equal(held, '10');
  const waited = await outcome(
    'const a = await client.acquire(1);' +
      'try { await client.acquire(1, { wait: 300 }); } catch (e) { console.log(e.refusedBy); }' +
      'await a.release(); await client.close(); console.log("closed");',
  );
  assert.equal(waited, 'queue_timeout\nclosed');
});
