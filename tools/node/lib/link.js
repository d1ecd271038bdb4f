// Link: the connection of a client, one after the other, and the timer of its session.
//
// Socket and timer keep the process alive while a caller waits for an outcome, and while close
// does. An idle client does not, nor does one that merely holds permits.

import { newRequestId } from './calls.js';
import { now } from './clock.js';
import { Dial, Lookups } from './dial.js';
import { HELD } from './held.js';
import { Permit, tellSignal } from './permit.js';
import { staysHere } from './secret.js';
import { Session } from './session.js';
import { denies, why } from './tls.js';

// Timers stand still while the machine sleeps; the clock of tokens does not.
const HELD_SLEEP_MAX_MS = 1000;
const SLEEP_MAX_MS = 60_000;

const INSTANCE = newRequestId(); // Of this process, or of this worker thread.

export class Link {
  session;
  #tellLost;
  #lookups = new Lookups();
  #dial = null;
  #socket = null;
  #timer = null;
  #timerAt = Infinity; // By the clock of timers, performance.now().
  #isPumping = false;
  #isPlanned = false; // To pump.
  #isReferenced = false;
  #draining = null; // Called when nothing is on its way any more.
  #stopped = false;
  #forgotten; // Permits whose program refers to them no more.

  /** client: of its permits. tellLost(held): calls the callbacks. */
  constructor(config, client, tellLost) {
    this.#tellLost = tellLost;
    this.#forgotten = new FinalizationRegistry((held) => {
      held.dropped = held.state === HELD && !held.lost;
      this.session.drop(held, now());
      this.pump();
    });
    this.session = new Session(config, {
      makePermit: (held) => this.#permitOf(held, client),
      now: now(),
      uniform: (low, high) => low + Math.random() * (high - low),
      instance: config.rejoin ? 0n : INSTANCE,
    });
    this.pumpSoon();
  }

  #permitOf(held, client) {
    const permit = new Permit(held, client);
    held.grip = new WeakRef(permit);
    this.#forgotten.register(permit, held);
    return permit;
  }

  /** Calls of one turn of the event loop leave together. */
  pumpSoon() {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    queueMicrotask(() => {
      this.#isPlanned = false;
      this.pump();
    });
  }

  /** Sends, tells losses, dials and sets the timer. Follows whatever the session was told. */
  pump() {
    if (this.#isPumping || this.#stopped) return; // A callback released a permit: it goes on below.
    this.#isPumping = true;
    try {
      for (const held of this.session.takeLost()) {
        tellSignal(held);
        this.#tellLost(held);
      }
    } finally {
      this.#isPumping = false;
    }
    if (this.#socket !== null && this.session.hasOutput) {
      this.#socket.write(this.session.takeOutput());
    }
    const isOver = this.session.settled || !this.session.ready;
    if (this.#draining !== null && isOver) this.#draining();
    this.#dialOn();
    this.#plan();
    this.#reference(this.session.isAwaited || this.#draining !== null);
  }

  /** Ends the calls that wait, and waits for the releases that are on their way. */
  async drain(timeout) {
    const settled = new Promise((resolve) => {
      this.#draining = resolve;
    });
    this.session.close(now());
    this.pump();
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, timeout);
    });
    await Promise.race([settled, late]);
    clearTimeout(timer);
  }

  stop() {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#dial?.cancel();
    this.#dial = null;
    this.#break('the client was closed');
    this.session.stop('the client is closed');
  }

  // The timer.

  #plan() {
    const { session } = this;
    const longest = session.holds ? HELD_SLEEP_MAX_MS : SLEEP_MAX_MS;
    const delay = Math.ceil(Math.max(1, Math.min(session.wakeup() - now(), longest)));
    const at = performance.now() + delay;
    // A timer that rings too early does no harm.
    if (this.#timer !== null && this.#timerAt <= at) return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    this.#timer = setTimeout(() => this.#tick(), delay);
    if (!this.#isReferenced) this.#timer.unref();
  }

  #tick() {
    this.#timer = null;
    const broken = this.session.tick(now());
    if (broken !== null) this.#break(broken);
    this.pump();
  }

  #reference(isNeeded) {
    if (this.#isReferenced === isNeeded) return;
    this.#isReferenced = isNeeded;
    this.#dial?.reference(isNeeded);
    for (const part of [this.#timer, this.#socket]) isNeeded ? part?.ref() : part?.unref();
  }

  // The connection.

  #dialOn() {
    const { session } = this;
    const isBusy = this.#socket !== null || this.#dial !== null || this.#draining !== null;
    if (isBusy || now() < session.dialing.at) return;
    session.dialing.begin();
    const { address } = session.dialing;
    const { connectTimeout, config } = session;
    this.#dial = new Dial(address, connectTimeout, config, this.#lookups, (outcome) => {
      this.#dial = null;
      if (outcome.socket) this.#attach(outcome.socket);
      else this.#dialFailed(outcome);
      this.pump();
    });
    this.#dial.reference(this.#isReferenced);
  }

  #dialFailed({ failure, denied = false }) {
    if (denied) this.session.denied(now(), failure);
    this.session.connectFailed(now(), failure);
  }

  #attach(socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    let failure = null;
    const ended = () => this.#ended(socket, failure);
    socket.on('data', (data) => this.#received(socket, data));
    socket.on('error', (error) => {
      failure = error;
    });
    socket.on('end', ended);
    socket.on('close', ended);
    const isPrivate = this.session.config.tls !== null || staysHere(socket);
    const refusal = this.session.connected(now(), isPrivate);
    if (refusal !== null) this.#break(refusal);
  }

  #received(socket, data) {
    if (this.#socket !== socket) return; // What comes behind a break.
    const broken = this.session.received(data, now());
    if (broken !== null) this.#break(broken);
    this.pump();
  }

  #ended(socket, failure) {
    if (this.#socket !== socket) return;
    // TLS 1.3 tells it behind the handshake.
    if (failure !== null && denies(failure)) this.session.denied(now(), why(failure));
    const words = failure === null ? undefined : why(failure);
    this.#break(this.session.endOfConnection(words));
    this.pump();
  }

  #break(reason) {
    const socket = this.#socket;
    if (socket === null) return;
    this.#socket = null;
    this.session.disconnected(now(), reason);
    socket.destroy();
  }
}
