"""The server of a pod, without Kubernetes: its files, arguments and environment as the manifests
have them, below a directory of the test, on loopback."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from typing import Dict, List, Optional, Tuple

from manifests import ETC, LEDGER_MOUNT, Overlay
from support import BIN_DIR, PATIENCE_S, poll_until

VERSIONS = itertools.count(1)


def publish(mount: str, files: Dict[str, str]) -> None:
    """As the kubelet does: files are links into ..data, a link that is swapped."""
    version = f"..v{next(VERSIONS)}"
    os.makedirs(os.path.join(mount, version))
    before = os.path.realpath(os.path.join(mount, "..data"))
    for name, text in files.items():
        with open(os.path.join(mount, version, name), "w", opener=_private) as file:
            file.write(text)
        with contextlib.suppress(FileExistsError):
            os.symlink(f"..data/{name}", os.path.join(mount, name))
    os.symlink(version, os.path.join(mount, "..data_tmp"))
    os.rename(os.path.join(mount, "..data_tmp"), os.path.join(mount, "..data"))
    if os.path.basename(before) != "..data":
        shutil.rmtree(before)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o400)


def free_port(*hosts: str) -> int:
    """Of all these addresses."""
    while True:
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            first = stack.enter_context(socket.create_server((hosts[0], 0)))
            port = int(first.getsockname()[1])
            for host in hosts[1:]:
                stack.enter_context(socket.create_server((host, port)))
            return port


class Pod:
    def __init__(
        self,
        overlay: Overlay,
        secrets: Optional[Dict[str, Dict[str, str]]] = None,
        listen: str = "127.0.0.1:0",
        environment: Optional[Dict[str, str]] = None,
    ) -> None:
        """`secrets`: files by the path of the mount. `environment`: in place of the overlay's."""
        self.root = tempfile.mkdtemp(prefix="nowcalls-pod-")
        self._overlay = overlay
        self._listen = listen
        self._environment = environment or {}
        self._process: Optional[subprocess.Popen[bytes]] = None
        self.address = ""
        os.makedirs(self.here(LEDGER_MOUNT))
        for path, files in {**overlay.mounted(), **(secrets or {})}.items():
            os.makedirs(self.here(path))
            publish(self.here(path), {name: self._moved(text) for name, text in files.items()})

    def here(self, path: str) -> str:
        return self.root + path

    def _moved(self, text: str) -> str:
        """Paths of the pod, and the addresses that it listens on, as they are in this test."""
        text = re.sub(rf"(?<![\w/]){ETC}/", self.here(ETC) + "/", text)
        text = re.sub(rf"(?<![\w/]){LEDGER_MOUNT}/", self.here(LEDGER_MOUNT) + "/", text)
        text = text.replace("0.0.0.0:18730", self._listen)
        return text.replace("0.0.0.0:18731", "127.0.0.1:0")

    def moved(self, arguments: List[str]) -> List[str]:
        return [self._moved(argument) for argument in arguments]

    @property
    def environment(self) -> Dict[str, str]:
        outer = {name: value for name, value in os.environ.items() if name[:9] != "NOWCALLS_"}
        own = {name: self._moved(text) for name, text in self._overlay.environment.items()}
        return {**outer, **own, **self._environment}

    def check_config(self) -> str:
        """What --check-config prints; fails unless all is valid."""
        done = subprocess.run(
            [*self._command, "--check-config"],
            env=self.environment,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        return done.stdout + done.stderr

    @property
    def _command(self) -> List[str]:
        server = os.path.join(BIN_DIR, "nowcalls-server")
        return [server, *self.moved(self._overlay.container["args"])]

    def start(self) -> None:
        with open(self.here("/log"), "w") as log:
            self._process = subprocess.Popen(
                self._command, env=self.environment, stdout=log, stderr=log
            )
        if not poll_until(lambda: self._http_address() is not None):
            raise AssertionError("the server did not start:\n" + self.log())

    def await_serving(self) -> None:
        """Sets `address`."""
        serving = re.compile(r"serving on ([\d.]+:\d+)")
        if not poll_until(lambda: serving.search(self.log())):
            raise AssertionError("the server does not serve:\n" + self.log())
        self.address = serving.findall(self.log())[-1]

    def log(self) -> str:
        with open(self.here("/log")) as log:
            return log.read()

    def warnings(self) -> List[str]:
        lines = [json.loads(line) for line in self.log().splitlines()]
        return [line["msg"] for line in lines if line["level"] not in ("debug", "info")]

    def _http_address(self) -> Optional[Tuple[str, int]]:
        found = re.search(r"health on https?://([\d.]+):(\d+)/", self.log())
        return (found[1], int(found[2])) if found else None

    @property
    def http(self) -> Tuple[str, int]:
        address = self._http_address()
        assert address is not None
        return address

    def ask(self, path: str, host: str = "localhost") -> int:
        """The status, by plain HTTP."""
        connection = http.client.HTTPConnection(*self.http, timeout=PATIENCE_S)
        try:
            connection.request("GET", path, headers={"Host": host})
            return connection.getresponse().status
        finally:
            connection.close()

    def terminate(self) -> int:
        """The exit code, within the time that Kubernetes gives."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(self._overlay.pod["terminationGracePeriodSeconds"])

    def remove(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.root)
