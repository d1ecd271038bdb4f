"""HTTP of a server that knows who asks: by plain HTTP over loopback, and by HTTPS."""

from __future__ import annotations

import base64
import http.client
import json
import os
import shutil
import ssl
import subprocess
import tempfile
import unittest
from typing import Dict, Optional, Tuple

import nowcalls
from certificates import Authority
from support import BIN_DIR, PATIENCE_S, Server, poll_until, rule
from test_http import http_address

# Each tenant's flow, by its namespace.
FLOWS = {"shop": 1001, "bank": 2001}
LISTS = ("/api/flows", "/api/clients", "/api/history", "/metrics")


def bearer(secret: str) -> Dict[str, str]:
    return {"Authorization": "Bearer " + secret}


def basic(name: str, secret: str) -> Dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()}


class SecurityTest(unittest.TestCase):
    def setUp(self) -> None:
        self.dir = tempfile.mkdtemp(prefix="nowcalls-tenants-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.access = os.path.join(self.dir, "access.toml")
        os.close(os.open(self.access, os.O_CREAT, 0o600))
        self.secrets = {name: self.add(name, "client", name) for name in FLOWS}
        self.context: Optional[ssl.SSLContext] = None

    def add(self, name: str, role: str, namespace: str) -> str:
        """The principal's secret."""
        return subprocess.run(
            [
                *(os.path.join(BIN_DIR, "nowcalls-admin"), "access", "add", name),
                *("--role", role, "--namespace", namespace, "--access", self.access),
            ],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def start(self, *arguments: str) -> None:
        rules = []
        for tenant, flow in FLOWS.items():
            file = os.path.join(self.dir, tenant + ".json")
            with open(file, "w") as out:
                json.dump([rule(flow, 5)], out)
            rules += ["--rules", f"{tenant}={file}"]
        self.server = Server("--http", "127.0.0.1:0", "--access", self.access, *rules, *arguments)
        self.addCleanup(self.server.remove)
        self.address = http_address(self.server)
        for tenant, flow in FLOWS.items():
            client = nowcalls.Client(
                self.server.address,
                namespace=tenant,
                client_id="of-" + tenant,
                secret=self.secrets[tenant],
            )
            self.addCleanup(client.close)
            self.addCleanup(client.acquire(flow).release)

    def ask(self, path: str, headers: Dict[str, str]) -> Tuple[int, str]:
        connection = http.client.HTTPConnection(*self.address, timeout=PATIENCE_S)
        if self.context is not None:
            connection = http.client.HTTPSConnection(
                *self.address, timeout=PATIENCE_S, context=self.context
            )
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            self.challenge = response.getheader("WWW-Authenticate")
            return response.status, response.read().decode()
        finally:
            connection.close()

    def test_a_tenant_sees_its_own_and_nothing_of_another(self) -> None:
        self.start()
        own = bearer(self.secrets["shop"])
        shown = ("shop", "of-shop", "r1001")
        hidden = ("bank", "of-bank", "r2001", "2001")
        for path in LISTS:
            with self.subTest(path=path):
                seen = lambda: any(word in self.ask(path, own)[1] for word in shown)
                # What was watched first is there with the next look. Nobody has been taken back
                # from, so history is empty.
                self.assertTrue(path == "/api/history" or poll_until(seen))
                status, body = self.ask(path, own)
                self.assertEqual(status, 200)
                for word in hidden:
                    self.assertNotIn(word, body)
        self.assertEqual(self.ask("/api/flow?id=1001", own)[0], 200)
        # Never its figures, nor its namespace.
        status, body = self.ask("/api/flow?id=2001", own)
        self.assertIn(status, (403, 404))
        self.assertNotIn("bank", body)

    def test_nobody_is_asked_who_it_is_and_a_wrong_secret_is_told(self) -> None:
        self.start()
        for path in ("/", *LISTS):
            with self.subTest(path=path):
                status, body = self.ask(path, {})
                self.assertEqual(status, 401)
                self.assertIn("Basic", self.challenge or "")
                self.assertNotIn("shop", body)
        wrong = self.secrets["bank"]
        for headers in (bearer(wrong + "x"), basic("shop", wrong), {"Authorization": "Basic !"}):
            status, body = self.ask("/api/flows", headers)
            self.assertEqual(status, 401)
            self.assertNotIn(wrong, body)
        self.assertNotIn(wrong, self.server.log())
        self.assertEqual(self.ask("/api/flows", basic("bank", wrong))[0], 200)
        for path in ("/healthz", "/readyz"):
            self.assertEqual(self.ask(path, {})[0], 200)

    def test_metrics_can_be_open_while_the_rest_is_not(self) -> None:
        self.start("--http-metrics", "open")
        self.assertEqual(self.ask("/metrics", {})[0], 200)
        self.assertEqual(self.ask("/api/flows", {})[0], 401)

    def test_https_shows_the_servers_certificate_and_asks_for_the_same_secrets(self) -> None:
        if shutil.which("openssl") is None:
            self.skipTest("skipped: Debian's openssl is not installed")
        authority = Authority()
        self.addCleanup(authority.remove)
        certificate, key = authority.issue("IP:127.0.0.1")
        self.start("--tls-cert", certificate, "--tls-key", key)
        self.context = ssl.create_default_context(cafile=authority.file)
        self.assertEqual(self.ask("/api/flows", {})[0], 401)
        self.assertEqual(self.ask("/api/flows", bearer(self.secrets["shop"]))[0], 200)
        self.context = ssl.create_default_context()
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.ask("/healthz", {})
