"""Keeps what later versions are tested with: `keep_release.py BUILD`, as root, see upgrading.md.

BUILD is the tree of the release that is about to be tagged. data/golden/releases/VERSION gets its
Python package and the binary interface of its library, data/golden/ledgers a ledger of its server.
"""

from __future__ import annotations

import os
import sys
import zipfile

import keep_ledger
from interface import interface
from releases import SOURCE, THIS_VERSION, Release

A_TIME = (2026, 1, 1, 0, 0, 0)  # So that the same package gives the same bytes.


def keep_package(path: str) -> None:
    package = os.path.join(SOURCE, "tools/python/nowcalls")
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(os.listdir(package)):
            if not name.endswith(".py"):
                continue
            entry = zipfile.ZipInfo("nowcalls/" + name, A_TIME)
            with open(os.path.join(package, name), "rb") as file:
                archive.writestr(entry, file.read(), zipfile.ZIP_DEFLATED, 9)


def main(build: str) -> None:
    release = Release(THIS_VERSION)
    os.makedirs(release.directory, exist_ok=True)
    keep_package(release.client)
    with open(release.interface, "w", encoding="utf-8") as file:
        file.write("\n".join(interface(os.path.join(build, "src/libnowcalls.so"))) + "\n")
    bin_dir = os.path.join(build, "../bin")  # As tools/dev builds a release.
    keep_ledger.main(THIS_VERSION, bin_dir)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
