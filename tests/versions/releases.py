"""What is kept of each release in data/golden, and where a server of it can be found."""

from __future__ import annotations

import os
import re
import subprocess
import unittest
from dataclasses import dataclass
from typing import List, Tuple

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LEDGERS = os.path.join(SOURCE, "data/golden/ledgers")
KEPT = os.path.join(SOURCE, "data/golden/releases")


def read(path: str) -> str:
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def number(version: str) -> Tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def version_of_this() -> str:
    found = re.search(r"^project\(nowcalls VERSION ([\d.]+)", read("CMakeLists.txt"), re.M)
    assert found is not None
    return found[1]


THIS_VERSION = version_of_this()


@dataclass(frozen=True)
class Release:
    """version: as 1.0.0, whose tag is v1.0.0.

    client: its Python package, for PYTHONPATH. interface: lines of interface.py.
    """

    version: str

    @property
    def directory(self) -> str:
        return os.path.join(KEPT, self.version)

    @property
    def client(self) -> str:
        return os.path.join(self.directory, "python.zip")

    @property
    def interface(self) -> str:
        return os.path.join(self.directory, "interface.txt")


RELEASES: List[Release] = [Release(name) for name in sorted(os.listdir(KEPT), key=number)]


def server_of(release: Release) -> str:
    """The directory of its programs: built of its tag once, by `tools/dev test --whole`."""
    tree = os.path.join(SOURCE, "build/releases", release.version)
    bin_dir = os.path.join(tree, "build/bin")
    if os.path.exists(os.path.join(bin_dir, "nowcalls-server")):
        return bin_dir
    if "NOWCALLS_TEST_WHOLE" not in os.environ:
        skip(f"no server of release {release.version} is built; tools/dev test --whole does")
    os.makedirs(tree, exist_ok=True)
    tag = "v" + release.version
    archive = subprocess.run(["git", "-C", SOURCE, "archive", tag], capture_output=True)
    if archive.returncode != 0:
        skip(f"there is no tag {tag} of release {release.version} here")
    subprocess.run(["tar", "-x", "-C", tree], input=archive.stdout, check=True)
    subprocess.run([os.path.join(tree, "tools/dev"), "build", "--programs"], check=True)
    return bin_dir


def skip(reason: str) -> None:
    """Skips the test; tools/dev repeats the reason at its end."""
    print(f"versions: MESSAGE: skipped: {reason}", flush=True)
    raise unittest.SkipTest(reason)
