#!/usr/bin/env node
// A gateway to a language model that limits the calls of each API key, over all gateways together.
//
//     tools/dev run                       # serves data/rules/api-keys.json among others
//     tools/node/examples/llm_gateway.js
//     curl -H 'Authorization: Bearer key-acme' -d 'Hello' http://127.0.0.1:8000/
//
// Rule 4001 limits the calls in progress of a key, rule 4002 those a second. One decision takes
// both or none, so a call that is refused by the one uses up nothing of the other. A refused call
// gets 429. A caller who hangs up leaves the line.

import http from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { Client, OutcomeUnknown, Refused, Unavailable, rate } from '../index.js';

const IN_PROGRESS = 4001;
const A_SECOND = 4002;
const WAIT_MS = 2000;

const { values: chosen } = parseArgs({
  options: {
    server: { type: 'string', default: '127.0.0.1:18730' },
    port: { type: 'string', default: '8000' }, // Of the gateway; 0: a free one.
    'model-seconds': { type: 'string', default: '1' },
  },
});
const client = new Client({ address: chosen.server, namespace: 'llm-gateway' });

/** Stands for the call to the model. */
async function callModel(prompt, signal) {
  await sleep(Number(chosen['model-seconds']) * 1000, undefined, { signal });
  return prompt.toUpperCase();
}

async function limited(key, prompt, signal) {
  const asked = [[IN_PROGRESS, 1, key], rate(A_SECOND, 1, key)];
  const [permit] = await client.acquireAll(asked, { wait: WAIT_MS, signal });
  let outcome = 'failed';
  try {
    // AbortSignal.any: from Node 20.3 on.
    const answer = await callModel(prompt, AbortSignal.any?.([signal, permit.signal]) ?? signal);
    outcome = 'ok';
    return answer;
  } finally {
    permit.release(outcome).catch(() => {}); // The client goes on with it.
  }
}

function answerTo(error) {
  if (error instanceof Refused) return [429, `too many calls of this key: ${error.refusedBy}`];
  if (error instanceof Unavailable || error instanceof OutcomeUnknown) {
    // With fallback: 'fail' alone. By default each gateway then limits its keys by itself.
    return [503, 'the limits cannot be checked'];
  }
  return [500, String(error)];
}

async function serve(request, response) {
  const leaving = new AbortController();
  response.on('close', () => leaving.abort());
  const [, key] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
  const prompt = await text(request);
  let answer = [401, 'no API key'];
  if (key) {
    answer = await limited(key, prompt, leaving.signal).then((said) => [200, said], answerTo);
  }
  const [status, body] = answer;
  response.writeHead(status, status === 429 ? { 'Retry-After': '1' } : {});
  response.end(body);
}

const gateway = http.createServer((request, response) => {
  serve(request, response).catch(() => response.destroy());
});
gateway.listen(Number(chosen.port), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${gateway.address().port}/`);
});

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    gateway.close();
    gateway.closeIdleConnections();
    await client.close();
  });
}
