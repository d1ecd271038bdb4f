// Session: the protocol of one client, without sockets, timers or clocks.
//
// A link drives it. It dials when dialing.at has come, and sends takeOutput(). It tells the session
// of the connection (connected, connectFailed, received, disconnected) and of time (tick). `now` is
// in ms of clock.js. The session says hello, asks calls, asks them again on the next connection,
// keeps permits, and learns which of them are lost. Before hello, and without a wait for the
// answer, it shows its secret, if it has one. asking.js has what it asks, and what becomes of the
// answers.

import { Asking, GREETING, OFFLINE, READY, STOPPED } from './asking.js';
import {
  BAD_PARAMS,
  Keep,
  MALFORMED,
  Ping,
  Release,
  UNKNOWN_METHOD,
  errorOf,
  newRequestId,
} from './calls.js';
import { after, now as bootNow } from './clock.js';
import { BadRequest, PermissionDenied, again } from './errors.js';
import { ENDED, LOST, RELEASING } from './held.js';
import { named } from './items.js';
import { RuleCall } from './rules.js';
import { PLAIN, masked } from './secret.js';
import { Exchange, USUAL_PORT, Wrong, array, id, integer, text, uint } from './wire.js';

const PROTOCOL = 1;
const NO_HELLO = `no answer to hello; is that a nowcalls-server? ${USUAL_PORT}`;
const TLS_ONLY = '; or does it speak TLS only?'; // To a client that does not.
const CONNECT_TIMEOUT_MS = 2000; // Of all addresses of a name; less if the timeout of calls is.
const WRONG_SECRET_MS = 1000; // By which a server delays its answer.

/** State of a client: its connection, its calls without answer, its permits. */
export class Session extends Asking {
  #instance;
  #useful = false; // The server has answered more than hello.
  #shown = ''; // The secret, on this connection.
  #identity = ''; // What the server calls the client.
  #helloMsgid = 0;
  #helloAt;
  #hasFailed = false; // Ever.

  /**
   * parts: makePermit(held) makes the permit of a token that was granted; now; uniform(low, high);
   * instance of hello, 0n for none; requestIds() draws one; clock().
   */
  constructor(config, parts) {
    super(config, { requestIds: newRequestId, clock: bootNow, ...parts });
    this.#instance = parts.instance ?? 0n;
    this.#helloAt = parts.now;
  }

  get connectTimeout() {
    return Math.min(CONNECT_TIMEOUT_MS, this.config.timeout);
  }

  get hasOutput() {
    return this._exchange.hasOutput;
  }

  /** Bytes to send. */
  takeOutput() {
    return this._exchange.takeOutput();
  }

  /** What to say of a connection that the server or the network has ended. */
  endOfConnection(error = 'the server closed the connection') {
    if (this.ready) return error;
    const early = `${error}, before hello was answered`;
    if (this.config.tls !== null) return early;
    return `${early}; is that a nowcalls-server? ${USUAL_PORT}${TLS_ONLY}`;
  }

  get #noHello() {
    return NO_HELLO + (this.config.tls === null ? TLS_ONLY : '');
  }

  // The connection.

  /**
   * A connection is open; the session says hello and waits for its answer.
   *
   * isPrivate: nobody on the way can read what is sent. Returns as received.
   */
  connected(now, isPrivate = true) {
    this.dialing.begin();
    this._state = GREETING;
    this.#useful = false;
    this._exchange = new Exchange();
    this._withOptions = true;
    this._contact.begin(now);
    // Else the reason of before says more.
    if (!this.#hasFailed) this._whyOffline = `${this.dialing.name}: ${this.#noHello}`;
    this.#shown = '';
    this.#identity = '';
    if (this.config.secret !== null) {
      try {
        this.#identify(this.config.secret, isPrivate);
      } catch (error) {
        if (!(error instanceof BadRequest)) throw error;
        return this.#deny(error, now);
      }
    }
    this.#hello(now);
    return null;
  }

  /**
   * The server does not let the client's certificate in: connectFailed, or disconnected, follows.
   */
  denied(now, reason) {
    this.#deny(new PermissionDenied(reason), now);
  }

  connectFailed(now, reason) {
    this._whyOffline = `${this.dialing.name}: ${reason}`;
    this.#hasFailed = true;
    this.dialing.failed(now);
    if (!this.dialing.allFailed || this._closing) return;
    if (!this._down && this._denied === null) {
      const { fallback } = this.config;
      this._log.warn(`no server is reached, fallback ${fallback}: ${this._whyOffline}`);
    }
    this._down = true;
    // Calls need not wait for the end of their time, unless they may wait for room: a server that
    // restarts must not let go all that stand in line.
    if (!this._fallback.active) return;
    for (const call of this._calls.awaited()) {
      if (call.wantsRoom && call.wakeAt === null && !call.mayWait(now)) {
        this._giveUp(call, now, this._whyOffline);
      }
    }
  }

  /** The connection is gone. Calls without answer are asked on the next one. */
  disconnected(now, reason) {
    const wasReady = this.ready;
    this._state = OFFLINE;
    this._identifyMsgid = 0;
    this._exchange = new Exchange();
    for (const call of this._calls.takeInFlight()) {
      call.strayed = true;
      if (call.persistent || (call.repeatable && !call.done)) {
        this._counts.askedAgain += 1;
        this._calls.queue(call);
      } else {
        this._fail(call, call.noAnswer(reason), now);
      }
    }
    if (!wasReady) {
      this.connectFailed(now, reason);
      return;
    }
    this._counts.disconnects += 1;
    this._whyOffline = `${this.dialing.name}: ${reason}`;
    this.#hasFailed = true;
    this._log.info(`the connection to ${this.dialing.name} ended: ${reason}`);
    // A server that takes connections and ends them at once gets longer pauses, too.
    if (this.#useful) this.dialing.ended(now);
    else this.dialing.failed(now);
  }

  /** Handles bytes of the server. Returns why the connection must be closed, or null. */
  received(data, now) {
    this.#lookAfterAll(now); // What comes late brings no token back.
    if (this.ready) this._contact.heard(now); // Until then only an answer to hello counts.
    try {
      for (const message of this._exchange.receive(data)) {
        const refusal = this.#message(this.#fitToShow(message), now);
        if (refusal !== null) return refusal;
      }
    } catch (error) {
      if (!(error instanceof Wrong)) throw error;
      const words = this.#shown ? masked(error.message, this.#shown) : error.message;
      return `the peer does not speak nowcalls: ${words}`;
    }
    return null;
  }

  /** Does what is due. Returns why the connection must be closed, or null. */
  tick(now) {
    for (let call; (call = this._calls.overdue(now)) !== null;) {
      const silent = this.ready ? 'the server did not answer in time' : this._whyOffline;
      this._giveUp(call, now, silent);
    }
    while (this._later.size > 0 && this._later.first[0] <= now) this._later.pop()[2](now);
    this.#lookAfterAll(now);
    if (this._state === GREETING && now >= this.#greetingUntil) return this.#noHello;
    if (!this.ready) return null;
    if (now >= this._contact.silentAt(this.config.timeout)) return 'the server is silent';
    if (now >= this._contact.pingAt(this._held.offlineMs)) this._ping(now);
    return null;
  }

  /** When to call tick, or to dial if there is no connection. */
  wakeup() {
    const held = this._held;
    let at = Math.min(this._calls.nextDeadline, held.nextAt, held.contactUntil(this._contact));
    if (this._later.size > 0) at = Math.min(at, this._later.first[0]);
    if (this._state === OFFLINE) return Math.min(at, this.dialing.at);
    if (this._state === GREETING) return Math.min(at, this.#greetingUntil);
    const silentAt = this._contact.silentAt(this.config.timeout);
    return Math.min(at, silentAt, this._contact.pingAt(held.offlineMs));
  }

  get #greetingUntil() {
    const delay = this.config.secret === null ? 0 : WRONG_SECRET_MS;
    return after(this._contact.heardAt, this.config.timeout + delay);
  }

  // The end.

  /** Ends all calls that wait. Releases and cancels go on until `settled`. */
  close(now) {
    this._closing = true;
    for (const call of this._calls.awaited()) {
      if (!call.persistent) this._giveUp(call, now, 'the client was closed');
    }
  }

  /** Ends what is left of releases. Calls that are asked from now on get `reason`. */
  stop(reason) {
    this._state = STOPPED;
    this._ended = reason;
    for (const call of this._calls.awaited()) {
      this._calls.settle(call, null, call.noAnswer(reason));
    }
    this._calls.takeInFlight();
    this._calls.takeQueue();
  }

  #loseAll(reason, now) {
    for (const held of this._held.all()) this._lose(held, reason, ENDED, now);
  }

  /** No release and no cancel is without answer. */
  get settled() {
    return !this._calls.all().some((call) => call.persistent);
  }

  /** Whether a caller waits for an outcome. */
  get isAwaited() {
    return this._calls.isAwaited;
  }

  get holds() {
    return this._held.size > 0;
  }

  /**
   * What was lost since the last call, for its callbacks. One line in the log for all that were
   * lost for one reason.
   */
  takeLost() {
    if (this._lost.length === 0) return [];
    const lost = this._lost;
    this._lost = [];
    const byReason = new Map();
    for (const held of lost) {
      const why = whyLost(held);
      byReason.set(why, [...(byReason.get(why) ?? []), held]);
    }
    for (const [why, group] of byReason) {
      const [first] = group;
      if (group.length === 1) {
        this._log.warn(`lost token ${first.tokenId} of flow ${named(first.flowId)}: ${why}`);
      } else {
        const ids = group.slice(0, 3).map((held) => held.tokenId);
        const more = group.length > 3 ? ', ...' : '';
        this._log.warn(`lost ${group.length} tokens (${ids.join(', ')}${more}): ${why}`);
      }
    }
    return lost;
  }

  stats() {
    return {
      connected: this.ready,
      address: this.dialing.name,
      clientId: this.config.clientId,
      sessionsOnline: this._sessionsOnline,
      held: this._held.size,
      waiting: this._calls.awaited().filter((call) => !call.persistent).length,
      unsettled: this._calls.all().filter((call) => call.persistent).length,
      tellsLost: this.ready && this._withOptions,
      localGranted: this._fallback.granted,
      localRefused: this._fallback.refused,
      localPassed: this._fallback.passed,
      ...this._counts,
    };
  }

  // Messages.

  #identify(secret, isPrivate) {
    if (!isPrivate) throw new BadRequest(PLAIN);
    this.#shown = secret.read();
    this._identifyMsgid = this._exchange.request('identify', [this.#shown]);
  }

  #hello(now) {
    const { namespace, clientId, exclusive } = this.config;
    const options = {};
    if (this._withOptions) options.lost = true;
    if (exclusive) options.exclusive = true;
    if (this._withOptions) {
      if (this.#instance !== 0n) options.instance = this.#instance;
      options.terms = true;
    }
    this.#helloAt = now;
    const params = [PROTOCOL, namespace, clientId];
    if (Object.keys(options).length > 0) params.push(options);
    this.#helloMsgid = this._exchange.request('hello', params);
  }

  /** Masks the secret in all that ends up in errors and logs: not in results of calls. */
  #fitToShow(message) {
    const isResult = this.ready && message[0] === 1 && message[2] === null;
    if (this.#shown === '' || isResult) return message;
    return message.map((part, index) => (index < 2 ? part : masked(part, this.#shown)));
  }

  #message(message, now) {
    if (message[0] === 2) {
      if (message[1] === 'lost') this.#toldLost(array('lost', message[2], 3), now);
      return null;
    }
    const [, msgid, error, result] = message;
    if (error !== null && array('an error', error, 3)[0] === MALFORMED) {
      return errorOf(error).message;
    }
    if (this._identifyMsgid !== 0 && msgid === this._identifyMsgid) {
      return this.#identifyAnswered(error, result, now);
    }
    if (this._state === GREETING && msgid === this.#helloMsgid) {
      return this.#helloAnswered(error, result, now);
    }
    const call = this._calls.inFlight(msgid);
    if (call === undefined) {
      throw new Wrong(`it answers a request ${msgid} that awaits no answer`);
    }
    this._contact.answered(call.sentAt);
    this._answered(call, error, result, now);
    this._calls.answered(msgid); // Not one whose answer was not understood.
    this.#useful = true;
    return null;
  }

  #identifyAnswered(error, result, now) {
    this._identifyMsgid = 0;
    if (error === null) {
      this.#identity = text('a name', array('identify', result, 3)[0]);
      return null;
    }
    if (error[0] === UNKNOWN_METHOD) return null; // An older server lets everybody in.
    return this.#greetingRefused('identify', error, now);
  }

  #helloAnswered(error, result, now) {
    if (error !== null) {
      if (error[0] === BAD_PARAMS && this._withOptions) {
        this._withOptions = false;
        this.#hello(now);
        return null;
      }
      return this.#greetingRefused('hello', error, now);
    }
    const parts = array('hello', result, 4);
    text('the version', parts[0]);
    const session = id('hello', parts[1]);
    this._sessionsOnline = uint('hello', parts[2]);
    const resumed = uint('hello', parts[3]);
    this._state = READY;
    this._down = false;
    this._denied = null;
    this._contact.heard(now);
    this._contact.answered(this.#helloAt);
    this._counts.connects += 1;
    const name = this.dialing.name + (this.#identity ? ` as '${this.#identity}'` : '');
    this._log.info(`connected to ${name}, session ${session}, ${resumed} tokens`);
    this.#resume(resumed, now);
    return null;
  }

  #resume(resumed, now) {
    const fewer = resumed < this._held.size;
    if (resumed === 0) this.#loseAll(null, now);
    // A keep asks whether the token is still there. If some have ended, all are asked for.
    for (const held of this._held.all()) {
      if (held.isKept || (fewer && held.keep !== false)) this.#keep(held, now);
    }
    for (const call of this._calls.takeQueue()) this._send(call, now);
  }

  /** Calls that wait fail at once if the client itself is at fault. */
  #greetingRefused(method, answer, now) {
    const error = errorOf(answer);
    const refusal = `${method} refused: ${error.message}`;
    if (error instanceof PermissionDenied) {
      return this.#deny(new PermissionDenied(refusal, error.code), now);
    }
    if (error instanceof BadRequest) this.#endQueue(new BadRequest(refusal, error.code), now);
    return refusal;
  }

  /** No fallback may let a call pass since its caller is refused. */
  #deny(error, now) {
    const denial = new error.constructor(`${this.dialing.name}: ${error.message}`, error.code);
    if (this._denied === null) {
      this._log.warn(`not let in, so calls end at once: ${denial.message}`);
    }
    this._denied = denial;
    this.#endQueue(denial, now);
    return error.message;
  }

  #endQueue(error, now) {
    for (const call of this._calls.takeQueue()) {
      if (call.persistent || call instanceof RuleCall) this._calls.queue(call);
      else this._fail(call, again(error), now);
    }
  }

  #toldLost([tokenId, flowId, reason], now) {
    const held = this._held.find(id('token_id', tokenId));
    integer('flow_id', flowId);
    const why = text('reason', reason);
    if (held !== undefined) this._lose(held, why, ENDED, now);
  }

  // Tokens.

  /** Loses the tokens whose time is over, and does what is due for the others. */
  #lookAfterAll(now) {
    if (now >= this._held.contactUntil(this._contact)) {
      for (const held of this._held.all()) if (now >= held.contactUntil) this.#expire(held, now);
    }
    for (let held; (held = this._held.takeDue(now)) !== null;) this.#lookAfter(held, now);
  }

  /** Keeps a token that is held for long, or ends it as its rule says. */
  #lookAfter(held, now) {
    if (held.foundLost || now >= held.validUntil) {
      this.#expire(held, now);
    } else if (now >= held.releaseAt) {
      this._lose(held, 'resource_timeout', RELEASING, now);
      this._submit(new Release(held, 'timeout'), now);
      this._cancelStray(held, now);
    } else if (now >= held.keepAt && this.ready) {
      this.#keep(held, now);
    } else {
      if (now >= held.keepAt) held.keepAt = Infinity; // The next connection begins with a keep.
      this._held.plan(held);
    }
  }

  #keep(held, now) {
    const call = new Keep(held);
    held.keepAt = Infinity; // Until it is answered.
    this._held.plan(held);
    this._send(call, now);
  }

  #expire(held, now) {
    this._lose(held, held.reason, LOST, now);
  }

  /** LOST: the server was not asked, so the release of its owner is still sent. */
  _lose(held, reason, state, now) {
    if (!this._held.remove(held)) return;
    this._fallback.leave(held);
    held.lostReason = reason;
    held.state = state;
    held.toldLost = true;
    this._lost.push(held);
    this._counts.lost += 1;
    if (state === ENDED) this._cancelStray(held, now);
  }

  /** Asks for a sign of life. Any byte of the server counts as one. */
  _ping(now) {
    this._contact.pinged(now);
    const call = new Ping();
    call.repeatable = false;
    this._send(call, now);
  }
}

function whyLost(held) {
  const byRule = held.keep === true && held.terms !== null && held.terms.strategy === 0;
  if (held.lostReason === 'resource_timeout' && byRule) {
    return (
      `its call took longer than the ${held.holdMs} ms that its rule holds a token ` +
      '(resourceTimeoutStrategy 0); set resourceTimeoutStrategy 2 in the rule, or ask to keep it ' +
      'always'
    );
  }
  return held.lostReason || 'it had ended';
}
