"""BasePermit: what is known of one token, for both kinds of clients."""

from __future__ import annotations

import os
import warnings
from typing import Any, Callable, Optional, Union

Param = Union[int, float, bool, str, None]
HELD, RELEASING, ENDED = "held", "releasing", "ended"


class BasePermit:
    """One token, or a local stand-in for it when no server answers.

    flow_id, count, param: as asked for.
    token_id: the server's id of the token; 0 for a local permit.
    fence: grows with each grant; 0 for a local permit. A resource that remembers the highest fence
        can refuse stale holders.
    hold_ms: after so many ms without a keep the server takes the token back; 0 for a local permit.
    now_calls, level: calls in progress at the grant, this one included, and their limit.
    local: granted by the fallback of this process.
    lost: the token ended, and this client did not release it.
    lost_reason: the server's word for the reason, such as "admin"; None if it is not known.
    on_lost: called with the permit when it is lost.
    """

    def __init__(self) -> None:
        self.flow_id = 0
        self.count = 1
        self.param: Param = None
        self.token_id = 0
        self.fence = 0
        self.hold_ms = 0
        self.now_calls = 0
        self.level = 0
        self.local = False
        self.lost = False
        self.lost_reason: Optional[str] = None
        self.on_lost: Optional[Callable[[Any], Any]] = None
        self._state = HELD
        self._keeping: Union[bool, str] = False
        self._granted_at = 0.0
        self._stray: Any = None
        self._process = os.getpid()

    @property
    def released(self) -> bool:
        """Whether release was called."""
        return self._state != HELD and not self.lost

    def __repr__(self) -> str:
        state = "lost" if self.lost else "local" if self.local else self._state
        name = type(self).__name__
        return f"<{name} flow {self.flow_id} token {self.token_id} fence {self.fence}, {state}>"

    def __del__(self) -> None:
        # The session refers to permits weakly, so a forgotten permit is no longer kept.
        if getattr(self, "_state", ENDED) == HELD and self._process == os.getpid():
            warnings.warn(f"{self!r} was dropped, not released", ResourceWarning, stacklevel=2)
