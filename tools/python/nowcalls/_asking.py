"""Asking: the half of a session that asks calls, and makes outcomes of answers, refusals, silence.

Thread: the session's.
"""

from __future__ import annotations

import heapq
import itertools
import logging
from typing import Any, Callable, Dict, List, Optional, Tuple

from ._calls import (
    BLOCKED,
    FAIL,
    TOO_MANY_REQUEST,
    Acquire,
    AskAgain,
    Call,
    Cancel,
    Grant,
    Granted,
    Item,
    Keep,
    Rate,
    RateRequest,
    Release,
    TokenGone,
    error_of,
)
from ._clock import after
from ._config import Config
from ._dialing import Dialing
from ._errors import BadRequest, Error, OutcomeUnknown, Refused, Unavailable, again
from ._contact import Contact
from ._held import ENDED, HELD, LOST, RELEASING, Flow, Held, HeldTokens, Stray, Terms, span
from ._local import Fallback
from ._permit import BasePermit
from ._rules import ONCE_MORE, UNTIL_DEADLINE, RuleCall, Rules
from ._table import CallTable
from ._wire import Exchange, Wrong

logger = logging.getLogger("nowcalls")

RULES_ASKED_MAX = 64
RETRY_PAUSE_S = 0.01  # Doubled with each refusal, 6 times at most.
# Refusals that time does not undo. Words of later servers are none of them.
FINAL = (
    None,
    *("draining", "queue_timeout", "cancelled", "superseded", "request_id", "over_level", "rate"),
)

OFFLINE, GREETING, READY, STOPPED = "offline", "greeting", "ready", "stopped"


class Asking:
    def __init__(
        self,
        config: Config,
        make_permit: Callable[[Held], BasePermit],
        now: float,
        uniform: Callable[[float, float], float],
        request_ids: Callable[[], int],
        clock: Callable[[], float],
    ) -> None:
        self.config = config
        self.dialing = Dialing(config.addresses, now, uniform)
        self._make_permit = make_permit
        self._uniform = uniform
        self._request_ids = request_ids
        self._rules = Rules()
        self._fallback = Fallback(config.fallback, config.local_levels, self._rules)
        self._closing = False
        self._ended: Optional[str] = None  # Why.
        # The connection.
        self._state = OFFLINE
        self._with_options = True  # The server is not known to be an older one.
        self._exchange = Exchange()
        self._down = False  # All addresses have failed since the last connection.
        self._why_offline = f"{self.dialing.name} is not connected yet"
        self._denied: Optional[BadRequest] = None  # Of all calls, until a server accepts hello.
        self._identify_msgid = 0  # Until it is answered: the server may yet say that it is wrong.
        self._sessions_online = 1
        self._contact = Contact(now, clock)
        # Calls.
        self._calls = CallTable()
        self._later: List[Tuple[float, int, Callable[[float], None]]] = []  # A heap.
        self._later_numbers = itertools.count()
        self._rules_asked: Dict[Flow, List[Acquire]] = {}  # With the acquires that wait for them.
        # Tokens.
        self._held = HeldTokens()
        self._lost: List[Held] = []
        counted = ("connects", "disconnects", "kept", "lost", "cancelled", "asked_again")
        self._counts = dict.fromkeys(counted, 0)

    @property
    def ready(self) -> bool:
        return self._state == READY

    # Callers.

    def ask(self, call: Call, now: float, timeout: Optional[float] = None) -> None:
        """Asks a call, now or on the next connection. Its outcome is set later, or within."""
        self._begin(call, now, timeout)
        if isinstance(call, Acquire):
            call.request_id = self._request_ids()
            call.started_at = now
            if self._fallback.follows_rules:
                for item in call.items:
                    self._ask_rule(item.flow_id, now)
        elif isinstance(call, RateRequest) and self._fallback.active:
            self._ask_rule(call.flow_id, now)
        self._submit(call, now)

    def abandon(self, call: Call, now: float) -> None:
        """Ends a call whose caller will not take its outcome: a permit is given back."""
        call.left = True
        self._give_up(call, now, "its caller left")
        value, call.value = call.value, None
        for permit in value if isinstance(value, list) else [value]:
            if isinstance(permit, BasePermit):
                self.drop(permit._held, now)

    def release(self, call: Release, now: float, timeout: Optional[float] = None) -> None:
        """Gives a token back. A second time it only says whether the token was lost."""
        self._begin(call, now, timeout)
        self._let_go(call, now)
        if call.leaves and not self.ready:
            self._give_up(call, now, self._why_offline)

    def drop(self, held: Held, now: float) -> None:
        """Gives back a token of which nobody waits for the end."""
        if not held.open:
            return
        if held.dropped:
            token, flow = held.token_id, held.flow_id
            logger.warning("token %d of flow %r was dropped, so it is released", token, flow)
        self._let_go(Release(held), now)

    def _begin(self, call: Call, now: float, timeout: Optional[float]) -> None:
        patience = (self.config.timeout if timeout is None else timeout) + call.patience
        call.deadline = after(now, patience)
        self._calls.begin(call)

    def _let_go(self, call: Release, now: float) -> None:
        held = call.held
        if not held.open:
            self._calls.settle(call, not held.lost)
            return
        if held.state == HELD and (held.found_lost or now >= held.valid_until):
            self._lose(held, held.reason, LOST, now)
        held.grip = None  # Nobody is to be told.
        held.state = ENDED if held.local else RELEASING
        if held.local:
            self._fallback.leave(held)
            self._calls.settle(call, True)
            return
        if self._held.remove(held):
            self._fallback.leave(held)
        self._submit(call, now)
        self._cancel_stray(held, now)  # Behind the release.

    # Sending.

    def _submit(self, call: Call, now: float) -> None:
        if self._ended is not None:
            self._calls.settle(call, error=call.no_answer(self._ended))
        elif self._closing and call.wants_room:
            self._calls.settle(call, error=BadRequest("the client is closed"))
        elif self._closing and not call.persistent:
            self._calls.settle(call, error=call.no_answer("the client is closed"))
        elif self.ready:
            self._send(call, now)
        elif self._denied is not None and call.wants_room:
            self._fail(call, again(self._denied), now)
        elif self._falls_back_at_once(call, now):
            self._fail(call, call.no_answer(self._why_offline), now)
        else:
            self._calls.queue(call)

    def _send(self, call: Call, now: float) -> None:
        try:
            if isinstance(call, Release) and not self._with_options:
                call.forget_outcome()  # An older server would refuse it.
            msgid = self._exchange.request(call.method, call.params(now))
        except ValueError as error:
            self._fail(call, BadRequest(str(error)), now)
            return
        self._calls.sent(msgid, call)
        call.attempts += 1
        call.unsettled = True
        call.sent_at = now

    # Answers.

    def _answered(self, call: Call, error: Any, result: Any, now: float) -> None:
        """Raises Wrong for what no server answers."""
        if isinstance(call, RuleCall):
            self._rule_answered(call, {} if error is not None else call.decode(result), now)
            return
        value: Any = None
        failure: Optional[Error] = None
        try:
            if error is not None:
                raise error_of(error)
            value = call.decode(result)
        except AskAgain:
            call.unsettled = False
            if not call.done:
                self._calls.queue(call)
            return
        except TokenGone:
            call.strayed = True
            failure = Unavailable(f"{call.method}: a token ended before its answer came")
        except Error as raised:
            failure = raised
        if isinstance(call, Acquire) and failure is None:
            self._granted(call, value, now)
            return
        call.unsettled = False
        if isinstance(call, Acquire):
            assert failure is not None
            self._refused(call, failure, now)
        elif isinstance(call, Keep):
            self._kept(call, value, failure, now)
        elif isinstance(call, Release):
            call.held.state = ENDED
            if value is False and not call.held.lost:
                call.held.told_lost = True
                self._counts["lost"] += 1
            self._calls.settle(call, bool(value) and not call.held.lost, failure)
        elif failure is not None:
            self._fail(call, failure, now)
        elif isinstance(call, RateRequest):
            call.passed = value
            self._settle_at(after(now, value.wait), call, call.sleep, now)
        else:
            self._calls.settle(call, value)

    def _granted(self, call: Acquire, granted: Granted, now: float) -> None:
        tokens = [grant.token_id for grant in granted.grants if grant.token_id]
        if not call.done and (len(set(tokens)) < len(tokens) or any(map(self._held.find, tokens))):
            raise Wrong("an acquire was answered with a token that is held already")
        call.unsettled = False
        if call.done:
            return  # Given up: its cancel is on the way behind it.
        call.wait_until = max(call.wait_until, after(now, max(g.wait for g in granted.grants)))
        if not call.confirmed and self._is_late(call, granted.grants, now):
            call.confirmed = True  # What is left of its hold is better known by a second answer.
            self._send(call, now)
            return
        stray = Stray(call.request_id, tokens) if call.strayed and tokens else None
        for item, grant in zip(call.items, granted.grants):
            if grant.token_id:
                held = self._new_held(call, item)
                held.token_id, held.fence, held.hold_ms, held.terms = grant[:4]
                held.now_calls, held.level = granted.now_calls, granted.level
                held.granted_at = held.confirmed_at = call.sent_at
                held.stray = stray
                held.plan_keep(call.sent_at)
                self._held.add(held)
                self._held.plan(held)
                self._fallback.enter(held)
                call.granted.append(held)
        self._settle_at(call.wait_until, call, call.sleep, now)

    def _settle_at(self, at: float, call: Call, sleep: bool, now: float) -> None:
        """Settles a call that passed: when its caller need not sleep any more, if it is to."""
        if sleep and now < at <= call.deadline:
            call.wake_at = at
            self._do_later(at, lambda then: self._settle_passed(call, then))
        else:
            self._settle_passed(call, now)

    def _settle_passed(self, call: Call, now: float) -> None:
        if call.done:
            return
        if isinstance(call, RateRequest):
            assert call.passed is not None
            remaining, wait = call.passed
            wait = wait if call.wake_at is None else max(0.0, call.wake_at - now)
            self._calls.settle(call, Rate(remaining, round(wait, 6)))
            return
        assert isinstance(call, Acquire)
        tokens = iter(call.granted)
        permits: List[Optional[BasePermit]] = []
        for item in call.items:
            permit = None if item.rate else self._make_permit(next(tokens))
            if permit is not None:
                permit.wait = round(max(0.0, call.wait_until - now), 6)
            permits.append(permit)
        call.granted = []
        self._calls.settle(call, call.outcome(permits))

    def _is_late(self, call: Acquire, grants: List[Grant], now: float) -> bool:
        """Whether less than half of a token's validity may be left, since the acquire waited."""
        for token_id, _, hold_ms, terms, _ in grants:
            if token_id and (now - call.sent_at) * 2 > span(hold_ms):
                return True
            if terms is not None and (now - self._contact.at) * 2 > span(terms.offline_ms):
                return True
        return False

    def _new_held(self, call: Acquire, item: Item) -> Held:
        held = Held(item.flow_id, item.calls, item.param, self._contact)
        held.on_lost = call.on_lost
        held.keep = call.keep
        return held

    def _kept(
        self,
        call: Keep,
        kept: Optional[Tuple[int, Optional[Terms]]],
        failure: Optional[Error],
        now: float,
    ) -> None:
        held = call.held
        if held.told_lost:
            kept = None  # To its owner it stays lost.
        elif held.state != HELD or self._held.find(held.token_id) is not held:
            pass  # Released since.
        elif kept is not None and call.sent_at < held.confirmed_at:
            self._counts["kept"] += 1  # Answers may cross: a later keep has told what holds.
        else:
            if kept is not None:
                held.hold_ms, held.confirmed_at = kept[0], call.sent_at
                if kept[1] is not None:  # An older server tells none: those of before hold.
                    self._held.change_terms(held, kept[1])
                self._counts["kept"] += 1
            if kept is None and failure is None:
                self._lose(held, None, ENDED, now)
            else:
                held.plan_keep(now if failure else call.sent_at)
                self._held.plan(held)
        self._calls.settle(call, kept, failure)

    def _do_later(self, at: float, what: Callable[[float], None]) -> None:
        heapq.heappush(self._later, (at, next(self._later_numbers), what))

    # The client's half of rules.

    def _ask_rule(self, flow_id: Flow, now: float) -> bool:
        """Asks for a rule that is not known or old. False: it is known, or too many are asked."""
        if flow_id in self._rules_asked:
            return True
        too_many = len(self._rules_asked) >= RULES_ASKED_MAX
        is_none = not isinstance(flow_id, str) and flow_id < 1
        if too_many or is_none or not self._rules.is_stale(flow_id, now):
            return False
        self._rules_asked[flow_id] = []
        self._submit(RuleCall(flow_id), now)
        return True

    def _rule_answered(self, call: RuleCall, rules: Any, now: float) -> None:
        call.unsettled = False
        self._rules.learn(call.flow_id, rules, now)
        for acquire in self._rules_asked.pop(call.flow_id, ()):
            if not acquire.done:
                self._try_again(acquire, now)

    def _refused(self, call: Acquire, failure: Error, now: float) -> None:
        if (
            not isinstance(failure, Refused)
            or failure.status != BLOCKED
            or failure.refused_by in FINAL
            or not call.prioritized
        ):
            self._fail(call, failure, now)
            return
        if call.done:
            return
        call.refusal = failure
        if self._ask_rule(failure.flow_id, now):
            self._rules_asked[failure.flow_id].append(call)
        else:
            self._try_again(call, now)

    def _try_again(self, call: Acquire, now: float) -> None:
        """As the rule says of prioritized acquires that are refused.

        No attempt is made that leaves no time for its answer: the refusal would become an unknown
        outcome, and a fallback could grant.
        """
        assert call.refusal is not None
        flow_id = call.refusal.flow_id
        rule = self._rules.find(flow_id, call.is_by_value(flow_id))
        strategy = 0 if rule is None else rule.acquire_refuse
        allowed = strategy == UNTIL_DEADLINE or (strategy == ONCE_MORE and call.refusals == 0)
        pause = self._uniform(0.001, RETRY_PAUSE_S * 2 ** min(call.refusals, 6))
        answer = max(0.02, 2 * (now - call.sent_at))
        if not allowed or now + pause + answer > call.deadline:
            self._fail(call, call.refusal, now)
            return
        call.refusals += 1

        def ask_again(then: float) -> None:
            if not call.done:
                self._submit(call, then)

        self._do_later(after(now, pause), ask_again)

    # No answer.

    def _give_up(self, call: Call, now: float, reason: str) -> None:
        """Sets the outcome of a call whose time is over. Cancels an acquire that was sent."""
        if call.done:
            return
        if call.wake_at is not None and not call.left:
            self._settle_passed(call, now)  # It slept, and its calls are counted.
            return
        error = call.no_answer(reason)
        was_sent = call.unsettled
        if not call.persistent:
            self._calls.dequeue(call)
        if isinstance(call, Acquire):
            if was_sent:
                call.strayed = True
            elif call.refusal is not None:
                error = call.refusal
            for held in call.granted:
                self.drop(held, now)
        self._fail(call, error, now)
        silent = was_sent and self._contact.heard_at <= call.sent_at
        if self.ready and silent and not self._contact.probes:
            self._ping(now)

    def _fail(self, call: Call, error: Error, now: float) -> None:
        """Sets the outcome of a call that got no answer, or an error, as the fallback has it."""
        if call.done:
            return
        if isinstance(call, Acquire) and (call.strayed or call.confirmed):
            # An attempt that arrives only now would be granted to nobody; a grant that came late
            # is there.
            self._cancel(call.request_id, now)
        value: Any = None
        if self._falls_back(call, error):
            try:
                value = self._decide(call, now)
            except Refused as refused:
                error = refused
        self._calls.settle(call, value, error if value is None else None)

    def _falls_back(self, call: Call, error: Error) -> bool:
        if not call.wants_room or call.left or self._closing or not self._fallback.active:
            return False
        if self._denied is not None or self._identify_msgid:
            return False
        full = isinstance(error, Refused) and error.status in (TOO_MANY_REQUEST, FAIL)
        return full or isinstance(error, (Unavailable, OutcomeUnknown))

    def _falls_back_at_once(self, call: Call, now: float) -> bool:
        no_server = self._down and not self._identify_msgid
        return no_server and self._fallback.active and call.wants_room and not call.may_wait(now)

    def _decide(self, call: Call, now: float) -> Any:
        sessions = self._sessions_online
        if isinstance(call, RateRequest):
            return self._fallback.decide_rate(call, sessions, now)
        assert isinstance(call, Acquire)
        taken = self._fallback.decide_acquire(call, sessions, now, self._new_held)
        if taken is None:
            return None
        return call.outcome([None if held is None else self._make_permit(held) for held in taken])

    def _cancel(self, request_id: int, now: float) -> None:
        self._counts["cancelled"] += 1
        self._submit(Cancel(request_id), now)

    def _cancel_stray(self, held: Held, now: float) -> None:
        """When the last token of an acquire ends, an attempt that arrives later is cancelled."""
        stray, held.stray = held.stray, None
        if stray is not None:
            stray.discard(held.token_id)
            if not stray:
                self._cancel(stray.request_id, now)

    # The session's.

    def _lose(self, held: Held, reason: Optional[str], state: str, now: float) -> None:
        raise NotImplementedError

    def _ping(self, now: float) -> None:
        raise NotImplementedError
