// The vectors of data/golden/sessions, written by the session of C++: this one does the same.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';

import { decodeMulti } from '@msgpack/msgpack';

import { Acquire, AcquireAll, Keep, RateRequest, Release, acquireOf } from '../lib/calls.js';
import { makeConfig } from '../lib/config.js';
import {
  BadRequest,
  NoRule,
  OutcomeUnknown,
  PermissionDenied,
  Refused,
  Unavailable,
} from '../lib/errors.js';
import { Item, rate } from '../lib/items.js';
import { Permit } from '../lib/permit.js';
import { Session } from '../lib/session.js';

const DIRECTORY = new URL('../../../data/golden/sessions/', import.meta.url);
const FILES = fs.readdirSync(DIRECTORY).filter((name) => name.endsWith('.json'));
const KEEPS = { rule: true, always: 'always', off: false };
// What may come of a step, and what stands for nothing.
const NOTHING = [
  ['answers', []],
  ['lost', []],
  ['valid_until_ms', {}],
  ['dials', null],
  ['settled', false],
];
// The most exact first.
const OUTCOMES = [
  [NoRule, 'no_rule'],
  [Refused, 'refused'],
  [PermissionDenied, 'permission_denied'],
  [BadRequest, 'bad_request'],
  [Unavailable, 'unavailable'],
  [OutcomeUnknown, 'unknown'],
];

/** Integers that a number does not hold exactly become bigints. */
function parse(text) {
  const marked = text.replace(/([[:,]\s*)(\d{16,})(?=\s*[,\]}])/g, '$1"bigint $2"');
  return JSON.parse(marked, (_, value) => {
    const found = typeof value === 'string' && /^bigint (\d+)$/.exec(value);
    return found ? BigInt(found[1]) : value;
  });
}

function messages(hex) {
  return [...decodeMulti(Buffer.from(hex, 'hex'), { useBigInt64: true })];
}

/** A session and its owner, who does what the steps say. */
class Player {
  constructor({ client, request_ids: ids }) {
    const config = makeConfig({
      address: client.addresses,
      namespace: client.namespace,
      clientId: client.client_id,
      timeout: client.timeout_ms,
      fallback: client.fallback,
      localLevels: client.local_levels,
      exclusive: client.exclusive,
      secret: client.secret,
      logger: null,
    });
    this.now = 0;
    this.permits = new Map();
    this.told = new Map();
    this.pauseMs = undefined;
    [this.dials] = client.addresses;
    this.isClosed = false;
    this.session = new Session(config, {
      makePermit: (held) => new Permit(held, null),
      now: 0,
      uniform: (low, high) => this.pause(low, high),
      instance: BigInt(client.instance),
      requestIds: () => BigInt(ids.shift()),
      clock: () => this.now,
    });
  }

  /** Returns what came of it, as the step has it. */
  play(step) {
    this.now = step.at_ms;
    this.answers = [];
    this.hangsUp = null;
    this.pauseMs = step.pause_ms;
    if (step.due) assert.equal(this.session.wakeup(), step.at_ms, 'when it wants to be told');
    this[step.do](step);
    const came = {
      sent: this.session.takeOutput().toString('hex'),
      answers: this.answers,
      hangs_up: this.hangsUp !== null,
      lost: this.session.takeLost().map((held) => ({
        permit: this.nameOf(held),
        reason: held.lostReason ?? '',
      })),
      valid_until_ms: this.changedValidity(),
      dials: this.session.dialing.name === this.dials ? null : this.session.dialing.name,
      settled: this.isClosed && this.session.settled,
    };
    this.dials = this.session.dialing.name;
    if (came.settled) this.isClosed = false;
    return came;
  }

  /** What a session draws: as the step has it. */
  pause(low, high) {
    if (this.pauseMs === undefined) return low;
    assert.ok(low <= this.pauseMs && this.pauseMs <= high, `a pause of ${low} to ${high} ms`);
    return this.pauseMs;
  }

  // The connection.

  dial() {
    this.session.dialing.begin();
  }

  denied(step) {
    this.session.denied(this.now, step.reason);
  }

  connected() {
    this.session.connected(this.now);
  }

  dial_failed(step) {
    this.session.connectFailed(this.now, step.reason);
  }

  disconnected(step) {
    this.session.disconnected(this.now, step.reason);
  }

  received(step) {
    this.hangsUp = this.session.received(Buffer.from(step.bytes, 'hex'), this.now);
  }

  tick() {
    this.hangsUp = this.session.tick(this.now);
  }

  // Calls.

  acquire(step) {
    const { flow, count, wait_ms: wait, param, prioritized, hold_ms: hold } = step;
    this.ask(step, acquireOf(flow, count, param, { wait, prioritized, hold }));
  }

  acquire_all(step) {
    const { wait_ms: wait, prioritized, sleep, hold_ms: hold } = step;
    const items = step.items.map(([flow, count, param, isRate]) =>
      isRate ? rate(flow, count, param) : new Item(flow, count, param, false),
    );
    this.ask(step, new AcquireAll(items, { wait, prioritized, sleep, hold }));
  }

  request(step) {
    const { flow, count, prioritized, sleep } = step;
    this.ask(step, new RateRequest(flow, count, { prioritized, sleep }));
  }

  request_param(step) {
    const { flow, count, values, sleep } = step;
    this.ask(step, new RateRequest(flow, count, { values, sleep }));
  }

  ask(step, call) {
    if (call instanceof Acquire) call.keep = KEEPS[step.keep];
    call.notify = () => this.answered(step.call, call);
    this.session.ask(call, this.now, step.timeout_ms);
  }

  release(step) {
    const call = new Release(Permit.heldOf(this.permits.get(step.permit)), step.outcome);
    call.notify = () => this.answered(`release ${step.permit}`, call);
    this.session.release(call, this.now);
  }

  keep(step) {
    const call = new Keep(Permit.heldOf(this.permits.get(step.permit)));
    call.notify = () => this.answered(`keep ${step.permit}`, call);
    this.session.ask(call, this.now);
  }

  close() {
    this.session.close(this.now);
    this.isClosed = true;
  }

  // What came of it.

  answered(name, call) {
    const { error } = call;
    const found = error === null ? null : OUTCOMES.find(([kind]) => error instanceof kind);
    const outcome = found === null ? 'ok' : found[1];
    const told = { call: name, outcome };
    if (error instanceof Refused) {
      if (outcome === 'refused' && error.refusedBy !== null) {
        told.flow = error.flowId;
        told.refused_by = error.refusedBy;
        told.now_calls = error.nowCalls;
        told.level = error.level;
      }
      if (error.local) told.local = true;
    } else if (call instanceof Release) {
      told.lost = call.held.lost;
      if (call.held.local) told.local = true;
    }
    if (call instanceof Keep && outcome === 'ok' && call.value === null) told.outcome = 'refused';
    else if (outcome === 'ok') Object.assign(told, this.valueOf(name, call));
    this.answers.push(told);
  }

  valueOf(name, call) {
    const { value } = call;
    if (call instanceof RateRequest) {
      const told = { remaining: value.remaining, wait_ms: Math.round(value.wait) };
      return call.passed === null ? { ...told, local: true } : told;
    }
    if (call instanceof Keep) return { hold_ms: value.holdMs };
    if (!(call instanceof Acquire)) return {};
    const isGroup = call instanceof AcquireAll;
    const permits = isGroup ? value : [value];
    permits.forEach((permit, index) => {
      if (permit !== null) this.permits.set(isGroup ? `${name}/${index}` : name, permit);
    });
    const told = { tokens: permits.map((p) => (p === null ? null : Number(p.tokenId))) };
    told.now_calls = permits[0]?.nowCalls ?? 0;
    told.level = permits[0]?.level ?? 0;
    if (permits.some((permit) => permit?.local)) told.local = true;
    if (isGroup) told.wait_ms = Math.max(0, Math.round(call.waitUntil - this.now));
    return told;
  }

  nameOf(held) {
    return [...this.permits].find(([, permit]) => Permit.heldOf(permit) === held)[0];
  }

  changedValidity() {
    const changed = {};
    for (const [name, permit] of this.permits) {
      if (permit.local || Permit.heldOf(permit).state !== 'held') continue;
      const at = Math.round(permit.validUntil);
      if (this.told.get(name) !== at) changed[name] = at;
      this.told.set(name, at);
    }
    return changed;
  }
}

for (const file of FILES) {
  test(`vector ${file}`, () => {
    const script = parse(fs.readFileSync(new URL(file, DIRECTORY), 'utf8'));
    const player = new Player(script);
    script.steps.forEach((step, number) => {
      const where = `step ${number}: ${step.do} at ${step.at_ms} ms`;
      const came = player.play(step);
      const sent = step.sent ?? '';
      if (came.sent !== sent) assert.deepEqual(messages(came.sent), messages(sent), where);
      assert.equal(came.sent, sent, where);
      assert.equal(came.hangs_up, 'hangs_up' in step, where);
      for (const [key, nothing] of NOTHING) {
        assert.deepEqual(came[key], step[key] ?? nothing, `${where}: ${key}`);
      }
    });
  });
}

test('there are vectors', () => assert.ok(FILES.length >= 72));
