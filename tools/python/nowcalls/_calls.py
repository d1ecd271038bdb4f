"""Calls: what a client asks, and how answers become values or exceptions. No sockets, no clock.

Thread: the session's, once a call is asked.
"""

from __future__ import annotations

import math
import os
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

from ._clock import after
from ._config import WAIT_MAX_S, check_seconds
from ._errors import (
    BadRequest,
    Error,
    NoRule,
    OutcomeUnknown,
    PermissionDenied,
    Refused,
    Unavailable,
)
from ._held import Flow, Held, KeepMode, Param, Terms
from ._permit import BasePermit, check_outcome, hand_over
from ._wire import INT_MAX, Wrong, array, hold, integer, text, text_or_none, uint

# Statuses and error codes of PROTOCOL.md.
BAD_REQUEST, TOO_MANY_REQUEST, FAIL, OK, BLOCKED, SHOULD_WAIT = -4, -2, -1, 0, 1, 2
NO_RULE_EXISTS, NOT_AVAILABLE, RELEASE_OK = 3, 5, 6
MALFORMED, UNKNOWN_METHOD, BAD_PARAMS, HELLO_STATE, UNSUPPORTED, PERMISSION = 1, 2, 3, 4, 6, 9

ITEMS_MAX = 64
RESOURCE_BYTES_MAX = 1024
COUNT_MAX = 2**31 - 1


class Rate(NamedTuple):
    """The answer to a request for calls a second that passed.

    remaining: calls that are left now; -1 if nobody can tell.
    wait: seconds to sleep before the call. Above 0.0 only if the request was told not to sleep, or
        if the wait goes beyond its timeout.
    """

    remaining: int
    wait: float


class Item(NamedTuple):
    flow_id: Flow
    calls: int
    param: Param
    rate: bool = False


def rate(flow_id: Flow, count: int = 1, param: Param = None) -> Item:
    """An item of acquire_all that asks for calls a second, and holds nothing."""
    return _checked(Item(flow_id, count, param, True))


def _item(item: Any) -> Item:
    """Of a flow id or name, or (flow_id, count), or (flow_id, count, param), or a rate."""
    if isinstance(item, Item):
        return item
    parts = list(item) if isinstance(item, (tuple, list)) else [item]
    if not 1 <= len(parts) <= 3:
        raise BadRequest(f"an item is (flow_id, count, param), not {item!r}")
    defaults: List[Any] = [1, None]
    return _checked(Item(*parts, *defaults[len(parts) - 1 :]))


def _checked(item: Item) -> Item:
    check_flow(item.flow_id, item.calls)
    check_scalar("param", item.param)
    return item


class TokenGone(Exception):
    """An attempt before was granted, and some of its tokens have ended since."""


class AskAgain(Exception):
    """The server ends, and the call was not carried out: ask again on the next connection."""


def error_of(answer: Any) -> Error:
    """The exception for `error` of a response. What it answers was not carried out."""
    parts = array("an error", answer, 3)
    code = integer("an error code", parts[0])
    message = f"{text('an error', parts[1])}: {text('an error', parts[2])}"
    if code == PERMISSION:
        return PermissionDenied(message, code=code)
    if code in (MALFORMED, UNKNOWN_METHOD, BAD_PARAMS, HELLO_STATE, UNSUPPORTED):
        return BadRequest(message, code=code)
    return Unavailable(message)  # OVERLOADED, CONFLICT, INTERNAL, or of a later server.


def refusal(
    flow_id: Flow, status: int, refused_by: Optional[str], now_calls: int = 0, level: int = 0
) -> Error:
    """The exception for a status that is neither OK nor NOT_AVAILABLE."""
    if status == NO_RULE_EXISTS:
        return NoRule(f"flow {flow_id!r} has no rule", flow_id=flow_id, status=status)
    if status == BAD_REQUEST:
        reason = f", refused by {refused_by}" if refused_by else ""
        return BadRequest(f"flow {flow_id!r}: the server calls the request wrong{reason}")
    full = f": {now_calls} of {level} in progress" if level or now_calls else ""
    return Refused(
        f"flow {flow_id!r} refused by {refused_by or status}{full}",
        flow_id=flow_id,
        status=status,
        refused_by=refused_by,
        now_calls=now_calls,
        level=level,
    )


class Call:
    """One request and its outcome: a value or an exception, set once.

    repeatable: asked again on the next connection when this one breaks.
    persistent: asked until a server answers, although nobody waits any more.
    wants_room: may fall back, but not while it may_wait.
    patience: seconds that the server may take, beyond the timeout.
    number: the order in which calls were asked; 0: not yet.
    deadline: when the session gives it up.
    attempts: how often it was sent.
    unsettled: it was sent, and no answer told whether it was carried out.
    strayed: an attempt was left on a connection that broke, and may still arrive.
    left: its caller will not take the outcome.
    wake_at: when its caller, who sleeps, is to have the outcome.
    notify: called once the outcome is set; set by whoever waits.
    """

    repeatable = True
    persistent = False
    wants_room = False
    patience = 0.0

    def __init__(self, method: str, params: Sequence[Any] = ()) -> None:
        self.method = method
        self.number = 0
        self.deadline = math.inf
        self.attempts = 0
        self.unsettled = False
        self.strayed = False
        self.left = False
        self.wake_at: Optional[float] = None
        self.sent_at = 0.0
        self.done = False
        self.value: Any = None
        self.error: Optional[Error] = None
        self.notify: Optional[Callable[[], Any]] = None
        self._params = list(params)

    def may_wait(self, now: float) -> bool:
        """Whether its caller said that it may wait for room beyond `now`."""
        return False

    def params(self, now: float) -> List[Any]:
        return self._params

    def decode(self, result: Any) -> Any:
        """The value of an answer, or raises Error, AskAgain or Wrong."""
        return result

    def settle(self, value: Any = None, error: Optional[Error] = None) -> None:
        if self.done:
            return
        self.done, self.value, self.error = True, value, error
        if self.notify is not None:
            self.notify()

    def result(self) -> Any:
        """For the caller, who has the permits from now on."""
        if self.error is not None:
            raise self.error
        return hand_over(self.value)

    def take(self) -> Any:
        """The same, once: the call keeps no permit from being dropped."""
        result, self.value = self.result(), None
        return result

    def no_answer(self, reason: str) -> Error:
        """The exception for a call that gets no answer any more."""
        if self.unsettled:
            return OutcomeUnknown(f"{self.method}: no answer, perhaps it was carried out: {reason}")
        return Unavailable(f"{self.method}: not carried out: {reason}")


class Ping(Call):
    def __init__(self) -> None:
        super().__init__("ping")

    def decode(self, result: Any) -> int:
        return uint("ledger_ms", array("an answer", result, 1)[0])


class Row(Call):
    """Asks for one map."""

    def decode(self, result: Any) -> Any:
        if type(result) is not dict:
            raise Wrong(f"the answer to {self.method} is {result!r:.60}")
        return result


class Page(Call):
    """Asks for rows, and the cursor of those behind them."""

    def decode(self, result: Any) -> Tuple[List[Any], Any]:
        rows, cursor = array("a page", result, 2)[:2]
        if not all(type(row) is dict for row in array("rows", rows)):
            raise Wrong("a row is no map")
        return rows, cursor


class Grant(NamedTuple):
    """What an acquire was answered for one item. token_id is 0 for a rate."""

    token_id: int
    fence: int
    hold_ms: int
    terms: Optional[Terms]
    wait: float = 0.0


def _terms(answer: List[Any], index: int) -> Optional[Terms]:
    """None: an older server."""
    if len(answer) <= index or answer[index] is None:
        return None
    parts = array("terms", answer[index], 3)
    return Terms(uint("a strategy", parts[0]), hold(parts[1]), hold(parts[2]))


def _grant(item: Item, token_id: Any, fence: Any, hold_ms: Any, terms: Optional[Terms]) -> Grant:
    if item.rate:
        return Grant(uint("the token of a rate", token_id, 0), 0, 0, None, hold(hold_ms) / 1000)
    if uint("token_id", token_id, INT_MAX) == 0:
        raise Wrong("an acquire was answered with token 0")
    return Grant(token_id, uint("fence", fence), hold(hold_ms), terms)


class Granted(NamedTuple):
    grants: List[Grant]
    now_calls: int
    level: int


class Acquire(Call):
    """An acquire under a request id of its own, so that asking again gives the same token.

    request_id, started_at: set by the session. The wait is counted over all attempts.
    refusal: the last one after which it was asked once more.
    confirmed: it was granted late, and asked again for what is left of its hold.
    wait_until: when the calls of its rates may be made.
    granted: its tokens, until its caller has them.
    """

    wants_room = True

    def __init__(
        self,
        flow_id: Flow,
        count: int,
        wait: Optional[float],
        param: Param,
        prioritized: bool,
        hold_ms: int = 0,
    ) -> None:
        super().__init__("acquire")
        if wait is not None:
            check_seconds("wait", wait, WAIT_MAX_S)
        self.items = [_checked(Item(flow_id, count, param))]
        self.request_id = 0
        self.started_at = 0.0
        self.keep: KeepMode = True
        self.sleep = True
        self.refusals = 0
        self.refusal: Optional[Refused] = None
        self.confirmed = False
        self.wait_until = 0.0
        self.granted: List[Held] = []
        self.prioritized = prioritized
        self.on_lost: Optional[Callable[[Any], Any]] = None
        self.patience = wait or 0.0
        self._wait = wait
        self._hold_ms = hold_ms

    def is_by_value(self, flow_id: Flow) -> bool:
        return any(i.flow_id == flow_id and i.param is not None for i in self.items)

    def may_wait(self, now: float) -> bool:
        return self._wait is not None and now < after(self.started_at, self._wait)

    def params(self, now: float) -> List[Any]:
        item = self.items[0]
        return [item.flow_id, item.calls, self.options(now, item.param)]

    def options(self, now: float, param: Param = None) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self.prioritized:
            options["prioritized"] = True
        if self._wait is not None:
            # A repeated acquire without wait would lose its place in the queue.
            left_ms = math.ceil(round((self.started_at + self._wait - now) * 1000, 3))
            options["wait_ms"] = max(left_ms, 1) if self._wait > 0 else 0
        options["request_id"] = self.request_id
        if self._hold_ms:
            options["hold_ms"] = self._hold_ms
        if param is not None:
            options["param"] = param
        return options

    def decode(self, result: Any) -> Granted:
        parts = array("an answer", result, 7)
        status = integer("status", parts[0])
        now_calls, level = uint("now_calls", parts[3]), uint("level", parts[4])
        if status == OK:
            grant = _grant(self.items[0], parts[1], parts[2], parts[5], _terms(parts, 8))
            return Granted([grant], now_calls, level)
        if status == NOT_AVAILABLE:
            raise AskAgain
        refused_by = text_or_none("refused_by", parts[6])
        raise refusal(self.items[0].flow_id, status, refused_by, now_calls, level)

    def outcome(self, permits: List[Optional[BasePermit]]) -> Any:
        """What the caller gets."""
        return permits[0]


class AcquireAll(Acquire):
    """An acquire of one token for each item that is no rate, of all or of none."""

    def __init__(
        self,
        items: Sequence[Any],
        wait: Optional[float],
        prioritized: bool,
        sleep: bool = True,
        hold_ms: int = 0,
    ) -> None:
        listed = [_item(item) for item in items]
        if not 1 <= len(listed) <= ITEMS_MAX:
            raise BadRequest(f"acquire_all takes 1 to {ITEMS_MAX} items, not {len(listed)}")
        super().__init__(listed[0].flow_id, 1, wait, None, prioritized, hold_ms)
        self.items = listed
        self.method = "acquire_all"
        self.sleep = sleep
        # A repeat of rates alone takes anew.
        self.repeatable = not all(item.rate for item in listed)

    def params(self, now: float) -> List[Any]:
        asked: List[List[Any]] = []
        for flow_id, count, param, is_rate in self.items:
            last = [param, 1] if is_rate else [] if param is None else [param]
            asked.append([flow_id, count, *last])
        return [asked, self.options(now)]

    def decode(self, result: Any) -> Granted:
        parts = array("an answer", result, 6)
        status = integer("status", parts[0])
        now_calls, level = uint("now_calls", parts[4]), uint("level", parts[5])
        if status == OK:
            tokens = [array("a token", token, 3) for token in array("tokens", parts[1])]
            if len(tokens) != len(self.items):
                raise Wrong(f"{len(tokens)} tokens for {len(self.items)} items")
            grants = [_grant(i, t[0], t[1], t[2], _terms(t, 3)) for i, t in zip(self.items, tokens)]
            return Granted(grants, now_calls, level)
        if status == NOT_AVAILABLE:
            raise AskAgain
        refused_by = text_or_none("refused_by", parts[2])
        if refused_by == "request_id" and self.attempts > 1:
            raise TokenGone
        flow_id = self._asked(integer("flow_id", parts[3]))
        raise refusal(flow_id, status, refused_by, now_calls, level)

    def _asked(self, flow_id: int) -> Flow:
        """The name that was asked for, where the number of a refusal leaves no doubt."""
        flows = {item.flow_id for item in self.items}
        names = [flow for flow in flows if isinstance(flow, str)]
        return names[0] if len(names) == 1 and flow_id and flow_id not in flows else flow_id

    def outcome(self, permits: List[Optional[BasePermit]]) -> Any:
        return permits


class Cancel(Call):
    """Ends whatever a request id stands for; nobody waits for it."""

    persistent = True

    def __init__(self, request_id: int) -> None:
        super().__init__("cancel", [request_id])


class Release(Call):
    """Gives a token back. Value: True, or False if the token had ended before.

    leaves: for the end of a block, which does not wait for a server that is not there.
    """

    persistent = True

    def __init__(self, held: Held, outcome: str = "ok", leaves: bool = False) -> None:
        check_outcome(outcome)
        options = [] if outcome == "ok" else [{"outcome": outcome}]
        super().__init__("release", [held.token_id, *options])
        self.held = held
        self.leaves = leaves

    def forget_outcome(self) -> None:
        del self._params[1:]

    def decode(self, result: Any) -> bool:
        # After a first attempt without an answer, "gone" may be the work of that attempt.
        status = integer("status", array("an answer", result, 1)[0])
        return status == RELEASE_OK or self.attempts > 1


class Keep(Call):
    """Renews a token's hold. Value: (hold_ms, terms), or None if the token has ended.

    Not asked again: the next connection begins with a keep of its own.
    """

    repeatable = False

    def __init__(self, held: Held) -> None:
        super().__init__("keep", [held.token_id])
        self.held = held

    def decode(self, result: Any) -> Optional[Tuple[int, Optional[Terms]]]:
        parts = array("an answer", result, 2)
        if integer("status", parts[0]) != OK:
            return None
        return hold(parts[1]), _terms(parts, 2)


class RateRequest(Call):
    """Calls a second. Not asked again: each time counts."""

    repeatable = False
    wants_room = True

    def __init__(
        self, flow_id: Flow, count: int, values: Optional[List[Param]] = None, sleep: bool = True
    ) -> None:
        check_flow(flow_id, count)
        super().__init__("request" if values is None else "request_param", [flow_id, count])
        self.flow_id = flow_id
        self.count = count
        self.values = values
        self.sleep = sleep
        self.passed: Optional[Rate] = None
        if values is not None:
            self._params.append(values)

    def prioritize(self, prioritized: bool) -> RateRequest:
        if prioritized:
            self._params.append(True)
        return self

    def decode(self, result: Any) -> Rate:
        parts = array("an answer", result, 4)
        status = integer("status", parts[0])
        remaining, wait_ms = integer("remaining", parts[1]), hold(parts[2])
        if status in (OK, SHOULD_WAIT):
            return Rate(remaining, wait_ms / 1000)
        raise refusal(self.flow_id, status, text_or_none("refused_by", parts[3]))


def check_flow(flow_id: Any, count: Any) -> None:
    """What is neither a number nor a name would not reach a server."""
    if isinstance(flow_id, str):
        size = len(flow_id.encode(errors="replace"))
        if not 1 <= size <= RESOURCE_BYTES_MAX:
            raise BadRequest(f"flow_id must be 1 to {RESOURCE_BYTES_MAX} bytes, not {size}")
    else:
        _check_int("flow_id", flow_id, INT_MAX, "an int or a str")
    _check_int("count", count, COUNT_MAX, "an int")


def _check_int(what: str, value: Any, most: int, kind: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadRequest(f"{what} must be {kind}, not {value!r:.100}")
    if not 1 <= value <= most:
        raise BadRequest(f"{what} must be 1 to {most}, not {value}")


def check_scalar(what: str, value: Any) -> None:
    """The server closes a connection for types that it does not know."""
    if value is not None and not isinstance(value, (int, float, bool, str)):
        raise BadRequest(f"{what} must be an int, float, bool or str, not {type(value).__name__}")
    if value != value:
        raise BadRequest(f"{what} must not be NaN")


def values_of(values: Sequence[Param]) -> List[Param]:
    """The values of a request_param, checked. A text is one value, not one for each letter."""
    if isinstance(values, (str, bytes)):
        raise BadRequest(f"values must be a list of values, not {type(values).__name__}")
    listed = list(values)
    for value in listed:
        check_scalar("a value", value)
    return listed


def new_request_id() -> int:
    """63 random bits, never 0: unique also across processes that share a client id."""
    return (int.from_bytes(os.urandom(8), "big") >> 1) or 1
