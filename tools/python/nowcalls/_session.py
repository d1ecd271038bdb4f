"""Session: the protocol of one client, without sockets, threads or clocks.

Both clients drive it. They dial when connect_at has come, and send what is in `output`. They tell
it of the connection (connected, connect_failed, received, disconnected) and of time (tick). `now`
is in seconds, of a clock that never goes back. The session says hello, asks calls, asks them again
on the next connection, keeps permits, and learns which of them are lost.

Thread: the client protects it by a lock, or uses it on one thread only. Outcomes are notified
within its methods.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
import random
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

import msgpack  # type: ignore[import]

from ._calls import (
    BAD_PARAMS,
    Acquire,
    AskAgain,
    Call,
    Cancel,
    Grant,
    Item,
    Keep,
    RateRequest,
    Release,
    Stray,
    TokenGone,
    error_of,
)
from ._config import Address, Config
from ._errors import BadRequest, Error, OutcomeUnknown, Refused, Unavailable
from ._keeps import KEEP_PAUSE_S, Keeps
from ._local import Fallback
from ._permit import ENDED, HELD, RELEASING, BasePermit
from ._rules import ONCE_MORE, UNTIL_DEADLINE, RuleCall, Rules

logger = logging.getLogger("nowcalls")

PROTOCOL = 1
MESSAGE_BYTES_MAX = 64 * 1024  # The server closes the connection beyond it.
ANSWER_BYTES_MAX = 8 * 1024 * 1024  # The server sends at most half of it.
PAUSE_MIN_S, PAUSE_MAX_S = 0.05, 2.0  # Bounds of the random pause before a connection.
CONNECT_TIMEOUT_S = 2.0  # Of one address; less if the timeout of calls is.
PING_AFTER_S = 10.0  # Of silence.
HELLO_MSGID = 0
RULES_ASKED_MAX = 64
RETRY_PAUSE_S = 0.01  # Doubled with each refusal, 6 times at most.
# A refusal that time may undo.
MAY_PASS = ("level", "client_cap", "param", "waiters_ahead", "queue_full")

OFFLINE, GREETING, READY, STOPPED = "offline", "greeting", "ready", "stopped"


class Session:
    """State of a client: its connection, its calls without answer, its permits.

    connect_at: when to dial next, while there is no connection.
    output: bytes to send; the client removes what it has sent.
    """

    def __init__(
        self,
        config: Config,
        make_permit: Callable[[], BasePermit],
        now: float,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.config = config
        self.connect_at = now
        self.output = bytearray()
        self._make_permit = make_permit
        self._uniform = uniform
        self._rules = Rules()
        self._fallback = Fallback(config.fallback, config.local_levels, self._rules)
        self._closing = False
        # The connection.
        self._state = OFFLINE
        self._unpacker = msgpack.Unpacker(max_buffer_size=ANSWER_BYTES_MAX)
        self._address_index = 0
        self._failures = 0  # Attempts and useless connections since the last useful one.
        self._useful = False  # The server has answered more than hello.
        self._down = False  # All addresses have failed since the last connection.
        self._why_offline = "not connected yet"
        self._asks_for_lost = True
        self._heard_at = now
        self._probed_at: Optional[float] = None
        self._sessions_online = 1
        # Calls, in the order in which they were asked.
        self._msgids = itertools.count()
        self._queue: Dict[Call, None] = {}  # For the next connection.
        self._in_flight: Dict[int, Call] = {}
        self._later: List[Tuple[float, int, Acquire]] = []  # A heap of those asked once more.
        self._later_numbers = itertools.count()
        self._rules_asked: Dict[int, List[Acquire]] = {}  # With the acquires that wait for them.
        # Permits. A permit that the program has dropped is gone from both.
        self._permits: weakref.WeakValueDictionary[int, BasePermit] = weakref.WeakValueDictionary()
        self._keeps = Keeps()
        self._lost: List[BasePermit] = []
        counted = ("connects", "disconnects", "kept", "lost", "cancelled", "asked_again")
        self._counts = dict.fromkeys(counted, 0)

    # Calls.

    def submit(self, call: Call, now: float) -> None:
        """Asks a call, now or on the next connection. Its outcome is set later, or within."""
        if isinstance(call, Acquire) and call.started_at is None:
            call.started_at = now
        if isinstance(call, (Acquire, RateRequest)) and self._fallback.mode == "rule":
            for flow_id in call.flow_ids:
                self._ask_rule(flow_id, now)
        if self._state == READY:
            self._send(call, now)
        elif self._state == STOPPED:
            call.settle(error=call.no_answer("the client is closed"))
        elif self._down and self._fallback.active and isinstance(call, (Acquire, RateRequest)):
            self._fail(call, call.no_answer(self._why_offline), now)
        else:
            self._queue[call] = None

    def give_up(self, call: Call, now: float, reason: str = "") -> None:
        """Sets the outcome of a call whose time is over. Cancels an acquire that was sent."""
        if call.done:
            return
        if not reason:
            reason = "the server did not answer in time" if self.ready else self._why_offline
        error = call.no_answer(reason)
        if not call.persistent:
            self._queue.pop(call, None)
        if isinstance(call, Acquire):
            if call.unsettled:
                call.strayed = True
            elif call.refusal is not None:
                error = call.refusal
        self._fail(call, error, now)
        if self._state == READY and call.unsettled and self._heard_at <= call.sent_at:
            self._probe(now)

    def abandon(self, call: Call, now: float) -> None:
        """Ends a call whose caller will not take its outcome: a permit is given back."""
        self.give_up(call, now)
        for permit in call.value if isinstance(call.value, list) else [call.value]:
            if isinstance(permit, BasePermit):
                self.release(permit, now)

    def release(self, permit: BasePermit, now: float) -> Optional[Release]:
        """Gives a permit back; the call to wait for, or None if the server need not be asked."""
        if permit._state != HELD:
            return None
        permit._state = RELEASING
        if permit.local:
            self._fallback.leave(permit.flow_id, permit.count, permit.param)
            return None
        self._permits.pop(permit.token_id, None)
        call = Release(permit)
        self.submit(call, now)
        self._cancel_stray(permit, now)  # Behind the release.
        return call

    def close(self, now: float) -> None:
        """Ends all calls that wait. Releases and cancels go on until `settled`."""
        self._closing = True
        for call in [*self._in_flight.values(), *self._queue]:
            if not call.persistent:
                self.give_up(call, now, "the client was closed")

    def stop(self) -> None:
        """Ends what is left of releases. Calls that are asked from now on are Unavailable."""
        self._state = STOPPED
        for call in [*self._in_flight.values(), *self._queue]:
            call.settle(error=call.no_answer("the client was closed"))

    @property
    def settled(self) -> bool:
        """No release and no cancel is without answer."""
        return not any(call.persistent for call in [*self._in_flight.values(), *self._queue])

    @property
    def ready(self) -> bool:
        return self._state == READY

    def take_lost(self) -> List[BasePermit]:
        """The permits that were lost since the last call, for their callbacks."""
        lost, self._lost = self._lost, []
        return lost

    def stats(self) -> Dict[str, Any]:
        waiting = [*self._in_flight.values(), *self._queue]
        return {
            "connected": self.ready,
            "address": "%s:%d" % self.address,
            "client_id": self.config.client_id,
            "sessions_online": self._sessions_online,
            "held": len(self._permits),
            "waiting": sum(not (c.persistent or c.done or c.internal) for c in waiting),
            "unsettled": sum(call.persistent for call in waiting),
            "tells_lost": self.ready and self._asks_for_lost,
            "local_granted": self._fallback.granted,
            "local_refused": self._fallback.refused,
            "local_passed": self._fallback.passed,
            **self._counts,
        }

    # The connection.

    @property
    def address(self) -> Address:
        """Where to dial."""
        return self.config.addresses[self._address_index % len(self.config.addresses)]

    @property
    def connect_timeout(self) -> float:
        return min(CONNECT_TIMEOUT_S, self.config.timeout)

    def connected(self, now: float) -> None:
        """A connection is open; the session says hello and waits for its answer."""
        self._state = GREETING
        self._useful = False
        self._unpacker = msgpack.Unpacker(max_buffer_size=ANSWER_BYTES_MAX)
        self.output.clear()
        self._asks_for_lost = True
        self._heard_at = now
        self._probed_at = None
        self._hello()

    def connect_failed(self, now: float, reason: str) -> None:
        self._why_offline = "%s:%d: %s" % (*self.address, reason)
        self._count_failure(now)
        if self._failures >= len(self.config.addresses) and not self._down:
            self._down = True
            fallback = self.config.fallback
            logger.warning("no server is reached, fallback %s: %s", fallback, self._why_offline)
            self._fall_back_now(now)

    def disconnected(self, now: float, reason: str) -> None:
        """The connection is gone. Calls without answer are asked on the next one."""
        was_ready, self._state = self._state == READY, OFFLINE
        self.output.clear()
        unanswered, queued = list(self._in_flight.values()), self._queue
        self._in_flight, self._queue = {}, {}
        again = [c for c in unanswered if c.persistent or (c.repeatable and not c.done)]
        self._queue.update(dict.fromkeys(again))
        self._queue.update(queued)
        self._counts["asked_again"] += len(again)
        for call in unanswered:
            call.strayed = True
            if not call.repeatable:
                self._fail(call, call.no_answer(reason), now)
        if not was_ready:
            self.connect_failed(now, reason)
            return
        self._counts["disconnects"] += 1
        self._why_offline = "%s:%d: %s" % (*self.address, reason)
        logger.info("the connection to %s:%d ended: %s", *self.address, reason)
        if self._useful:
            self._failures = 0
            self.connect_at = now + self._uniform(0, PAUSE_MIN_S)
        else:  # A server that takes connections and ends them at once gets longer pauses, too.
            self._count_failure(now)

    def received(self, data: bytes, now: float) -> Optional[str]:
        """Handles bytes of the server. Returns why the connection must be closed, or None."""
        self._heard_at = now
        self._probed_at = None
        try:
            self._unpacker.feed(data)
            for message in self._unpacker:
                refusal = self._message(message, now)
                if refusal is not None:
                    return refusal
        except Exception as error:  # Whatever a stranger's bytes may lead to.
            logger.debug("bytes that are not nowcalls", exc_info=True)
            return f"the peer does not speak nowcalls: {error!r}"
        return None

    def tick(self, now: float) -> Optional[str]:
        """Does what is due. Returns why the connection must be closed, or None."""
        if self._state == GREETING and now >= self._heard_at + self.config.timeout:
            return "no answer to hello"
        if self._state != READY:
            return None
        if self._probed_at is not None and now >= self._probed_at + self.config.timeout:
            return "the server is silent"
        if now >= self._heard_at + PING_AFTER_S:
            self._probe(now)
        while self._later and self._later[0][0] <= now:
            call = heapq.heappop(self._later)[2]
            if not call.done:
                self.submit(call, now)
        while permit := self._keeps.take_due(now):
            self._look_after(permit, now)
        return None

    def wakeup(self) -> float:
        """When to call tick, or to dial if there is no connection."""
        if self._state == OFFLINE:
            return self.connect_at
        if self._state == GREETING:
            return self._heard_at + self.config.timeout
        silent = self._heard_at + PING_AFTER_S
        if self._probed_at is not None:
            silent = self._probed_at + self.config.timeout
        later = self._later[0][0] if self._later else None
        return min(at for at in (silent, self._keeps.next_at, later) if at is not None)

    # Within.

    def _count_failure(self, now: float) -> None:
        """Addresses are tried in rows; between rows comes a random pause whose bound doubles."""
        self._address_index += 1
        self._failures += 1
        rows, within_row = divmod(self._failures, len(self.config.addresses))
        bound = 0.0 if within_row else min(PAUSE_MAX_S, PAUSE_MIN_S * 2 ** min(rows, 10))
        self.connect_at = now + self._uniform(0, bound)

    def _hello(self) -> None:
        params: List[Any] = [PROTOCOL, self.config.namespace, self.config.client_id]
        if self._asks_for_lost:
            params.append({"lost": True})
        self.output += msgpack.packb([0, HELLO_MSGID, "hello", params])

    def _send(self, call: Call, now: float) -> None:
        msgid = 1 + next(self._msgids) % 0xFFFFFFFF  # Never that of hello.
        try:
            message = msgpack.packb([0, msgid, call.method, call.params(now)])
        except (OverflowError, TypeError, ValueError) as error:
            call.settle(error=BadRequest(f"{call.method}: {error}"))
            return
        if len(message) > MESSAGE_BYTES_MAX:
            call.settle(error=BadRequest(f"{call.method}: {len(message)} bytes are too many"))
            return
        self.output += message
        self._in_flight[msgid] = call
        call.attempts += 1
        call.unsettled = True
        call.sent_at = now

    def _message(self, message: Any, now: float) -> Optional[str]:
        if not isinstance(message, list) or len(message) < 3:
            return "the peer does not speak nowcalls"
        if message[0] == 2:
            if message[1] == "lost":
                self._told_lost(now, *message[2][:3])
        elif message[1] == HELLO_MSGID:
            return self._hello_answered(message[2], message[3], now)
        else:
            call = self._in_flight.get(message[1])
            if call is not None:
                self._answered(call, message[2], message[3], now)
                del self._in_flight[message[1]]  # Not one whose answer was not understood.
                self._useful = True
        return None

    def _hello_answered(self, error: Any, result: Any, now: float) -> Optional[str]:
        if error is not None:
            if error[0] == BAD_PARAMS and self._asks_for_lost:
                self._asks_for_lost = False  # An older server.
                self._hello()
                return None
            return self._hello_refused(error_of(error))
        self._sessions_online, resumed = result[2], result[3]
        self._state = READY
        self._down = False
        self._counts["connects"] += 1
        logger.info("connected to %s:%d, session %d, %d tokens", *self.address, result[1], resumed)
        # A keep asks whether the token is still there.
        for permit in list(self._permits.values()):
            if resumed == 0:
                self._lose(permit, None, now)
            elif permit._keeping:
                self._keep(permit, now)
        queued, self._queue = self._queue, {}
        for call in queued:
            self._send(call, now)
        return None

    def _hello_refused(self, error: Error) -> str:
        """Calls that wait fail at once if the client itself is at fault."""
        if isinstance(error, BadRequest):
            for call in [call for call in self._queue if not call.persistent]:
                del self._queue[call]
                call.settle(error=BadRequest(f"hello refused: {error}", code=error.code))
        return f"hello refused: {error}"

    def _answered(self, call: Call, error: Any, result: Any, now: float) -> None:
        if isinstance(call, RuleCall):
            self._rule_answered(call, error, result, now)
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
                self._queue[call] = None
            return
        except TokenGone:
            call.strayed = True
            failure = Unavailable(f"{call.method}: a token ended before its answer came")
        except Error as raised:
            failure = raised
        call.unsettled = False
        if isinstance(call, Acquire):
            self._acquired(call, value, failure, now)
        elif isinstance(call, Keep):
            self._kept(call, value, failure, now)
        elif isinstance(call, Release):
            call.permit._state = ENDED
            if value is False:
                call.permit.lost = True
                self._counts["lost"] += 1
            call.settle(value, failure)
        elif failure is not None:
            self._fail(call, failure, now)
        else:
            call.settle(value)

    def _acquired(
        self, call: Acquire, grants: Optional[List[Grant]], failure: Optional[Error], now: float
    ) -> None:
        single = len(call.items) == 1
        if isinstance(failure, Refused) and failure.level > 0 and single:
            self._fallback.learn(call.flow_id, call.param, failure.level)
        if isinstance(failure, Refused) and call.prioritized and failure.refused_by in MAY_PASS:
            self._refused(call, failure, now)
        elif failure is not None:
            self._fail(call, failure, now)
        if call.done or grants is None:
            return  # Given up: its cancel is on the way behind it.
        if single:
            self._fallback.learn(call.flow_id, call.param, grants[0].level)
        permits = []
        stray = Stray(call.request_id, grants) if call.strayed else None
        for item, grant in zip(call.items, grants):
            permit = self._new_permit(call, item)
            permit.token_id, permit.fence, permit.now_calls, permit.level, permit.hold_ms = grant
            permit._granted_at = call.sent_at
            permit._stray = stray
            self._permits[permit.token_id] = permit
            self._plan_keep(permit, now)
            permits.append(permit)
        call.settle(call.outcome(permits))

    def _new_permit(self, call: Acquire, item: Item) -> BasePermit:
        permit = self._make_permit()
        permit.flow_id, permit.count, permit.param = item
        permit.on_lost = call.on_lost
        permit._keeping = call.keep
        return permit

    # The client's half of rules.

    def _ask_rule(self, flow_id: int, now: float) -> bool:
        """Asks for a rule that is not known or old. False: it is known, or too many are asked."""
        if flow_id in self._rules_asked:
            return True
        too_many = len(self._rules_asked) >= RULES_ASKED_MAX
        if too_many or flow_id < 1 or not self._rules.is_stale(flow_id, now):
            return False
        self._rules_asked[flow_id] = []
        self.submit(RuleCall(flow_id), now)
        return True

    def _rule_answered(self, call: RuleCall, error: Any, result: Any, now: float) -> None:
        if error is None:
            self._rules.learn(call.flow_id, call.decode(result), now)
        for permit in list(self._permits.values()):
            if permit.flow_id == call.flow_id and self._rules.end_of(permit) < math.inf:
                self._plan(permit, self._rules.end_of(permit))
        for acquire in self._rules_asked.pop(call.flow_id, ()):
            if not acquire.done:
                self._try_again(acquire, now)

    def _refused(self, call: Acquire, failure: Refused, now: float) -> None:
        call.refusal = failure
        if self._ask_rule(failure.flow_id, now):
            self._rules_asked[failure.flow_id].append(call)
        else:
            self._try_again(call, now)

    def _try_again(self, call: Acquire, now: float) -> None:
        """As the rule says of prioritized acquires that are refused."""
        assert call.refusal is not None
        flow_id = call.refusal.flow_id
        rule = self._rules.find(flow_id, call.is_by_value(flow_id))
        strategy = 0 if rule is None else rule.acquire_refuse
        if strategy != UNTIL_DEADLINE and (strategy != ONCE_MORE or call.refusals > 0):
            self._fail(call, call.refusal, now)
            return
        pause = self._uniform(0, RETRY_PAUSE_S * 2 ** min(call.refusals, 6))
        call.refusals += 1
        heapq.heappush(self._later, (now + pause, next(self._later_numbers), call))

    def _look_after(self, permit: BasePermit, now: float) -> None:
        """Keeps a token that is held for long, or ends it as its rule says."""
        if now >= self._rules.end_of(permit):
            self._lose(permit, "resource_timeout", now)
            self.submit(Release(permit), now)
            return
        if permit._keeping is True:
            self._ask_rule(permit.flow_id, now)
        self._keep(permit, now)

    def _cancel(self, request_id: int, now: float) -> None:
        self._counts["cancelled"] += 1
        self.submit(Cancel(request_id), now)

    def _cancel_stray(self, permit: BasePermit, now: float) -> None:
        """When the last token of an acquire ends, an attempt that arrives later is cancelled."""
        stray, permit._stray = permit._stray, None
        if stray is not None:
            stray.remove(permit.token_id)
            if not stray:
                self._cancel(stray.request_id, now)

    def _plan_keep(self, permit: BasePermit, since: float) -> None:
        if not permit._keeping:
            return
        pause = max(permit.hold_ms / 3000, KEEP_PAUSE_S)
        self._plan(permit, min(since + pause, self._rules.end_of(permit)))

    def _plan(self, permit: BasePermit, at: float) -> None:
        self._keeps.plan(permit, at, len(self._permits))

    def _keep(self, permit: BasePermit, now: float) -> None:
        call = Keep(permit)
        call.repeatable = False  # The next connection begins with a keep of its own.
        self._send(call, now)

    def _kept(
        self, call: Keep, hold_ms: Optional[int], failure: Optional[Error], now: float
    ) -> None:
        permit = call.permit
        if permit._state == HELD:
            if failure is None and hold_ms is None:
                self._lose(permit, None, now)
            else:
                permit.hold_ms = hold_ms or permit.hold_ms
                self._counts["kept"] += failure is None
                self._plan_keep(permit, now if failure else call.sent_at)
        call.settle(hold_ms, failure)

    def _told_lost(self, now: float, token_id: int, flow_id: int, reason: str) -> None:
        permit = self._permits.get(token_id)
        if permit is not None:
            self._lose(permit, reason, now)

    def _lose(self, permit: BasePermit, reason: Optional[str], now: float) -> None:
        self._cancel_stray(permit, now)
        permit._state = ENDED
        permit.lost, permit.lost_reason = True, reason
        self._permits.pop(permit.token_id, None)
        self._lost.append(permit)
        self._counts["lost"] += 1
        why = reason or "it had ended"
        logger.warning("lost token %d of flow %d: %s", permit.token_id, permit.flow_id, why)

    def _probe(self, now: float) -> None:
        """Asks for a sign of life. Any byte of the server counts as one."""
        if self._probed_at is not None:
            return
        self._probed_at = now
        call = Call("ping")
        call.repeatable = False
        self._send(call, now)

    def _fall_back_now(self, now: float) -> None:
        """Calls that wait need not wait for the end of their time."""
        if not self._fallback.active:
            return
        for call in list(self._queue):
            if isinstance(call, (Acquire, RateRequest)):
                self.give_up(call, now)

    def _fail(self, call: Call, error: Error, now: float) -> None:
        """Sets the outcome of a call that got no answer, or an error, as the fallback has it."""
        if call.done:
            return
        if isinstance(call, Acquire) and call.strayed:
            # An attempt that arrives only now would be granted to nobody.
            self._cancel(call.request_id, now)
        value: Any = None
        unasked = isinstance(error, (Unavailable, OutcomeUnknown))
        if unasked and self._fallback.active and not self._closing:
            try:
                value = self._fallback.decide(call, self._sessions_online, self._new_permit)
            except Refused as refused:
                error = refused
        call.settle(value, error if value is None else None)
