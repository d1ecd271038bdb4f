"""Contact: what a session has heard of its server, and when it must ask for a sign of life.

A ping is due after 10 s of silence. While tokens are held, it is also due when no answer has
confirmed the session for a third of the smallest clientOfflineTime.

Thread: the session's; `at` may be read on any.
"""

from __future__ import annotations

import math
from typing import Callable, Optional

from . import _clock
from ._clock import after

PING_AFTER_S = 10.0  # Of silence.
PING_PAUSE_MS = 10  # Whatever clientOfflineTime a server tells.


class Contact:
    """at: when the latest request that was answered had been sent, by `clock`."""

    def __init__(self, now: float, clock: Callable[[], float] = _clock.now) -> None:
        self.at = now
        self.clock = clock
        self.heard_at = now
        self._pinged_at = now  # Or the connection began.
        self._probed_at: Optional[float] = None  # A ping that has met silence so far.

    def begin(self, now: float) -> None:
        """A connection stands."""
        self.heard(now)
        self._pinged_at = now

    def heard(self, now: float) -> None:
        """Any byte of the server counts."""
        self.heard_at = now
        self._probed_at = None

    def pinged(self, now: float) -> None:
        self._pinged_at = now
        if self._probed_at is None:
            self._probed_at = now

    def answered(self, sent_at: float) -> None:
        self.at = max(self.at, sent_at)

    @property
    def probes(self) -> bool:
        return self._probed_at is not None

    def silent_at(self, timeout: float) -> float:
        """When the silence has lasted too long."""
        return math.inf if self._probed_at is None else after(self._probed_at, timeout)

    def ping_at(self, offline_ms: Optional[int]) -> float:
        """offline_ms: the smallest clientOfflineTime of a token, if there is one."""
        at = math.inf if self.probes else after(self.heard_at, PING_AFTER_S)
        if offline_ms is None:
            return at
        asked = max(self.at, self._pinged_at)
        return min(at, after(asked, max(offline_ms // 3, PING_PAUSE_MS) / 1000))
