"""Rule: what a client must know of a rule, and Rules, those that it has seen.

Thread: the session's. The fields are those of rules_list (PROTOCOL.md, "The client's half of a
rule").
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Dict, NamedTuple, Optional, Tuple

from ._calls import Call
from ._held import Flow, Param
from ._wire import number

FLOWS_MAX = 10_000
FRESH_S = 30.0
WINDOW_MS = 1000

# acquireRefuseStrategy.
ONCE_MORE, UNTIL_DEADLINE = 1, 2


class Rule(NamedTuple):
    acquire_refuse: int
    fallback_to_local: bool
    is_global: bool
    limit: float
    items: Dict[str, float]  # Counts of values, by their text.
    window_ms: int
    count_per_window: bool

    def share(self, param: Param, sessions: int) -> int:
        """The calls that one of the sessions may have in progress."""
        return self._part(self._count_of(param), sessions)

    def window_share(self, param: Param, sessions: int) -> int:
        """The calls that one of the sessions may make in a window."""
        calls = self._count_of(param)
        if not self.count_per_window:
            calls *= self.window_ms / 1000
        return self._part(calls, sessions)

    def _count_of(self, param: Param) -> float:
        if param is None or not self.items:
            return self.limit
        text = str(param).lower() if isinstance(param, bool) else str(param)
        return self.items.get(text, self.limit)

    def _part(self, calls: float, sessions: int) -> int:
        if calls <= 0:
            return 0
        return int(max(1.0, calls / max(1, sessions)) if self.is_global else calls)


FlowRules = Dict[bool, Rule]  # By whether it is the rule by value.


def _map(value: Any) -> Dict[str, Any]:
    return value if type(value) is dict else {}


def _count(fields: Dict[str, Any]) -> float:
    """Of Sentinel's rules, or sentinel-golang's."""
    return number(fields.get("count"), number(fields.get("threshold"), 0.0))


def _items(row: Dict[str, Any]) -> Dict[str, float]:
    items: Dict[str, float] = {}
    for name, value in (("paramFlowItemList", "object"), ("specificItems", "valStr")):
        listed = row.get(name)
        for item in listed if type(listed) is list else ():
            if type(item) is dict and type(item.get(value)) is str:
                items[item[value]] = _count(item)
    return items


def read_rule(row: Dict[str, Any]) -> Rule:
    """Fields of other types count as left out."""
    config = _map(row.get("clusterConfig"))
    window_ms = number(config.get("windowIntervalMs"), WINDOW_MS)
    count_per_window = config.get("countPerWindow") is True
    if "threshold" in row:  # sentinel-golang has its window beside it.
        count_per_window = True
        seconds = number(row.get("durationInSec"), 1.0)
        window_ms = number(row.get("statIntervalInMs"), 1000 * seconds)
    return Rule(
        acquire_refuse=int(number(config.get("acquireRefuseStrategy"), 0)),
        fallback_to_local=config.get("fallbackToLocalWhenFail") is True,
        is_global=config.get("thresholdType") == 1,
        limit=_count(row),
        items=_items(row),
        window_ms=int(window_ms),
        count_per_window=count_per_window,
    )


def is_by_value(row: Dict[str, Any]) -> bool:
    """Servers that know no kinds do not say it, but a key of the rule does."""
    if "kind" in row:
        return bool(row["kind"] == "value")
    return "paramIdx" in row or "paramIndex" in row


class RuleCall(Call):
    """Asks for the rules of a flow: it may have one of all calls and one by value.

    A number is found behind a cursor, as in every version; a name by servers that know names.
    """

    def __init__(self, flow_id: Flow) -> None:
        if isinstance(flow_id, str):
            super().__init__("rules_list", [None, 2, None, flow_id])
        else:
            super().__init__("rules_list", [None, 2, flow_id - 1])
        self.flow_id = flow_id

    def decode(self, result: Any) -> FlowRules:
        """None of what is not clearly a rule of this flow."""
        rules: FlowRules = {}
        page = result[0] if type(result) is list and result else None
        for row in page if type(page) is list else ():
            row = _map(row)
            if isinstance(self.flow_id, str):
                flow = row.get("resource")
            else:
                flow = _map(row.get("clusterConfig")).get("flowId")
            if flow == self.flow_id:
                rules[is_by_value(row)] = read_rule(row)
        return rules


class Rules:
    """Rules by flow, with the moment when they were seen. The oldest are forgotten."""

    def __init__(self) -> None:
        self._seen: OrderedDict[Flow, Tuple[FlowRules, float]] = OrderedDict()

    def learn(self, flow_id: Flow, rules: FlowRules, now: float) -> None:
        self._seen[flow_id] = (rules, now)
        self._seen.move_to_end(flow_id)
        if len(self._seen) > FLOWS_MAX:
            self._seen.popitem(last=False)

    def is_stale(self, flow_id: Flow, now: float) -> bool:
        return flow_id not in self._seen or now - self._seen[flow_id][1] > FRESH_S

    def find(self, flow_id: Flow, by_value: bool) -> Optional[Rule]:
        rules = self._seen[flow_id][0] if flow_id in self._seen else {}
        return rules.get(by_value)
