// The examples of the documents and of examples/, run as a reader would run them.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import * as nowcalls from '../index.js';
import { Server, atEnd, temporary, until } from '../testing/support.js';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const PACKAGE = path.join(ROOT, 'tools/node');
const DEFAULT_ADDRESS = '127.0.0.1:18730';
let server;
let directory; // Of a program that has the package installed.

function sampleRules() {
  const rules = path.join(ROOT, 'data/rules');
  const files = fs.readdirSync(rules).filter((name) => name.endsWith('.json'));
  return files.flatMap((name) => ['--rules', `${path.parse(name).name}=${path.join(rules, name)}`]);
}

before(async () => {
  server = await Server.started(...sampleRules());
  directory = temporary('program');
  fs.writeFileSync(path.join(directory, 'package.json'), '{}');
  await run('npm', [...installation(), '--prefer-offline', '--no-audit', '--no-fund'], {
    cwd: directory,
  });
});

/** The arguments of npm that the manual shows. */
function installation() {
  const manual = fs.readFileSync(path.join(ROOT, 'tools/manual/node.md'), 'utf8');
  const [, command] = /^ {4}npm (install .*?\.\.\.\/tools\/node) /m.exec(manual);
  return command.replace('...', ROOT).split(' ');
}

function snippets(document) {
  const text = fs.readFileSync(path.join(ROOT, document), 'utf8');
  return [...text.matchAll(/^```js\n(.*?)^```/gms)].map((found) => found[1]);
}

let programs = 0;

/** What it writes to stdout. */
async function outputOf(text) {
  const file = path.join(directory, `program-${(programs += 1)}.mjs`);
  fs.writeFileSync(file, text.replaceAll(DEFAULT_ADDRESS, server.address));
  const { stdout, stderr } = await run(process.execPath, [file], { timeout: 30_000 });
  assert.equal(stderr, '');
  return stdout;
}

test('the examples of the manual run and leave no token behind', async () => {
  const texts = snippets('tools/manual/node.md');
  const outputs = [];
  for (const text of texts) outputs.push(await outputOf(text));
  const expected = [
    /^token \d+, fence \d+\n1 of 10000 calls in progress\n$/,
    /^$/,
    /^$/,
    /^$/,
    /^$/,
    /^\d+ calls left in this window\n$/,
    /^local: true, 1 of 3\n1\n$/,
  ];
  assert.equal(texts.length, expected.length);
  expected.forEach((words, index) => assert.match(outputs[index], words, texts[index]));
  await until(async () => (await server.nowCalls(1001)) === 0);
});

test('the example of the package runs', async () => {
  const [text, ...more] = snippets('tools/node/README.md');
  assert.deepEqual(more, []);
  assert.equal(await outputOf(text), '1 of 10000 calls in progress\n');
});

test('the gateway limits the calls of each API key', async () => {
  const given = ['--server', server.address, '--port', '0', '--model-seconds', '0.05'];
  const gateway = spawn(process.execPath, [
    path.join(PACKAGE, 'examples/llm_gateway.js'),
    ...given,
  ]);
  atEnd(() => gateway.kill('SIGKILL'));
  const [url] = await new Promise((resolve, reject) => {
    createInterface(gateway.stdout).once('line', (line) => resolve([line]));
    gateway.once('exit', reject);
  });
  const ask = (key) =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}` };
      const request = http.request(url, { method: 'POST', headers, agent: false }, (response) => {
        response.setEncoding('utf8');
        let text = '';
        response.on('data', (data) => {
          text += data;
        });
        response.on('end', () => resolve([response.statusCode, text]));
      });
      request.on('error', reject);
      request.end('hello');
    });
  const greedy = await Promise.all(Array.from({ length: 24 }, () => ask('key-greedy')));
  assert.deepEqual(await ask('key-other'), [200, 'HELLO']);
  assert.equal((await ask(''))[0], 401);
  const passed = greedy.filter(([status]) => status === 200);
  const refused = greedy.filter(([status]) => status === 429);
  assert.equal(passed.length + refused.length, 24);
  assert.match(refused[0][1], /param/);
  // Rule 4002 lets 5 calls a second pass; asking takes two seconds more at most.
  assert.ok(passed.length >= 5 && passed.length < 16, `${passed.length}`);
  await until(async () => (await server.nowCalls(4001)) === 0);
  const ended = new Promise((resolve) => gateway.once('exit', (code) => resolve(code)));
  gateway.kill('SIGTERM');
  assert.equal(await ended, 0);
});

test('the declarations have each name, and no other', () => {
  const text = fs.readFileSync(path.join(PACKAGE, 'index.d.ts'), 'utf8');
  const declared = [...text.matchAll(/^export (?:class|function) (\w+)/gm)].map(([, name]) => name);
  assert.deepEqual(declared.sort(), Object.keys(nowcalls).sort());
  for (const name of ['Client', 'Permit']) {
    const [body] = new RegExp(`^export class ${name} \\{.*?^\\}`, 'ms').exec(text);
    const members = [...body.matchAll(/^ {2}(?:readonly )?(\w+)(?:<T>)?[(:]/gm)].map(([, m]) => m);
    const own = Object.getOwnPropertyNames(nowcalls[name].prototype);
    const inner = ['constructor', 'releaseHeld', 'keepHeld', 'leaveHeld'];
    const known = own.filter((member) => !inner.includes(member));
    assert.deepEqual([...new Set(members)].filter((m) => m !== 'constructor').sort(), known.sort());
  }
  for (const [, name] of text.matchAll(/^ {2}(\w+)\??: .*;$/gm)) assert.ok(name.length > 0);
});

test('the package has what it needs, and no more', async () => {
  const { stdout } = await run('npm', ['pack', '--dry-run', '--json', PACKAGE], { cwd: directory });
  const [{ files }] = JSON.parse(stdout);
  const names = files.map((file) => file.path);
  for (const name of ['index.js', 'index.d.ts', 'lib/client.js', 'README.md', 'package.json']) {
    assert.ok(names.includes(name), name);
  }
  assert.deepEqual(
    names.filter((name) => /^(test|testing|bench|node_modules)\//.test(name)),
    [],
  );
});
