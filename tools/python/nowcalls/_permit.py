"""BasePermit: what a program holds of a token, for both kinds of clients."""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import os
import warnings
from typing import Any, Callable, Optional, Type

from ._errors import BadRequest
from ._held import HELD, Flow, Held, Param

OUTCOMES = ("ok", "failed", "timeout")
_TIMEOUTS = (
    TimeoutError,
    asyncio.TimeoutError,
    asyncio.CancelledError,
    concurrent.futures.TimeoutError,
    concurrent.futures.CancelledError,
)


class BasePermit:
    """One token, or a local stand-in for it when no server answers.

    flow_id, count, param: as asked for.
    token_id: the server's id of the token; 0 for a local permit.
    fence: grows with each grant; 0 for a local permit. A resource that remembers the highest fence
        can refuse stale holders.
    hold_ms: after so many ms without a keep the server takes the token back; 0 for a local permit.
    now_calls, level: calls in progress at the grant, this one included, and their limit.
    local: granted by the fallback of this process.
    lost: the token ended, and this client did not release it; or this client, by its own clock,
        cannot be sure of it any more. Once True it stays so.
    lost_reason: the server's word for the reason, such as "admin"; None if it is not known.
    wait: seconds to sleep before the call; above 0 only in a group with rates whose calls were
        told to wait, and that was not to sleep.
    """

    def __init__(self, held: Held) -> None:
        self._held = held
        self._handed_over = False
        self._process = os.getpid()
        self._drop: Optional[Callable[[Held], None]] = None
        self.wait = 0.0

    @property
    def flow_id(self) -> Flow:
        return self._held.flow_id

    @property
    def count(self) -> int:
        return self._held.count

    @property
    def param(self) -> Param:
        return self._held.param

    @property
    def token_id(self) -> int:
        return self._held.token_id

    @property
    def fence(self) -> int:
        return self._held.fence

    @property
    def hold_ms(self) -> int:
        return self._held.hold_ms

    @property
    def now_calls(self) -> int:
        return self._held.now_calls

    @property
    def level(self) -> int:
        return self._held.level

    @property
    def local(self) -> bool:
        return self._held.local

    @property
    def lost(self) -> bool:
        return self._held.lost

    @property
    def lost_reason(self) -> Optional[str]:
        return self._held.reason if self._held.lost else None

    @property
    def valid_until(self) -> float:
        """Until when the token is surely this client's, in seconds of CLOCK_BOOTTIME.

        Each keep and each answer of the server moves it on. math.inf for a local permit.
        """
        return self._held.valid_until

    @property
    def valid_for(self) -> float:
        """Seconds until then; 0.0 once it is lost or released."""
        held = self._held
        if held.state != HELD or held.lost:
            return 0.0
        return math.inf if held.local else max(0.0, held.valid_until - held.contact.clock())

    @property
    def released(self) -> bool:
        """Whether release was called."""
        return self._held.state != HELD and not self._held.lost

    def __repr__(self) -> str:
        held = self._held
        state = "lost" if held.lost else "local" if held.local else held.state
        name = type(self).__name__
        return f"<{name} flow {held.flow_id!r} token {held.token_id} fence {held.fence}, {state}>"

    def __del__(self) -> None:
        held = getattr(self, "_held", None)
        if held is None or not held.open or self._process != os.getpid():
            return
        held.dropped = self._handed_over and held.state == HELD and not held.lost
        self._dropped()
        if held.dropped:
            warnings.warn(f"{self!r} was dropped, not released", ResourceWarning, stacklevel=2)

    def _dropped(self) -> None:
        """Has the token released, if it is not yet."""
        if self._drop is not None:
            self._drop(self._held)


def check_outcome(outcome: str) -> None:
    if outcome not in OUTCOMES:
        raise BadRequest(f"outcome must be one of {', '.join(OUTCOMES)}, not {outcome!r}")


def outcome_of(error: Optional[Type[BaseException]]) -> str:
    """What a block that was left with this exception tells the server of its call."""
    if error is None or issubclass(error, GeneratorExit):  # Of a generator that was not needed.
        return "ok"
    return "timeout" if issubclass(error, _TIMEOUTS) else "failed"


def hand_over(value: Any) -> Any:
    """Marks the permits of a call's value as the caller's."""
    for permit in value if isinstance(value, list) else [value]:
        if isinstance(permit, BasePermit):
            permit._handed_over = True
    return value
