// Without a server: local permits, up to the share of this process.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Client, OutcomeUnknown, Refused, Unavailable, rate } from '../index.js';
import { Proxy, Server, clientOf, recorder, rule, ruleOfKeys, until } from '../testing/support.js';

const NOWHERE = '127.0.0.1:1';

test('local levels limit this process', async () => {
  const client = clientOf(NOWHERE, { fallback: 'local', localLevels: { 1: 2, checkout: 1 } });
  const permits = [await client.acquire(1), await client.acquire('checkout')];
  const [permit] = permits;
  assert.deepEqual([permit.local, permit.tokenId, permit.fence], [true, 0n, 0n]);
  assert.deepEqual([permit.nowCalls, permit.level, permit.holdMs], [1, 2, 0]);
  assert.deepEqual([permit.validUntil, permit.validFor], [Infinity, 2 ** 31 - 1]);
  permits.push(await client.acquire(1n));
  await assert.rejects(client.acquire(1), (error) => {
    assert.ok(error instanceof Refused && error.local);
    assert.equal(error.message, 'flow 1 refused by the local share: 2 of 2 in progress');
    return true;
  });
  await assert.rejects(client.acquireAll([1, 'checkout']), Refused);
  await assert.rejects(client.acquire(2), Unavailable); // Nothing is known of it.
  assert.equal(await permit.keep(), true);
  assert.equal(await permit.release(), true);
  assert.equal(await permit.keep(), false);
  permits.push(await client.acquire(1));
  await assert.rejects(client.acquireAll([1, rate(1)]), Refused);
  for (const one of permits) await one.release();
  const group = await client.acquireAll([1, rate(1, 2), 'checkout']);
  assert.deepEqual(
    group.map((one) => one?.local ?? null),
    [true, null, true],
  );
  await assert.rejects(client.request(1), { refusedBy: 'rate', local: true });
  const stats = client.stats();
  assert.deepEqual([stats.localGranted >= 6, stats.localRefused >= 4, stats.held], [true, true, 0]);
  await client.close();
});

test('of a group or of several values all are admitted, or none', async () => {
  const client = clientOf(NOWHERE, { fallback: 'local', localLevels: { 1: 1, 2: 0, 3: 2 } });
  await assert.rejects(client.acquireAll([1, rate(3, 2), 2]), { flowId: 2 });
  await client.request(3, { count: 2 });
  await (await client.acquire(1)).release();
  await client.requestParam(3, ['b']);
  await client.requestParam(3, ['b']);
  await assert.rejects(client.requestParam(3, ['a', 'b']), { refusedBy: 'param', local: true });
  await client.requestParam(3, ['a'], { count: 2 });
  await client.close();
});

test('pass admits, fail does not', async () => {
  const logger = recorder();
  const passes = clientOf(NOWHERE, { fallback: 'pass', logger });
  assert.equal((await passes.acquire(1)).level, 0);
  assert.deepEqual(await passes.request(1), { remaining: -1, wait: 0 });
  assert.deepEqual(await passes.requestParam(1, ['a', 'b']), { remaining: -1, wait: 0 });
  assert.equal(passes.stats().localPassed, 4);
  await passes.close();
  const warned = logger.lines.filter((line) => line.startsWith('warn: no server is reached'));
  assert.deepEqual(warned, [
    'warn: no server is reached, fallback pass: 127.0.0.1:1: Connection refused',
  ]);
  const fails = clientOf(NOWHERE, { timeout: 200 });
  await assert.rejects(fails.acquire(1), Unavailable);
  await fails.close();
});

test('by rule, as the rule was last seen, with what is held on the server', async () => {
  const server = await Server.started();
  await server.load(
    'shop',
    rule(1, 3),
    rule(2, 1, { fallbackToLocalWhenFail: false }),
    {
      ...ruleOfKeys(3, 1, { fallbackToLocalWhenFail: true }),
      paramFlowItemList: [{ object: 'big', count: 3, classType: 'String' }],
    },
    { ...rule(4, 5), grade: 1 },
    rule(undefined, 1, { resource: 'checkout' }),
    rule(5, 0),
  );
  const client = clientOf(server.address, { namespace: 'shop', fallback: 'rule' });
  await assert.rejects(client.acquire(5), { refusedBy: 'over_level', local: false });
  const held = await client.acquire(1);
  for (const flow of [2, 'checkout']) await (await client.acquire(flow)).release();
  await (await client.acquire(3, { param: 'x' })).release();
  await client.request(4);
  await server.kill();
  await until(() => !client.stats().connected);

  const permits = [await client.acquire(1), await client.acquire(1)];
  await assert.rejects(client.acquire(1), { local: true, level: 3, nowCalls: 3 });
  permits.push(await client.acquire(2), await client.acquire(2), await client.acquire('checkout'));
  assert.deepEqual(
    permits.map((permit) => permit.local),
    Array(5).fill(true),
  );
  await assert.rejects(client.acquire('checkout'), { local: true, flowId: 'checkout' });
  await assert.rejects(client.acquire(5), { local: true, level: 0 });
  await client.acquire(3, { param: 'new' });
  await assert.rejects(client.acquire(3, { param: 'new' }), { local: true });
  await client.acquire(3, { param: 'big', count: 3 });
  const calls = await Promise.allSettled(Array.from({ length: 7 }, () => client.request(4)));
  assert.equal(calls.filter(({ status }) => status === 'fulfilled').length, 5);

  await server.start();
  await until(() => client.stats().connected);
  assert.equal(held.lost, false);
  assert.equal(await held.release(), true);
  assert.equal(await permits[0].release(), true);
  assert.equal((await client.acquire(1)).local, false);
  await client.close();
  await server.kill();
});

test('a server that does not answer in time is as good as none', async () => {
  const server = await Server.started();
  await server.load('shop', rule(1, 3));
  const proxy = await Proxy.started(server);
  const settings = { namespace: 'shop', timeout: 300 };
  const local = clientOf(proxy.address, { ...settings, fallback: 'local', localLevels: { 1: 1 } });
  const none = clientOf(proxy.address, settings);
  await Promise.all([local.ping(), none.ping()]);
  proxy.answers = false;
  const [permit] = await Promise.all([
    local.acquire(1),
    assert.rejects(none.acquire(1), OutcomeUnknown),
  ]);
  assert.equal(permit.local, true);
  proxy.answers = true;
  await until(async () => (await server.nowCalls(1)) === 0); // Both were cancelled.
  await local.close();
  await none.close();
  await server.kill();
});

test('all addresses are tried in turn', async () => {
  const server = await Server.started();
  await server.load('shop', rule(1, 3));
  const address = [NOWHERE, '127.0.0.1:2', server.address];
  const client = clientOf(address, { namespace: 'shop', fallback: 'pass' });
  await client.run(1, (permit) => assert.equal(permit.local, false));
  assert.equal(client.stats().address, server.address);
  await client.close();
  await server.kill();
});

test('without a logger of its own a client warns on stderr', async (context) => {
  const lines = [];
  context.mock.method(console, 'warn', (text) => lines.push(text));
  const client = new Client({ address: NOWHERE, fallback: 'pass' });
  await client.acquire(1);
  await client.close();
  assert.deepEqual(lines, [
    'nowcalls: no server is reached, fallback pass: 127.0.0.1:1: Connection refused',
  ]);
});
