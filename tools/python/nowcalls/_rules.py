"""Rule: what a client must know of a rule, and Rules, those that it has seen.

Thread: the session's lock protects them. The fields are those of rules_list (PROTOCOL.md, "The
client's half of a rule").
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any, Dict, NamedTuple, Optional, Tuple

from ._calls import Call
from ._permit import BasePermit, Param

RULES_MAX = 10_000
FRESH_S = 30.0
RELEASE_MARGIN_S = 0.05  # So that the server does not count a release as late.

# acquireRefuseStrategy and resourceTimeoutStrategy.
ONCE_MORE, UNTIL_DEADLINE = 1, 2
RELEASE = 1


class Rule(NamedTuple):
    acquire_refuse: int
    resource_timeout_strategy: int
    resource_timeout: float  # Seconds.
    fallback_to_local: bool
    is_global: bool
    count: float
    items: Dict[str, float]  # Counts of values, by their text.

    def share(self, param: Param, sessions: int) -> int:
        """The calls that one of the sessions may have in progress."""
        level = self.count
        if param is not None:
            text = str(param).lower() if isinstance(param, bool) else str(param)
            level = self.items.get(text, level)
        if level <= 0:
            return 0
        if self.is_global:
            return max(1, int(level / max(1, sessions)))
        return int(level)


def read_rule(row: Dict[str, Any]) -> Rule:
    config = row["clusterConfig"]
    items = {
        str(item.get("object", item.get("valStr"))): float(item.get("count", item.get("threshold")))
        for name in ("paramFlowItemList", "specificItems")
        for item in row.get(name) or ()
    }
    return Rule(
        acquire_refuse=config.get("acquireRefuseStrategy", 0),
        resource_timeout_strategy=config.get("resourceTimeoutStrategy", 0),
        resource_timeout=config.get("resourceTimeout", 2000) / 1000,
        fallback_to_local=bool(config.get("fallbackToLocalWhenFail", False)),
        is_global=config.get("thresholdType", 0) == 1,
        count=float(row.get("count", row.get("threshold", 0))),
        items=items,
    )


def is_by_value(row: Dict[str, Any]) -> bool:
    """Servers that know no kinds do not say it, but a key of the rule does."""
    if "kind" in row:
        return bool(row["kind"] == "value")
    return "paramIdx" in row or "paramIndex" in row


FlowRules = Dict[bool, Rule]  # By whether it is the rule by value.


class RuleCall(Call):
    """Asks for the rules of a flow id: it may have one of the flow and one by value."""

    internal = True

    def __init__(self, flow_id: int) -> None:
        super().__init__("rules_list", [None, 2, flow_id - 1])
        self.flow_id = flow_id

    def decode(self, result: Any) -> FlowRules:
        rows = [row for row in result[0] if row["clusterConfig"]["flowId"] == self.flow_id]
        return {is_by_value(row): read_rule(row) for row in rows}


class Rules:
    """Rules by flow id, with the moment when they were seen. The oldest are forgotten."""

    def __init__(self) -> None:
        self._seen: OrderedDict[int, Tuple[FlowRules, float]] = OrderedDict()

    def learn(self, flow_id: int, rules: FlowRules, now: float) -> None:
        self._seen[flow_id] = (rules, now)
        self._seen.move_to_end(flow_id)
        if len(self._seen) > RULES_MAX:
            self._seen.popitem(last=False)

    def is_stale(self, flow_id: int, now: float) -> bool:
        return flow_id not in self._seen or now - self._seen[flow_id][1] > FRESH_S

    def find(self, flow_id: int, by_value: bool) -> Optional[Rule]:
        """The rule of this kind; if there is only one of the other kind, that one."""
        rules = self._seen[flow_id][0] if flow_id in self._seen else {}
        return rules.get(by_value, rules.get(not by_value))

    def end_of(self, permit: BasePermit) -> float:
        """When the client is to release a permit: a little before the rule's resourceTimeout."""
        rule = self.find(permit.flow_id, permit.param is not None)
        if permit._keeping is not True or rule is None or rule.resource_timeout_strategy != RELEASE:
            return math.inf
        timeout = rule.resource_timeout
        return permit._granted_at + timeout - min(RELEASE_MARGIN_S, timeout / 10)
