// The clock of sessions: milliseconds since the machine was started, with the time that it slept.
//
// Node shows CLOCK_MONOTONIC, which stands still in sleep, and os.uptime(), which does not but
// costs a system call and is coarse. So the uptime is looked at once a second, and whenever the
// wall clock has moved on by more than the monotonic clock.

import os from 'node:os';
import { performance } from 'node:perf_hooks';

const LOOK_EVERY_MS = 1000;
const WALL_JUMP_MS = 5;
const UPTIME_STEP_MS = 10; // Of /proc/uptime.

/** In whole microseconds, so that sums of the same times are the same moment. */
export function after(moment, ms) {
  return Math.round((moment + ms) * 1000) / 1000;
}

export class Clock {
  #monotonic;
  #wall;
  #uptime;
  #ahead = 0; // Of the monotonic clock: its start, and the sleep since.
  #wallAhead = 0;
  #lookAt = 0;

  constructor(
    monotonic = () => performance.now(),
    wall = () => Date.now(),
    uptime = () => os.uptime() * 1000,
  ) {
    this.#monotonic = monotonic;
    this.#wall = wall;
    this.#uptime = uptime;
    const at = monotonic();
    this.#ahead = uptime() - at;
    this.#looked(at);
  }

  now() {
    const at = this.#monotonic();
    const jumped = Math.abs(this.#wall() - at - this.#wallAhead) > WALL_JUMP_MS;
    if (jumped || at >= this.#lookAt) this.#look(at);
    return at + this.#ahead;
  }

  #look(at) {
    const slept = this.#uptime() - at - this.#ahead;
    // The earlier end of a token's time is the safe one.
    if (slept > 2 * UPTIME_STEP_MS) this.#ahead += slept + UPTIME_STEP_MS;
    this.#looked(at);
  }

  #looked(at) {
    this.#wallAhead = this.#wall() - at;
    this.#lookAt = at + LOOK_EVERY_MS;
  }
}

const clock = new Clock();

export function now() {
  return clock.now();
}
