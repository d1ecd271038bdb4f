// Crashes, cuts and restarts of a real server: nothing above the level, nothing left at the end.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { NowcallsError, OutcomeUnknown, Unavailable } from '../index.js';
import { Proxy, Server, clientOf, recorder, rule, until } from '../testing/support.js';

const LEVEL = 10;

test('1,000 permits in 50 tasks across crashes of the server', async () => {
  const server = await Server.started();
  await server.load('shop', rule(1, LEVEL));
  const client = clientOf(server.address, { namespace: 'shop', timeout: 20_000 });
  let done = 0;
  let inProgress = 0;
  let most = 0;
  let ended = false;
  const fences = new Set();
  async function work() {
    for (let times = 0; times < 20; ++times) {
      await client.run(1, { wait: 60_000 }, async (permit) => {
        inProgress += 1;
        most = Math.max(most, inProgress);
        assert.ok(inProgress <= LEVEL, `${inProgress} in progress`);
        assert.ok(!permit.lost, permit.lostReason);
        assert.ok(permit.tokenId > 0n && !permit.local);
        fences.add(permit.fence);
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 4));
        inProgress -= 1;
      });
      done += 1;
    }
  }
  async function crash() {
    for (let times = 0; times < 4; ++times) {
      const goal = done + 150;
      await until(() => done >= Math.min(goal, 1000));
      if (ended) return;
      await server.kill();
      await server.start();
    }
  }
  const crashing = crash();
  await Promise.all(Array.from({ length: 50 }, work));
  ended = true;
  await crashing;
  assert.deepEqual([done, most, fences.size], [1000, LEVEL, 1000]);
  assert.ok(client.stats().disconnects >= 3 && client.stats().askedAgain > 0);
  await until(async () => (await server.nowCalls(1)) === 0, 'a token is left');
  assert.equal(client.stats().held, 0);
  assert.equal(client.stats().unsettled, 0);
  await client.close();
  assert.doesNotMatch(server.admin('tokens'), /\n\d/);
  await server.kill();
});

test('answers that are lost leave no token', async () => {
  const server = await Server.started();
  await server.load('shop', rule(1, LEVEL), { ...rule(2, 1000), grade: 1 });
  const proxy = await Proxy.started(server);
  const client = clientOf(proxy.address, { namespace: 'shop', timeout: 10_000 });
  await client.ping();

  proxy.answers = false;
  const asked = [client.acquire(1), client.acquire(1), client.acquireAll([[1, 2], 2])];
  const rate = client.request(2);
  const unknown = assert.rejects(rate, OutcomeUnknown); // It is not asked again.
  await until(async () => (await server.nowCalls(1)) === 4);
  proxy.answers = true;
  proxy.cut();
  const permits = (await Promise.all(asked)).flat();
  await unknown;
  assert.equal(await server.nowCalls(1), 4);

  // So does a release.
  proxy.answers = false;
  const released = permits.map((permit) => permit.release());
  await until(async () => (await server.nowCalls(1)) === 0);
  proxy.answers = true;
  proxy.cut();
  assert.deepEqual(await Promise.all(released), [true, true, true, true]);

  // An acquire whose time is over is cancelled.
  proxy.answers = false;
  await assert.rejects(client.acquire(1, { timeout: 100 }), OutcomeUnknown);
  proxy.answers = true;
  await until(async () => (await server.nowCalls(1)) === 0);
  assert.ok(client.stats().cancelled > 0);
  await client.close();
  await server.kill();
});

test('a client that is cut off knows its loss before another gets its room', async () => {
  const server = await Server.started();
  await server.load('shop', rule(1, 1, { resourceTimeout: 700, clientOfflineTime: 1000 }));
  const proxy = await Proxy.started(server);
  const logger = recorder();
  const client = clientOf(proxy.address, { namespace: 'shop', logger, timeout: 1000 });
  const other = clientOf(server.address, { namespace: 'shop' });
  const told = [];
  client.ping();
  const permit = await client.acquire(1, { onLost: (lost) => told.push(lost) });
  const moments = {};
  permit.signal.addEventListener('abort', () => {
    moments.lost = performance.now();
  });
  const waits = other.acquire(1, { wait: 20_000 });
  await until(() => server.waiters(1));
  await until(() => client.stats().kept > 0); // Strategy 2 keeps it.
  proxy.requests = false;
  proxy.answers = false;
  const next = await waits;
  moments.granted = performance.now();
  assert.ok(moments.lost < moments.granted, JSON.stringify(moments));
  assert.equal(permit.lost, true);
  assert.equal(permit.validFor, 0);
  assert.deepEqual(told, [permit]);
  assert.match(permit.signal.reason.message, /^lost token \d+ of flow 1: (client_off|resource)/);
  assert.match(logger.lines.join('\n'), /warn: lost token \d+ of flow 1: /);
  proxy.requests = true;
  proxy.answers = true;
  proxy.cut();
  assert.equal(await permit.release(), false);
  assert.equal(next.lost, false);
  await next.release();
  await client.close();
  await other.close();
  await server.kill();
});

test('a permit survives a restart, and says that it is lost when it did not', async () => {
  const server = await Server.started();
  await server.load('shop', rule(1, 2));
  const client = clientOf(server.address, { namespace: 'shop' });
  const [kept, taken] = [await client.acquire(1), await client.acquire(1)];
  await server.kill();
  await server.start();
  await until(() => client.stats().connects === 2);
  assert.equal(kept.lost, false);
  let reason = null;
  taken.signal.addEventListener('abort', () => {
    reason = taken.lostReason;
  });
  server.admin('reclaim', String(taken.tokenId), '--reason', 'test', '--yes');
  await until(() => taken.lost);
  assert.equal(reason, 'admin');
  assert.equal(await kept.keep(), true);
  assert.equal(await taken.keep(), false);
  assert.equal(await kept.release(), true);
  assert.equal(await taken.release(), false);
  await client.close();
  await server.kill();
});

test('a server that is gone ends calls, and leaves say so', async () => {
  const server = await Server.started();
  await server.load('shop', rule(1, 2));
  const logger = recorder();
  const client = clientOf(server.address, { namespace: 'shop', timeout: 15_000, logger });
  const permit = await client.acquire(1);
  const begin = performance.now();
  const block = client.run(1, async () => {
    await server.kill();
    await until(() => !client.stats().connected);
  });
  await block; // It has done its work.
  assert.ok(performance.now() - begin < 10_000);
  const options = { timeout: 200 };
  await assert.rejects(permit.release('ok', options), NowcallsError);
  await assert.rejects(client.acquire(1, options), Unavailable);
  assert.match(logger.lines.join('\n'), /warn: <Permit flow 1 token \d+ .*> is released in the b/);
  assert.match(logger.lines.join('\n'), /warn: no server is reached, fallback fail: 127/);
  assert.equal(client.stats().unsettled, 2);
  await server.start();
  await until(async () => (await server.nowCalls(1)) === 0);
  await client.close();
  await server.kill();
});
