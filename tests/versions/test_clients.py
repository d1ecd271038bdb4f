"""Clients and servers of all releases from 1.0 on understand each other: upgrading.md's matrix."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unittest
from typing import Any, Dict, List

from releases import RELEASES, SOURCE, THIS_VERSION, server_of, skip
from support import PATIENCE_S, Server, rule, rule_of_keys

CALLS = os.path.join(SOURCE, "tests/versions/calls.py")
STEPS = [
    "acquire_and_release", "keep", "wait", "values", "groups", "rates", "listings", "lost",
    "outcomes", "reconnect", "tasks",
]  # fmt: skip


def rules() -> str:
    def rate(flow_id: int, **more: Any) -> Dict[str, Any]:
        cluster = {"flowId": flow_id, "thresholdType": 1}
        shared = {"resource": f"r{flow_id}", "grade": 1, "clusterMode": True, "count": 50}
        return {**shared, "clusterConfig": cluster, **more}

    return json.dumps([rule(1, 2), rule_of_keys(2, 1), rate(3), rate(4, paramIdx=0)])


class ClientsTest(unittest.TestCase):
    def passes(self, package: str, bin_dir: str) -> None:
        """Every call of `package`, a directory or a zip, against the server of `bin_dir`."""
        server = Server(bin_dir=bin_dir)
        self.addCleanup(server.remove)
        server.call("rules_load", "versions", rules())
        caller = subprocess.Popen(
            [sys.executable, "-B", "-W", "error", CALLS, server.address, "versions"],
            env={**os.environ, "PYTHONPATH": package},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        passed: List[str] = []
        with caller:
            assert caller.stdin is not None and caller.stdout is not None
            for line in caller.stdout:
                verb, *words = line.split()
                if verb == "passed":
                    passed += words
                    continue
                if verb == "restart":
                    server.kill()
                    server.start()
                elif verb == "reclaim":
                    server.call("reclaim", int(words[0]), "a test")
                caller.stdin.write("done\n")
                caller.stdin.flush()
            self.assertEqual(caller.wait(PATIENCE_S), 0)
        self.assertEqual(passed, STEPS)

    def test_this_client_and_this_server(self) -> None:
        self.passes(os.path.join(SOURCE, "tools/python"), os.environ["NOWCALLS_BIN_DIR"])

    def test_the_client_of_each_release_and_this_server(self) -> None:
        self.assertTrue(RELEASES)
        for release in RELEASES:
            with self.subTest(release.version):
                self.passes(release.client, os.environ["NOWCALLS_BIN_DIR"])

    def test_this_client_and_the_server_of_each_release(self) -> None:
        earlier = [release for release in RELEASES if release.version != THIS_VERSION]
        if not earlier:
            skip(f"there is no release before {THIS_VERSION}, whose server could be tried")
        for release in earlier:
            with self.subTest(release.version):
                self.passes(os.path.join(SOURCE, "tools/python"), server_of(release))


if __name__ == "__main__":
    unittest.main()
