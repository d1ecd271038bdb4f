"""HTTP of a real server: metrics, health, and what strangers send."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import unittest
import urllib.request
from typing import Any, Dict, List, Sequence, Tuple

import nowcalls
from support import BIN_DIR, PATIENCE_S, Server, poll_until, rule


MONITORING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../data/monitoring")
NO_PROMETHEUS = "skipped: Debian's prometheus is not installed"


def http_address(server: Server) -> Tuple[str, int]:
    found = re.findall(r"health on https?://([\d.]+):(\d+)/", server.log())
    return found[-1][0], int(found[-1][1])


class Site:
    """A server with rules and its HTTP address."""

    def __init__(
        self, *rules: Dict[str, Any], http: str = "127.0.0.1:0", arguments: Sequence[str] = ()
    ) -> None:
        self.server = Server("--http", http, *arguments)
        self.address = http_address(self.server)
        if rules:
            self.server.call("rules_load", "default", json.dumps(rules))

    def ask(self, path: str, method: str = "GET", **headers: str) -> Tuple[int, str]:
        connection = http.client.HTTPConnection(*self.address, timeout=PATIENCE_S)
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def raw(self, data: bytes) -> bytes:
        """All that comes back for these bytes, until the server closes or is silent."""
        with socket.create_connection(self.address, timeout=PATIENCE_S) as sock:
            sock.sendall(data)
            sock.settimeout(2.0)
            answer = b""
            try:
                while piece := sock.recv(65536):
                    answer += piece
            except (TimeoutError, ConnectionResetError):
                pass
            return answer

    def metric(self, line: str) -> bool:
        return line in self.ask("/metrics")[1].splitlines()


class WebTest(unittest.TestCase):
    def site(self, *rules: Dict[str, Any], **options: Any) -> Site:
        site = Site(*rules, **options)
        self.addCleanup(site.server.remove)
        return site

    def test_health_readiness_and_metrics_follow_the_server(self) -> None:
        site = self.site(rule(7, 3), rule(8, 5))
        self.assertEqual(site.ask("/healthz")[0], 200)
        status, body = site.ask("/readyz")
        self.assertEqual((status, json.loads(body)["phase"]), (200, "serving"))
        labels = '{flow_id="7",namespace="default",resource="r7"}'
        with nowcalls.Client(site.server.address, client_id="me") as client:
            with client.permit(7, count=2):
                held = f"nowcalls_flow_now_calls{labels} 2"
                self.assertTrue(poll_until(lambda: site.metric(held)))
                self.assertTrue(site.metric(f"nowcalls_flow_level{labels} 3"))
                # The sums of a look are from before its flows.
                self.assertTrue(poll_until(lambda: site.metric("nowcalls_sessions 1")))
            self.assertTrue(poll_until(lambda: site.metric(f"nowcalls_flow_now_calls{labels} 0")))
        self.assertNotIn('flow_id="8"', site.ask("/metrics?flow=7")[1])
        commits = re.search(r"^nowcalls_commit_seconds_count (\d+)$", site.ask("/metrics")[1], re.M)
        assert commits is not None
        self.assertGreater(int(commits[1]), 0)

    def test_what_it_does_not_do_is_said(self) -> None:
        site = self.site()
        self.assertEqual(site.ask("/nothing")[0], 404)
        self.assertEqual(site.ask("/metrics?limit=x")[0], 400)
        self.assertEqual(site.ask("/metrics", "POST")[0], 405)
        self.assertEqual(site.ask("/metrics", "DELETE")[0], 405)
        self.assertEqual(site.ask("/healthz", "HEAD"), (200, ""))
        self.assertEqual(site.ask("/metrics", Host="evil.example")[0], 421)
        self.assertEqual(site.ask("/metrics", Host="localhost:1")[0], 200)
        self.assertEqual(site.ask("/healthz", Host="evil.example")[0], 200)
        get = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
        body = site.raw(get + b"Content-Length: 5\r\n\r\nhello")
        self.assertTrue(body.startswith(b"HTTP/1.1 413 "), body)

    def test_two_requests_in_one_piece_are_both_answered(self) -> None:
        site = self.site()
        get = b"GET /api/server HTTP/1.1\r\nHost: localhost\r\n"
        answers = site.raw(get + b"\r\n" + get + b"Connection: close\r\n\r\n")
        self.assertEqual(answers.count(b"HTTP/1.1 200 OK"), 2)

    def test_a_disk_that_is_low_leaves_the_server_ready_and_is_a_figure(self) -> None:
        site = self.site(arguments=("--disk-free-low-bytes", str(1 << 50)))
        self.assertTrue(poll_until(lambda: site.metric("nowcalls_ledger_disk_low 1")))
        status, body = site.ask("/readyz")
        self.assertEqual((status, json.loads(body)["status"]), (200, "ok"))
        self.assertEqual(site.ask("/healthz")[0], 200)

    def test_readers_of_streams_lock_neither_probes_nor_scrapes_of_their_address_out(self) -> None:
        site = self.site(rule(7, 3))
        get = b"GET /api/stream?view=flows HTTP/1.1\r\nHost: localhost\r\n\r\n"
        readers: List[socket.socket] = []
        for _ in range(64):
            reader = socket.create_connection(site.address, timeout=PATIENCE_S)
            self.addCleanup(reader.close)
            reader.sendall(get)
            self.assertIn(b" 200 OK", reader.recv(65536))
            readers.append(reader)
        with self.assertRaises((OSError, http.client.HTTPException)):
            site.ask("/api/server")
        for path in ("/healthz", "/readyz", "/metrics"):
            self.assertEqual(site.ask(path)[0], 200, path)

    def test_a_name_with_several_addresses_is_served_at_each(self) -> None:
        site = self.site(http="localhost:0")
        line = next(line for line in site.server.log().splitlines() if "health on http" in line)
        addresses = re.findall(r"http://(?:\[([^]]+)\]|([\d.]+)):(\d+)/", line)
        self.assertEqual(len({port for _, _, port in addresses}), 1)
        for v6, v4, port in addresses:
            connection = http.client.HTTPConnection(v6 or v4, int(port), timeout=PATIENCE_S)
            self.addCleanup(connection.close)
            connection.request("GET", "/healthz")
            self.assertEqual(connection.getresponse().status, 200)

    def test_a_rebound_name_is_refused_and_a_proxys_name_is_not(self) -> None:
        arguments = ("--insecure-listen", "--http-hosts", "Calls.example", "--http-hosts", "calls")
        site = self.site(http="0.0.0.0:0", arguments=arguments)
        status, text = site.ask("/", Host="rebound.evil.example")
        self.assertEqual(status, 421)
        self.assertIn("name the host in http-hosts", text)
        for host in ("calls.example:443", "calls", "10.1.2.3", "localhost", "[::1]:80"):
            self.assertEqual(site.ask("/", Host=host)[0], 200, host)

    def test_hostile_requests_are_bounded_and_others_are_served(self) -> None:
        site = self.site(rule(7, 3))
        huge = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"
        self.assertNotIn(b"200 OK", site.raw(huge))
        self.assertNotIn(b"200 OK", site.raw(b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n"))
        self.assertNotIn(b"200 OK", site.raw(b"\x00\x01\x02\r\n\r\n"))
        upwards = b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        self.assertIn(b" 404 ", site.raw(upwards))
        idle = []
        for _ in range(1000):  # Of one address most are closed at once.
            idle.append(socket.create_connection(site.address, timeout=PATIENCE_S))
        with nowcalls.Client(site.server.address, client_id="me") as client:
            with client.permit(7):
                self.assertEqual(site.server.now_calls(7), 1)
        for sock in idle:
            sock.close()
        self.assertTrue(poll_until(lambda: self.is_served(site)))

    @staticmethod
    def is_served(site: Site) -> bool:
        try:
            return site.ask("/healthz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def test_readers_of_more_flows_than_are_watched_do_not_make_looks_hurry(self) -> None:
        site = self.site()

        def look() -> Tuple[int, int]:
            for flow in range(1, 101):
                site.ask(f"/api/flow?id={flow}")
            head = json.loads(site.ask("/api/server")[1])
            return head["number"], head["unix_ms"]

        # Those that come first may hurry.
        begin = look()[0]
        self.assertTrue(poll_until(lambda: look()[0] >= begin + 3))
        first = look()
        self.assertTrue(poll_until(lambda: look()[0] >= first[0] + 5))
        last = look()
        # By the snapshots' own times: one a second, however slow this machine is.
        self.assertGreater((last[1] - first[1]) / (last[0] - first[0]), 900)

    def test_an_address_that_others_reach_must_be_allowed(self) -> None:
        ended = subprocess.run(
            [os.path.join(BIN_DIR, "nowcalls-server"), "--http", "0.0.0.0:0", "--check-config"],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(ended.returncode, 64)
        self.assertIn("flag --http: 0.0.0.0:0 can be reached from other machines", ended.stderr)

    def test_a_port_that_is_taken_ends_the_start(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken, tempfile.TemporaryDirectory() as dir:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            ended = subprocess.run(
                [
                    os.path.join(BIN_DIR, "nowcalls-server"),
                    *("--listen", "127.0.0.1:0", "--data-dir", dir, "--http", address),
                ],
                capture_output=True,
                text=True,
                check=False,
            )
        self.assertEqual(ended.returncode, 74)
        self.assertIn(f"cannot listen on {address}: Address already in use", ended.stderr)

    @unittest.skipUnless(shutil.which("promtool"), NO_PROMETHEUS)
    def test_promtool_finds_nothing_wrong(self) -> None:
        site = self.site(rule(7, 3))
        with nowcalls.Client(site.server.address, client_id="me") as client, client.permit(7):
            self.assertTrue(poll_until(lambda: 'flow_id="7"' in site.ask("/metrics")[1]))
            text = site.ask("/metrics")[1]
        checked = subprocess.run(
            ["promtool", "check", "metrics"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    @unittest.skipUnless(shutil.which("prometheus"), NO_PROMETHEUS)
    def test_a_real_prometheus_scrapes_it(self) -> None:
        site = self.site(rule(7, 3))
        with tempfile.TemporaryDirectory() as dir, socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
            free.close()
            config = os.path.join(dir, "prometheus.yml")
            with open(config, "w") as file:
                file.write(
                    "global: {scrape_interval: 1s}\n"
                    "scrape_configs:\n"
                    "- job_name: nowcalls\n"
                    f"  static_configs: [{{targets: ['127.0.0.1:{site.address[1]}']}}]\n"
                )
            prometheus = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={config}",
                    f"--storage.tsdb.path={dir}/data",
                    f"--web.listen-address=127.0.0.1:{port}",
                ],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                with nowcalls.Client(site.server.address, client_id="me") as client:
                    with client.permit(7, count=2):
                        self.assertTrue(poll_until(lambda: self.scraped(port) == "2", 60.0))
            finally:
                prometheus.terminate()
                prometheus.wait()

    @staticmethod
    def scraped(port: int) -> str:
        query = "nowcalls_flow_now_calls%7Bflow_id%3D%227%22%7D"
        try:
            url = f"http://127.0.0.1:{port}/api/v1/query?query={query}"
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                result = json.load(answer)["data"]["result"]
                return str(result[0]["value"][1]) if result else ""
        except OSError:
            return ""


class MonitoringFilesTest(unittest.TestCase):
    """data/monitoring, as users import it."""

    def test_every_metric_that_they_name_is_there(self) -> None:
        site = Site(rule(7, 3))
        self.addCleanup(site.server.remove)
        self.assertTrue(poll_until(lambda: "nowcalls_flow_" in site.ask("/metrics")[1]))
        told = set(re.findall(r"^# TYPE (\w+) ", site.ask("/metrics")[1], re.M))
        for name in ("alerts.yml", "grafana-dashboard.json"):
            with open(os.path.join(MONITORING, name)) as file:
                text = file.read()
            named = set(re.findall(r"\b((?:nowcalls|process)_\w+)", text))
            self.assertGreater(len(named), 10)
            for metric in named:
                if metric.startswith("nowcalls_cluster_"):
                    continue  # tests/cluster asks a member for those.
                family = re.sub("_(bucket|sum|count)$", "", metric)
                self.assertTrue({metric, family} & told, f"{name} names {metric}")

    def test_the_dashboard_is_json_with_panels_apart(self) -> None:
        with open(os.path.join(MONITORING, "grafana-dashboard.json")) as file:
            panels = json.load(file)["panels"]
        places = [panel["gridPos"] for panel in panels]
        cells = [
            (x, y)
            for at in places
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        ]
        self.assertEqual(len(cells), len(set(cells)))
        self.assertLess(max(x for x, _ in cells), 24)

    @unittest.skipUnless(shutil.which("promtool"), NO_PROMETHEUS)
    def test_each_alert_fires_and_is_silent_when_all_is_well(self) -> None:
        tests = os.path.join(os.path.dirname(os.path.abspath(__file__)), "alerts_test.yml")
        for arguments in (["check", "rules", os.path.join(MONITORING, "alerts.yml")],
                          ["test", "rules", tests]):
            checked = subprocess.run(
                ["promtool", *arguments], capture_output=True, text=True, check=False
            )
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


class ServiceManagerTest(unittest.TestCase):
    def test_systemd_is_told_of_the_beginning_of_life_and_of_the_end(self) -> None:
        with tempfile.TemporaryDirectory() as dir:
            path = os.path.join(dir, "notify")
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
                notified.bind(path)
                notified.settimeout(PATIENCE_S)
                environment = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"}
                os.environ.update(environment)
                try:
                    server = Server()
                finally:
                    for name in environment:
                        del os.environ[name]
                received = [notified.recv(100) for _ in range(5)]
                self.assertTrue(received[0].startswith(b"EXTEND_TIMEOUT_USEC="), received)
                told = {said for said in received if not said.startswith(b"EXTEND_TIMEOUT_USEC=")}
                self.assertEqual(told, {b"READY=1", b"WATCHDOG=1"})
                server.terminate()
                while (last := notified.recv(100)) == b"WATCHDOG=1":
                    pass
                self.assertEqual(last, b"STOPPING=1")
                server.remove()


if __name__ == "__main__":
    unittest.main()
