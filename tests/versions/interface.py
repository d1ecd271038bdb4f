"""The binary interface of libnowcalls.so as lines of text: what programs of an earlier build need.

Sizes, bases and virtual functions are those that GCC tells of the public headers; symbols are those
that the library exports. They are of x86-64 and libstdc++.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from typing import Dict, List

from releases import SOURCE

INCLUDE = os.path.join(SOURCE, "include")
# No shared library has what these declare.
STATIC_ONLY = {"embedded.h", "server.h", "rule_source.h", "expire_strategy.h"}


def classes(compiler: str) -> List[str]:
    """A line for each class and for each place in a table of virtual functions."""
    headers = sorted(set(os.listdir(os.path.join(INCLUDE, "nowcalls"))) - STATIC_ONLY)
    with tempfile.TemporaryDirectory(prefix="nowcalls-versions-") as directory:
        dump = os.path.join(directory, "classes")
        subprocess.run(
            [
                *(compiler, "-std=c++20", "-I", INCLUDE, "-fsyntax-only", "-x", "c++"),
                *("-fdump-lang-class=" + dump, "-"),
            ],
            input="".join(f"#include <nowcalls/{header}>\n" for header in headers),
            text=True,
            check=True,
        )
        with open(dump, encoding="utf-8") as file:
            parts = file.read().split("\n\n")
    lines: Dict[str, None] = {}
    for part in parts:
        head, *rest = part.splitlines() or [""]
        if re.match(r"Class nowcalls::[\w:]+$", head):
            lines[f"{head}: {rest[0].strip()}"] = None
        if re.match(r"Vtable for nowcalls::[\w:]+$", head):
            for row in rest[1:]:
                place, function = row.split(None, 1)
                function = function.replace("(int (*)(...))", "")
                lines[f"{head}: {place} {function}"] = None
    return sorted(lines)


def symbols(library: str) -> List[str]:
    """Those of nowcalls; templates of the standard library are each program's own, too."""
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=posix", library],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    # The version behind @ is that of src/library/nowcalls.map.
    names = [line.split()[0].partition("@")[0] for line in listed.splitlines()]
    own = re.compile(r"_Z(NK?|T[ISV]N)8nowcalls")
    return sorted("Symbol " + name for name in names if own.match(name))


def interface(library: str, compiler: str = "g++") -> List[str]:
    return classes(compiler) + symbols(library)
