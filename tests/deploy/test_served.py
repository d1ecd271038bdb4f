"""The real server with the files, arguments and environment of data/deploy/kubernetes."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import unittest
import urllib.request
from typing import Any, Dict, List
from unittest import mock

import kustomize
import nowcalls
from certificates import Authority
from manifests import ETC, JOBS, LEDGER_MOUNT, OVERLAYS, Overlay
from pods import Pod, free_port, publish
from support import BIN_DIR, poll_until, rule

HAPROXY = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
FLOW = 1  # Of base/rules/default.json.
NAMES = "DNS:nowcalls,DNS:nowcalls-members,DNS:*.nowcalls-members.nowcalls.svc,IP:127.0.0.1"


def text_of(path: str) -> str:
    with open(path) as file:
        return file.read()


class ServedTest(unittest.TestCase):
    def pod(self, overlay: Overlay, **arguments: Any) -> Pod:
        pod = Pod(overlay, **arguments)
        self.addCleanup(pod.remove)
        return pod

    def serving(self, overlay: Overlay, **arguments: Any) -> Pod:
        pod = self.pod(overlay, **arguments)
        pod.start()
        pod.await_serving()
        return pod

    def client(self, address: str, **arguments: Any) -> nowcalls.Client:
        client = nowcalls.Client(address, client_id="test", fallback="fail", **arguments)
        self.addCleanup(client.close)
        return client

    def secrets(self) -> Dict[str, Dict[str, str]]:
        """The Secrets of components/tls, as tools/manual/kubernetes.md makes them."""
        authority = Authority()
        self.addCleanup(authority.remove)
        self.ca = authority.file
        certificate, key = authority.issue(NAMES)
        directory = tempfile.mkdtemp(prefix="nowcalls-access-")
        self.addCleanup(shutil.rmtree, directory)
        access = os.path.join(directory, "access.toml")
        os.close(os.open(access, os.O_CREAT, 0o600))
        add = [os.path.join(BIN_DIR, "nowcalls-admin"), "access", "add", "shop"]
        add += ["--role", "client", "--namespace", "default", "--access", access]
        self.secret = subprocess.run(add, check=True, capture_output=True, text=True).stdout.strip()
        tls = {"tls.crt": certificate, "tls.key": key, "ca.crt": authority.file}
        return {
            ETC + "/tls": {name: text_of(path) for name, path in tls.items()},
            ETC + "/access": {"access.toml": text_of(access)},
        }

    def answered(self, pod: Pod, overlay: Overlay) -> None:
        self.assertEqual(len(overlay.probes), 3)
        for name, probe in overlay.probes.items():
            with self.subTest(name):
                # The kubelet asks by the address of the pod.
                self.assertTrue(poll_until(lambda: pod.ask(probe["path"], "10.1.2.3:18731") == 200))
        # A path that the server does not know is no probe that succeeds.
        self.assertNotEqual(pod.ask("/livez"), 200)


class SingleTest(ServedTest):
    def test_the_settings_and_variables_of_each_overlay_are_valid(self) -> None:
        help_text = subprocess.run(
            [os.path.join(BIN_DIR, "nowcalls-server"), "--help"], check=True, capture_output=True
        ).stdout.decode()
        known = set(re.findall(r"NOWCALLS_[A-Z_]+", help_text))
        for name in OVERLAYS:
            with self.subTest(name):
                overlay = Overlay(name)
                ours = {key for key in overlay.environment if key.startswith("NOWCALLS_")}
                self.assertLessEqual(ours, known)
                settings = self.pod(overlay, secrets=self.secrets()).check_config()
                self.assertIn("The configuration is valid.", settings)
                self.assertNotIn("warn", settings)

    def test_probes_are_answered_and_the_end_comes_in_time(self) -> None:
        overlay = Overlay("single")
        pod = self.serving(overlay)
        self.answered(pod, overlay)
        self.assertEqual(pod.warnings(), [])
        self.assertEqual(pod.terminate(), 0)

    def test_changed_rules_are_in_force_without_a_restart(self) -> None:
        overlay = Overlay("single")
        pod = self.serving(overlay)
        client = self.client(pod.address)
        permit = client.acquire(FLOW)
        rules = overlay.config_map("nowcalls-rules")
        (shown,) = json.loads(re.sub(r"^//.*$", "", rules["default.json"], flags=re.MULTILINE))
        self.assertEqual(shown["clusterConfig"]["flowId"], FLOW)
        publish(pod.here(ETC + "/rules"), {"default.json": json.dumps([rule(FLOW, 1)])})

        def full() -> bool:
            try:
                client.acquire(FLOW).release()
            except nowcalls.Refused:
                return True
            return False

        self.assertTrue(poll_until(full))
        permit.release()

    def test_a_restored_ledger_stands_beside_the_old_one(self) -> None:
        overlay = Overlay("single")
        pod = self.serving(overlay)
        client = self.client(pod.address)
        permit = client.acquire(FLOW)
        (job,) = kustomize.documents(JOBS[0])
        (container,) = job["spec"]["template"]["spec"]["containers"]
        (source,) = re.findall(r"--from=(\S+)", " ".join(container["args"]))
        (target,) = re.findall(r"--data-dir=(\S+)", " ".join(container["args"]))
        admin = os.path.join(BIN_DIR, container["command"][0])
        socket_path = LEDGER_MOUNT + "/data/server.sock"
        backup = ["backup", "--server", pod.here(socket_path), "--to", pod.here(source)]
        subprocess.run([admin, *backup], check=True, capture_output=True)
        permit.release()
        self.assertEqual(pod.terminate(), 0)
        done = subprocess.run([admin, *pod.moved(container["args"])], capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        listing = ["tokens", "--format", "jsonl", "--data-dir", pod.here(target)]
        found = subprocess.run([admin, *listing], check=True, capture_output=True, text=True)
        self.assertIn(str(permit.token_id), found.stdout)


class TlsTest(ServedTest):
    def test_probes_come_by_plain_http_and_clients_by_tls_with_a_secret(self) -> None:
        overlay = Overlay.of({"resources": ["overlays/single"], "components": ["components/tls"]})
        pod = self.serving(overlay, secrets=self.secrets())
        self.answered(pod, overlay)
        self.assertEqual(pod.ask("/metrics"), 400)  # Not by plain HTTP.
        self.client(pod.address, tls=self.ca, secret=self.secret).acquire(FLOW).release()
        with self.assertRaises(nowcalls.PermissionDenied):
            self.client(pod.address, tls=self.ca).acquire(FLOW)


@unittest.skipIf(shutil.which("etcd") is None, "skipped: Debian's etcd-server is not installed")
class ClusterTest(ServedTest):
    def etcd(self) -> str:
        """Its address."""
        directory = tempfile.mkdtemp(prefix="nowcalls-etcd-")
        self.addCleanup(shutil.rmtree, directory)
        at, peers = (f"127.0.0.1:{free_port('127.0.0.1')}" for _ in range(2))
        with open(os.path.join(directory, "log"), "w") as log:
            process = subprocess.Popen(
                [
                    *("etcd", "--name", "test", "--data-dir", os.path.join(directory, "data")),
                    *("--listen-client-urls", f"http://{at}"),
                    *("--advertise-client-urls", f"http://{at}"),
                    *("--listen-peer-urls", f"http://{peers}"),
                    *("--initial-advertise-peer-urls", f"http://{peers}"),
                    *("--initial-cluster", f"test=http://{peers}"),
                ],
                stdout=log,
                stderr=log,
            )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return at

    def two(self, overlay: Overlay, hosts: List[str], port: int) -> List[Pod]:
        """The first one writes."""
        prefix = re.sub(r"^etcd://[^/]*", "", overlay.environment["NOWCALLS_CLUSTER"])
        cluster = f"etcd://{self.etcd()}{prefix}"
        members: List[Pod] = []
        for host in hosts:
            here = {"NOWCALLS_CLUSTER": cluster, "NOWCALLS_CLUSTER_ADVERTISE": f"{host}:{port}"}
            members.append(self.pod(overlay, listen=f"{host}:{port}", environment=here))
            members[-1].start()
            if len(members) == 1:
                members[0].await_serving()
        return members

    def test_a_standby_is_ready_and_one_name_of_all_members_leads_to_the_writer(self) -> None:
        overlay = Overlay("cluster")
        hosts = ["127.0.0.1", "127.0.0.2"]
        port = free_port(*hosts)
        members = self.two(overlay, hosts, port)
        writer, standby = members
        for member in members:
            self.answered(member, overlay)
        self.assertEqual([member.ask("/readyz") for member in members], [200, 503])

        found = socket.getaddrinfo

        def all_members(host: Any, *rest: Any, **others: Any) -> Any:
            """The headless Service's answer, the standby first."""
            if host != "nowcalls-members":
                return found(host, *rest, **others)
            return [entry for name in reversed(hosts) for entry in found(name, *rest, **others)]

        with mock.patch.object(socket, "getaddrinfo", all_members):
            client = self.client(f"nowcalls-members:{port}")
            permit = client.acquire(FLOW)
            # As a rolling update does.
            self.assertEqual(writer.terminate(), 0)
            standby.await_serving()
            permit.release()
            client.acquire(FLOW).release()
        self.assertEqual(standby.ask("/readyz"), 200)

    @unittest.skipIf(HAPROXY is None, "skipped: Debian's haproxy is not installed")
    def test_the_proxy_leads_to_the_writer_and_follows_it(self) -> None:
        overlay = Overlay("sentinel")
        hosts = ["127.0.0.1", "127.0.0.2"]
        port, front, health = free_port(*hosts), free_port(hosts[0]), free_port(hosts[0])
        writer, standby = members = self.two(overlay, hosts, port)
        text = overlay.config_map("nowcalls-writer")["haproxy.cfg"]
        text = re.sub(r"^resolvers .*?\n\n", "", text, flags=re.DOTALL | re.MULTILINE)
        text = text.replace(" resolvers kubernetes init-addr none", " weight 1")
        text = text.replace("check port 18731", "check")
        text = text.replace("bind :18730", f"bind 127.0.0.1:{front}")
        text = text.replace("bind :18732", f"bind 127.0.0.1:{health}")
        text = re.sub(r"^  server nowcalls-2 .*\n", "", text, flags=re.MULTILINE)
        for number, (host, member) in enumerate(zip(hosts, members)):
            (name,) = re.findall(rf'"nowcalls-{number}\.[^"]*"', text)
            at = f"{host}:{port} port {member.http[1]} addr {member.http[0]}"
            text = text.replace(name, at)
        file = writer.here("/haproxy.cfg")
        with open(file, "w") as out:
            out.write(text)
        with open(writer.here("/haproxy.log"), "w") as log:
            proxy = subprocess.Popen([HAPROXY, "-db", "-f", file], stdout=log, stderr=log)
        self.addCleanup(proxy.wait)
        self.addCleanup(proxy.kill)

        def serves() -> bool:
            client = nowcalls.Client(f"127.0.0.1:{front}", client_id="probe", fallback="fail")
            with client:
                try:
                    client.acquire(FLOW).release()
                    return True
                except nowcalls.Unavailable:
                    return False

        down = poll_until(lambda: "nowcalls-1 is DOWN" in text_of(log.name))
        self.assertTrue(down, text_of(log.name) + text_of(file))
        for _ in range(6):
            self.assertTrue(serves())
        with urllib.request.urlopen(f"http://127.0.0.1:{health}/healthz") as answer:
            self.assertEqual(answer.status, 200)
        self.assertEqual(writer.terminate(), 0)
        standby.await_serving()
        self.assertTrue(poll_until(serves))


if __name__ == "__main__":
    unittest.main()
