// Asking: the half of a session that asks calls, and makes outcomes of answers, refusals, silence.

import {
  Acquire,
  AskAgain,
  BLOCKED,
  Cancel,
  FAIL,
  Keep,
  RateRequest,
  Release,
  TOO_MANY_REQUEST,
  TokenGone,
  errorOf,
} from './calls.js';
import { after } from './clock.js';
import { Contact } from './contact.js';
import { Dialing } from './dialing.js';
import {
  BadRequest,
  NowcallsError,
  OutcomeUnknown,
  Refused,
  Unavailable,
  again,
} from './errors.js';
import { Heap } from './heap.js';
import { ENDED, HELD, Held, HeldTokens, LOST, RELEASING, Stray, span } from './held.js';
import { named } from './items.js';
import { Fallback } from './local.js';
import { Permit } from './permit.js';
import { ONCE_MORE, RuleCall, Rules, UNTIL_DEADLINE } from './rules.js';
import { CallTable } from './table.js';
import { Exchange, TooLong, Wrong } from './wire.js';

const RULES_ASKED_MAX = 64;
const RETRY_PAUSE_MS = 10; // Doubled with each refusal, 6 times at most.
const ANSWER_MIN_MS = 20;
// Refusals that time does not undo. Words of later servers are none of them.
const FINAL = [
  ...[null, 'draining', 'queue_timeout', 'cancelled', 'superseded', 'request_id', 'over_level'],
  'rate',
];

export const OFFLINE = 'offline';
export const GREETING = 'greeting';
export const READY = 'ready';
export const STOPPED = 'stopped';

function rounded(ms) {
  return Math.round(ms * 1000) / 1000;
}

// Fields with _ are those of the session, and of nobody else.
export class Asking {
  /** parts: makePermit, now, uniform, requestIds, clock; see Session. */
  constructor(config, parts) {
    this.config = config;
    this.dialing = new Dialing(config.addresses, parts.now, parts.uniform);
    this._log = config.logger;
    this._makePermit = parts.makePermit;
    this._uniform = parts.uniform;
    this._requestIds = parts.requestIds;
    this._rules = new Rules();
    this._fallback = new Fallback(config.fallback, config.localLevels, this._rules);
    this._closing = false;
    this._ended = null; // Why.
    // The connection.
    this._state = OFFLINE;
    this._withOptions = true; // The server is not known to be an older one.
    this._exchange = new Exchange();
    this._down = false; // All addresses have failed since the last connection.
    this._whyOffline = `${this.dialing.name} is not connected yet`;
    this._denied = null; // The error of all calls, until a server accepts hello.
    this._identifyMsgid = 0; // Until it is answered: the server may yet say that it is wrong.
    this._sessionsOnline = 1;
    this._contact = new Contact(parts.now, parts.clock);
    // Calls.
    this._calls = new CallTable();
    this._later = new Heap();
    this._lastLater = 0;
    this._rulesAsked = new Map(); // By flow, with the acquires that wait for them.
    // Tokens.
    this._held = new HeldTokens();
    this._lost = [];
    this._counts = { connects: 0, disconnects: 0, kept: 0, lost: 0, cancelled: 0, askedAgain: 0 };
  }

  get ready() {
    return this._state === READY;
  }

  // Callers.

  /** Asks a call, now or on the next connection. Its outcome is set later, or within. */
  ask(call, now, timeout = null) {
    this._begin(call, now, timeout);
    if (call instanceof Acquire) {
      call.requestId = this._requestIds();
      call.startedAt = now;
      if (this._fallback.followsRules) {
        for (const item of call.items) this._askRule(item.flowId, now);
      }
    } else if (call instanceof RateRequest && this._fallback.active) {
      this._askRule(call.flowId, now);
    }
    this._submit(call, now);
  }

  /** Ends a call without outcome whose caller left: what it is granted is given back. */
  abandon(call, now) {
    call.left = true;
    this._giveUp(call, now, 'its caller left');
  }

  /** Gives a token back. A second time it only says whether the token was lost. */
  release(call, now, timeout = null) {
    this._begin(call, now, timeout);
    this._letGo(call, now);
    if (call.leaves && !this.ready) this._giveUp(call, now, this._whyOffline);
  }

  /** Gives back a token of which nobody waits for the end. */
  drop(held, now) {
    if (!held.open) return;
    if (held.dropped) {
      const flow = named(held.flowId);
      this._log.warn(`token ${held.tokenId} of flow ${flow} was dropped, so it is released`);
    }
    this._letGo(new Release(held), now);
  }

  _begin(call, now, timeout) {
    call.deadline = after(now, (timeout ?? this.config.timeout) + call.patience);
    this._calls.begin(call);
  }

  _letGo(call, now) {
    const held = call.held;
    if (!held.open) {
      this._calls.settle(call, !held.lost);
      return;
    }
    if (held.state === HELD && (held.foundLost || now >= held.validUntil)) {
      this._lose(held, held.reason, LOST, now);
    }
    held.grip = null; // Nobody is to be told.
    held.state = held.local ? ENDED : RELEASING;
    if (held.local) {
      this._fallback.leave(held);
      this._calls.settle(call, true);
      return;
    }
    if (this._held.remove(held)) this._fallback.leave(held);
    this._submit(call, now);
    this._cancelStray(held, now); // Behind the release.
  }

  // Sending.

  _submit(call, now) {
    if (this._ended !== null) {
      this._calls.settle(call, null, call.noAnswer(this._ended));
    } else if (this._closing && call.wantsRoom) {
      this._calls.settle(call, null, new BadRequest('the client is closed'));
    } else if (this._closing && !call.persistent) {
      this._calls.settle(call, null, call.noAnswer('the client is closed'));
    } else if (this.ready) {
      this._send(call, now);
    } else if (this._denied !== null && call.wantsRoom) {
      this._fail(call, again(this._denied), now);
    } else if (this._fallsBackAtOnce(call, now)) {
      this._fail(call, call.noAnswer(this._whyOffline), now);
    } else {
      this._calls.queue(call);
    }
  }

  _send(call, now) {
    let msgid;
    try {
      // An older server would refuse it.
      if (call instanceof Release && !this._withOptions) call.forgetOutcome();
      msgid = this._exchange.request(call.method, call.params(now));
    } catch (error) {
      if (!(error instanceof TooLong)) throw error;
      this._fail(call, new BadRequest(error.message), now);
      return;
    }
    this._calls.sent(msgid, call);
    call.attempts += 1;
    call.unsettled = true;
    call.sentAt = now;
  }

  // Answers.

  /** Throws Wrong for what no server answers. */
  _answered(call, error, result, now) {
    if (call instanceof RuleCall) {
      this._ruleAnswered(call, error === null ? call.decode(result) : new Map(), now);
      return;
    }
    let value = null;
    let failure = null;
    try {
      if (error !== null) failure = errorOf(error);
      else value = call.decode(result);
    } catch (thrown) {
      if (thrown instanceof AskAgain) {
        call.unsettled = false;
        if (!call.done) this._calls.queue(call);
        return;
      }
      failure = this._failureOf(call, thrown);
    }
    if (call instanceof Acquire && failure === null) {
      this._granted(call, value, now);
      return;
    }
    call.unsettled = false;
    if (call instanceof Acquire) this._refused(call, failure, now);
    else if (call instanceof Keep) this._kept(call, value, failure, now);
    else if (call instanceof Release) this._released(call, value, failure);
    else if (failure !== null) this._fail(call, failure, now);
    else if (call instanceof RateRequest) {
      call.passed = value;
      this._settleAt(after(now, value.wait), call, now);
    } else this._calls.settle(call, value);
  }

  _failureOf(call, thrown) {
    if (thrown instanceof TokenGone) {
      call.strayed = true;
      return new Unavailable(`${call.method}: a token ended before its answer came`);
    }
    if (thrown instanceof NowcallsError) return thrown;
    throw thrown;
  }

  _released(call, value, failure) {
    const held = call.held;
    held.state = ENDED;
    if (value === false && !held.lost) {
      held.toldLost = true;
      this._counts.lost += 1;
    }
    this._calls.settle(call, Boolean(value) && !held.lost, failure);
  }

  _granted(call, granted, now) {
    const { grants } = granted;
    const tokens = grants.map((grant) => grant.tokenId).filter((token) => token !== 0n);
    const twice = new Set(tokens).size < tokens.length;
    if (!call.done && (twice || tokens.some((token) => this._held.find(token)))) {
      throw new Wrong('an acquire was answered with a token that is held already');
    }
    call.unsettled = false;
    if (call.done) return; // Given up: its cancel is on the way behind it.
    const wait = Math.max(...grants.map((grant) => grant.wait));
    call.waitUntil = Math.max(call.waitUntil, after(now, wait));
    if (!call.confirmed && this._isLate(call, grants, now)) {
      call.confirmed = true; // What is left of its hold is better known by a second answer.
      this._send(call, now);
      return;
    }
    const stray = call.strayed && tokens.length > 0 ? new Stray(call.requestId, tokens) : null;
    grants.forEach((grant, index) => {
      if (grant.tokenId !== 0n) this._hold(call, call.items[index], grant, granted, stray);
    });
    this._settleAt(call.waitUntil, call, now);
  }

  _hold(call, item, grant, { nowCalls, level }, stray) {
    const held = this._newHeld(call, item);
    held.tokenId = grant.tokenId;
    held.fence = grant.fence;
    held.holdMs = grant.holdMs;
    held.terms = grant.terms;
    held.nowCalls = nowCalls;
    held.level = level;
    held.grantedAt = call.sentAt;
    held.confirmedAt = call.sentAt;
    held.stray = stray;
    held.planKeep(call.sentAt);
    this._held.add(held);
    this._held.plan(held);
    this._fallback.enter(held);
    call.granted.push(held);
  }

  /** Settles a call that passed: when its caller need not sleep any more, if it is to. */
  _settleAt(at, call, now) {
    if (call.sleep && now < at && at <= call.deadline) {
      call.wakeAt = at;
      this._doLater(at, (then) => this._settlePassed(call, then));
    } else {
      this._settlePassed(call, now);
    }
  }

  _settlePassed(call, now) {
    if (call.done) return;
    if (call instanceof RateRequest) {
      const { remaining, wait } = call.passed;
      const left = call.wakeAt === null ? wait : Math.max(0, call.wakeAt - now);
      this._calls.settle(call, { remaining, wait: rounded(left) });
      return;
    }
    const tokens = call.granted;
    call.granted = [];
    const permits = call.items.map((item) => {
      if (item.rate) return null;
      const permit = this._makePermit(tokens.shift());
      Permit.setWait(permit, rounded(Math.max(0, call.waitUntil - now)));
      return permit;
    });
    this._calls.settle(call, call.outcome(permits));
  }

  /** Whether less than half of a token's validity may be left, since the acquire waited. */
  _isLate(call, grants, now) {
    return grants.some(({ tokenId, holdMs, terms }) => {
      if (tokenId !== 0n && (now - call.sentAt) * 2 > span(holdMs)) return true;
      return terms !== null && (now - this._contact.at) * 2 > span(terms.offlineMs);
    });
  }

  _newHeld(call, item) {
    const held = new Held(item, this._contact);
    held.onLost = call.onLost;
    held.keep = call.keep;
    return held;
  }

  /** kept: null: the token has ended, or there is a failure. */
  _kept(call, kept, failure, now) {
    const held = call.held;
    // Else it was lost or released since.
    const isHeld = held.state === HELD && this._held.find(held.tokenId) === held;
    if (isHeld && kept !== null) this._counts.kept += 1;
    // Answers may cross: a later keep has told what holds.
    const isLatest = kept === null || call.sentAt >= held.confirmedAt;
    if (isHeld && isLatest) this._renew(held, call, kept, failure, now);
    // To its owner a token that is lost stays lost.
    this._calls.settle(call, held.toldLost ? null : kept, failure);
  }

  _renew(held, call, kept, failure, now) {
    if (kept === null && failure === null) {
      this._lose(held, null, ENDED, now);
      return;
    }
    if (kept !== null) {
      held.holdMs = kept.holdMs;
      held.confirmedAt = call.sentAt;
      // An older server tells none: those of before hold.
      if (kept.terms !== null) this._held.changeTerms(held, kept.terms);
    }
    held.planKeep(failure === null ? call.sentAt : now);
    this._held.plan(held);
  }

  _doLater(at, what) {
    this._later.push([at, ++this._lastLater, what]);
  }

  // The client's half of rules.

  /** Asks for a rule that is not known or old. False: it is known, or too many are asked. */
  _askRule(flowId, now) {
    if (this._rulesAsked.has(flowId)) return true;
    const tooMany = this._rulesAsked.size >= RULES_ASKED_MAX;
    const isNone = typeof flowId !== 'string' && flowId < 1;
    if (tooMany || isNone || !this._rules.isStale(flowId, now)) return false;
    this._rulesAsked.set(flowId, []);
    this._submit(new RuleCall(flowId), now);
    return true;
  }

  _ruleAnswered(call, rules, now) {
    call.unsettled = false;
    this._rules.learn(call.flowId, rules, now);
    const waiting = this._rulesAsked.get(call.flowId) ?? [];
    this._rulesAsked.delete(call.flowId);
    for (const acquire of waiting) if (!acquire.done) this._tryAgain(acquire, now);
  }

  _refused(call, failure, now) {
    const isBlocked = failure instanceof Refused && failure.status === BLOCKED;
    if (!isBlocked || FINAL.includes(failure.refusedBy) || !call.prioritized) {
      this._fail(call, failure, now);
      return;
    }
    if (call.done) return;
    call.refusal = failure;
    if (this._askRule(failure.flowId, now)) this._rulesAsked.get(failure.flowId).push(call);
    else this._tryAgain(call, now);
  }

  /**
   * As the rule says of prioritized acquires that are refused.
   *
   * No attempt is made that leaves no time for its answer: the refusal would become an unknown
   * outcome, and a fallback could grant.
   */
  _tryAgain(call, now) {
    const flowId = call.refusal.flowId;
    const strategy = this._rules.find(flowId, call.isByValue(flowId))?.acquireRefuse ?? 0;
    const onceMore = strategy === ONCE_MORE && call.refusals === 0;
    const pause = this._uniform(1, RETRY_PAUSE_MS * 2 ** Math.min(call.refusals, 6));
    const answer = Math.max(ANSWER_MIN_MS, 2 * (now - call.sentAt));
    const allowed = strategy === UNTIL_DEADLINE || onceMore;
    if (!allowed || now + pause + answer > call.deadline) {
      this._fail(call, call.refusal, now);
      return;
    }
    call.refusals += 1;
    this._doLater(after(now, pause), (then) => {
      if (!call.done) this._submit(call, then);
    });
  }

  // No answer.

  /** Sets the outcome of a call whose time is over. Cancels an acquire that was sent. */
  _giveUp(call, now, reason) {
    if (call.done) return;
    if (call.wakeAt !== null && !call.left) {
      this._settlePassed(call, now); // It slept, and its calls are counted.
      return;
    }
    let error = call.noAnswer(reason);
    const wasSent = call.unsettled;
    if (!call.persistent) this._calls.dequeue(call);
    if (call instanceof Acquire) {
      if (wasSent) call.strayed = true;
      else if (call.refusal !== null) error = call.refusal;
      for (const held of call.granted) this.drop(held, now);
    }
    this._fail(call, error, now);
    const silent = wasSent && this._contact.heardAt <= call.sentAt;
    if (this.ready && silent && !this._contact.probes) this._ping(now);
  }

  /** Sets the outcome of a call that got no answer, or an error, as the fallback has it. */
  _fail(call, error, now) {
    if (call.done) return;
    // An attempt that arrives only now would be granted to nobody; a grant that came late is there.
    const mayBeGranted = call instanceof Acquire && (call.strayed || call.confirmed);
    if (mayBeGranted) this._cancel(call.requestId, now);
    let value = null;
    let failure = error;
    if (this._fallsBack(call, error)) {
      try {
        value = this._decide(call, now);
      } catch (refused) {
        if (!(refused instanceof Refused)) throw refused;
        failure = refused;
      }
    }
    this._calls.settle(call, value, value === null ? failure : null);
  }

  _fallsBack(call, error) {
    if (!call.wantsRoom || call.left || this._closing || !this._fallback.active) return false;
    if (this._denied !== null || this._identifyMsgid !== 0) return false;
    const isFull = error instanceof Refused && [TOO_MANY_REQUEST, FAIL].includes(error.status);
    return isFull || error instanceof Unavailable || error instanceof OutcomeUnknown;
  }

  _fallsBackAtOnce(call, now) {
    const noServer = this._down && this._identifyMsgid === 0;
    return noServer && this._fallback.active && call.wantsRoom && !call.mayWait(now);
  }

  _decide(call, now) {
    const sessions = this._sessionsOnline;
    if (call instanceof RateRequest) return this._fallback.decideRate(call, sessions, now);
    const make = (acquire, item) => this._newHeld(acquire, item);
    const taken = this._fallback.decideAcquire(call, sessions, now, make);
    if (taken === null) return null;
    return call.outcome(taken.map((held) => (held === null ? null : this._makePermit(held))));
  }

  _cancel(requestId, now) {
    this._counts.cancelled += 1;
    this._submit(new Cancel(requestId), now);
  }

  /** When the last token of an acquire ends, an attempt that arrives later is cancelled. */
  _cancelStray(held, now) {
    const stray = held.stray;
    held.stray = null;
    if (stray === null) return;
    stray.tokens.delete(held.tokenId);
    if (stray.tokens.size === 0) this._cancel(stray.requestId, now);
  }
}
