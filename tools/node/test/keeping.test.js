// Long calls: what is kept, what is released, what is lost, by the rules of a real server.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { Refused } from '../index.js';
import { Server, clientOf, recorder, rule, ruleOfKeys, until } from '../testing/support.js';

const SHORT = { resourceTimeout: 300, clientOfflineTime: 20_000 };
let server;

before(async () => {
  server = await Server.started();
  const strategy = (flow, resourceTimeoutStrategy, more = {}) =>
    rule(flow, 4, { ...SHORT, resourceTimeoutStrategy, ...more });
  await server.load(
    'shop',
    strategy(1, 0),
    strategy(2, 1),
    strategy(3, 2),
    strategy(4, 2, { clientOfflineTime: 600, resourceTimeout: 30_000 }),
    ...[5, 6].map((flow) => rule(flow, 1, { acquireRefuseStrategy: flow - 4 })),
    ruleOfKeys(7, 1),
  );
});

test('the rule says whether a permit is kept, released or left', async () => {
  const logger = recorder();
  const client = clientOf(server.address, { namespace: 'shop', logger });
  const told = [];
  client.ping();
  const [left, released, kept] = await Promise.all(
    [1, 2, 3].map((flow) => client.acquire(flow, { onLost: (permit) => told.push(permit) })),
  );
  await until(() => client.stats().kept >= 4);
  await until(() => left.lost && released.lost);
  await until(() => told.length === 2);
  assert.deepEqual(told, [released, left]); // At 300 ms less a little, and at 600 ms.
  assert.deepEqual([left.lostReason, released.lostReason], Array(2).fill('resource_timeout'));
  assert.deepEqual([kept.lost, await kept.release()], [false, true]);
  assert.deepEqual([await left.release(), await released.release()], [false, false]);
  const words = /lost token \d+ of flow 1: its call took longer than the 600 ms .* keep it always/;
  assert.match(logger.lines.join('\n'), words);
  const row = await client.flow(2);
  assert.deepEqual(row.counters.outcomes, { failed: 0, timeout: 1 });
  await client.close();
});

test('always keeps, and false does not, whatever the rule says', async () => {
  const client = clientOf(server.address, { namespace: 'shop', keep: false });
  const always = await client.acquire(1, { keep: 'always' });
  const never = await client.acquire(3);
  await until(() => never.lost);
  await until(() => client.stats().kept > 2);
  assert.equal(always.lost, false);
  assert.equal(never.lostReason, 'resource_timeout');
  await always.release();
  await never.release();
  await client.close();
});

test('pings keep a session in contact', async () => {
  const client = clientOf(server.address, { namespace: 'shop' });
  const permit = await client.acquire(4);
  const begin = permit.validUntil;
  await until(() => permit.validUntil > begin + 1000);
  assert.equal(permit.lost, false);
  await permit.release();
  await client.close();
});

test('a keep by hand renews the hold', async () => {
  const client = clientOf(server.address, { namespace: 'shop', keep: false });
  const permit = await client.acquire(1);
  const begin = permit.validUntil;
  await until(async () => (await permit.keep()) && permit.validUntil > begin + 100);
  await permit.release();
  assert.equal(await permit.keep(), false);
  await client.close();
});

test('a prioritized acquire is asked again as the rule says', async () => {
  const client = clientOf(server.address, { namespace: 'shop', timeout: 600 });
  const { refused } = (await client.flow(5)).counters;
  assert.deepEqual(refused, {});
  for (const [flow, least, most] of [
    [5, 2, 2],
    [6, 4, 1000],
  ]) {
    const held = await client.acquire(flow);
    await assert.rejects(client.acquire(flow, { prioritized: true }), Refused);
    const { level } = (await client.flow(flow)).counters.refused;
    assert.ok(least <= level && level <= most, `${level} attempts under rule ${flow}`);
    const waits = client.acquire(flow, { prioritized: true, timeout: 10_000 });
    if (flow === 6) {
      await held.release();
      await (await waits).release();
    } else {
      await assert.rejects(waits, Refused);
      await held.release();
    }
  }
  await client.close();
});

test('a process that rejoins takes over the tokens of the one before', async () => {
  const settings = { namespace: 'shop', clientId: 'again', rejoin: true };
  const first = clientOf(server.address, settings);
  const permit = await first.acquire(7, { param: 'x' });
  await first.close();
  const logger = recorder();
  const second = clientOf(server.address, { ...settings, logger });
  await second.ping();
  assert.match(logger.lines.join('\n'), /session \d+, 1 tokens/);
  server.admin('reclaim', String(permit.tokenId), '--reason', 'test', '--yes');
  await second.close();
});

test('an exclusive client refuses to share its name', async () => {
  const settings = { namespace: 'shop', clientId: 'alone', exclusive: true };
  const first = clientOf(server.address, { ...settings, rejoin: true });
  await first.ping();
  const second = clientOf(server.address, { ...settings, timeout: 500 });
  await assert.rejects(second.ping(), /hello refused: CONFLICT: /);
  await first.close();
  await until(() => second.stats().connected);
  await second.close();
});
