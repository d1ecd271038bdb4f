"""Held: a token of a session, or a local stand-in; HeldTokens: those of the server, and when to
look after each.

A token is surely the client's until `valid_until`, by the client's own clock:

    min(sent time of the last confirmed grant or keep + hold,
        sent time of the latest request that was answered + clientOfflineTime), less a margin

Thread: the session's. `lost` may be asked on any thread.
"""

from __future__ import annotations

import heapq
import math
import weakref
from collections import Counter
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple, Union

from ._clock import after
from ._contact import Contact

Param = Union[int, float, bool, str, None]
# A rule's flowId, or the resource of a rule of the client's namespace.
Flow = Union[int, str]
# True: kept as the rule has it. "always": kept. False: not kept.
KeepMode = Union[bool, str]

# LOST: by this client's own clock, so the server is still to be told when the owner lets go.
HELD, LOST, RELEASING, ENDED = "held", "lost", "releasing", "ended"
# resourceTimeoutStrategy.
RELEASES, KEEPS = 1, 2

KEEP_PAUSE_MS = 10  # Between two keeps of a token, whatever hold a server tells.
MARGIN_MS = 2  # And a hundredth of the span.
RELEASE_MARGIN_MS = 50  # So that the server does not count a release as late.


class Terms(NamedTuple):
    """What a rule says of its tokens."""

    strategy: int
    resource_timeout_ms: int
    offline_ms: int


class Stray(Set[int]):
    """The live tokens of an acquire of which an attempt may still arrive."""

    def __init__(self, request_id: int, tokens: Any) -> None:
        super().__init__(tokens)
        self.request_id = request_id


class Grip(weakref.ref):  # type: ignore[type-arg]
    """A session's reference to the permit of a token. Its callback runs no bytecode."""

    held: Held


def span(ms: int) -> float:
    """Seconds of a time of the server that a client counts on."""
    return (ms - ms // 100 - MARGIN_MS) / 1000


class Held:
    """keep_at: when to keep it next. due_at: when to look after it, unless contact ends before.

    dropped: its program forgot the permit, rather than to release it.
    """

    def __init__(self, flow_id: Flow, count: int, param: Param, contact: Contact) -> None:
        self.flow_id = flow_id
        self.count = count
        self.param = param
        self.token_id = 0
        self.fence = 0
        self.hold_ms = 0
        self.now_calls = 0
        self.level = 0
        self.local = False
        self.terms: Optional[Terms] = None
        self.keep: KeepMode = False
        self.on_lost: Optional[Callable[[Any], Any]] = None
        self.stray: Optional[Stray] = None
        self.state = HELD
        self.told_lost = False  # By the session.
        self.found_lost = False  # By whoever asked first.
        self.dropped = False
        self.lost_reason: Optional[str] = None
        self.granted_at = 0.0
        self.confirmed_at = 0.0
        self.keep_at = math.inf
        self.due_at = math.inf
        self.contact = contact
        self.grip: Optional[Grip] = None

    @property
    def permit(self) -> Any:
        return None if self.grip is None else self.grip()

    @property
    def hold_until(self) -> float:
        return math.inf if self.local else after(self.confirmed_at, span(self.hold_ms))

    @property
    def contact_until(self) -> float:
        if self.local or self.terms is None:
            return math.inf
        return after(self.contact.at, span(self.terms.offline_ms))

    @property
    def valid_until(self) -> float:
        return min(self.hold_until, self.contact_until)

    @property
    def lost(self) -> bool:
        """Final: once it has been True, no answer of the server makes it False."""
        self.look()
        return self.told_lost or self.found_lost

    def look(self) -> None:
        if self.state == HELD and self.contact.clock() >= self.valid_until:
            self.found_lost = True

    @property
    def reason(self) -> Optional[str]:
        if self.told_lost or self.local:
            return self.lost_reason
        return "resource_timeout" if self.hold_until <= self.contact_until else "client_offline"

    @property
    def open(self) -> bool:
        """Whether the server, or the fallback, is still to be told that its owner let go."""
        return self.state in (HELD, LOST)

    @property
    def is_kept(self) -> bool:
        if self.keep is True:
            return self.terms is None or self.terms.strategy == KEEPS
        return self.keep == "always"

    @property
    def release_at(self) -> float:
        """When the client is to release it: a little before the rule's resourceTimeout."""
        if self.keep is not True or self.terms is None or self.terms.strategy != RELEASES:
            return math.inf
        timeout_ms = self.terms.resource_timeout_ms
        timeout_ms -= min(RELEASE_MARGIN_MS, timeout_ms // 10)
        return after(self.granted_at, timeout_ms / 1000)

    def plan_keep(self, since: float) -> None:
        pause = max(self.hold_ms // 3 + 1, KEEP_PAUSE_MS) / 1000
        self.keep_at = after(since, pause) if self.is_kept else math.inf


class HeldTokens:
    def __init__(self) -> None:
        self._tokens: Dict[int, Held] = {}
        self._due: List[Tuple[float, int]] = []  # A heap; most entries are outdated.
        self._offline: Counter[int] = Counter()  # Tokens by their clientOfflineTime.

    def __len__(self) -> int:
        return len(self._tokens)

    def find(self, token_id: int) -> Optional[Held]:
        return self._tokens.get(token_id)

    def all(self) -> List[Held]:
        return sorted(self._tokens.values(), key=lambda held: held.token_id)

    def add(self, held: Held) -> None:
        self._tokens[held.token_id] = held
        self._count(held, 1)

    def remove(self, held: Held) -> bool:
        if self._tokens.get(held.token_id) is not held:
            return False
        del self._tokens[held.token_id]
        self._count(held, -1)
        return True

    def change_terms(self, held: Held, terms: Optional[Terms]) -> None:
        self._count(held, -1)
        held.terms = terms
        self._count(held, 1)

    @property
    def offline_ms(self) -> Optional[int]:
        """The smallest clientOfflineTime, if one is known."""
        return min(self._offline) if self._offline else None

    def contact_until(self, contact: Contact) -> float:
        """When the first token is lost unless there is contact."""
        return after(contact.at, span(min(self._offline))) if self._offline else math.inf

    def plan(self, held: Held) -> None:
        """Looks after it when its next moment comes."""
        held.due_at = min(held.keep_at, held.release_at, held.hold_until)
        heapq.heappush(self._due, (held.due_at, held.token_id))
        if len(self._due) > 64 + 4 * len(self._tokens):
            held_still = [entry for entry in self._due if self._is_current(entry)]
            self._due = held_still
            heapq.heapify(self._due)

    @property
    def next_at(self) -> float:
        while self._due and not self._is_current(self._due[0]):
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else math.inf

    def take_due(self, now: float) -> Optional[Held]:
        """One whose moment has come. It must be planned again, or removed."""
        if self.next_at > now:
            return None
        return self._tokens[heapq.heappop(self._due)[1]]

    def _is_current(self, entry: Tuple[float, int]) -> bool:
        held = self._tokens.get(entry[1])
        return held is not None and held.due_at == entry[0]

    def _count(self, held: Held, change: int) -> None:
        if held.terms is not None:
            offline_ms = held.terms.offline_ms
            self._offline[offline_ms] += change
            if self._offline[offline_ms] <= 0:
                del self._offline[offline_ms]
