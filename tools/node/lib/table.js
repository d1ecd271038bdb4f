// CallTable: the calls without answer of a session, and their deadlines.

import { Heap } from './heap.js';

const byNumber = (a, b) => a.number - b.number;

export class CallTable {
  #lastNumber = 0;
  #awaited = new Map(); // By their number: with a caller, without outcome.
  #deadlines = new Heap(); // Calls may have ended.
  #queue = new Map(); // For the next connection, by their number.
  #inFlight = new Map(); // By their msgid.

  /** A call with a caller. */
  begin(call) {
    this.#number(call);
    this.#awaited.set(call.number, call);
    this.#deadlines.push([call.deadline, call.number]);
    if (this.#deadlines.size > 64 + 4 * this.#awaited.size) {
      this.#deadlines.filter((entry) => this.#awaited.has(entry[1]));
    }
  }

  settle(call, value = null, error = null) {
    this.#awaited.delete(call.number);
    call.settle(value, error);
  }

  queue(call) {
    this.#number(call);
    this.#queue.set(call.number, call);
  }

  dequeue(call) {
    this.#queue.delete(call.number);
  }

  takeQueue() {
    const queue = [...this.#queue.values()].sort(byNumber);
    this.#queue.clear();
    return queue;
  }

  sent(msgid, call) {
    this.#number(call);
    this.#inFlight.set(msgid, call);
  }

  inFlight(msgid) {
    return this.#inFlight.get(msgid);
  }

  answered(msgid) {
    this.#inFlight.delete(msgid);
  }

  takeInFlight() {
    const calls = [...this.#inFlight.values()].sort(byNumber);
    this.#inFlight.clear();
    return calls;
  }

  awaited() {
    return [...this.#awaited.values()];
  }

  get isAwaited() {
    return this.#awaited.size > 0;
  }

  all() {
    return [...this.#inFlight.values(), ...this.#queue.values()];
  }

  get nextDeadline() {
    const deadlines = this.#deadlines;
    while (deadlines.size > 0 && !this.#awaited.has(deadlines.first[1])) deadlines.pop();
    return deadlines.size > 0 ? deadlines.first[0] : Infinity;
  }

  overdue(now) {
    return this.nextDeadline > now ? null : this.#awaited.get(this.#deadlines.first[1]);
  }

  #number(call) {
    if (call.number === 0) call.number = ++this.#lastNumber;
  }
}
