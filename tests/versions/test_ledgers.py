"""Golden ledgers, made by servers of their time (keep_ledger.py), are read and served today."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
import tempfile
import unittest
from typing import Any, Dict, List

from keep_ledger import LEDGERS, NAMESPACE, Peer
from releases import read
from support import BIN_DIR, Server

Rows = List[Dict[str, Any]]
RELEASE_OK, BLOCKED = 6, 1
KEYS = {"tokens": "token_id", "sessions": "session", "history": "sequence"}
# What only a server tells.
OF_THE_MOMENT = {
    *("online", "connections", "offline_since_ms", "last_message_ms", "addresses", "hosts"),
    *("waiters", "instances"),
}


def format_of_this() -> int:
    found = re.search(r"^# The ledger's format, version (\d+)$", read("src/ledger/FORMAT.md"), re.M)
    assert found is not None
    return int(found[1])


def names() -> List[str]:
    return sorted(name[: -len(".json")] for name in os.listdir(LEDGERS) if name.endswith(".json"))


class LedgersTest(unittest.TestCase):
    def admin_says(self, *words: str) -> str:
        program = os.path.join(BIN_DIR, "nowcalls-admin")
        command = [program, *words, "--data-dir", os.path.join(self.directory, "data")]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def admin(self, *words: str) -> Rows:
        """The rows of a listing of the ledger on disk."""
        lines = self.admin_says(*words, "--format", "jsonl").splitlines()
        return [json.loads(line) for line in lines]

    def open(self, name: str) -> None:
        directory = tempfile.TemporaryDirectory(prefix="nowcalls-versions-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        with tarfile.open(os.path.join(LEDGERS, name + ".tar.xz")) as archive:
            archive.extractall(os.path.join(self.directory, "data"))
        with open(os.path.join(LEDGERS, name + ".json"), encoding="utf-8") as file:
            self.kept: Dict[str, Any] = json.load(file)

    def has_kept(self, listing: str, found: Rows) -> None:
        """What the server that made the ledger told of each row is told of it today."""
        key = KEYS[listing]
        by_key = {row[key]: row for row in found}
        self.assertEqual(sorted(by_key), sorted(row[key] for row in self.kept[listing]))
        for row in self.kept[listing]:
            told = by_key[row[key]]
            for column in row.keys() - OF_THE_MOMENT:
                # An instance, of any 63 bits, is text in JSON lines.
                same = str if column == "instance" else (lambda value: value)
                where = f"{listing} {row[key]}: {column}"
                self.assertEqual(same(told.get(column)), same(row[column]), where)

    def has_kept_rules(self, found: Rows) -> None:
        def ids(rules: Rows) -> List[Any]:
            return [(rule["clusterConfig"]["flowId"], rule.get("paramIdx")) for rule in rules]

        self.assertEqual(ids(found), ids(self.kept["rules"]))
        for told, rule in zip(found, self.kept["rules"]):
            for field in rule.keys() - {"clusterConfig"}:
                self.assertEqual(told.get(field), rule[field], f"{ids([rule])}: {field}")
            for field, value in rule["clusterConfig"].items():
                self.assertEqual(told["clusterConfig"].get(field), value, f"{ids([rule])}: {field}")

    def connect(self) -> Peer:
        peer = Peer(self.server.port)
        self.addCleanup(peer.close)
        return peer

    def peer_of(self, session: Dict[str, Any]) -> Peer:
        """A connection that has taken the session over."""
        peer = self.connect()
        options = [{"instance": session["instance"]}] if "instance" in session else []
        hello = peer.call("hello", 1, NAMESPACE, session["client_id"], *options)
        self.assertEqual(hello[3], session["tokens"], "resumed tokens")
        return peer

    def check(self, name: str) -> None:
        self.open(name)
        self.assertIn("ledger ok", self.admin_says("verify"))
        self.has_kept("tokens", self.admin("dump"))
        self.has_kept("sessions", self.admin("sessions"))
        self.has_kept("history", self.admin("history", "--limit", "1000"))

        self.server = Server(data_dir=os.path.join(self.directory, "data"))
        self.addCleanup(self.server.remove)
        raised = f"the ledger has format version {self.kept['format']} and gets {format_of_this()}"
        self.assertEqual(self.kept["format"] < format_of_this(), raised in self.server.log())
        operator = self.connect()
        self.has_kept("tokens", operator.rows("tokens", None))
        self.has_kept_rules(operator.rows("rules_list", None))

        # Its tokens count, against a level in force.
        held = sum(row["count"] for row in self.kept["tokens"] if row["flow_id"] == 1)
        flow = operator.call("flow", 1)
        self.assertEqual((flow["now_calls"], flow["level"]), (held, 20))
        beyond = operator.call("acquire", 1, 20 - held + 1, {})
        self.assertEqual((beyond[0], beyond[6]), (BLOCKED, "level"))
        self.assertTrue(operator.call("flow", 3)["draining"])
        self.assertTrue(operator.call("flow", 4)["removed"])
        if self.kept["format"] >= 3:
            self.assertGreaterEqual(operator.call("flow", 6)["rate"]["in_window"], 5)

        # Their owners release them; an operator takes those of nameless clients.
        for session in self.kept["sessions"]:
            tokens = [t for t in self.kept["tokens"] if t["session"] == session["session"]]
            peer = self.peer_of(session) if session["kind"] == "named" else None
            for token in tokens:
                answer = (
                    operator.call("reclaim", token["token_id"], "a test")
                    if peer is None
                    else peer.call("release", token["token_id"])
                )
                self.assertEqual(answer, [RELEASE_OK], token)
        self.assertEqual(operator.rows("tokens", None), [])
        self.server.terminate()
        self.assertEqual(self.admin("dump"), [])
        self.server.start()
        self.assertEqual(self.connect().call("info")["ledger"]["format"], format_of_this())

    def test_each_format_has_a_golden_ledger(self) -> None:
        formats = set()
        for name in names():
            with open(os.path.join(LEDGERS, name + ".json"), encoding="utf-8") as file:
                formats.add(json.load(file)["format"])
        self.assertEqual(formats, set(range(1, format_of_this() + 1)))

    def test_golden_ledgers_are_read_served_and_emptied(self) -> None:
        for name in names():
            with self.subTest(name):
                self.check(name)


if __name__ == "__main__":
    unittest.main()
