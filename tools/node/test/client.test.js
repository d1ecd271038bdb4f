// A client and a real server: permits, rates, groups, names, listings, the end.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import * as nowcalls from '../index.js';
import { Server, clientOf, rule, ruleOfKeys, until } from '../testing/support.js';

let server;
let client;

before(async () => {
  server = await Server.started();
  await server.load(
    'shop',
    rule(1, 2),
    ruleOfKeys(2, 1),
    rule(3, 5),
    { ...rule(4, 10), grade: 1 },
    { ...ruleOfKeys(5, 3), grade: 1 },
    rule(6, 0),
    rule(undefined, 1, { resource: 'checkout' }),
    ruleOfKeys(8, 1),
  );
  client = clientOf(server.address, { namespace: 'shop', clientId: 'worker' });
});

test('a permit is taken, shown and given back', async () => {
  const permit = await client.acquire(1);
  assert.ok(permit.tokenId > 0n && permit.fence > 0n);
  assert.equal(typeof permit.tokenId, 'bigint');
  assert.deepEqual([permit.nowCalls, permit.level, permit.holdMs], [1, 2, 60_000]);
  assert.deepEqual([permit.flowId, permit.count, permit.param], [1, 1, null]);
  assert.ok(permit.validFor > 29_000 && permit.validUntil > nowcalls.now());
  assert.deepEqual([permit.lost, permit.lostReason, permit.released], [false, null, false]);
  assert.equal(await server.nowCalls(1), 1);
  assert.equal(await permit.release(), true);
  assert.equal(await permit.release(), true);
  assert.deepEqual([permit.released, permit.validFor], [true, 0]);
  assert.equal(await server.nowCalls(1), 0);
});

test('a refusal says why', async () => {
  const held = await client.acquire(1, { count: 2 });
  await assert.rejects(client.acquire(1), (error) => {
    assert.ok(error instanceof nowcalls.Refused && error instanceof nowcalls.NowcallsError);
    assert.equal(error.name, 'Refused');
    assert.equal(error.message, 'flow 1 refused by level: 2 of 2 in progress');
    assert.deepEqual([error.refusedBy, error.nowCalls, error.level], ['level', 2, 2]);
    return true;
  });
  await assert.rejects(client.acquire(1, { wait: 30 }), { refusedBy: 'queue_timeout' });
  await assert.rejects(client.acquire(1, { count: 3 }), { refusedBy: 'over_level' });
  await held.release();
  await assert.rejects(client.acquire(999), (error) => {
    assert.ok(error instanceof nowcalls.NoRule);
    assert.equal(error.message, 'flow 999 has no rule');
    return true;
  });
  await assert.rejects(client.acquire(2), nowcalls.BadRequest);
});

test('an acquire waits for room', async () => {
  const held = await client.acquire(1, { count: 2 });
  const waits = client.acquire(1, { wait: 10_000 });
  await until(() => server.waiters(1));
  await held.release();
  await (await waits).release();
});

test('a block releases with its outcome', async () => {
  assert.equal(await client.run(1, async (permit) => permit.nowCalls), 1);
  await assert.rejects(
    client.run(1, {}, () => Promise.reject(new TypeError('no'))),
    TypeError,
  );
  const late = new DOMException('too late', 'TimeoutError');
  await assert.rejects(
    client.run(1, () => Promise.reject(late)),
    late,
  );
  await assert.rejects(client.run(1), nowcalls.BadRequest);
  const row = await client.flow(1);
  assert.deepEqual(row.counters.outcomes, { failed: 1, timeout: 1 });
  assert.equal(row.now_calls, 0);
});

test('await using gives it back', async () => {
  const permit = await client.acquire(1);
  await permit[Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]();
  assert.equal(await server.nowCalls(1), 0);
});

test('values of a parameter have levels of their own', async () => {
  const values = ['key', 7, 2 ** 40, -1n, 2n ** 62n, 0.5, true];
  const permits = await Promise.all(values.map((param) => client.acquire(2, { param })));
  assert.deepEqual(permits[4].param, 2n ** 62n);
  await assert.rejects(client.acquire(2, { param: 2 ** 40 }), { refusedBy: 'param' });
  await assert.rejects(client.acquire(2, { param: 7n }), { refusedBy: 'param' });
  const rows = [];
  for await (const row of client.tokens({ flowId: 2 })) rows.push(row.param);
  assert.deepEqual(rows, ['key', 7, 2 ** 40, -1, 2n ** 62n, 0.5, true]);
  for (const permit of permits) await permit.release();
});

test('a group is taken in one decision', async () => {
  const asked = [1, [3, 2], [2, 1, 'key'], nowcalls.rate(4)];
  const permits = await client.acquireAll(asked, { wait: 1000 });
  assert.deepEqual(
    permits.map((permit) => permit?.count ?? null),
    [1, 2, 1, null],
  );
  assert.equal(await server.nowCalls(3), 2);
  await assert.rejects(client.acquireAll([1, [2, 1, 'key']]), { refusedBy: 'param', flowId: 2 });
  for (const permit of permits) await permit?.release();
  await assert.rejects(client.acquireAll([1, 6]), { refusedBy: 'over_level', flowId: 6 });
  assert.equal(await server.nowCalls(1), 0);
});

test('calls a second are asked for', async () => {
  const { remaining, wait } = await client.request(4);
  assert.ok(remaining < 10 && wait === 0);
  await assert.rejects(client.request(4, { count: 11 }), { refusedBy: 'over_level' });
  await client.requestParam(5, ['a', 1], { count: 3 });
  await assert.rejects(client.requestParam(5, ['a']), { refusedBy: 'param' });
});

test('flows have names', async () => {
  const permit = await client.acquire('checkout');
  assert.equal(permit.flowId, 'checkout');
  await assert.rejects(client.acquire('checkout'), (error) => {
    assert.equal(error.message, "flow 'checkout' refused by level: 1 of 1 in progress");
    return error.flowId === 'checkout';
  });
  await assert.rejects(client.acquireAll([1, 'checkout']), { flowId: 'checkout' });
  assert.equal((await client.flow('checkout')).flow_id, 7119573550062657);
  assert.equal((await client.flow(7119573550062657n)).resource, 'checkout');
  await permit.release();
  await assert.rejects(client.acquire('no such'), { message: "flow 'no such' has no rule" });
});

test('what the server knows is listed', async () => {
  const permits = await Promise.all(
    Array.from({ length: 5 }, () => client.acquire(3, { count: 1 })),
  );
  const rows = [];
  for await (const row of client.tokens({ flowId: 3, clientId: 'worker' })) rows.push(row);
  const ids = (tokens) => tokens.sort().join();
  assert.equal(ids(rows.map((row) => row.token_id)), ids(permits.map((p) => p.tokenId)));
  assert.ok(rows.every((row) => typeof row.fence === 'bigint' && typeof row.count === 'number'));
  for (const permit of permits) await permit.release('timeout');
  const [ended] = await firstOf(client.history());
  assert.equal(ended.outcome, 'timeout');
  const [session] = await firstOf(client.sessions());
  assert.deepEqual([typeof session.session, typeof session.tokens], ['bigint', 'number']);
  const flows = [];
  for await (const row of client.flows()) flows.push(row.flow_id);
  assert.ok(flows.includes(7119573550062657) && flows.includes(1));
  assert.ok(Math.abs((await client.ping()) - Date.now()) < 60_000);
  const stats = client.stats();
  assert.deepEqual([stats.connected, stats.held, stats.connects], [true, 0, 1]);
});

async function firstOf(rows) {
  for await (const row of rows) return [row];
  return [];
}

test('two clients of one process and one client id share their session', async () => {
  const other = clientOf(server.address, { namespace: 'shop', clientId: 'worker' });
  await other.ping();
  const online = [];
  for await (const row of other.sessions()) if (row.client_id === 'worker') online.push(row);
  assert.equal(online.length, 1);
  assert.equal(online[0].connections, 2);
  await other.close();
});

test('a client that is closed says so', async () => {
  const other = clientOf(server.address, { namespace: 'shop' });
  const permit = await other.acquire('checkout');
  const [first, second] = [other.close(), other.close()];
  await Promise.all([first, second]);
  await assert.rejects(other.acquire('checkout'), { message: 'the client is closed' });
  await assert.rejects(other.ping(), nowcalls.BadRequest);
  await assert.rejects(permit.release(), (error) => {
    assert.equal(error.message, 'release: not carried out: the client is closed');
    return error instanceof nowcalls.Unavailable;
  });
  assert.equal(other.stats().connected, false);
});

test('close waits for releases on their way, and ends what waits', async () => {
  const other = clientOf(server.address, { namespace: 'shop' });
  const permits = await Promise.all(Array.from({ length: 5 }, () => other.acquire(3)));
  const waits = other.acquire(3, { wait: 60_000 });
  const ended = assert.rejects(waits, /the client was closed/);
  await until(() => server.waiters(3));
  const released = permits.map((permit) => permit.release());
  await other.close();
  assert.deepEqual(await Promise.all(released), [true, true, true, true, true]);
  await ended;
  await until(async () => (await server.nowCalls(3)) === 0 && !(await server.waiters(3)));
});
