#!/usr/bin/env node
// How many permits a second a client takes and gives back: one at a time, and many at once.
//
//     tools/node/bench/bench.js [--server HOST:PORT] [--namespace shop] [--flow 1001]
//                               [--at-once 64] [--seconds 5]

import { parseArgs } from 'node:util';

import { Client } from '../index.js';

const { values: chosen } = parseArgs({
  options: {
    server: { type: 'string', default: '127.0.0.1:18730' },
    namespace: { type: 'string', default: 'shop' },
    flow: { type: 'string', default: '1001' },
    'at-once': { type: 'string', default: '64' },
    seconds: { type: 'string', default: '5' },
  },
});
const flow = /^[0-9]+$/.test(chosen.flow) ? Number(chosen.flow) : chosen.flow;
const settings = { address: chosen.server, namespace: chosen.namespace, fallback: 'fail' };

async function measure(client, atOnce) {
  const begin = performance.now();
  const end = begin + Number(chosen.seconds) * 1000;
  let calls = 0;
  async function work() {
    while (performance.now() < end) {
      const permit = await client.acquire(flow, { wait: 10_000 });
      await permit.release();
      calls += 1;
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work));
  const seconds = (performance.now() - begin) / 1000;
  console.log(`${atOnce} at once: ${Math.round(calls / seconds)} a second`);
}

const client = new Client(settings);
await measure(client, 1);
await measure(client, Number(chosen['at-once']));
await client.close();
