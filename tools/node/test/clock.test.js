// The clock of tokens goes on while the machine sleeps.

import assert from 'node:assert/strict';
import os from 'node:os';
import { test } from 'node:test';

import { OutcomeUnknown } from '../index.js';
import { Clock, after, now } from '../lib/clock.js';
import { ScriptedServer, clientOf } from '../testing/support.js';

class Machine {
  monotonic = 100;
  wall = 1_700_000_000_000;
  uptime = 5000;
  looks = 0;
  clock = new Clock(
    () => this.monotonic,
    () => this.wall,
    () => {
      this.looks += 1;
      return Math.floor(this.uptime / 10) * 10;
    },
  );

  runs(ms) {
    this.monotonic += ms;
    this.wall += ms;
    this.uptime += ms;
  }

  sleeps(ms) {
    this.wall += ms;
    this.uptime += ms;
  }
}

test('it is the time since the start of the machine', () => {
  assert.ok(Math.abs(now() - os.uptime() * 1000) < 50);
  const machine = new Machine();
  assert.equal(machine.clock.now(), 5000);
  machine.runs(1234.5);
  assert.equal(machine.clock.now(), 6234.5);
});

test('a sleep counts at once', () => {
  for (const slept of [50, 1000, 3_600_000]) {
    const machine = new Machine();
    for (const ran of [0, 3.3, 777]) {
      machine.runs(ran);
      const before = machine.clock.now();
      machine.sleeps(slept);
      const passed = machine.clock.now() - before;
      assert.ok(slept <= passed + 10 && passed <= slept + 20, `${passed} of ${slept}`);
      machine.runs(1);
      assert.equal(machine.clock.now(), before + passed + 1);
    }
  }
});

test('a sleep counts within a second though the wall clock was set back', () => {
  const machine = new Machine();
  machine.sleeps(60_000);
  machine.wall -= 60_000;
  machine.runs(1000);
  assert.ok(machine.clock.now() >= 66_000);
});

test('a wall clock that is set counts for nothing', () => {
  const machine = new Machine();
  for (const jump of [3_600_000, -3_600_000, 7]) {
    machine.wall += jump;
    machine.runs(1);
    const at = machine.clock.now();
    machine.runs(1);
    assert.equal(machine.clock.now(), at + 1);
  }
  assert.equal(machine.clock.now(), 5006);
});

test('the system is asked once a second, not for each call', () => {
  const machine = new Machine();
  machine.looks = 0;
  for (let times = 0; times < 10_000; ++times) {
    machine.runs(1);
    machine.clock.now();
  }
  assert.ok(machine.looks <= 11, `${machine.looks}`);
});

test('sums of the same times are the same moment', () => {
  assert.equal(after(0.1, 0.2), 0.3);
  assert.equal(after(Infinity, 5), Infinity);
});

test('a call behind a sleep ends in time, though a timer slept', async (context) => {
  const answers = { hello: [null, ['1.0', 9, 1, 0]], ping: [null, [7]] };
  const server = await ScriptedServer.started((method) => answers[method] ?? null);
  const client = clientOf(server.address, { timeout: 20_000 });
  await client.ping(); // The timer of an idle client rings in 10 s.
  answers.ping = null;
  const [uptime, wall] = [os.uptime, Date.now];
  context.mock.method(os, 'uptime', () => uptime() + 600);
  context.mock.method(Date, 'now', () => wall() + 600_000);
  const begin = performance.now();
  await assert.rejects(client.ping({ timeout: 100 }), OutcomeUnknown);
  const took = performance.now() - begin;
  assert.ok(took < 5000, `${took} ms`);
  await client.close();
});
