"""Keeps: when to look after each permit.

Thread: the session's lock protects it. A permit that the program has dropped is forgotten.
"""

from __future__ import annotations

import heapq
import itertools
import weakref
from typing import List, Optional, Tuple

from ._permit import HELD, BasePermit

KEEP_PAUSE_S = 0.01  # Between two keeps of a token, whatever hold a server tells.


class Keeps:
    def __init__(self) -> None:
        self._heap: List[Tuple[float, int, weakref.ref[BasePermit]]] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next_at(self) -> Optional[float]:
        return self._heap[0][0] if self._heap else None

    def plan(self, permit: BasePermit, at: float, held: int) -> None:
        """held: how many permits there are."""
        heapq.heappush(self._heap, (at, next(self._numbers), weakref.ref(permit)))
        # Most permits end before they are due.
        if len(self._heap) > 64 + 4 * held:
            self._heap = [entry for entry in self._heap if _is_held(entry[2]())]
            heapq.heapify(self._heap)

    def take_due(self, now: float) -> Optional[BasePermit]:
        while self._heap and self._heap[0][0] <= now:
            permit = heapq.heappop(self._heap)[2]()
            if _is_held(permit):
                return permit
        return None


def _is_held(permit: Optional[BasePermit]) -> bool:
    return permit is not None and permit._state == HELD
