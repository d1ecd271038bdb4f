"""What tests of other languages have in common: commands in a directory of this tree."""

from __future__ import annotations

import os
import subprocess
import unittest
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Commands(unittest.TestCase):
    directory: str  # Below ROOT.

    def run_command(self, *words: str, **environment: Any) -> str:
        """Fails unless the command ends with 0. Returns what it said on stdout."""
        done = subprocess.run(
            words,
            cwd=os.path.join(ROOT, self.directory),
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, f"{' '.join(words[:4])} ...:\n{said[-20_000:]}")
        return done.stdout
