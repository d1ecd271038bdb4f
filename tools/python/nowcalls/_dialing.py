"""Dialing: which address a session dials next, and when.

Addresses are tried in rows. Between rows, and after a connection that was of no use, comes a random
pause whose bound doubles. So clients that lose a server do not come back in step.
"""

from __future__ import annotations

import math
from typing import Callable, Sequence

from ._clock import after
from ._config import Address

PAUSE_MIN_S, PAUSE_MAX_S = 0.05, 2.0
_DOUBLINGS_MAX = 10


class Dialing:
    """at: when to dial; infinite while the client dials or is connected."""

    def __init__(
        self, addresses: Sequence[Address], now: float, uniform: Callable[[float, float], float]
    ) -> None:
        self.at = now
        self._addresses = addresses
        self._uniform = uniform
        self._index = 0
        self._failures = 0  # Attempts and useless connections since the last useful one.

    @property
    def address(self) -> Address:
        return self._addresses[self._index % len(self._addresses)]

    @property
    def name(self) -> str:
        return "%s:%d" % self.address

    @property
    def all_failed(self) -> bool:
        return self._failures >= len(self._addresses)

    def begin(self) -> None:
        self.at = math.inf

    def failed(self, now: float) -> None:
        self._index += 1
        self._failures += 1
        rows, within_row = divmod(self._failures, len(self._addresses))
        bound = 0.0
        if not within_row:
            bound = min(PAUSE_MAX_S, PAUSE_MIN_S * 2 ** min(rows, _DOUBLINGS_MAX))
        self.at = after(now, self._uniform(0, bound))

    def ended(self, now: float) -> None:
        """A useful connection ended: its address comes first again, after a short pause."""
        self._failures = 0
        self.at = after(now, self._uniform(0, PAUSE_MIN_S))
