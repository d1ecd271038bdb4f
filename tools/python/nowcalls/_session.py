"""Session: the protocol of one client, without sockets, threads or clocks.

Both clients drive it. They dial when dialing.at has come, and send what is in `output`. They tell
it of the connection (connected, connect_failed, received, disconnected) and of time (tick). `now`
is in seconds of CLOCK_BOOTTIME. The session says hello, asks calls, asks them again on the next
connection, keeps permits, and learns which of them are lost. Before hello, and without a wait for
the answer, it shows its secret, if it has one. _asking.py has what it asks, and what becomes of the
answers.

Thread: one. Outcomes are notified within its methods.
"""

from __future__ import annotations

import heapq
import logging
import math
from typing import Any, Callable, Dict, List, Optional

from . import _clock
from ._asking import GREETING, OFFLINE, READY, STOPPED, Asking
from ._calls import (
    BAD_PARAMS,
    MALFORMED,
    UNKNOWN_METHOD,
    Call,
    Keep,
    Ping,
    Release,
    error_of,
    new_request_id,
)
from ._clock import after
from ._config import Config
from ._errors import BadRequest, PermissionDenied, again
from ._held import ENDED, LOST, RELEASING, Held
from ._permit import BasePermit
from ._rules import RuleCall
from ._secret import PLAIN, Secret, masked
from ._wire import USUAL_PORT, Exchange, Wrong, array, integer, text, uint

logger = logging.getLogger("nowcalls")

PROTOCOL = 1
NO_HELLO = f"no answer to hello; is that a nowcalls-server? {USUAL_PORT}"
TLS_ONLY = "; or does it speak TLS only?"  # To a client that does not.
CONNECT_TIMEOUT_S = 2.0  # Of all addresses of a name; less if the timeout of calls is.
WRONG_SECRET_S = 1.0  # By which a server delays its answer.


class Session(Asking):
    """State of a client: its connection, its calls without answer, its permits.

    make_permit: makes the permit of a token that was granted.
    instance: of hello; 0 for none.
    """

    def __init__(
        self,
        config: Config,
        make_permit: Callable[[Held], BasePermit],
        now: float,
        uniform: Callable[[float, float], float],
        instance: int = 0,
        request_ids: Callable[[], int] = new_request_id,
        clock: Callable[[], float] = _clock.now,
    ) -> None:
        super().__init__(config, make_permit, now, uniform, request_ids, clock)
        self._instance = instance
        self._useful = False  # The server has answered more than hello.
        self._shown = ""  # The secret, on this connection.
        self._identity = ""  # What the server calls the client.
        self._hello_msgid = 0
        self._hello_at = now
        self._has_failed = False  # Ever.

    @property
    def connect_timeout(self) -> float:
        return min(CONNECT_TIMEOUT_S, self.config.timeout)

    @property
    def output(self) -> bytearray:
        """Bytes to send; the client removes what it has sent."""
        return self._exchange.output

    def end_of_connection(self, error: str = "the server closed the connection") -> str:
        """What to say of a connection that the server or the network has ended."""
        if self.ready:
            return error
        error = f"{error}, before hello was answered"
        if self.config.tls is not None:
            return error
        return f"{error}; is that a nowcalls-server? {USUAL_PORT}{TLS_ONLY}"

    @property
    def _no_hello(self) -> str:
        return NO_HELLO + ("" if self.config.tls is not None else TLS_ONLY)

    # The connection.

    def connected(self, now: float, private: bool = True) -> Optional[str]:
        """A connection is open; the session says hello and waits for its answer.

        private: nobody on the way can read what is sent. Returns as received.
        """
        self.dialing.begin()
        self._state = GREETING
        self._useful = False
        self._exchange = Exchange()
        self._with_options = True
        self._contact.begin(now)
        if not self._has_failed:  # Else the reason of before says more.
            self._why_offline = f"{self.dialing.name}: {self._no_hello}"
        self._shown, self._identity = "", ""
        if self.config.secret is not None:
            try:
                self._identify(self.config.secret, private)
            except BadRequest as error:
                return self._deny(error, now)
        self._hello(now)
        return None

    def denied(self, now: float, reason: str) -> None:
        """The server does not let the client's certificate in: connect_failed, or disconnected,
        follows."""
        self._deny(PermissionDenied(reason), now)

    def connect_failed(self, now: float, reason: str) -> None:
        self._why_offline, self._has_failed = f"{self.dialing.name}: {reason}", True
        self.dialing.failed(now)
        if not self.dialing.all_failed or self._closing:
            return
        if not self._down and self._denied is None:
            fallback = self.config.fallback
            logger.warning("no server is reached, fallback %s: %s", fallback, self._why_offline)
        self._down = True
        # Calls need not wait for the end of their time, unless they may wait for room: a server
        # that restarts must not let go all that stand in line.
        if self._fallback.active:
            for call in self._calls.awaited():
                if call.wants_room and call.wake_at is None and not call.may_wait(now):
                    self._give_up(call, now, self._why_offline)

    def disconnected(self, now: float, reason: str) -> None:
        """The connection is gone. Calls without answer are asked on the next one."""
        was_ready, self._state = self._state == READY, OFFLINE
        self._identify_msgid = 0
        self._exchange = Exchange()
        for call in self._calls.take_in_flight():
            call.strayed = True
            if call.persistent or (call.repeatable and not call.done):
                self._counts["asked_again"] += 1
                self._calls.queue(call)
            else:
                self._fail(call, call.no_answer(reason), now)
        if not was_ready:
            self.connect_failed(now, reason)
            return
        self._counts["disconnects"] += 1
        self._why_offline, self._has_failed = f"{self.dialing.name}: {reason}", True
        logger.info("the connection to %s ended: %s", self.dialing.name, reason)
        if self._useful:
            self.dialing.ended(now)
        else:  # A server that takes connections and ends them at once gets longer pauses, too.
            self.dialing.failed(now)

    def received(self, data: bytes, now: float) -> Optional[str]:
        """Handles bytes of the server. Returns why the connection must be closed, or None."""
        self._look_after_all(now)  # What comes late brings no token back.
        if self.ready:  # Until then only an answer to hello counts.
            self._contact.heard(now)
        try:
            for message in self._exchange.receive(data):
                refusal = self._message(self._fit_to_show(message), now)
                if refusal is not None:
                    return refusal
        except Wrong as wrong:
            words = masked(str(wrong), self._shown) if self._shown else wrong
            return f"the peer does not speak nowcalls: {words}"
        return None

    def tick(self, now: float) -> Optional[str]:
        """Does what is due. Returns why the connection must be closed, or None."""
        while call := self._calls.overdue(now):
            silent = "the server did not answer in time" if self.ready else self._why_offline
            self._give_up(call, now, silent)
        while self._later and self._later[0][0] <= now:
            heapq.heappop(self._later)[2](now)
        self._look_after_all(now)
        timeout = self.config.timeout
        if self._state == GREETING and now >= self._greeting_until:
            return self._no_hello
        if not self.ready:
            return None
        if now >= self._contact.silent_at(timeout):
            return "the server is silent"
        if now >= self._contact.ping_at(self._held.offline_ms):
            self._ping(now)
        return None

    def wakeup(self) -> float:
        """When to call tick, or to dial if there is no connection."""
        held = self._held
        at = min(self._calls.next_deadline, held.next_at, held.contact_until(self._contact))
        if self._later:
            at = min(at, self._later[0][0])
        if self._state == OFFLINE:
            return min(at, self.dialing.at)
        if self._state == GREETING:
            return min(at, self._greeting_until)
        contact, timeout = self._contact, self.config.timeout
        return min(at, contact.silent_at(timeout), contact.ping_at(held.offline_ms))

    @property
    def _greeting_until(self) -> float:
        delay = 0.0 if self.config.secret is None else WRONG_SECRET_S
        return after(self._contact.heard_at, self.config.timeout + delay)

    # The end.

    def close(self, now: float) -> None:
        """Ends all calls that wait. Releases and cancels go on until `settled`."""
        self._closing = True
        for call in self._calls.awaited():
            if not call.persistent:
                self._give_up(call, now, "the client was closed")

    def stop(self, reason: str) -> None:
        """Ends what is left of releases. Calls that are asked from now on get `reason`."""
        self._state = STOPPED
        self._ended = reason
        for call in self._calls.awaited():
            self._calls.settle(call, error=call.no_answer(reason))
        self._calls.take_in_flight()
        self._calls.take_queue()

    def lose_all(self, reason: Optional[str], now: float) -> None:
        for held in self._held.all():
            self._lose(held, reason, ENDED, now)

    @property
    def settled(self) -> bool:
        """No release and no cancel is without answer."""
        return not any(call.persistent for call in self._calls.all())

    @property
    def holds(self) -> bool:
        return len(self._held) > 0

    def take_lost(self) -> List[Held]:
        """What was lost since the last call, for its callbacks. One line in the log for all that
        were lost for one reason."""
        lost, self._lost = self._lost, []
        by_reason: Dict[str, List[Held]] = {}
        for held in lost:
            by_reason.setdefault(_why_lost(held), []).append(held)
        for why, group in by_reason.items():
            first = group[0]
            if len(group) == 1:
                logger.warning("lost token %d of flow %r: %s", first.token_id, first.flow_id, why)
            else:
                ids = ", ".join(str(held.token_id) for held in group[:3])
                more = ", ..." if len(group) > 3 else ""
                logger.warning("lost %d tokens (%s%s): %s", len(group), ids, more, why)
        return lost

    def stats(self) -> Dict[str, Any]:
        waiting = self._calls.awaited()
        return {
            "connected": self.ready,
            "address": self.dialing.name,
            "client_id": self.config.client_id,
            "sessions_online": self._sessions_online,
            "held": len(self._held),
            "waiting": sum(not call.persistent for call in waiting),
            "unsettled": sum(call.persistent for call in self._calls.all()),
            "tells_lost": self.ready and self._with_options,
            "local_granted": self._fallback.granted,
            "local_refused": self._fallback.refused,
            "local_passed": self._fallback.passed,
            **self._counts,
        }

    # Messages.

    def _identify(self, secret: Secret, private: bool) -> None:
        if not private:
            raise BadRequest(PLAIN)
        self._shown = secret.read()
        self._identify_msgid = self._exchange.request("identify", [self._shown])

    def _hello(self, now: float) -> None:
        params: List[Any] = [PROTOCOL, self.config.namespace, self.config.client_id]
        options: Dict[str, Any] = {"lost": True} if self._with_options else {}
        if self.config.exclusive:
            options["exclusive"] = True
        if self._with_options:
            if self._instance:
                options["instance"] = self._instance
            options["terms"] = True
        self._hello_at = now
        if options:
            params.append(options)
        self._hello_msgid = self._exchange.request("hello", params)

    def _fit_to_show(self, message: List[Any]) -> List[Any]:
        """Masks the secret in all that ends up in exceptions and logs: not in results of calls."""
        is_result = self.ready and message[0] == 1 and message[2] is None
        if not self._shown or is_result:
            return message
        return [*message[:2], *(masked(part, self._shown) for part in message[2:])]

    def _message(self, message: List[Any], now: float) -> Optional[str]:
        if message[0] == 2:
            if message[1] == "lost":
                token_id, flow_id, reason = array("lost", message[2], 3)[:3]
                self._told_lost(token_id, flow_id, reason, now)
            return None
        _, msgid, error, result = message[:4]
        if error is not None and array("an error", error, 3)[0] == MALFORMED:
            return str(error_of(error))
        if self._identify_msgid and msgid == self._identify_msgid:
            return self._identify_answered(error, result, now)
        if self._state == GREETING and msgid == self._hello_msgid:
            return self._hello_answered(error, result, now)
        call = self._calls.in_flight(msgid)
        if call is None:
            raise Wrong(f"it answers a request {msgid} that awaits no answer")
        self._contact.answered(call.sent_at)
        self._answered(call, error, result, now)
        self._calls.answered(msgid)  # Not one whose answer was not understood.
        self._useful = True
        return None

    def _identify_answered(self, error: Any, result: Any, now: float) -> Optional[str]:
        self._identify_msgid = 0
        if error is None:
            self._identity = text("a name", array("identify", result, 3)[0])
            return None
        if error[0] == UNKNOWN_METHOD:
            return None  # An older server lets everybody in.
        return self._greeting_refused("identify", error, now)

    def _hello_answered(self, error: Any, result: Any, now: float) -> Optional[str]:
        if error is not None:
            if error[0] == BAD_PARAMS and self._with_options:
                self._with_options = False
                self._hello(now)
                return None
            return self._greeting_refused("hello", error, now)
        parts = array("hello", result, 4)
        text("the version", parts[0])
        session, online, resumed = (uint("hello", part) for part in parts[1:4])
        self._sessions_online = online
        self._state = READY
        self._down = False
        self._denied = None
        self._contact.heard(now)
        self._contact.answered(self._hello_at)
        self._counts["connects"] += 1
        name = self.dialing.name + (f" as {self._identity!r}" if self._identity else "")
        logger.info("connected to %s, session %d, %d tokens", name, session, resumed)
        fewer = resumed < len(self._held)
        if resumed == 0:
            self.lose_all(None, now)
        # A keep asks whether the token is still there. If some have ended, all are asked for.
        for held in self._held.all():
            if held.is_kept or (fewer and held.keep is not False):
                self._keep(held, now)
        for call in self._calls.take_queue():
            self._send(call, now)
        return None

    def _greeting_refused(self, method: str, answer: Any, now: float) -> str:
        """Calls that wait fail at once if the client itself is at fault."""
        error = error_of(answer)
        refusal = f"{method} refused: {error}"
        if isinstance(error, PermissionDenied):
            return self._deny(PermissionDenied(refusal, code=error.code), now)
        if isinstance(error, BadRequest):
            self._end_queue(BadRequest(refusal, code=error.code), now)
        return refusal

    def _deny(self, error: BadRequest, now: float) -> str:
        """No fallback may let a call pass since its caller is refused."""
        denial = type(error)(f"{self.dialing.name}: {error}", code=error.code)
        if self._denied is None:
            logger.warning("not let in, so calls end at once: %s", denial)
        self._denied = denial
        self._end_queue(denial, now)
        return str(error)

    def _end_queue(self, error: BadRequest, now: float) -> None:
        for call in self._calls.take_queue():
            if call.persistent or isinstance(call, RuleCall):
                self._calls.queue(call)
            else:
                self._fail(call, again(error), now)

    def _told_lost(self, token_id: Any, flow_id: Any, reason: Any, now: float) -> None:
        held = self._held.find(uint("token_id", token_id))
        integer("flow_id", flow_id)
        reason = text("reason", reason)
        if held is not None:
            self._lose(held, reason, ENDED, now)

    # Tokens.

    def _look_after_all(self, now: float) -> None:
        """Loses the tokens whose time is over, and does what is due for the others."""
        if now >= self._held.contact_until(self._contact):
            for one in self._held.all():
                if now >= one.contact_until:
                    self._expire(one, now)
        while held := self._held.take_due(now):
            self._look_after(held, now)

    def _look_after(self, held: Held, now: float) -> None:
        """Keeps a token that is held for long, or ends it as its rule says."""
        if held.found_lost or now >= held.valid_until:
            self._expire(held, now)
        elif now >= held.release_at:
            self._lose(held, "resource_timeout", RELEASING, now)
            self._submit(Release(held, "timeout"), now)
            self._cancel_stray(held, now)
        elif now >= held.keep_at and self.ready:
            self._keep(held, now)
        else:
            if now >= held.keep_at:
                held.keep_at = math.inf  # The next connection begins with a keep.
            self._held.plan(held)

    def _keep(self, held: Held, now: float) -> None:
        call = Keep(held)
        held.keep_at = math.inf  # Until it is answered.
        self._held.plan(held)
        self._send(call, now)

    def _expire(self, held: Held, now: float) -> None:
        self._lose(held, held.reason, LOST, now)

    def _lose(self, held: Held, reason: Optional[str], state: str, now: float) -> None:
        """LOST: the server was not asked, so the release of its owner is still sent."""
        if not self._held.remove(held):
            return
        self._fallback.leave(held)
        held.lost_reason = reason
        held.state = state
        held.told_lost = True
        self._lost.append(held)
        self._counts["lost"] += 1
        if state == ENDED:
            self._cancel_stray(held, now)

    def _ping(self, now: float) -> None:
        """Asks for a sign of life. Any byte of the server counts as one."""
        self._contact.pinged(now)
        call: Call = Ping()
        call.repeatable = False
        self._send(call, now)


def _why_lost(held: Held) -> str:
    by_rule = held.keep is True and held.terms is not None and held.terms.strategy == 0
    if held.lost_reason == "resource_timeout" and by_rule:
        return (
            f"its call took longer than the {held.hold_ms} ms that its rule holds a token "
            "(resourceTimeoutStrategy 0); set resourceTimeoutStrategy 2 in the rule, or ask to "
            "keep it always"
        )
    return held.lost_reason or "it had ended"
