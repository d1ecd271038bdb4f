"""Sentinel's dashboard and the server: the test speaks as the dashboard does.

The forms of requests are those of its SentinelApiClient and MetricFetcher, 1.8.
"""

from __future__ import annotations

import http.client
import http.server
import json
import os
import socket
import struct
import subprocess
import threading
import time
import unittest
import urllib.parse
from typing import Any, Dict, List, Optional, Tuple

import nowcalls
from support import BIN_DIR, PATIENCE_S, Server, poll_until, rule

NODE_FIELDS = [
    *("resource", "threadNum", "passQps", "blockQps", "totalQps", "averageRt", "successQps"),
    *("exceptionQps", "oneMinutePass", "oneMinuteBlock", "oneMinuteException", "oneMinuteTotal"),
    "timestamp",
]


class Dashboard:
    """Takes heartbeats, then asks the machine that they name."""

    def __init__(self) -> None:
        self.beats: List[Dict[str, str]] = []
        beats = self.beats

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                if self.path == "/registry/machine":
                    beats.append(dict(urllib.parse.parse_qsl(body, strict_parsing=True)))
                answer = b'{"success":true,"code":0,"msg":"success","data":null}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def machine(self) -> Dict[str, str]:
        if not poll_until(lambda: self.beats):
            raise AssertionError("no heartbeat came")
        return self.beats[-1]

    def _execute(
        self, method: str, target: str, body: Optional[str], headers: Dict[str, str]
    ) -> Tuple[int, str]:
        machine = self.machine()
        connection = http.client.HTTPConnection(
            machine["ip"], int(machine["port"]), timeout=PATIENCE_S
        )
        try:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            text = response.read().decode()
            assert response.version == 11
            assert response.getheader("Content-Type") == "text/plain; charset=UTF-8"
            assert response.getheader("Content-Length") == str(len(text.encode()))
            assert response.getheader("Connection") == "close"
            return response.status, text
        finally:
            connection.close()

    def get(self, command: str, **params: Any) -> Tuple[int, str]:
        query = urllib.parse.urlencode(params)
        return self._execute("GET", "/" + command + ("?" + query if query else ""), None, {})

    def post(self, command: str, **params: Any) -> Tuple[int, str]:
        form = {"Content-Type": "application/x-www-form-urlencoded; charset=ISO-8859-1"}
        return self._execute("POST", "/" + command, urllib.parse.urlencode(params), form)

    def json(self, command: str, **params: Any) -> Any:
        """Of a command that may need a look at the server first."""
        answers: List[Tuple[int, str]] = []

        def answered() -> bool:
            answers.append(self.get(command, **params))
            return answers[-1][0] != 503

        poll_until(answered)
        status, text = answers[-1]
        assert status == 200, text
        return json.loads(text)

    def metrics(self) -> List[Dict[str, int]]:
        """The lines of the last seconds, as MetricNode.fromThinString reads them."""
        now_ms = int(time.time() * 1000)
        start_ms = (now_ms - 15_000) // 1000 * 1000
        status, text = self.get("metric", startTime=start_ms, endTime=now_ms, refetch="false")
        assert status in (200, 503), text
        nodes = []
        for line in text.splitlines() if status == 200 else []:
            fields = line.split("|")
            assert len(fields) == 10, line
            names = ("timestamp", "pass", "block", "success", "exception", "rt")
            node = dict(zip(names, (int(fields[at]) for at in (0, 2, 3, 4, 5, 6))))
            assert node["timestamp"] % 1000 == 0 and start_ms <= node["timestamp"] <= now_ms
            nodes.append({**node, "concurrency": int(fields[8]), "resource": fields[1]})
        return nodes


class SentinelTest(unittest.TestCase):
    def setUp(self) -> None:
        self.dashboard = Dashboard()
        self.addCleanup(self.dashboard.close)

    def serve(self, *arguments: str, listen: str = "127.0.0.1:0") -> Server:
        server = Server(
            *("--sentinel-dashboard", self.dashboard.address),
            *("--sentinel-commands", listen, *arguments),
        )
        self.addCleanup(server.remove)
        return server

    def node_of(self, resource: str) -> Dict[str, Any]:
        nodes = self.dashboard.json("clusterNode", type="zero")
        found = [node for node in nodes if node["resource"] == resource]
        return found[0] if found else {}

    def test_the_server_registers_as_a_machine(self) -> None:
        server = self.serve("--sentinel-app", "token server")
        machine = self.dashboard.machine()
        self.assertEqual(
            sorted(machine),
            ["app", "app_type", "hostname", "ip", "pid", "port", "v", "version"],
        )
        self.assertEqual(machine["app"], "token server")
        self.assertEqual((machine["app_type"], machine["ip"]), ("0", "127.0.0.1"))
        self.assertEqual(machine["v"], "1.8.8")
        self.assertLess(abs(int(machine["version"]) - time.time() * 1000), 60_000)
        line = (
            f"Sentinel's dashboard at {self.dashboard.address} lists this server as token server "
            f"at 127.0.0.1:{machine['port']}"
        )
        self.assertTrue(poll_until(lambda: line in server.log()))

    def test_calls_in_progress_are_the_threads_of_a_resource(self) -> None:
        server = self.serve()
        server.call("rules_load", "default", json.dumps([rule(7, 3), rule(8, 5)]))
        # What came before the first look at a flow is in its sums alone.
        self.assertTrue(poll_until(lambda: self.node_of("r7")))
        with nowcalls.Client(server.address, client_id="me") as client:
            with client.permit(7, count=2):
                self.assertTrue(poll_until(lambda: self.node_of("r7").get("threadNum") == 2))
                node = self.node_of("r7")
                self.assertEqual(list(node), NODE_FIELDS)
                self.assertEqual(node["oneMinutePass"], 1)
                self.assertEqual(node["threadNum"], server.now_calls(7))
                self.assertEqual(self.node_of("r8")["threadNum"], 0)
                busy = self.dashboard.json("clusterNode", type="notZero")
                self.assertEqual([node["resource"] for node in busy], ["r7"])
            self.assertTrue(poll_until(lambda: self.node_of("r7")["threadNum"] == 0))
        tree = self.dashboard.json("jsonTree", type="root")
        self.assertEqual(list(tree[0]), ["id", "parentId", *NODE_FIELDS])
        self.assertEqual(
            [(node["resource"], node["parentId"]) for node in tree],
            [
                ("machine-root", None),
                ("default", tree[0]["id"]),
                ("r7", tree[1]["id"]),
                ("r8", tree[1]["id"]),
            ],
        )

    def test_figures_a_second_count_grants_refusals_and_holds(self) -> None:
        server = self.serve()
        server.call("rules_load", "default", json.dumps([rule(7, 1), rule(8, 1)]))
        self.assertTrue(poll_until(lambda: self.node_of("r7")))
        with nowcalls.Client(server.address, client_id="me") as client:
            with client.permit(7):
                for _ in range(3):
                    with self.assertRaises(nowcalls.Refused):
                        client.acquire(7)
                time.sleep(0.3)

        def sums() -> Tuple[int, int, int]:
            lines = [line for line in self.dashboard.metrics() if line["resource"] == "r7"]
            return (
                sum(line["pass"] for line in lines),
                sum(line["block"] for line in lines),
                sum(line["success"] for line in lines),
            )

        self.assertTrue(poll_until(lambda: sums() == (1, 3, 1)), sums())
        lines = self.dashboard.metrics()
        self.assertEqual({line["resource"] for line in lines}, {"r7"})
        held = [line["rt"] for line in lines if line["success"] == 1]
        self.assertGreaterEqual(held[0], 300)
        self.assertEqual({line["exception"] for line in lines}, {0})
        times = [line["timestamp"] for line in lines]
        self.assertEqual(times, sorted(times))

    def test_a_sentinel_client_and_its_calls_are_seen(self) -> None:
        server = self.serve()
        limited = {**rule(9, 2, windowIntervalMs=60_000, sampleCount=1), "grade": 1}
        server.call("rules_load", "orders", json.dumps([limited]))
        host, port = server.address.split(":")
        self.assertTrue(poll_until(lambda: self.node_of("r9")))
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as client:
            frames = [struct.pack(">ibi6s", 1, 0, 6, b"orders")]
            frames += [struct.pack(">ibqi?", xid, 1, 9, 1, False) for xid in range(2, 302)]
            client.sendall(b"".join(struct.pack(">H", len(frame)) + frame for frame in frames))
            ours = "%s:%d" % client.getsockname()
            self.assertTrue(poll_until(lambda: self.node_of("r9")["oneMinuteTotal"] == 300))
            node = self.node_of("r9")
            self.assertEqual((node["oneMinutePass"], node["threadNum"]), (120, 0))

            def connections() -> Any:
                info = self.dashboard.json("cluster/server/info")
                return {group["namespace"]: group for group in info["connection"]}

            expected = [{"address": ours, "host": "127.0.0.1"}]
            self.assertTrue(
                poll_until(lambda: connections()["orders"]["connectionSet"] == expected),
                connections(),
            )
            self.assertEqual(connections()["orders"]["connectedCount"], 1)
        self.assertTrue(poll_until(lambda: connections()["orders"]["connectedCount"] == 0))
        self.assertEqual(connections()["orders"]["connectionSet"], [])

    def test_the_dashboard_sees_a_token_server(self) -> None:
        server = self.serve("--namespace-qps-max", "777")
        server.call("rules_load", "orders", json.dumps([rule(7, 3)]))
        mode = self.dashboard.json("getClusterMode")
        self.assertEqual((mode["mode"], mode["serverAvailable"]), (1, True))
        self.assertIs(mode["clientAvailable"], False)
        self.assertTrue(
            poll_until(lambda: self.dashboard.json("cluster/server/info")["namespaceSet"])
        )
        info = self.dashboard.json("cluster/server/info")
        port = int(server.address.split(":")[1])
        self.assertEqual((info["appName"], info["port"]), ("nowcalls", port))
        self.assertIs(info["embedded"], False)
        self.assertEqual(info["namespaceSet"], ["orders"])
        self.assertEqual(info["transport"], {"port": port, "idleSeconds": 0})
        self.assertEqual(info["flow"]["maxAllowedQps"], 777)
        self.assertEqual(
            info["requestLimitData"],
            [{"namespace": "orders", "currentQps": 0.0, "maxAllowedQps": 777}],
        )
        config = self.dashboard.json("cluster/server/fetchConfig")
        self.assertEqual(config["namespaceSet"], ["orders"])

        def metrics() -> Any:
            return self.dashboard.json("cluster/server/metricList", namespace="orders").get("r7")

        self.assertTrue(poll_until(metrics))
        self.assertEqual(metrics()[0]["flowId"], 7)

    def test_rules_in_force_are_shown_and_cannot_be_changed(self) -> None:
        server = self.serve()
        by_value = {**rule(8, 4), "paramIdx": 1}
        server.call("rules_load", "default", json.dumps([rule(7, 2.5), by_value]))
        self.assertTrue(poll_until(lambda: self.dashboard.json("getRules", type="flow")))
        (shown,) = self.dashboard.json("getRules", type="flow")
        self.assertEqual((shown["resource"], shown["count"]), ("r7", 2.5))
        self.assertEqual(shown["limitApp"], "default")
        self.assertEqual(shown["clusterConfig"]["flowId"], 7)
        self.assertTrue(shown["clusterMode"])
        (hot,) = self.dashboard.json("getParamFlowRules")
        self.assertEqual((hot["resource"], hot["paramIdx"]), ("r8", 1))
        for kind in ("degrade", "authority", "system"):
            self.assertEqual(self.dashboard.get("getRules", type=kind), (200, "[]"))
        data = json.dumps([{**shown, "count": 99, "filler": "x" * 20_000}])
        before = server.call("rules_list", None)
        for command, form in (
            ("setRules", {"type": "flow", "data": data}),
            ("setParamFlowRules", {"data": "[]"}),
            ("cluster/server/modifyNamespaceSet", {"data": "[]"}),
        ):
            status, text = self.dashboard.post(command, **form)
            self.assertEqual(status, 400)
            self.assertTrue(text.startswith(f"{command}: nowcalls is read-only here."), text)
        self.assertEqual(self.dashboard.get("setClusterMode", mode=0)[0], 400)
        self.assertEqual(server.call("rules_list", None), before)

    def test_rules_are_shown_anew_after_they_changed(self) -> None:
        server = self.serve()
        server.call("rules_load", "default", json.dumps([rule(7, 3)]))

        def counts() -> List[float]:
            return [shown["count"] for shown in self.dashboard.json("getRules", type="flow")]

        self.assertTrue(poll_until(lambda: counts() == [3]))
        server.call("rules_load", "default", json.dumps([rule(7, 4)]))
        self.assertTrue(poll_until(lambda: counts() == [4]))

    def test_unknown_commands_are_refused_as_sentinel_does(self) -> None:
        self.serve()
        self.assertEqual(self.dashboard.get("gateway/getRules")[0], 400)
        self.assertEqual(
            self.dashboard.get("gateway/getRules")[1], 'Unknown command "gateway/getRules"'
        )

    def test_peers_that_are_not_named_are_refused(self) -> None:
        self.serve("--sentinel-command-peers", "10.9.9.9", "--sentinel-command-peers", "::1")
        self.assertEqual(self.dashboard.get("version")[0], 403)

    def test_the_port_is_counted_up_when_it_is_taken(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.serve(listen=f"127.0.0.1:{port}")
            told = int(self.dashboard.machine()["port"])
            self.assertTrue(port < told <= port + 20, (port, told))
            self.assertTrue(poll_until(lambda: self.dashboard.get("version")[0] == 200))

    def test_a_server_without_a_dashboard_goes_on_and_ends_at_once(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            server = Server(
                *("--sentinel-dashboard", address, "--sentinel-commands", "127.0.0.1:0")
            )
            self.addCleanup(server.remove)
            with nowcalls.Client(server.address, client_id="me") as client:
                server.call("rules_load", "default", json.dumps([rule(7, 1)]))
                with client.permit(7):
                    self.assertEqual(server.now_calls(7), 1)
            server.terminate()
            self.assertIn("closed in good order", server.log())

    def test_wrong_settings_are_refused(self) -> None:
        for arguments, complaint in (
            (
                ("--sentinel-dashboard=d:1", "--sentinel-commands=0.0.0.0:0"),
                "flag --sentinel-commands: 0.0.0.0:0 can be reached from other machines",
            ),
            (("--sentinel-dashboard=d",), "flag --sentinel-dashboard: "),
            (("--sentinel-command-peers=host",), "flag --sentinel-command-peers: "),
            (("--sentinel-app=\n",), "flag --sentinel-app: "),
        ):
            ended = subprocess.run(
                [os.path.join(BIN_DIR, "nowcalls-server"), *arguments, "--check-config"],
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(ended.returncode, 64, arguments)
            self.assertIn(complaint, ended.stderr)


if __name__ == "__main__":
    unittest.main()
