"""Whether an object is what Kubernetes takes: no unknown field, no wrong type, nothing missing.

The schemas of Kubernetes itself are the model classes of Debian's python3-kubernetes (1.22). Those
of the Prometheus operator are below: the fields that are used here, as its reference names them.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List

from kubernetes import client

API_MODELS = {
    ("v1", "ConfigMap"): "V1ConfigMap",
    ("v1", "Namespace"): "V1Namespace",
    ("v1", "Service"): "V1Service",
    ("v1", "ServiceAccount"): "V1ServiceAccount",
    ("apps/v1", "Deployment"): "V1Deployment",
    ("apps/v1", "StatefulSet"): "V1StatefulSet",
    ("batch/v1", "Job"): "V1Job",
    ("networking.k8s.io/v1", "NetworkPolicy"): "V1NetworkPolicy",
    ("policy/v1", "PodDisruptionBudget"): "V1PodDisruptionBudget",
}
METADATA = {"name!": str, "namespace": str, "labels": {str: str}}
SECRET_KEY = {"name!": str, "key!": str}
CUSTOM = {
    ("monitoring.coreos.com/v1", "ServiceMonitor"): {
        "jobLabel": str,
        "selector!": {"matchLabels": {str: str}},
        "endpoints!": [
            {
                "port": str,
                "path": str,
                "interval": str,
                "honorLabels": bool,
                "scheme": str,
                "tlsConfig": {"ca": {"secret": SECRET_KEY}, "serverName": str},
                "authorization": {"type": str, "credentials": SECRET_KEY},
                "relabelings": [{"sourceLabels": [str], "targetLabel": str}],
            }
        ],
    },
    ("monitoring.coreos.com/v1", "PrometheusRule"): {
        "groups!": [
            {
                "name!": str,
                "rules!": [
                    {
                        "alert": str,
                        "expr!": str,
                        "for": str,
                        "labels": {str: str},
                        "annotations": {str: str},
                    }
                ],
            }
        ]
    },
}
# What the server of Kubernetes asks for beyond types, in objects of these models.
ENUMS = {
    ("V1StatefulSetSpec", "podManagementPolicy"): {"Parallel", "OrderedReady"},
    ("V1StatefulSetUpdateStrategy", "type"): {"RollingUpdate", "OnDelete"},
    ("V1TopologySpreadConstraint", "whenUnsatisfiable"): {"ScheduleAnyway", "DoNotSchedule"},
    ("V1SeccompProfile", "type"): {"RuntimeDefault", "Localhost", "Unconfined"},
    ("V1PodSecurityContext", "fsGroupChangePolicy"): {"OnRootMismatch", "Always"},
    ("V1PodSpec", "restartPolicy"): {"Never", "OnFailure", "Always"},
    ("V1NetworkPolicyPort", "protocol"): {"TCP", "UDP", "SCTP"},
    ("V1HTTPGetAction", "scheme"): {"HTTP", "HTTPS"},
}
MODES = {"ReadWriteOncePod", "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"}
QUANTITY = re.compile(r"\d+(\.\d+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?")
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
LABEL = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?")
SCALARS = {"str": str, "int": int, "bool": bool, "float": (int, float)}


def problems(thing: Dict[str, Any]) -> List[str]:
    """Empty: Kubernetes takes the object."""
    found: List[str] = []
    kind = (thing.get("apiVersion"), thing.get("kind"))
    where = f"{thing.get('kind')}/{thing.get('metadata', {}).get('name')}"
    if kind in API_MODELS:
        _model(thing, API_MODELS[kind], where, found)
    elif kind in CUSTOM:
        whole = {"apiVersion!": str, "kind!": str, "metadata!": METADATA, "spec!": CUSTOM[kind]}
        _custom(thing, whole, where, found)
    else:
        found.append(f"{where}: no such kind: {kind}")
    metadata = thing.get("metadata", {})
    if not NAME.fullmatch(metadata.get("name") or metadata.get("generateName", "-").rstrip("-")):
        found.append(f"{where}: no name of an object")
    return found


def _model(value: Any, model: str, where: str, found: List[str]) -> None:
    if not isinstance(value, dict):
        found.append(f"{where}: must be {model}, is {value!r}")
        return
    cls = getattr(client, model)
    fields = {name: attribute for attribute, name in cls.attribute_map.items()}
    for name, content in value.items():
        if name not in fields:
            found.append(f"{where}: {model} has no field '{name}'")
            continue
        _typed(content, cls.openapi_types[fields[name]], f"{where}.{name}", found)
        allowed = ENUMS.get((model, name))
        if allowed and content not in allowed:
            found.append(f"{where}.{name}: must be one of {sorted(allowed)}, is {content!r}")
    try:  # A model refuses what lacks a required field, or is out of a range.
        cls(**{fields[name]: content for name, content in value.items() if name in fields})
    except ValueError as error:
        found.append(f"{where}: {error}")


def _typed(value: Any, kind: str, where: str, found: List[str]) -> None:
    if kind.startswith("list["):
        if not isinstance(value, list):
            found.append(f"{where}: must be a list, is {value!r}")
            return
        for number, entry in enumerate(value):
            _typed(entry, kind[5:-1], f"{where}[{number}]", found)
            if where.endswith(".accessModes") and entry not in MODES:
                found.append(f"{where}: no such mode: {entry!r}")
    elif kind.startswith("dict("):
        if not isinstance(value, dict):
            found.append(f"{where}: must be a map, is {value!r}")
            return
        for key, entry in value.items():
            _typed(entry, kind[5:-1].split(", ", 1)[1], f"{where}.{key}", found)
            if where.endswith(("abels", ".selector")) and not LABEL.fullmatch(str(key)):
                found.append(f"{where}: no name of a label: {key!r}")
            quantities = where.endswith((".limits", ".requests"))
            if quantities and not QUANTITY.fullmatch(str(entry)):
                found.append(f"{where}.{key}: no quantity: {entry!r}")
    elif kind == "object":  # Here a number or a name: of a port, of pods.
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            found.append(f"{where}: must be a number or a name, is {value!r}")
    elif kind in SCALARS:
        if not isinstance(value, SCALARS[kind]) or (isinstance(value, bool) and kind != "bool"):
            found.append(f"{where}: must be {kind}, is {value!r}")
    else:
        _model(value, kind, where, found)


def _custom(value: Any, schema: Any, where: str, found: List[str]) -> None:
    if isinstance(schema, type):
        if not isinstance(value, schema):
            found.append(f"{where}: must be {schema.__name__}, is {value!r}")
    elif not isinstance(value, type(schema)):
        found.append(f"{where}: must be {type(schema).__name__}, is {value!r}")
    elif isinstance(schema, list):
        for number, entry in enumerate(value):
            _custom(entry, schema[0], f"{where}[{number}]", found)
    elif str in schema:
        for key, entry in value.items():
            _custom(entry, schema[str], f"{where}.{key}", found)
    else:
        known = {name.rstrip("!"): part for name, part in schema.items()}
        for name in [name[:-1] for name in schema if name.endswith("!")]:
            if name not in value:
                found.append(f"{where}: lacks '{name}'")
        for name, entry in value.items():
            if name in known:
                _custom(entry, known[name], f"{where}.{name}", found)
            else:
                found.append(f"{where}: has no field '{name}'")
