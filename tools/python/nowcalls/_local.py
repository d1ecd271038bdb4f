"""Fallback: what happens to calls that no server answers, or that it cannot take.

Thread: the session's. It counts the calls in progress of this session, under tokens of the server
and local ones, and local calls a second in one window that begins anew when it is over.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ._calls import Acquire, Item, Rate, RateRequest
from ._errors import Refused
from ._held import Flow, Held, Param
from ._rules import WINDOW_MS, Rules

WINDOWS_MAX = 10_000

Key = Tuple[Flow, str, Param]


def key_of(flow_id: Flow, param: Param) -> Key:
    """Python takes 1, 1.0 and True for the same key; the server does not."""
    return flow_id, type(param).__name__, param


class Admitted(NamedTuple):
    """level: 0 if calls pass, whatever is in progress."""

    now_calls: int
    level: int


class _Unknown(Exception):
    """Nothing is known that could limit the flow."""


class Fallback:
    """Admits up to this process's share of a limit, as `mode` says."""

    def __init__(self, mode: str, levels: Mapping[Flow, int], rules: Rules) -> None:
        self.mode = mode
        self.granted = 0
        self.refused = 0
        self.passed = 0
        self._rules = rules
        self._configured = levels
        self._in_progress: Dict[Key, int] = {}
        self._windows: Dict[Key, Tuple[float, int]] = {}

    @property
    def active(self) -> bool:
        return self.mode != "fail"

    @property
    def follows_rules(self) -> bool:
        return self.mode in ("rule", "local")

    # Calls in progress.

    def enter(self, held: Held) -> None:
        key = key_of(held.flow_id, held.param)
        self._in_progress[key] = self._in_progress.get(key, 0) + held.count

    def leave(self, held: Held) -> None:
        key = key_of(held.flow_id, held.param)
        left = self._in_progress.get(key, 0) - held.count
        if left > 0:
            self._in_progress[key] = left
        else:
            self._in_progress.pop(key, None)

    # Decisions.

    def decide_acquire(
        self, call: Acquire, sessions: int, now: float, make: Callable[[Acquire, Item], Held]
    ) -> Optional[List[Optional[Held]]]:
        """Local tokens, None for a rate; or None if there is no fallback. May raise Refused."""
        taken: List[Optional[Held]] = []
        try:
            for item in call.items:
                taken.append(self._take(call, item, sessions, now, make))
        except _Unknown:
            return None
        finally:
            if len(taken) < len(call.items):
                for item, held in zip(call.items, taken):
                    self._give_back(item, held)
        return taken

    def decide_rate(self, call: RateRequest, sessions: int, now: float) -> Optional[Rate]:
        """As decide_acquire."""
        values: List[Param] = [None] if call.values is None else call.values
        counted = 0
        try:
            for value in values:
                self._pass(Item(call.flow_id, call.count, value, True), sessions, now)
                counted += 1
        except _Unknown:
            return None
        finally:
            if counted < len(values):
                for value in values[:counted]:
                    self._give_back(Item(call.flow_id, call.count, value, True), None)
        return Rate(-1, 0.0)

    def _take(
        self,
        call: Acquire,
        item: Item,
        sessions: int,
        now: float,
        make: Callable[[Acquire, Item], Held],
    ) -> Optional[Held]:
        if item.rate:
            self._pass(item, sessions, now)
            return None
        before = self._in_progress.get(key_of(item.flow_id, item.param), 0)
        admitted = self._judge(item, before, self._share(item, sessions), "level")
        held = make(call, item)
        held.local = True
        held.now_calls, held.level = admitted
        self.enter(held)
        return held

    def _pass(self, item: Item, sessions: int, now: float) -> None:
        share = self._share(item, sessions)
        key = key_of(item.flow_id, item.param)
        begin, calls = self._windows.get(key, (now, 0))
        if now - begin >= self._window_ms(item) / 1000:
            begin, calls = now, 0
        self._judge(item, calls, share, "rate" if item.param is None else "param")
        if len(self._windows) >= WINDOWS_MAX and key not in self._windows:
            self._windows.clear()
        self._windows[key] = (begin, calls + item.calls)

    def _give_back(self, item: Item, held: Optional[Held]) -> None:
        if held is not None:
            self.leave(held)
            return
        key = key_of(item.flow_id, item.param)
        if key in self._windows:
            begin, calls = self._windows[key]
            self._windows[key] = (begin, max(0, calls - item.calls))

    def _share(self, item: Item, sessions: int) -> Optional[int]:
        """None: calls pass. Raises _Unknown if nothing is known that could limit them."""
        if self.mode == "pass":
            return None
        if item.flow_id in self._configured:
            return self._configured[item.flow_id]
        rule = self._rules.find(item.flow_id, item.param is not None)
        if self.mode == "rule" and (rule is None or not rule.fallback_to_local):
            return None
        if rule is None:
            raise _Unknown
        share = rule.window_share if item.rate else rule.share
        return share(item.param, sessions)

    def _window_ms(self, item: Item) -> int:
        rule = self._rules.find(item.flow_id, item.param is not None)
        return WINDOW_MS if rule is None else rule.window_ms

    def _judge(self, item: Item, before: int, share: Optional[int], limit: str) -> Admitted:
        after = before + item.calls
        if share is None:
            self.passed += 1
            return Admitted(after, 0)
        if after > share:
            self.refused += 1
            raise Refused(
                f"flow {item.flow_id!r} refused by the local share: "
                f"{before} of {share} in progress",
                flow_id=item.flow_id,
                refused_by=limit,
                now_calls=before,
                level=share,
                local=True,
            )
        self.granted += 1
        return Admitted(after, share)
