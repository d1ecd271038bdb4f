"""Makes a golden ledger: what a server of some release leaves behind when it is killed.

    keep_ledger.py NAME BIN_DIR     as root; writes data/golden/ledgers/NAME.tar.xz and NAME.json

No release had the formats 1 to 3; the last commits with them are 3575284f, f6774524 and d9a3990c.
f6774524 compiles without the static_assert of src/core/flow_table.h.

The ledger has tokens, sessions, rules and history of every kind that the server's format knows,
some in data files and some in logs only. NAME.json has the rows of the server's listings just
before the kill. Holds last 60 days, and the server runs under a boot id of its own. So each start
is one after a reboot, which counts an hour at most.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Optional

import msgpack

from releases import LEDGERS

PATIENCE_S = 60.0
LONGEST_MS = 30 * 86_400_000
SHORTEST_MS = 1000
FORMAT_OF_VALUES, FORMAT_OF_INSTANCES = 3, 4
NAMESPACE = "shop"
BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Peer:
    """A connection to the server, without the package of any release."""

    def __init__(self, port: int) -> None:
        self._sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self._unpacker = msgpack.Unpacker()

    def close(self) -> None:
        self._sock.close()

    def call(self, method: str, *params: Any) -> Any:
        self._sock.sendall(msgpack.packb([0, 1, method, list(params)]))
        while True:
            for _, _, error, result in self._unpacker:
                if error is not None:
                    raise AssertionError(f"{method}{params}: {error}")
                return result
            data = self._sock.recv(65536)
            if not data:
                raise AssertionError(f"{method}: the server closed the connection")
            self._unpacker.feed(data)

    def rows(self, method: str, *head: Any) -> List[Dict[str, Any]]:
        rows: List[Dict[str, Any]] = self.call(method, *head, 1000)[0]
        return rows

    def acquire(self, flow_id: int, count: int = 1, **options: Any) -> int:
        status, token_id, *_ = self.call("acquire", flow_id, count, options)
        if status != 0:
            raise AssertionError(f"acquire of flow {flow_id}: status {status}")
        return int(token_id)


class OldServer:
    """A server on DIRECTORY/data whose machine has a boot id of its own."""

    def __init__(self, bin_dir: str, directory: str) -> None:
        port_file = os.path.join(directory, "port")
        boot_id = os.path.join(directory, "boot_id")
        with open(boot_id, "w") as file:
            file.write("00000000-0000-4000-8000-000000000001\n")
        if os.path.exists(port_file):
            os.remove(port_file)
        command = (
            f"mount --bind {boot_id} {BOOT_ID} && exec {bin_dir}/nowcalls-server"
            f" --listen 127.0.0.1:0 --port-file {port_file} --data-dir {directory}/data"
        )
        self.process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", command], stderr=subprocess.PIPE, text=True
        )
        atexit.register(self.process.kill)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if "serving on" in line:
                break
        else:
            raise AssertionError("the server did not start")
        with open(port_file) as file:
            self.port = int(file.read())

    def end(self, signal: str) -> None:
        subprocess.run(["kill", "-" + signal, str(self.process.pid)], check=True)
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


def rules_of(ledger_format: int) -> List[Dict[str, Any]]:
    def rule(flow_id: int, count: int, **more: Any) -> Dict[str, Any]:
        cluster = {
            "flowId": flow_id,
            "thresholdType": 1,
            "resourceTimeout": more.pop("resourceTimeout", LONGEST_MS),
            "clientOfflineTime": LONGEST_MS,
            "resourceTimeoutStrategy": 2,
        }
        shared = {"resource": f"r{flow_id}", "grade": 0, "clusterMode": True, "count": count}
        return {**shared, **more, "clusterConfig": cluster}

    # 1: tokens. 2: tokens for the history. 3: draining. 4: removed later.
    rules = [rule(1, 20), rule(2, 10, resourceTimeout=SHORTEST_MS), rule(3, 10), rule(4, 10)]
    if ledger_format >= FORMAT_OF_VALUES:  # 5: by value. 6: calls in a day.
        day = rule(6, 1000, grade=1)
        day["clusterConfig"].update(windowIntervalMs=86_400_000, countPerWindow=True)
        rules += [rule(5, 10, paramIdx=0), day]
    if ledger_format >= FORMAT_OF_INSTANCES:  # 7: by the flow and by value.
        rules += [rule(7, 10), rule(7, 5, paramIdx=0)]
    return rules


def hello(peer: Peer, client_id: Optional[str], ledger_format: int, instance: int = 0) -> None:
    options = {"instance": instance} if ledger_format >= FORMAT_OF_INSTANCES and instance else {}
    peer.call("hello", 1, NAMESPACE, client_id, *([options] if options else []))


def fill(port: int, ledger_format: int, request_id: int) -> None:
    """Tokens, sessions and ends of every kind; once before and once after an orderly end."""
    alice, bob, nameless = Peer(port), Peer(port), Peer(port)
    hello(alice, "alice", ledger_format)
    hello(bob, "bob", ledger_format, instance=request_id)
    hello(nameless, None, ledger_format)
    alice.acquire(1, 2, request_id=request_id)
    alice.call("keep", alice.acquire(1))
    bob.acquire(1)
    nameless.acquire(1)
    alice.call("release", alice.acquire(1))
    alice.call("reclaim", bob.acquire(2), "a test: ü")
    if ledger_format >= FORMAT_OF_VALUES:
        for value in ["key", 7, 2.5, True]:
            bob.acquire(5, 1, param=value)
        alice.call("acquire_all", [[1, 1], [5, 1, "group"]], {"request_id": request_id + 1})
        alice.call("reclaim", alice.acquire(5, 1, param="ended"), "of a value")
        alice.call("request", 6, 5)
    if ledger_format >= FORMAT_OF_INSTANCES:
        alice.acquire(7)
        alice.acquire(7, 2, param="both")
        alice.call("release", alice.acquire(2), {"outcome": "failed"})
    alice.acquire(2)  # Ends by its hold.
    if request_id == 100:
        alice.acquire(3)
        alice.call("drain", 3, True, "a test")
        alice.acquire(4)
        rules = [r for r in rules_of(ledger_format) if r["clusterConfig"]["flowId"] != 4]
        alice.call("rules_load", NAMESPACE, json.dumps(rules))


def listed(peer: Peer) -> Dict[str, Any]:
    return {
        "tokens": peer.rows("tokens", None),
        "sessions": peer.rows("sessions"),
        "history": peer.rows("history"),
        "rules": peer.rows("rules_list", None),
    }


def main(name: str, bin_dir: str) -> None:
    with tempfile.TemporaryDirectory(prefix="nowcalls-ledger-") as directory:
        os.mkdir(os.path.join(directory, "data"))
        server = OldServer(bin_dir, directory)
        operator = Peer(server.port)
        ledger_format = operator.call("info")["ledger"]["format"]
        operator.call("rules_load", NAMESPACE, json.dumps(rules_of(ledger_format)))
        fill(server.port, ledger_format, 100)
        server.end("TERM")
        server = OldServer(bin_dir, directory)
        fill(server.port, ledger_format, 200)
        operator = Peer(server.port)
        while any(row["flow_id"] == 2 for row in operator.rows("tokens", None)):
            pass  # Until the two that nobody keeps have ended.
        rows = listed(operator)
        server.end("KILL")
        os.makedirs(LEDGERS, exist_ok=True)
        with open(os.path.join(LEDGERS, name + ".json"), "w", encoding="utf-8") as file:
            parts = [f'"format": {ledger_format}']
            for listing, found in rows.items():
                lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in found)
                parts.append(f'"{listing}": [\n{lines}\n]')
            file.write("{" + ",\n".join(parts) + "}\n")
        for left in os.listdir(os.path.join(directory, "data")):
            if left != "ledger":  # Socket and witness of the run.
                print(f"left out: {left}")
        archive = os.path.join(LEDGERS, name + ".tar.xz")
        subprocess.run(
            [
                *("tar", "-c", "--xz", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"),
                *("-f", archive, "-C", os.path.join(directory, "data"), "ledger"),
            ],
            check=True,
        )
        print(f"{archive}: format {ledger_format}, {os.path.getsize(archive)} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
