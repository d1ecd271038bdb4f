"""What the tests stand on: a real server, a proxy that cuts connections, and a scripted server."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
from typing import Any, Callable, Dict, List, Optional

import msgpack
import nowcalls

logging.getLogger("nowcalls").addHandler(logging.NullHandler())  # Else warnings go to stderr.

PATIENCE_S = 20.0
BIN_DIR = os.environ["NOWCALLS_BIN_DIR"]


def poll_until(condition: Callable[[], Any], patience: float = PATIENCE_S) -> bool:
    """Whether the condition comes true in time."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())


def rule(flow_id: int, count: float, **config: Any) -> Dict[str, Any]:
    """A rule of calls in progress whose tokens are kept, with a long hold unless `config` has
    another."""
    cluster = {"flowId": flow_id, "thresholdType": 1, "resourceTimeoutStrategy": 2}
    cluster.update(resourceTimeout=30_000, clientOfflineTime=30_000)
    cluster.update(config)
    shared = {"resource": f"r{flow_id}", "grade": 0, "clusterMode": True}
    return {**shared, "count": count, "clusterConfig": cluster}


def rule_of_keys(flow_id: int, count: float, **config: Any) -> Dict[str, Any]:
    return {**rule(flow_id, count, **config), "paramIdx": 0}


class Server:
    """A real server with a ledger of its own, on a free port that it keeps over restarts."""

    def __init__(
        self, *arguments: str, bin_dir: str = BIN_DIR, data_dir: Optional[str] = None
    ) -> None:
        self._dir = tempfile.mkdtemp(prefix="nowcalls-python-")
        self._bin_dir = bin_dir
        self._data_dir = data_dir or os.path.join(self._dir, "data")
        self._arguments = arguments
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._port = 0
        self.start()

    @property
    def port(self) -> int:
        return self._port

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        port_file = os.path.join(self._dir, "port")
        with contextlib.suppress(FileNotFoundError):
            os.remove(port_file)
        with open(os.path.join(self._dir, "log"), "ab") as log:
            self._process = subprocess.Popen(
                [
                    os.path.join(self._bin_dir, "nowcalls-server"),
                    *("--listen", self.address, "--port-file", port_file),
                    *("--data-dir", self._data_dir),
                    *self._arguments,
                ],
                stdout=log,
                stderr=log,
            )
        started = poll_until(lambda: os.path.exists(port_file) and os.path.getsize(port_file) > 0)
        if not started:
            raise AssertionError("the server did not start:\n" + self.log())
        with open(port_file) as file:
            self._port = int(file.read())

    def log(self) -> str:
        with open(os.path.join(self._dir, "log")) as log:
            return log.read()

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def terminate(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait()

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self._dir)

    def call(self, method: str, *params: Any) -> Any:
        """One call by a client that is not the one under test."""
        host, port = self.address.split(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as sock:
            sock.sendall(msgpack.packb([0, 1, method, list(params)]))
            unpacker = msgpack.Unpacker()
            while True:
                for _, _, error, result in unpacker:
                    if error is not None:
                        raise AssertionError(f"{method}: {error}")
                    return result
                data = sock.recv(65536)
                if not data:
                    raise AssertionError(f"{method}: the server closed the connection")
                unpacker.feed(data)

    def now_calls(self, flow_id: int) -> int:
        return int(self.call("flow", flow_id)["now_calls"])

    def waiters(self, flow_id: int) -> int:
        return int(self.call("flow", flow_id)["waiters"])

    def admin(self, *arguments: str) -> str:
        return subprocess.run(
            [os.path.join(BIN_DIR, "nowcalls-admin"), *arguments, "--server", self.address],
            check=True,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        ).stdout


class Proxy:
    """Passes bytes between clients and a server, and breaks connections when told to.

    answers, requests: False swallows what the server, or the client, sends. Both: a black hole.
    accepts: False ends new connections at once.
    """

    def __init__(self, target: str) -> None:
        self.answers = True
        self.requests = True
        self.accepts = True
        self._target = target
        self._pairs: List[List[socket.socket]] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self._threads: List[threading.Thread] = []
        self._start(self._accept)

    def cut(self) -> None:
        """Breaks all connections."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for sock in pair:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self.cut()
        for thread in list(self._threads):
            thread.join()
        self._listener.close()

    def _start(self, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self.accepts:
                client.close()
                continue
            host, port = self._target.split(":")
            try:
                server = socket.create_connection((host, int(port)))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._pairs.append([client, server])
            self._start(self._pass, client, server)

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        back = threading.Thread(target=self._pump, args=(server, client, True), daemon=True)
        back.start()
        self._pump(client, server, False)
        back.join()
        client.close()
        server.close()
        self._threads.remove(threading.current_thread())

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while True:
                data = source.recv(65536)
                if not data:
                    break
                if self.answers if answers else self.requests:
                    sink.sendall(data)
        for sock in (source, sink):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


class ScriptedServer:
    """Takes one connection after the other, and answers each request with what `answer` returns.

    answer(method, params): a list [error, result], or None for no answer.
    tls: what its connections speak; `sock` is the latest.
    """

    def __init__(
        self,
        answer: Callable[[str, List[Any]], Optional[List[Any]]],
        tls: Optional[ssl.SSLContext] = None,
    ) -> None:
        self._answer = answer
        self.tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.sock: Optional[socket.socket] = None
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def notify(self, method: str, *params: Any) -> None:
        assert self.sock is not None
        self.sock.sendall(msgpack.packb([2, method, list(params)]))

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        if self.sock is not None:
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    @staticmethod
    def _shake(sock: ssl.SSLSocket) -> bool:
        try:
            sock.do_handshake()
        except ssl.SSLError:  # A reset would overtake the alert that says why.
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(65536):
                pass
            return False
        return True

    def _serve(self) -> None:
        while True:
            try:
                self.sock, _ = self._listener.accept()
            except OSError:
                return
            if self.tls is not None:
                self.sock = self.tls.wrap_socket(self.sock, True, do_handshake_on_connect=False)
            with self.sock as sock, contextlib.suppress(OSError):
                if isinstance(sock, ssl.SSLSocket) and not self._shake(sock):
                    continue
                unpacker = msgpack.Unpacker()
                while True:
                    data = sock.recv(65536)
                    if not data:
                        break
                    unpacker.feed(data)
                    for _, msgid, method, params in unpacker:
                        answer = self._answer(method, params)
                        if answer is not None:
                            sock.sendall(msgpack.packb([1, msgid, *answer]))


_shared: List[Server] = []
_flow_ids = itertools.count(1001)


def shared_server() -> Server:
    """The server of all tests that do not end theirs."""
    if not _shared:
        server = Server()
        _shared.append(server)
        unittest.addModuleCleanup(_remove_shared)
    return _shared[0]


def _remove_shared() -> None:
    while _shared:
        _shared.pop().remove()


class ServerTest(unittest.TestCase):
    """A test with a server, rules and a namespace of its own."""

    def setUp(self) -> None:
        self.server = self.make_server()
        self.namespace = self.id().split(".")[-1][:100]
        self._rules: List[Dict[str, Any]] = []

    def make_server(self) -> Server:
        return shared_server()

    def own_server(self, *arguments: str) -> Server:
        server = Server(*arguments)
        self.addCleanup(server.remove)
        return server

    def load(self, make: Callable[..., Dict[str, Any]], count: float, **config: Any) -> int:
        """Loads one more rule, and returns its flow id."""
        flow_id = next(_flow_ids)
        self._rules.append(make(flow_id, count, **config))
        self.server.call("rules_load", self.namespace, json.dumps(self._rules))
        return flow_id

    def client(self, address: Any = None, **settings: Any) -> nowcalls.Client:
        """A client that tells of each failure, unless it is to fall back."""
        address = address or self.server.address
        settings.setdefault("fallback", "fail")
        client = nowcalls.Client(address, namespace=self.namespace, **settings)
        self.addCleanup(client.close)
        return client

    def proxy(self) -> Proxy:
        proxy = Proxy(self.server.address)
        self.addCleanup(proxy.close)
        return proxy

    def assert_soon(self, condition: Callable[[], Any], message: str = "") -> None:
        self.assertTrue(poll_until(condition), message or "it did not come true")
