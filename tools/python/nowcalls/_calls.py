"""Calls: what a client asks, and how answers become values or exceptions. No sockets, no clock.

Thread: the session's lock protects calls.
"""

from __future__ import annotations

import math
import os
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Set, Union

from ._errors import BadRequest, Error, NoRule, OutcomeUnknown, Refused, Unavailable
from ._permit import BasePermit, Param

# Statuses and error codes of PROTOCOL.md.
BAD_REQUEST, TOO_MANY_REQUEST, OK, BLOCKED, SHOULD_WAIT = -4, -2, 0, 1, 2
NO_RULE_EXISTS, NOT_AVAILABLE, RELEASE_OK = 3, 5, 6
BAD_PARAMS, OVERLOADED, INTERNAL = 3, 5, 8

ITEMS_MAX = 64

# True: kept, unless the rule has its client release it at resourceTimeout. "always": kept.
KeepMode = Union[bool, str]


class Rate(NamedTuple):
    """The answer to a request for calls a second that passed.

    remaining: calls that are left now; -1 if nobody can tell.
    wait: seconds to sleep before the call. Above 0.0 only if the call was prioritized, or if the
        rule spaces calls out.
    """

    remaining: int
    wait: float


class Item(NamedTuple):
    flow_id: int
    count: int
    param: Param


def _item(item: Any) -> Item:
    """Of a flow id, or (flow_id, count), or (flow_id, count, param)."""
    parts = (item,) if isinstance(item, int) else tuple(item)
    if not 1 <= len(parts) <= 3:
        raise BadRequest(f"an item is (flow_id, count, param), not {item!r}")
    flow_id, count, param = (*parts, *(1, None)[len(parts) - 1 :])
    check_scalar("param", param)
    return Item(flow_id, count, param)


class TokenGone(Exception):
    """An attempt before was granted, and some of its tokens have ended since."""


class AskAgain(Exception):
    """The server ends, and the call was not carried out: ask again on the next connection."""


def error_of(answer: Any) -> Error:
    """The exception for `error` of a response. What it answers was not carried out."""
    code, name, message = answer[0], answer[1], answer[2]
    if code not in (OVERLOADED, INTERNAL):
        return BadRequest(f"{name}: {message}", code=code)
    return Unavailable(f"{name}: {message}")


def refusal(
    flow_id: int, status: int, refused_by: Optional[str], now_calls: int = 0, level: int = 0
) -> Error:
    """The exception for a status that is neither OK nor NOT_AVAILABLE."""
    if status == NO_RULE_EXISTS:
        return NoRule(f"flow {flow_id} has no rule", flow_id=flow_id, status=status)
    if status == BAD_REQUEST:
        reason = f", refused by {refused_by}" if refused_by else ""
        return BadRequest(f"flow {flow_id}: the server calls the request wrong{reason}")
    full = f": {now_calls} of {level} in progress" if level or now_calls else ""
    return Refused(
        f"flow {flow_id} refused by {refused_by or status}{full}",
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
    internal: asked by the session for itself.
    patience: seconds that the server may take, beyond the timeout.
    attempts: how often it was sent.
    unsettled: it was sent, and no answer told whether it was carried out.
    strayed: an attempt was left on a connection that broke, and may still arrive.
    notify: called once the outcome is set; set by whoever waits.
    """

    repeatable = True
    persistent = False
    internal = False
    patience = 0.0

    def __init__(self, method: str, params: Sequence[Any] = ()) -> None:
        self.method = method
        self.attempts = 0
        self.unsettled = False
        self.strayed = False
        self.sent_at = 0.0
        self.done = False
        self.value: Any = None
        self.error: Optional[Error] = None
        self.notify: Optional[Callable[[], Any]] = None
        self._params = list(params)

    def params(self, now: float) -> List[Any]:
        return self._params

    def decode(self, result: Any) -> Any:
        """The value of an answer, or raises Error or AskAgain."""
        return result

    def settle(self, value: Any = None, error: Optional[Error] = None) -> None:
        if self.done:
            return
        self.done, self.value, self.error = True, value, error
        if self.notify is not None:
            self.notify()

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value

    def no_answer(self, reason: str) -> Error:
        """The exception for a call that gets no answer any more."""
        if self.unsettled:
            return OutcomeUnknown(f"{self.method}: no answer, perhaps it was carried out: {reason}")
        return Unavailable(f"{self.method}: not carried out: {reason}")


class Grant(NamedTuple):
    token_id: int
    fence: int
    now_calls: int
    level: int
    hold_ms: int

    def checked(self) -> Grant:
        if not 0 < self.token_id < 2**63:
            raise ValueError(f"an acquire was answered with token {self.token_id}")
        return self


class Stray(Set[int]):
    """The live tokens of an acquire of which an attempt may still arrive."""

    def __init__(self, request_id: int, grants: Sequence[Grant]) -> None:
        super().__init__(grant.token_id for grant in grants)
        self.request_id = request_id


class Acquire(Call):
    """An acquire under a request id of its own, so that asking again gives the same token.

    started_at is set by the session; the wait is counted from it, over all attempts.
    refusal: the last one after which it was asked once more.
    """

    def __init__(
        self, flow_id: int, count: int, wait: Optional[float], param: Param, prioritized: bool
    ) -> None:
        super().__init__("acquire")
        if wait is not None and not 0 <= wait <= 3600:
            raise BadRequest(f"wait must be 0 to 3600 s, not {wait!r}")
        check_scalar("param", param)
        self.flow_id = flow_id
        self.count = count
        self.param = param
        self.request_id = new_request_id()
        self.started_at: Optional[float] = None
        self.keep: KeepMode = True
        self.refusals = 0
        self.refusal: Optional[Refused] = None
        self.prioritized = prioritized
        self.on_lost: Optional[Callable[[Any], Any]] = None
        self.patience = wait or 0.0
        self._wait = wait

    def is_by_value(self, flow_id: int) -> bool:
        return any(i.flow_id == flow_id and i.param is not None for i in self.items)

    @property
    def items(self) -> List[Item]:
        """What its tokens stand for, in their order."""
        return [Item(self.flow_id, self.count, self.param)]

    def params(self, now: float) -> List[Any]:
        return [self.flow_id, self.count, self.options(now, self.param)]

    @property
    def flow_ids(self) -> List[int]:
        return [item.flow_id for item in self.items]

    def options(self, now: float, param: Param = None) -> dict[str, Any]:
        options: dict[str, Any] = {"request_id": self.request_id}
        if self._wait is not None:
            # A repeated acquire without wait would lose its place in the queue.
            left_ms = math.ceil(((self.started_at or now) + self._wait - now) * 1000)
            options["wait_ms"] = max(left_ms, 1) if self._wait > 0 else 0
        if self.prioritized:
            options["prioritized"] = True
        if param is not None:
            options["param"] = param
        return options

    def decode(self, result: Any) -> List[Grant]:
        status, token_id, fence, now_calls, level, hold_ms, refused_by = result[:7]
        if status == OK:
            return [Grant(token_id, fence, now_calls, level, hold_ms).checked()]
        if status == NOT_AVAILABLE:
            raise AskAgain
        raise refusal(self.flow_id, status, refused_by, now_calls, level)

    def outcome(self, permits: List[BasePermit]) -> Any:
        """What the caller gets."""
        return permits[0]


class AcquireAll(Acquire):
    """An acquire of one token for each item, of all or of none."""

    def __init__(self, items: Sequence[Sequence[Any]], wait: Optional[float], prioritized: bool):
        self._items = [_item(item) for item in items]
        if not 1 <= len(self._items) <= ITEMS_MAX:
            raise BadRequest(f"acquire_all takes 1 to {ITEMS_MAX} items, not {len(self._items)}")
        first = self._items[0]
        super().__init__(first.flow_id, first.count, wait, first.param, prioritized)
        self.method = "acquire_all"

    @property
    def items(self) -> List[Item]:
        return self._items

    def params(self, now: float) -> List[Any]:
        asked = [[i.flow_id, i.count] + ([] if i.param is None else [i.param]) for i in self._items]
        return [asked, self.options(now)]

    def decode(self, result: Any) -> List[Grant]:
        status, tokens, refused_by, flow_id, now_calls, level = result[:6]
        if status == OK:
            return [Grant(t[0], t[1], now_calls, level, t[2]).checked() for t in tokens]
        if status == NOT_AVAILABLE:
            raise AskAgain
        if refused_by == "request_id" and self.attempts > 1:
            raise TokenGone
        raise refusal(flow_id, status, refused_by, now_calls, level)

    def outcome(self, permits: List[BasePermit]) -> Any:
        return permits


class Cancel(Call):
    """Ends whatever a request id stands for; nobody waits for it."""

    persistent = True

    def __init__(self, request_id: int) -> None:
        super().__init__("cancel", [request_id])


class Release(Call):
    """Gives a token back. Value: True, or False if the token had ended before."""

    persistent = True

    def __init__(self, permit: BasePermit) -> None:
        super().__init__("release", [permit.token_id])
        self.permit = permit

    def decode(self, result: Any) -> bool:
        # After a first attempt without an answer, "gone" may be the work of that attempt.
        return result[0] == RELEASE_OK or self.attempts > 1


class Keep(Call):
    """Renews a token's hold. Value: hold_ms, or None if the token has ended."""

    def __init__(self, permit: BasePermit) -> None:
        super().__init__("keep", [permit.token_id])
        self.permit = permit

    def decode(self, result: Any) -> Optional[int]:
        return int(result[1]) if result[0] == OK else None


class RateRequest(Call):
    """Calls a second. Not asked again: each time counts."""

    repeatable = False

    def __init__(self, method: str, flow_id: int, params: Sequence[Any]) -> None:
        super().__init__(method, [flow_id, *params])
        self.flow_id = flow_id
        self.flow_ids = [flow_id]

    def decode(self, result: Any) -> Rate:
        status, remaining, wait_ms, refused_by = result[:4]
        if status in (OK, SHOULD_WAIT):
            return Rate(remaining, wait_ms / 1000)
        raise refusal(self.flow_id, status, refused_by)


def check_scalar(what: str, value: Any) -> None:
    """The server closes a connection for types that it does not know."""
    if value is not None and not isinstance(value, (int, float, bool, str)):
        raise BadRequest(f"{what} must be an int, float, bool or str, not {type(value).__name__}")


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
