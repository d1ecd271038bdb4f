"""Fallback: what happens to calls that would be Unavailable or OutcomeUnknown.

Thread: the session's lock protects it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ._calls import Acquire, Call, Item, Rate, RateRequest
from ._errors import Refused
from ._permit import ENDED, BasePermit, Param
from ._rules import Rules

KNOWN_LEVELS_MAX = 10_000

Key = Tuple[int, str, Param]


def key_of(flow_id: int, param: Param) -> Key:
    """Python takes 1, 1.0 and True for the same key; the server does not."""
    return flow_id, type(param).__name__, param


class Fallback:
    """Counts local calls in progress, and admits up to this process's share of a level."""

    def __init__(self, mode: str, levels: Mapping[int, int], rules: Rules) -> None:
        self.mode = mode
        self._rules = rules
        self.granted = 0
        self.refused = 0
        self.passed = 0
        self._configured = levels
        self._known: OrderedDict[Key, int] = OrderedDict()
        self._in_progress: Dict[Key, int] = {}

    @property
    def active(self) -> bool:
        return self.mode != "fail"

    def decide(
        self, call: Call, sessions: int, new_permit: Callable[[Acquire, Item], BasePermit]
    ) -> Any:
        """Local permits or a pass, or None if there is none for this call. May raise Refused."""
        by_value = call.method == "request_param"
        if isinstance(call, RateRequest) and self.passes(call.flow_id, by_value):
            self.passed += 1
            return Rate(-1, 0.0)
        if not isinstance(call, Acquire):
            return None
        permits: List[BasePermit] = []
        try:
            for item in call.items:
                admitted = self.admit(*item, sessions)
                if admitted is None:
                    break
                permit = new_permit(call, item)
                permit.local = True
                permit.now_calls, permit.level = admitted
                permits.append(permit)
        finally:
            if len(permits) < len(call.items):
                for permit in permits:
                    permit._state = ENDED
                    self.leave(permit.flow_id, permit.count, permit.param)
        return call.outcome(permits) if len(permits) == len(call.items) else None

    def learn(self, flow_id: int, param: Param, level: int) -> None:
        """Remembers a level that the server told; forgets the one unused for longest."""
        if self.mode not in ("local", "rule"):
            return
        key = key_of(flow_id, param)
        self._known[key] = level
        self._known.move_to_end(key)
        if len(self._known) > KNOWN_LEVELS_MAX:
            self._known.popitem(last=False)

    def share(self, flow_id: int, param: Param, sessions: int) -> Optional[int]:
        """The calls that this process may have in progress; None if no level is known."""
        if flow_id in self._configured:
            return self._configured[flow_id]
        rule = self._rules.find(flow_id, param is not None)
        if rule is not None:
            return rule.share(param, sessions)
        level = self._known.get(key_of(flow_id, param))
        if level is None:
            return None
        return max(1, level // max(1, sessions)) if level > 0 else 0

    def passes(self, flow_id: int, by_value: bool) -> bool:
        """Whether calls pass, however many there are."""
        if self.mode != "rule" or flow_id in self._configured:
            return self.mode == "pass"
        rule = self._rules.find(flow_id, by_value)
        return rule is None or not rule.fallback_to_local

    def admit(
        self, flow_id: int, count: int, param: Param, sessions: int
    ) -> Optional[Tuple[int, int]]:
        """Takes `count` calls. Returns (calls in progress, share), or None if no level is known.

        Raises Refused beyond the share.
        """
        key = key_of(flow_id, param)
        before = self._in_progress.get(key, 0)
        share = self.share(flow_id, param, sessions)
        if self.passes(flow_id, param is not None):
            self.passed += 1
            self._in_progress[key] = before + count
            return before + count, 0
        if share is None:
            return None
        if before + count > share:
            self.refused += 1
            raise Refused(
                f"flow {flow_id} refused by the local share: {before} of {share} in progress",
                flow_id=flow_id,
                refused_by="level",
                now_calls=before,
                level=share,
                local=True,
            )
        self.granted += 1
        self._in_progress[key] = before + count
        return before + count, share

    def leave(self, flow_id: int, count: int, param: Param) -> None:
        key = key_of(flow_id, param)
        left = self._in_progress.get(key, 0) - count
        if left > 0:
            self._in_progress[key] = left
        else:
            self._in_progress.pop(key, None)
