"""What `kubectl kustomize` prints, for the part of kustomize that data/deploy/kubernetes uses.

Debian's kubectl is older than components. Where a newer one is installed, a test compares both.
Names of generated ConfigMaps have no hash here.
"""

from __future__ import annotations

import copy
import os
from typing import Any, Dict, List

import yaml

Object = Dict[str, Any]
KNOWN = {
    *("apiVersion", "kind", "namespace", "resources", "components", "patches", "images"),
    "configMapGenerator",
}
# By which field the entries of a list are the same entry.
MERGE_KEYS = {
    "containers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
}
CLUSTER_WIDE = ("Namespace",)


def documents(path: str) -> List[Any]:
    with open(path) as file:
        return [document for document in yaml.safe_load_all(file) if document is not None]


def render(directory: str) -> List[Object]:
    return _of_directory(os.path.normpath(directory), [])


def _of_directory(directory: str, objects: List[Object]) -> List[Object]:
    (kustomization,) = documents(os.path.join(directory, "kustomization.yaml"))
    return build(kustomization, directory, objects)


def build(kustomization: Object, directory: str, objects: List[Object]) -> List[Object]:
    """`objects`: those that a component adds to and patches."""
    unknown = set(kustomization) - KNOWN
    if unknown:
        raise ValueError(f"{directory}: kustomize.py does not know {sorted(unknown)}")
    for resource in kustomization.get("resources", []):
        path = os.path.normpath(os.path.join(directory, resource))
        objects = objects + (_of_directory(path, []) if os.path.isdir(path) else documents(path))
    for generator in kustomization.get("configMapGenerator", []):
        made = _config_map(directory, generator)
        if generator.get("behavior") == "merge":
            _patch(objects, [made], None)
        else:
            objects = objects + [made]
    for component in kustomization.get("components", []):
        path = os.path.normpath(os.path.join(directory, component))
        objects = _of_directory(path, objects)
    for patch in kustomization.get("patches", []):
        inline = [yaml.safe_load(patch["patch"])] if "patch" in patch else None
        parts = inline or documents(os.path.join(directory, patch["path"]))
        _patch(objects, parts, patch.get("target"))
    for image in kustomization.get("images", []):
        _set_image(objects, image)
    namespace = kustomization.get("namespace")
    for thing in objects if namespace else []:
        if thing["kind"] in CLUSTER_WIDE:
            thing["metadata"]["name"] = namespace
        else:
            thing["metadata"]["namespace"] = namespace
    return objects


def _config_map(directory: str, generator: Object) -> Object:
    data = {}
    for name in generator["files"]:
        with open(os.path.join(directory, name)) as file:
            data[os.path.basename(name)] = file.read()
    metadata = {"name": generator["name"]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _patch(objects: List[Object], patch: List[Any], target: Any) -> None:
    if target is None:
        for part in patch:
            (thing,) = [thing for thing in objects if _same(thing, part)]
            _merge(thing, part)
        return
    for thing in objects:
        name = thing["metadata"]["name"]
        if thing["kind"] == target["kind"] and name == target.get("name", name):
            for operation in patch[0]:
                _operate(thing, operation)


def _same(one: Object, other: Object) -> bool:
    return one["kind"] == other["kind"] and one["metadata"]["name"] == other["metadata"]["name"]


def _merge(into: Object, part: Object) -> None:
    for key, value in part.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        elif key in MERGE_KEYS and key in into:
            _merge_lists(into[key], value, MERGE_KEYS[key])
        else:
            into[key] = copy.deepcopy(value)


def _merge_lists(into: List[Object], part: List[Object], key: str) -> None:
    """New entries come first, as kustomize has it."""
    added = []
    for entry in part:
        same = [known for known in into if known[key] == entry[key]]
        if same:
            _merge(same[0], entry)
        else:
            added.append(copy.deepcopy(entry))
    into[:0] = added


def _operate(thing: Object, operation: Object) -> None:
    """One operation of RFC 6902."""
    *parents, last = operation["path"].lstrip("/").split("/")
    place: Any = thing
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place[part]
    if operation["op"] == "remove":
        del place[int(last) if isinstance(place, list) else last]
    elif isinstance(place, list) and operation["op"] == "add":
        place.insert(len(place) if last == "-" else int(last), operation["value"])
    elif operation["op"] == "add" or operation["op"] == "replace" and last in place:
        place[last] = operation["value"]
    else:
        raise ValueError(f"kustomize.py does not know how to {operation}")


def _set_image(objects: List[Object], image: Object) -> None:
    for thing in objects:
        template = thing.get("spec", {}).get("template", {})
        for container in template.get("spec", {}).get("containers", []):
            if container["image"].rpartition(":")[0] == image["name"]:
                container["image"] = f"{image['newName']}:{image['newTag']}"
