"""The version is one number wherever it stands, and a major version keeps the binary interface."""

from __future__ import annotations

import os
import re
import subprocess
import unittest
from typing import Any

import nowcalls
from interface import interface
from releases import RELEASES, THIS_VERSION, number, read

LIBRARY = os.environ.get("NOWCALLS_LIBRARY", "")
MAJOR = THIS_VERSION.split(".")[0]


def found(pattern: str, path: str) -> Any:
    match = re.search(pattern, read(path), re.M)
    return match and match[1]


class NumbersTest(unittest.TestCase):
    def test_the_version_is_the_same_in_all_parts(self) -> None:
        self.assertEqual(nowcalls.__version__, THIS_VERSION)
        self.assertEqual(found(r"^## (\S+)$", "tools/manual/CHANGELOG.md"), THIS_VERSION)
        pyproject = "tools/python/pyproject.toml"
        self.assertIsNone(found(r'^version = "(.*)"', pyproject))
        self.assertEqual(found(r"^version = {attr = \"(.*)\"}", pyproject), "nowcalls.__version__")
        for program in ["nowcalls", "nowcalls-server", "nowcalls-admin", "nowcalls-bench"]:
            path = os.path.join(os.environ["NOWCALLS_BIN_DIR"], program)
            said = subprocess.run([path, "--version"], stdout=subprocess.PIPE, text=True).stdout
            self.assertEqual(said.split()[:2], [program, THIS_VERSION])

    def test_the_changes_tell_of_each_release_the_newest_first(self) -> None:
        told = re.findall(r"^## (\S+)$", read("tools/manual/CHANGELOG.md"), re.M)
        self.assertEqual(told, sorted(told, key=number, reverse=True))
        self.assertLessEqual({release.version for release in RELEASES}, set(told))

    @unittest.skipUnless(LIBRARY, "no library of this preset")
    def test_the_library_has_the_name_and_the_interface_of_its_major_version(self) -> None:
        read_elf = ["readelf", "-d", LIBRARY]
        dynamic = subprocess.run(read_elf, check=True, stdout=subprocess.PIPE, text=True).stdout
        self.assertIn(f"soname: [libnowcalls.so.{MAJOR}]", dynamic)
        today = set(interface(LIBRARY, os.environ["NOWCALLS_CXX"]))
        for release in RELEASES:
            if release.version.split(".")[0] == MAJOR:
                kept = set(read(release.interface).splitlines())
                self.assertEqual(sorted(kept - today), [], f"gone since {release.version}")


if __name__ == "__main__":
    unittest.main()
