"""Clients that speak TLS, with servers that are the right one, another one, or speak otherwise."""

import asyncio
import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import msgpack
import nowcalls
from certificates import Authority
from nowcalls._secret import PLAIN
from nowcalls._wire import USUAL_PORT
from support import PATIENCE_S, ScriptedServer, poll_until

SECRET = "nc-0123456789abcdef"
PERHAPS = f"is that a nowcalls-server? {USUAL_PORT}; or does it speak TLS only?"
NOT_NOWCALLS = "the peer does not speak nowcalls"
BIG = "x" * 300_000  # Of many TLS records.
authority: Authority


def setUpModule():
    global authority
    if shutil.which("openssl") is None:
        raise unittest.SkipTest("skipped: Debian's openssl is not installed")
    authority = Authority()
    unittest.addModuleCleanup(authority.remove)


class OneAnswer:
    """A server that takes each connection, reads once, sends the same bytes and closes."""

    def __init__(self, data=b""):
        self.received = b""
        self._data = data
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                with sock, contextlib.suppress(OSError):
                    self.received += sock.recv(65536)
                    sock.sendall(self._data)

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()


class SyncUse:
    """What a test does with a client, which is the blocking one."""

    @staticmethod
    def run(address, call, **settings):
        with nowcalls.Client(address, **settings) as client:
            return call(client)

    @staticmethod
    def together(address, calls, **settings):
        with nowcalls.Client(address, **settings) as client, ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda call: call(client), calls))


class AsyncUse:
    """The same, by asyncio."""

    @staticmethod
    def run(address, call, **settings):
        return AsyncUse.together(address, [call], **settings)[0]

    @staticmethod
    def together(address, calls, **settings):
        async def use():
            async with nowcalls.aio.Client(address, **settings) as client:
                return await asyncio.gather(*(call(client) for call in calls))

        return asyncio.run(use())


class TlsTest(unittest.TestCase):
    def setUp(self):
        self.asked = []
        self.met = []  # Of each greeting over TLS: its version, protocol and certificate.
        self.refuses = False

    def answer(self, method, params):
        self.asked.append([method, params])
        if method == "hello" and isinstance(self.latest.sock, ssl.SSLSocket):
            sock = self.latest.sock
            self.met.append((sock.version(), sock.selected_alpn_protocol(), sock.getpeercert()))
        if method == "identify":
            if self.refuses:
                return [[9, "PERMISSION", "the secret is wrong"], None]
            return [None, ["checkout", "client", "secret", None]]
        answers = {"hello": ["1.0", 9, 1, 0], "ping": [5], "flow": {"name": BIG}}
        answers["acquire"] = [0, 77, 13, 1, 2, 6000, None]
        answers["request_param"] = [0, len(str(params)), 0, None]
        answers["release"] = [6]
        return [None, answers.get(method, [[], None])]

    def server(self, tls=None):
        server = ScriptedServer(self.answer, tls)
        self.addCleanup(server.close)
        self.latest = server
        return server

    def one_answer(self, data=b""):
        server = OneAnswer(data)
        self.addCleanup(server.close)
        return server

    def each(self, address, call, **settings):
        """What comes of a call, of both clients: its value, or its error."""
        settings = {"timeout": PATIENCE_S, "fallback": "fail", **settings}
        came = []
        for use in (SyncUse, AsyncUse):
            try:
                came.append(use.run(address, call, **settings))
            except nowcalls.Error as error:
                came.append(error)
        return came

    def fails(self, address, words, end="", error_class=nowcalls.Unavailable, **settings):
        """An acquire ends when all addresses have failed, since nothing limits it locally."""
        settings = {"tls": authority.file, "fallback": "local", **settings}
        with self.assertLogs("nowcalls", "WARNING"):
            for error in self.each(
                address, lambda client: client.acquire(1, timeout=PATIENCE_S), **settings
            ):
                self.assertIsInstance(error, error_class)
                self.assertIn(f"{address}: {words}", str(error))
                self.assertTrue(str(error).endswith(end), str(error))

    def context(self, *arguments, **settings):
        return authority.server_context(*arguments, **settings)


class ServerTest(TlsTest):
    def test_a_server_whose_ca_is_given_is_spoken_to_by_tls(self):
        server = self.server(self.context())
        for pong in self.each(server.address, lambda client: client.ping(), tls=authority.file):
            self.assertEqual(pong, 5)
        for version, protocol, _ in self.met:
            self.assertIn(version, ("TLSv1.2", "TLSv1.3"))
            self.assertEqual(protocol, "nowcalls/1")
        self.assertEqual(len(self.met), 2)

    def test_long_answers_and_long_requests_pass_whole(self):
        server = self.server(self.context())
        values = ["y" * 60_000]
        length = len(str([1001, 1, values]))

        def ask(client):
            return client.request_param(1001, 1, values)

        for use in (SyncUse, AsyncUse):
            calls = [ask] * 30 + [lambda client: client.flow(1001)] * 4 + [ask] * 30
            settings = {"tls": authority.file, "timeout": PATIENCE_S, "fallback": "fail"}
            got = use.together(server.address, calls, **settings)
            self.assertEqual([row["name"] for row in got[30:34]], [BIG] * 4)
            self.assertEqual({rate.remaining for rate in got[:30] + got[34:]}, {length})

    def test_what_tls_has_read_ahead_is_read_though_select_does_not_see_it(self):
        server = self.server(self.context())
        # A ping, which is due after 10 s of silence, would bring the rest.
        settings = {"tls": authority.file, "timeout": 5.0, "fallback": "fail"}
        with mock.patch("nowcalls._worker.READ_BYTES", 100):
            row = SyncUse.run(server.address, lambda client: client.flow(1001), **settings)
        self.assertEqual(row, {"name": BIG})

    def test_a_connection_that_breaks_is_made_anew(self):
        server = self.server(self.context())
        settings = {"tls": authority.file, "timeout": PATIENCE_S, "fallback": "fail"}
        with nowcalls.Client(server.address, **settings) as client:
            client.ping()
            server.sock.shutdown(socket.SHUT_RDWR)
            self.assertTrue(poll_until(lambda: client.stats()["disconnects"] == 1))
            self.assertEqual(client.ping(), 5)

    def test_a_server_that_another_ca_has_signed_is_told_nothing(self):
        other = Authority()
        self.addCleanup(other.remove)
        server = self.server(self.context())
        self.fails(
            server.address,
            "its certificate is not believed: unable to get local issuer certificate",
            tls=other.file,
            secret=SECRET,
        )
        self.assertEqual(self.asked, [])

    def test_the_systems_authorities_do_not_know_the_ca_of_a_test(self):
        server = self.server(self.context())
        self.fails(server.address, "its certificate is not believed: ", tls=True)

    def test_a_certificate_must_have_the_host_that_is_dialled(self):
        server = self.server(self.context("DNS:a.test,IP:127.0.0.2"))
        self.fails(
            server.address,
            "its certificate is not believed: IP address mismatch, certificate is not valid for "
            "'127.0.0.1'",
        )
        named = f"localhost:{server.address.split(':')[1]}"
        self.fails(named, "its certificate is not believed: Hostname mismatch")
        self.assertEqual(self.asked, [])

    def test_a_common_name_is_not_what_a_certificate_is_for(self):
        server = self.server(self.context("URI:spiffe://prod/tokens"))
        words = "its certificate is not believed: Hostname mismatch"
        self.fails(server.address, words, tls_server_name="common.test")

    def test_another_name_than_that_of_the_address_may_be_expected(self):
        server = self.server(self.context("DNS:a.test"))
        for name in ("a.test", "a.test."):
            settings = {"tls": authority.file, "tls_server_name": name}
            for pong in self.each(server.address, lambda client: client.ping(), **settings):
                self.assertEqual(pong, 5)

    def test_a_certificate_that_has_expired_is_not_believed(self):
        server = self.server(self.context(days=-1))
        self.fails(server.address, "its certificate is not believed: certificate has expired")

    def test_a_server_that_asks_for_a_certificate_gets_that_of_the_client(self):
        server = self.server(self.context(clients=authority.file))
        certificate, key = authority.issue("URI:spiffe://prod/checkout")
        settings = {"tls": authority.file, "tls_certificate": certificate, "tls_key": key}
        for pong in self.each(server.address, lambda client: client.ping(), **settings):
            self.assertEqual(pong, 5)
        names = [certificate["subjectAltName"] for _, _, certificate in self.met]
        self.assertEqual(names, [(("URI", "spiffe://prod/checkout"),)] * 2)

    def test_a_client_whose_certificate_the_server_refuses_gets_no_call_past_it(self):
        server = self.server(self.context(clients=authority.file))
        denied = {"error_class": nowcalls.PermissionDenied, "fallback": "pass"}
        self.fails(server.address, "it asks for a client certificate, and none was shown", **denied)
        other = Authority()
        self.addCleanup(other.remove)
        certificate, key = other.issue("URI:spiffe://prod/checkout")
        settings = {"tls_certificate": certificate, "tls_key": key, **denied}
        self.fails(server.address, "it refuses the client's certificate", **settings)

    def test_a_context_of_the_program_is_used_as_it_is(self):
        server = self.server(self.context())
        context = ssl.create_default_context(cafile=authority.file)
        for pong in self.each(server.address, lambda client: client.ping(), tls=context):
            self.assertEqual(pong, 5)
        self.fails(server.address, "its certificate is", tls=context, tls_server_name="a.test")

    def test_files_that_were_renewed_are_used_by_the_next_dial(self):
        other = Authority()
        self.addCleanup(other.remove)
        server = self.server(self.context())
        file = authority.path("renewed.pem")
        shutil.copy(other.file, file)
        settings = {"tls": file, "timeout": PATIENCE_S, "fallback": "local"}
        with self.assertLogs("nowcalls", "WARNING"):
            with nowcalls.Client(server.address, **settings) as client:
                with self.assertRaisesRegex(nowcalls.Unavailable, "not believed"):
                    client.acquire(1)
                shutil.copy(authority.file, file)
                self.assertEqual(client.ping(), 5)

    def test_a_forked_child_leaves_the_tls_connection_to_its_parent(self):
        server = self.server(self.context())
        settings = {"tls": authority.file, "timeout": PATIENCE_S, "fallback": "fail"}
        with nowcalls.Client(server.address, **settings) as client:
            client.ping()
            child = os.fork()
            if child == 0:
                try:
                    client.ping()
                except nowcalls.BadRequest:
                    os._exit(7)
                os._exit(1)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
            self.assertEqual(client.ping(), 5)
            self.assertEqual(client.stats()["disconnects"], 0)


class OtherProtocolTest(TlsTest):
    def test_a_server_without_tls_is_told_by_its_answer_or_its_end(self):
        malformed = msgpack.packb([1, 0, [1, "MALFORMED", "not a request"], None])
        for data in (malformed, b"HTTP/1.1 400 Bad Request\r\n\r\n"):
            server = self.one_answer(data)
            self.fails(server.address, "it does not speak TLS", secret=SECRET)
            self.assertNotIn(SECRET.encode(), server.received)
        self.fails(
            self.one_answer().address,
            "the server closed the connection in the TLS handshake; does it speak TLS?",
        )

    def test_a_server_that_never_shakes_hands_is_given_up(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        address = "127.0.0.1:%d" % listener.getsockname()[1]
        self.fails(address, "", " timed out; does it speak TLS?", timeout=0.5)

    def test_a_plain_client_of_a_tls_server_is_told_so(self):
        for data, words in (
            (b"\x15\x03\x01\x00\x02\x02\x46", f"{NOT_NOWCALLS}: it speaks TLS; so must the client"),
            (b"", f"the server closed the connection, before hello was answered; {PERHAPS}"),
        ):
            self.fails(self.one_answer(data).address, words, tls=False)
        # OpenSSL may take hello for the begin of an SSL 2 message, and waits for the rest.
        server = self.server(self.context())
        self.fails(server.address, f"no answer to hello; {PERHAPS}", tls=False, timeout=0.5)


class SecretTest(TlsTest):
    def test_a_secret_leaves_over_tls_and_to_this_machine(self):
        for tls, setting in ((self.context(), authority.file), (None, False)):
            server = self.server(tls)
            settings = {"tls": setting, "secret": SECRET}
            for pong in self.each(server.address, lambda client: client.ping(), **settings):
                self.assertEqual(pong, 5)
            methods = [method for method, _ in self.asked]
            self.assertEqual(methods, ["identify", "hello", "ping"] * 2)
            self.assertEqual([self.asked[0], self.asked[3]], [["identify", [SECRET]]] * 2)
            self.asked.clear()

    def test_a_secret_does_not_leave_in_plain_to_another_host(self):
        server = self.server()
        settings = {"secret": SECRET, "fallback": "pass"}
        away = mock.patch("nowcalls._worker.stays_here", lambda _: False)
        loop_away = mock.patch("nowcalls._link.stays_here", lambda _: False)
        with away, loop_away, self.assertLogs("nowcalls", "WARNING"):
            for call in (lambda client: client.acquire(1), lambda client: client.request(1)):
                for error in self.each(server.address, call, **settings):
                    self.assertIsInstance(error, nowcalls.BadRequest)
                    self.assertIn(f"{server.address}: {PLAIN}", str(error))
        self.assertEqual(self.asked, [])

    def test_a_client_whose_secret_may_not_leave_dials_on(self):
        server = self.server()
        here = []
        with contextlib.ExitStack() as patches:
            for module in ("_worker", "_link"):
                name = f"nowcalls.{module}.stays_here"
                patches.enter_context(mock.patch(name, lambda _: bool(here)))

            async def use():
                settings = {"secret": SECRET, "fallback": "pass", "timeout": PATIENCE_S}
                async with nowcalls.aio.Client(server.address, **settings) as client:
                    with self.assertRaises(nowcalls.BadRequest):
                        await client.acquire(1)
                    here.append(True)
                    self.assertEqual(await client.ping(), 5)

            with self.assertLogs("nowcalls", "WARNING"):
                asyncio.run(use())
            here.clear()
            settings = {"secret": SECRET, "fallback": "pass", "timeout": PATIENCE_S}
            with self.assertLogs("nowcalls", "WARNING"):
                with nowcalls.Client(server.address, **settings) as client:
                    with self.assertRaises(nowcalls.BadRequest):
                        client.acquire(1)
                    here.append(True)
                    self.assertEqual(client.ping(), 5)

    def test_a_wrong_secret_is_no_admission_and_a_mended_one_is_taken_later(self):
        self.refuses = True
        server = self.server(self.context())
        settings = {"tls": authority.file, "secret": SECRET, "timeout": PATIENCE_S}
        with contextlib.ExitStack() as ends:
            with self.assertLogs("nowcalls", "WARNING") as logged:
                client = nowcalls.Client(server.address, fallback="pass", **settings)
                ends.enter_context(client)
                for _ in range(2):
                    with self.assertRaisesRegex(nowcalls.PermissionDenied, "the secret is wrong"):
                        client.acquire(1001)
            self.assertEqual(len(logged.output), 1)
            self.assertNotIn(SECRET, logged.output[0])
            self.refuses = False
            self.assertTrue(poll_until(lambda: client.stats()["connected"]))
            with client.permit(1001) as permit:
                self.assertFalse(permit.local)

    def test_nothing_of_a_client_shows_its_secret(self):
        self.refuses = True
        server = self.server(self.context())
        settings = {"tls": authority.file, "secret": SECRET, "fallback": "pass"}
        with self.assertLogs("nowcalls", "DEBUG") as logged:
            for error in self.each(
                server.address, lambda client: client.acquire(1001), **settings
            ):
                self.assertIsInstance(error, nowcalls.PermissionDenied)
                self.assertNotIn(SECRET, f"{error!r} {error}")
            client = nowcalls.Client(server.address, **settings)
            shown = [repr(client), repr(client._worker), str(client.stats()), *logged.output]
            client.close()
        self.assertNotIn(SECRET, "".join(shown))


class SettingsTest(TlsTest):
    def setUp(self):
        super().setUp()
        self.certificate, self.key = authority.issue("IP:127.0.0.1")

    def refused(self, words, **settings):
        for make in (nowcalls.Client, nowcalls.aio.Client):
            with self.assertRaises(nowcalls.BadRequest) as caught:
                make(**settings)
            self.assertIn(words, str(caught.exception))

    def with_environment(self, **variables):
        return mock.patch.dict(os.environ, variables)

    def tls_of(self, **settings):
        client = nowcalls.aio.Client(**settings)
        return client._config.tls

    def test_files_that_are_missing_or_wrong_are_named_at_once(self):
        pair = {"tls_certificate": self.certificate, "tls_key": self.key}
        self.refused("tls: cannot read /nowhere: No such file", tls="/nowhere")
        self.refused("tls: cannot read /nowhere: No", **{**pair, "tls_certificate": "/nowhere"})
        self.refused("tls: cannot read /nowhere: No such file", **{**pair, "tls_key": "/nowhere"})
        self.refused(f"{self.key} is no PEM file of certificates", tls=self.key)
        self.refused("are no PEM files of a certificate", **{**pair, "tls_key": __file__})
        other = authority.path("ca.key")
        self.refused(f"{other} is not the key of {self.certificate}", **{**pair, "tls_key": other})

    def test_a_key_with_a_passphrase_is_refused_rather_than_asked_for_at_the_terminal(self):
        locked = authority.path("locked.key")
        subprocess.run(
            ["openssl", "ec", "-in", self.key, "-aes256", "-passout", "pass:word", "-out", locked],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        words = f"{locked} has a passphrase"
        self.refused(words, tls=True, tls_certificate=self.certificate, tls_key=locked)

    def test_settings_that_contradict_each_other_are_refused(self):
        self.refused("is set without tls_key", tls=True, tls_certificate=self.certificate)
        self.refused("is set without tls_certificate", tls_key=self.key)
        self.refused("tls_key is set, but tls is False", tls=False, tls_key=self.key)
        self.refused("tls_server_name is set, but", tls=False, tls_server_name="a.test")
        context = ssl.create_default_context()
        self.refused("tls_key says itself", tls=context, tls_key=self.key)
        self.refused("a server's context", tls=self.context())
        for wrong in (5, "", b"ca.pem", []):
            self.refused("tls must be True, False, the path", tls=wrong)
        for wrong in ("", ".a", "a..b", "a\0b", 5, "x" * 64):
            self.refused("tls_server_name must be", tls=True, tls_server_name=wrong)

    def test_the_environment_says_what_settings_leave_out(self):
        self.assertIsNone(self.tls_of())
        with self.with_environment(NOWCALLS_TLS="on"):
            self.assertIsNotNone(self.tls_of())
            self.assertIsNone(self.tls_of(tls=False))
        with self.with_environment(NOWCALLS_TLS_CA=authority.file):
            self.assertEqual(self.tls_of()._ca, authority.file)
            self.assertEqual(self.tls_of(tls=True)._ca, authority.file)
            self.assertEqual(self.tls_of(tls=self.certificate)._ca, self.certificate)
        with self.with_environment(NOWCALLS_TLS="off", NOWCALLS_TLS_CA="/nowhere"):
            self.assertIsNone(self.tls_of())
            self.assertEqual(self.tls_of(tls=authority.file)._ca, authority.file)
        own = {"NOWCALLS_TLS_CLIENT_CERT": self.certificate, "NOWCALLS_TLS_CLIENT_KEY": self.key}
        with self.with_environment(**own):
            self.assertEqual(self.tls_of()._key, self.key)
        with self.with_environment(NOWCALLS_TLS="yes"):
            self.refused("NOWCALLS_TLS: 'yes' is neither on nor off")

    def test_versions_before_1_2_are_not_spoken_and_names_are_those_of_the_certificate(self):
        context = self.tls_of(tls=True).context()
        self.assertGreaterEqual(context.minimum_version, ssl.TLSVersion.TLSv1_2)
        self.assertTrue(context.check_hostname)
        self.assertEqual(context.verify_mode, ssl.CERT_REQUIRED)
        self.assertFalse(context.hostname_checks_common_name)

    def test_a_zone_and_a_last_dot_are_not_part_of_a_name(self):
        tls = self.tls_of(tls=True)
        self.assertEqual(tls.name_for("fe80::1%eth0"), "fe80::1")
        self.assertEqual(tls.name_for("a.test."), "a.test")


if __name__ == "__main__":
    unittest.main()
