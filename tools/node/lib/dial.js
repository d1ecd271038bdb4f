// Dial: one attempt to connect, and to shake hands if TLS is wanted. Each address of the name has
// its share of what is left of the time, so one that drops packets does not eat that of the next.

import dns from 'node:dns';
import net from 'node:net';
import tls from 'node:tls';

import { now } from './clock.js';
import { BadRequest } from './errors.js';
import { systemWords } from './text.js';
import { denies, why } from './tls.js';

const LATE_NAME = 'its name was not found in time';
const LATE = 'Connection timed out';
const LATE_TLS = 'the TLS handshake timed out; does it speak TLS?';

/** Finds the addresses of names. A look-up that a dial gave up is there for the next one. */
export class Lookups {
  #pending = new Map(); // Promises by name.

  find(host) {
    let found = this.#pending.get(host);
    if (found === undefined) {
      found = dns.promises.lookup(host, { all: true, verbatim: true });
      this.#pending.set(host, found);
      found.catch(() => this.#pending.delete(host));
    }
    return found;
  }

  taken(host) {
    this.#pending.delete(host);
  }
}

export class Dial {
  #address;
  #tls;
  #done;
  #end; // When the time for all addresses is over.
  #left = [];
  #socket = null;
  #timer = null;
  #over = false;
  #isReferenced = true;

  /** done({ socket } or { failure, denied }) is called once, never within the constructor. */
  constructor(address, timeout, config, lookups, done) {
    this.#address = address;
    this.#tls = config.tls;
    this.#done = done;
    this.#end = now() + timeout;
    const { host } = address;
    if (net.isIP(host)) {
      queueMicrotask(() => this.#found([{ address: host }]));
      return;
    }
    this.#setTimer(timeout, () => this.#finish({ failure: LATE_NAME }));
    lookups.find(host).then(
      (found) => {
        if (this.#over) return;
        lookups.taken(host);
        this.#end = now() + timeout;
        this.#found(found);
      },
      (error) => this.#finish({ failure: systemWords(error) }),
    );
  }

  /** Whether it keeps the process alive. A look-up always does, until its resolver gives up. */
  reference(isNeeded) {
    this.#isReferenced = isNeeded;
    for (const part of [this.#timer, this.#socket]) isNeeded ? part?.ref() : part?.unref();
  }

  cancel() {
    this.#over = true;
    this.#abandonSocket();
    clearTimeout(this.#timer);
  }

  #found(addresses) {
    this.#left = addresses.map(({ address }) => address);
    this.#next({ failure: 'no address' });
  }

  #next(outcome) {
    if (this.#over) return;
    this.#abandonSocket();
    if (this.#left.length === 0) {
      this.#finish(outcome);
      return;
    }
    const share = Math.max(0, this.#end - now()) / this.#left.length;
    const host = this.#left.shift();
    try {
      this.#connect(host);
    } catch (error) {
      if (!(error instanceof BadRequest)) throw error;
      this.#next({ failure: error.message });
      return;
    }
    this.#setTimer(share, () => this.#next({ failure: this.#late() }));
    this.reference(this.#isReferenced);
  }

  #connect(host) {
    const { port } = this.#address;
    const isTls = this.#tls !== null;
    const options = isTls ? this.#tls.optionsFor(this.#address.host) : {};
    const connect = isTls ? tls.connect : net.connect;
    const socket = connect({ ...options, host, port });
    this.#socket = socket;
    socket.on('error', (error) => {
      if (this.#socket !== socket) return;
      const shaking = isTls && !socket.connecting;
      const believed = !socket.authorizationError;
      this.#next({ failure: why(error, { shaking, believed }), denied: denies(error) });
    });
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      socket.removeAllListeners('error');
      this.#finish({ socket });
    });
  }

  #late() {
    return this.#tls !== null && !this.#socket.connecting ? LATE_TLS : LATE;
  }

  #setTimer(delay, what) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(what, delay);
    if (!this.#isReferenced) this.#timer.unref();
  }

  #abandonSocket() {
    this.#socket?.on('error', () => {});
    this.#socket?.destroy();
    this.#socket = null;
  }

  #finish(outcome) {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#done(outcome);
  }
}
