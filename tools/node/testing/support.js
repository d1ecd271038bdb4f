// What the tests stand on: a real server, a proxy that cuts connections, and a scripted server.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after } from 'node:test';
import tls from 'node:tls';
import { fileURLToPath } from 'node:url';

import { decodeMulti, encode } from '@msgpack/msgpack';

import { Client } from '../index.js';

const BUILT = fileURLToPath(new URL('../../../build/bin', import.meta.url));
export const BIN_DIR = process.env.NOWCALLS_BIN_DIR ?? BUILT;
export const PATIENCE_MS = 20_000;

const endings = []; // Of the file's tests, the last one first.

export function atEnd(what) {
  endings.push(what);
}

after(async () => {
  while (endings.length > 0) await endings.pop()();
});

export async function until(condition, what = 'it did not come true') {
  const end = performance.now() + PATIENCE_MS;
  while (performance.now() < end) {
    const value = await condition();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail(what);
}

export function temporary(prefix) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), `nowcalls-node-${prefix}-`));
  atEnd(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/**
 * A rule of calls in progress whose tokens are kept, with a long hold unless config has another.
 */
export function rule(flowId, count, config = {}) {
  const cluster = { flowId, thresholdType: 1, resourceTimeoutStrategy: 2 };
  Object.assign(cluster, { resourceTimeout: 30_000, clientOfflineTime: 30_000 }, config);
  const { resource = `r${flowId}`, ...clusterConfig } = cluster;
  return { resource, grade: 0, clusterMode: true, count, clusterConfig };
}

export function ruleOfKeys(flowId, count, config = {}) {
  return { ...rule(flowId, count, config), paramIdx: 0 };
}

/** A real server with a ledger of its own, on a free port that it keeps over restarts. */
export class Server {
  port = 0;
  #directory = temporary('server');
  #arguments;
  #process = null;

  constructor(...given) {
    this.#arguments = given;
    atEnd(() => this.kill());
  }

  static async started(...given) {
    const server = new Server(...given);
    await server.start();
    return server;
  }

  get address() {
    return `127.0.0.1:${this.port}`;
  }

  async start() {
    const portFile = path.join(this.#directory, 'port');
    fs.rmSync(portFile, { force: true });
    const log = fs.openSync(this.logFile, 'a');
    const places = ['--port-file', portFile, '--data-dir', path.join(this.#directory, 'data')];
    this.#process = spawn(
      path.join(BIN_DIR, 'nowcalls-server'),
      ['--listen', this.address, ...places, ...this.#arguments],
      { stdio: ['ignore', log, log] },
    );
    this.#process.on('error', () => {});
    this.#process.unref();
    fs.closeSync(log);
    const text = () => (fs.existsSync(portFile) ? fs.readFileSync(portFile, 'utf8') : '');
    await until(() => Number(text()), 'the server did not start').catch((error) => {
      const told = fs.readFileSync(this.logFile, 'utf8');
      throw new Error(`${error.message}; NOWCALLS_BIN_DIR is ${BIN_DIR}\n${told}`);
    });
    this.port = Number(text());
  }

  get logFile() {
    return path.join(this.#directory, 'log');
  }

  /** Ends as by a crash. */
  async kill(signal = 'SIGKILL') {
    const running = this.#process;
    this.#process = null;
    if (running === null || running.exitCode !== null || running.pid === undefined) return;
    const ended = new Promise((resolve) => running.once('exit', resolve));
    running.ref();
    running.kill(signal);
    await ended;
  }

  /** One call by a client that is not the one under test. */
  call(method, ...params) {
    return new Promise((resolve, reject) => {
      const socket = net.connect(this.port, '127.0.0.1');
      let read = Buffer.alloc(0);
      socket.on('connect', () => socket.write(encode([0, 1, method, params])));
      socket.on('error', reject);
      socket.on('close', () => reject(new Error(`${method}: the server closed the connection`)));
      socket.on('data', (data) => {
        read = Buffer.concat([read, data]);
        let messages;
        try {
          messages = [...decodeMulti(read, { useBigInt64: true })];
        } catch {
          return; // There is more to come.
        }
        const [, , error, result] = messages[0];
        if (error !== null) reject(new Error(`${method}: ${error}`));
        else resolve(result);
        socket.destroy();
      });
    });
  }

  load(namespace, ...rules) {
    return this.call('rules_load', namespace, JSON.stringify(rules));
  }

  async nowCalls(flowId) {
    return (await this.call('flow', flowId)).now_calls;
  }

  async waiters(flowId) {
    return (await this.call('flow', flowId)).waiters;
  }

  admin(...given) {
    const command = path.join(BIN_DIR, 'nowcalls-admin');
    const done = spawnSync(command, [...given, '--server', this.address], { encoding: 'utf8' });
    assert.equal(done.status, 0, done.stderr);
    return done.stdout;
  }
}

/**
 * Passes bytes between clients and a server, and breaks connections when told to.
 *
 * answers, requests: false swallows what the server, or the client, sends. Both: a black hole.
 */
export class Proxy {
  answers = true;
  requests = true;
  accepts = true;
  #sockets = new Set();
  #listener;

  constructor(target) {
    this.#listener = net.createServer((client) => {
      if (!this.accepts) {
        client.destroy();
        return;
      }
      const server = net.connect(target, '127.0.0.1');
      this.#pass(client, server, () => this.requests);
      this.#pass(server, client, () => this.answers);
    });
  }

  static async started(server) {
    const proxy = new Proxy(server.port);
    await new Promise((resolve) => proxy.#listener.listen(0, '127.0.0.1', resolve));
    proxy.#listener.unref();
    atEnd(() => proxy.close());
    return proxy;
  }

  get address() {
    return `127.0.0.1:${this.#listener.address().port}`;
  }

  /** Breaks all connections. */
  cut() {
    for (const socket of this.#sockets) socket.destroy();
  }

  close() {
    this.cut();
    this.#listener.close();
  }

  #pass(source, sink, may) {
    this.#sockets.add(source);
    source.on('data', (data) => {
      if (may()) sink.write(data);
    });
    source.on('error', () => {});
    source.on('close', () => {
      this.#sockets.delete(source);
      sink.destroy();
    });
  }
}

/**
 * Answers each request with what `answer` returns.
 *
 * answer(method, params, socket): [error, result], or null for no answer. context: for TLS.
 */
export class ScriptedServer {
  sockets = new Set();
  requests = [];
  #listener;

  constructor(answer, context = null) {
    const serve = (socket) => this.#serve(socket, answer);
    this.#listener = context === null ? net.createServer(serve) : tls.createServer(context, serve);
    this.#listener.on('connection', (socket) => this.sockets.add(socket));
  }

  static async started(answer, context = null) {
    const server = new ScriptedServer(answer, context);
    await new Promise((resolve) => server.#listener.listen(0, '127.0.0.1', resolve));
    atEnd(() => server.close());
    return server;
  }

  get address() {
    return `127.0.0.1:${this.#listener.address().port}`;
  }

  notify(method, ...params) {
    for (const socket of this.sockets) socket.write(encode([2, method, params]));
  }

  close() {
    for (const socket of this.sockets) socket.destroy();
    this.#listener.close();
  }

  #serve(socket, answer) {
    this.sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.sockets.delete(socket));
    let read = Buffer.alloc(0);
    socket.on('data', (data) => {
      read = Buffer.concat([read, data]);
      let messages;
      try {
        messages = [...decodeMulti(read, { useBigInt64: true })];
      } catch {
        return;
      }
      read = Buffer.alloc(0);
      for (const [, msgid, method, params] of messages) {
        this.requests.push([method, params]);
        const answered = answer(method, params, socket, msgid);
        if (answered !== null) socket.write(encode([1, msgid, ...answered]));
      }
    });
  }
}

/** A client that tells of each failure, unless it is to fall back. */
export function clientOf(address, settings = {}) {
  const client = new Client({ address, fallback: 'fail', logger: null, ...settings });
  atEnd(() => client.close());
  return client;
}

/** A logger whose lines can be looked at. */
export function recorder() {
  const lines = [];
  const keep = (level) => (text) => lines.push(`${level}: ${text}`);
  return { lines, info: keep('info'), warn: keep('warn'), error: keep('error') };
}
