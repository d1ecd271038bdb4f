"""The manifests that tests look at, and parts of them."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List

import kustomize

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KUBERNETES = os.path.join(ROOT, "data/deploy/kubernetes")
OVERLAYS = sorted(os.listdir(os.path.join(KUBERNETES, "overlays")))
JOBS = [
    os.path.join(KUBERNETES, "jobs", name)
    for name in sorted(os.listdir(os.path.join(KUBERNETES, "jobs")))
]
LEDGER_MOUNT = "/var/lib/nowcalls"
ETC = "/etc/nowcalls"

Object = Dict[str, Any]

with open(os.path.join(ROOT, "CMakeLists.txt")) as file:
    (VERSION,) = re.findall(r"^project\(nowcalls VERSION ([\d.]+) ", file.read(), re.MULTILINE)


def overlay_dir(name: str) -> str:
    return os.path.join(KUBERNETES, "overlays", name)


class Overlay:
    """What an overlay makes."""

    def __init__(self, name: str) -> None:
        self.objects: List[Object] = kustomize.render(overlay_dir(name))

    @staticmethod
    def of(kustomization: Dict[str, List[str]]) -> Overlay:
        """Of an overlay beside those that are there; paths begin in data/deploy/kubernetes."""
        overlay = Overlay.__new__(Overlay)
        overlay.objects = kustomize.build(kustomization, KUBERNETES, [])
        return overlay

    def find(self, kind: str, name: str = "nowcalls") -> Object:
        (thing,) = [
            thing
            for thing in self.objects
            if thing["kind"] == kind and thing["metadata"]["name"] == name
        ]
        return thing

    @property
    def pod(self) -> Object:
        return self.find("StatefulSet")["spec"]["template"]["spec"]

    @property
    def container(self) -> Object:
        (container,) = self.pod["containers"]
        return container

    @property
    def mounts(self) -> Dict[str, str]:
        """Name of the volume by its path."""
        return {mount["mountPath"]: mount["name"] for mount in self.container["volumeMounts"]}

    @property
    def environment(self) -> Dict[str, str]:
        """Those with a value of their own."""
        entries = self.container.get("env", [])
        return {entry["name"]: entry["value"] for entry in entries if "value" in entry}

    @property
    def probes(self) -> Dict[str, Object]:
        return {
            name: probe["httpGet"]
            for name, probe in self.container.items()
            if name.endswith("Probe")
        }

    def config_map(self, name: str) -> Dict[str, str]:
        return self.find("ConfigMap", name)["data"]

    def mounted(self) -> Dict[str, Dict[str, str]]:
        """Files by the directory where a ConfigMap is mounted."""
        volumes = {volume["name"]: volume for volume in self.pod["volumes"]}
        return {
            path: self.config_map(volumes[name]["configMap"]["name"])
            for path, name in self.mounts.items()
            if "configMap" in volumes.get(name, {})
        }


def bytes_of(quantity: str) -> int:
    units = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
    unit = units.get(quantity[-2:])
    return int(quantity[:-2]) * unit if unit else int(quantity)
