"""CallTable: the calls without answer of a session, and their deadlines.

Thread: the session's. It refers to no call that has its outcome and its answer, so that permits
which nobody took are dropped with their call.
"""

from __future__ import annotations

import heapq
import itertools
import math
from typing import Any, Dict, List, Optional, Tuple

from ._calls import Call
from ._errors import Error


class CallTable:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._awaited: Dict[int, Call] = {}  # By their number: with a caller, without outcome.
        self._deadlines: List[Tuple[float, int]] = []  # A heap; calls may have ended.
        self._queue: Dict[int, Call] = {}  # For the next connection, by their number.
        self._in_flight: Dict[int, Call] = {}  # By their msgid.

    def begin(self, call: Call) -> None:
        """A call with a caller."""
        call.number = next(self._numbers)
        self._awaited[call.number] = call
        heapq.heappush(self._deadlines, (call.deadline, call.number))
        if len(self._deadlines) > 64 + 4 * len(self._awaited):
            self._deadlines = [entry for entry in self._deadlines if entry[1] in self._awaited]
            heapq.heapify(self._deadlines)

    def settle(self, call: Call, value: Any = None, error: Optional[Error] = None) -> None:
        self._awaited.pop(call.number, None)
        call.settle(value, error)

    def queue(self, call: Call) -> None:
        call.number = call.number or next(self._numbers)
        self._queue[call.number] = call

    def dequeue(self, call: Call) -> None:
        self._queue.pop(call.number, None)

    def take_queue(self) -> List[Call]:
        queue, self._queue = self._queue, {}
        return [queue[number] for number in sorted(queue)]

    def sent(self, msgid: int, call: Call) -> None:
        call.number = call.number or next(self._numbers)
        self._in_flight[msgid] = call

    def in_flight(self, msgid: int) -> Optional[Call]:
        return self._in_flight.get(msgid)

    def answered(self, msgid: int) -> None:
        del self._in_flight[msgid]

    def take_in_flight(self) -> List[Call]:
        in_flight, self._in_flight = self._in_flight, {}
        return sorted(in_flight.values(), key=lambda call: call.number)

    def awaited(self) -> List[Call]:
        return list(self._awaited.values())

    def all(self) -> List[Call]:
        return [*self._in_flight.values(), *self._queue.values()]

    @property
    def next_deadline(self) -> float:
        while self._deadlines and self._deadlines[0][1] not in self._awaited:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else math.inf

    def overdue(self, now: float) -> Optional[Call]:
        if self.next_deadline > now:
            return None
        return self._awaited[self._deadlines[0][1]]
