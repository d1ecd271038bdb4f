"""Who the client is: the secret that it shows, where it comes from, and servers that refuse it."""

import errno
import os
import tempfile
import unittest
from unittest import mock

import msgpack
import nowcalls
from nowcalls._calls import Acquire, Ping, RateRequest
from nowcalls._secret import PLAIN, _is_private, make_secret, stays_here
from nowcalls._wire import Exchange, Wrong
from test_session import GRANT, HELLO, Peer

SECRET = "nc-0123456789abcdef"
IDENTIFY = ["identify", [SECRET]]
IDENTITY = ["checkout", "client", "secret", None]
WELCOME = ["0.1.0", 12, 1, 0]


def refuse(peer, code=9, name="PERMISSION", text="because"):
    broken = peer.answer(error=[code, name, text])
    peer.session.disconnected(peer.now, broken)
    return broken


class IdentifyTest(unittest.TestCase):
    def test_a_secret_is_shown_before_hello_without_a_wait_for_its_answer(self):
        peer = Peer(secret=SECRET)
        call = peer.submit(Ping())
        peer.session.connected(peer.now)
        self.assertEqual(peer.asked(), [IDENTIFY, HELLO])
        self.assertIsNone(peer.answer(IDENTITY))
        self.assertFalse(peer.session.ready)
        with self.assertLogs("nowcalls", "INFO") as logged:
            self.assertIsNone(peer.answer(WELCOME))
        self.assertIn("connected to a:1 as 'checkout', session 12", logged.output[0])
        self.assertEqual(peer.asked(), [["ping", []]])
        peer.answer([5])
        self.assertEqual(call.result(), 5)

    def test_an_older_server_which_knows_no_secrets_is_taken_as_it_is(self):
        peer = Peer(secret=SECRET)
        peer.session.connected(peer.now)
        peer.asked()
        self.assertIsNone(peer.answer(error=[2, "UNKNOWN_METHOD", "identify"]))
        self.assertIsNone(peer.answer(WELCOME))
        self.assertTrue(peer.session.ready)

    def test_who_is_not_let_in_gets_no_call_past_the_server_whatever_the_fallback_is(self):
        for fallback in ("rule", "local", "pass", "fail"):
            peer = Peer(secret=SECRET, fallback=fallback, local_levels={111: 5})
            waits = peer.acquire()
            peer.session.connected(peer.now)
            peer.asked()
            with self.assertLogs("nowcalls", "WARNING") as logged:
                self.assertEqual(refuse(peer), "identify refused: PERMISSION: because")
                # Between the attempts, and when the server is not reached any more.
                calls = [waits, peer.acquire(), peer.submit(RateRequest(111, 1))]
                peer.session.connect_failed(peer.now, "Connection refused")
                calls.append(peer.acquire(wait=0.1))
            for call in calls:
                with self.assertRaises(nowcalls.PermissionDenied) as caught:
                    call.result()
                why = "a:1: identify refused: PERMISSION: because"
                self.assertEqual(str(caught.exception), why)
                self.assertEqual(caught.exception.code, 9)
            self.assertEqual(len({id(call.error) for call in calls}), len(calls))
            self.assertEqual(len(logged.output), 1)
            self.assertIn("not let in", logged.output[0])

            # An operator has mended it.
            peer.now = peer.session.dialing.at
            peer.session.connected(peer.now)
            peer.asked()
            peer.answer(IDENTITY, WELCOME)
            call = peer.acquire()
            for method, _ in peer.asked():
                peer.answer(GRANT if method == "acquire" else [[], None])
            self.assertEqual(call.result().token_id, 77)
            with self.assertLogs("nowcalls", "WARNING"):
                peer.disconnect()
                peer.session.connect_failed(peer.now, "Connection refused")
            call = peer.acquire()
            self.assertEqual(call.done and call.error is None, fallback != "fail", fallback)

    def test_a_prioritized_call_stays_refused_once_its_client_is_not_let_in(self):
        peer = Peer(secret=SECRET, fallback="pass")
        peer.session.connected(peer.now)
        peer.asked()
        peer.answer(IDENTITY, WELCOME)
        call = peer.submit(Acquire(111, 1, None, None, True))
        peer.asked()
        peer.answer([1, 0, 0, 2, 2, 0, "level"])
        self.assertEqual([method for method, _ in peer.asked()], ["rules_list"])
        peer.disconnect()
        peer.session.connected(peer.now)
        peer.asked()
        with self.assertLogs("nowcalls", "WARNING"):
            refuse(peer)
        with self.assertRaises(nowcalls.Refused) as caught:
            call.result()
        self.assertFalse(caught.exception.local)

    def test_a_client_without_a_secret_that_hello_refuses_is_not_let_in_either(self):
        peer = Peer(fallback="pass")
        call = peer.acquire()
        peer.session.connected(peer.now)
        peer.asked()
        with self.assertLogs("nowcalls", "WARNING"):
            self.assertIn("hello refused", refuse(peer))
        self.assertIsInstance(call.error, nowcalls.PermissionDenied)
        self.assertIsInstance(peer.acquire().error, nowcalls.PermissionDenied)

    def test_a_call_that_is_not_permitted_is_not_admitted_by_a_fallback(self):
        peer = Peer(fallback="pass")
        peer.connect()
        calls = [peer.acquire(), peer.submit(RateRequest(111, 1)), peer.submit(Ping())]
        for _ in peer.asked():
            self.assertIsNone(peer.answer(error=[9, "PERMISSION", "flow 111"]))
        for call in calls:
            with self.assertRaisesRegex(nowcalls.PermissionDenied, "PERMISSION: flow 111"):
                call.result()
        self.assertTrue(peer.session.ready)

    def test_a_server_may_take_a_second_longer_for_a_wrong_secret(self):
        peer = Peer(secret=SECRET)
        peer.session.connected(peer.now)
        self.assertEqual(peer.session.wakeup(), 106.0)
        self.assertIsNone(peer.tick_at(105.9))
        self.assertIsNotNone(peer.tick_at(106.0))

    def test_a_call_whose_time_ends_before_its_secret_is_answered_does_not_fall_back(self):
        for down in (False, True):
            peer = Peer(secret=SECRET, fallback="pass")
            if down:
                with self.assertLogs("nowcalls", "WARNING"):
                    peer.session.connect_failed(peer.now, "Connection refused")
            peer.session.connected(peer.now)
            calls = [peer.acquire(), peer.submit(RateRequest(111, 1))]
            self.assertFalse(any(call.done for call in calls))
            self.assertIsNone(peer.tick_at(peer.now + 5.0))
            for call in calls:
                self.assertIsInstance(call.error, nowcalls.Unavailable)

    def test_a_server_that_is_gone_before_it_answered_a_secret_is_one_that_is_not_reached(self):
        peer = Peer(secret=SECRET, fallback="pass")
        peer.session.connected(peer.now)
        call = peer.acquire()
        with self.assertLogs("nowcalls", "WARNING"):
            peer.disconnect()
        self.assertTrue(call.done and call.error is None)

    def test_a_client_whose_certificate_is_not_let_in_gets_no_call_past_it(self):
        for shaken in (False, True):
            peer = Peer(fallback="pass")
            waits = peer.acquire()
            with self.assertLogs("nowcalls", "WARNING") as logged:
                if shaken:
                    peer.session.connected(peer.now)
                peer.session.denied(peer.now, "it refuses the client's certificate")
                if shaken:
                    peer.disconnect()
                else:
                    peer.session.connect_failed(peer.now, "it refuses the client's certificate")
            self.assertEqual(len(logged.output), 1)
            for call in (waits, peer.acquire()):
                with self.assertRaisesRegex(
                    nowcalls.PermissionDenied, "a:1: it refuses the client's certificate"
                ):
                    call.result()

    def test_a_secret_does_not_leave_over_a_plain_connection_to_another_host(self):
        peer = Peer(secret=SECRET, fallback="pass")
        call = peer.acquire()
        with self.assertLogs("nowcalls", "WARNING"):
            broken = peer.session.connected(peer.now, private=False)
            self.assertEqual(broken, PLAIN)
            self.assertEqual(bytes(peer.session.output), b"")
            peer.session.disconnected(peer.now, broken)
        with self.assertRaisesRegex(nowcalls.BadRequest, "a:1: the secret needs TLS"):
            call.result()
        self.assertGreater(peer.session.dialing.at, peer.now)

    def test_without_a_secret_a_plain_connection_to_another_host_will_do(self):
        peer = Peer()
        self.assertIsNone(peer.session.connected(peer.now, private=False))
        self.assertEqual(peer.asked(), [HELLO])

    def test_wrong_answers_to_identify_end_the_connection(self):
        for wrong in (5, None, [], [1, 2, 3], ["a", "b"]):
            peer = Peer(secret=SECRET)
            peer.session.connected(peer.now)
            peer.asked()
            self.assertIn("does not speak nowcalls", peer.answer(wrong), wrong)


class SourceTest(unittest.TestCase):
    """Where a secret comes from."""

    def secret_file(self, data, mode=0o600):
        descriptor, path = tempfile.mkstemp()
        self.addCleanup(os.remove, path)
        with open(descriptor, "wb") as file:
            file.write(data)
        os.chmod(path, mode)
        return path

    def of_file(self, path):
        with mock.patch.dict(os.environ, NOWCALLS_SECRET_FILE=path):
            return make_secret(None)

    def test_a_function_is_asked_for_each_connection(self):
        told = iter(("first", "second"))
        peer = Peer(secret=lambda: next(told))
        for secret in ("first", "second"):
            peer.session.connected(peer.now)
            self.assertEqual(peer.asked()[0], ["identify", [secret]])
            peer.answer(IDENTITY, WELCOME)
            peer.disconnect()

    def test_a_function_that_fails_ends_calls_without_a_word_of_what_it_had(self):
        def fail():
            raise SystemExit(f"cannot unwrap {SECRET}")

        for function, words in (
            (fail, "raised SystemExit"),
            (lambda: SECRET.encode(), "must be a str, not bytes"),
            (lambda: None, "must be a str, not NoneType"),
            (lambda: f"{SECRET}\n", "control characters"),
            (lambda: f"{SECRET}\udcff", "surrogates"),
            (lambda: "", "1 to 256 bytes"),
            (lambda: SECRET * 20, "1 to 256 bytes"),
        ):
            peer = Peer(secret=function, fallback="pass")
            call = peer.acquire()
            with self.assertLogs("nowcalls", "WARNING") as logged:
                peer.session.disconnected(peer.now, peer.session.connected(peer.now))
            self.assertIsInstance(call.error, nowcalls.BadRequest)
            self.assertIn(words, str(call.error))
            self.assert_clean(call.error, logged.output)

    def test_a_setting_that_is_no_secret_is_refused_at_once(self):
        async def later():
            return SECRET

        for wrong in ("", SECRET * 20, f"{SECRET}\n", f"{SECRET}\udcff", SECRET.encode(), 5, later):
            for make in (nowcalls.Client, nowcalls.aio.Client):
                with self.assertRaisesRegex(nowcalls.BadRequest, "^secret must") as caught:
                    make(secret=wrong)
                self.assert_clean(caught.exception)

    def test_the_first_line_of_a_file_that_is_its_owners_alone_is_the_secret(self):
        for data in (b"s3cret", b"s3cret\n", b"s3cret\r\n", b"s3cret\nnot this\n"):
            self.assertEqual(self.of_file(self.secret_file(data, 0o400)).read(), "s3cret")
        self.assertIsNone(self.of_file(""))

    def test_a_file_of_root_may_be_for_a_group_of_the_process_to_read(self):
        own = os.getegid()
        for mode, owner, group, expected in (
            *((0o440, 0, own, True), (0o640, 0, own, True), (0o400, 7, 7, True)),
            *((0o440, 7, own, False), (0o440, 0, own + 54321, False)),
            *((0o660, 0, own, False), (0o444, 0, own, False), (0o450, 0, own, False)),
        ):
            info = os.stat_result((mode, 0, 0, 1, owner, group, 0, 0, 0, 0))
            self.assertEqual(_is_private(info), expected, (oct(mode), owner, group))

    def test_a_file_that_is_wrong_is_named_with_what_to_do_and_what_it_has_is_not_told(self):
        data = SECRET.encode() + b"\n"
        for mode in (0o650, 0o604, 0o660, 0o602, 0o610):
            path = self.secret_file(data, mode)
            with self.assertRaisesRegex(nowcalls.BadRequest, f"run: chmod 600 {path}$"):
                self.of_file(path)
        for data, words in (
            (b"", "no secret in its first line"),
            (b"\n" + data, "no secret in its first line"),
            (data * 300, "more than 4096 bytes"),
            (SECRET.encode() * 20, "1 to 256 bytes"),
            (SECRET.encode() + b"\xff", "surrogates"),
            (SECRET.encode() + b"\t\n", "control characters"),
        ):
            with self.assertRaises(nowcalls.BadRequest) as caught:
                self.of_file(self.secret_file(data))
            self.assertRegex(str(caught.exception), f"^NOWCALLS_SECRET_FILE: .*{words}")
            self.assert_clean(caught.exception)
        with self.assertRaisesRegex(nowcalls.BadRequest, "cannot read /nowhere: No such file"):
            self.of_file("/nowhere")

    def test_a_setting_goes_before_the_environment(self):
        with mock.patch.dict(os.environ, NOWCALLS_SECRET_FILE="/nowhere"):
            self.assertEqual(make_secret(SECRET).read(), SECRET)

    def assert_clean(self, error, lines=()):
        told = [repr(error), repr(error.__cause__), repr(error.__context__), *lines]
        self.assertNotIn(SECRET, "".join(told))


class NoLeakTest(unittest.TestCase):
    def test_a_server_that_repeats_the_secret_does_not_get_it_into_a_log_or_an_exception(self):
        for method in ("identify", "hello"):
            peer = Peer(secret=SECRET, fallback="pass")
            call = peer.acquire()
            peer.session.connected(peer.now)
            peer.asked()
            if method == "hello":
                peer.answer(IDENTITY)
            with self.assertLogs("nowcalls", "DEBUG") as logged:
                broken = refuse(peer, text=f"there is no {SECRET}")
            told = [str(call.error), broken, *logged.output, peer.session._why_offline]
            self.assertNotIn(SECRET, "".join(told))
            self.assertIn("there is no ...", told[0])

    def test_no_answer_that_repeats_the_secret_gets_it_into_a_log_or_an_exception(self):
        answers = (
            {"error": [1, "MALFORMED", f"not understood: {SECRET}"]},
            {"error": [5, "OVERLOADED", SECRET]},
            {"error": [3, SECRET, "why"]},
            {"error": SECRET},
        )
        results = (SECRET, [[SECRET], "client", "secret"])
        for greeted in (False, True):
            for answer in (*answers, *results):
                with self.subTest(answer=answer, greeted=greeted):
                    self.assert_masked(answer, greeted)

    def assert_masked(self, answer, greeted):
        peer = Peer(secret=SECRET)
        with self.assertLogs("nowcalls", "DEBUG") as logged:
            if greeted:
                peer.session.connected(peer.now)
                peer.asked()
                peer.answer(IDENTITY, WELCOME)
            call = peer.acquire()
            if not greeted:
                peer.session.connected(peer.now)
            peer.asked()
            broken = peer.answer(**answer) if isinstance(answer, dict) else peer.answer(answer)
            if broken is not None:
                peer.session.disconnected(peer.now, broken)
            peer.tick_at(peer.now + 5.0)
        told = "".join([str(call.error), str(broken), *logged.output])
        self.assertNotIn(SECRET, told)
        self.assertIn("...", told)

    def test_neither_a_name_nor_a_reason_of_the_server_shows_the_secret(self):
        peer = Peer(secret=SECRET)
        peer.session.connected(peer.now)
        peer.asked()
        with self.assertLogs("nowcalls", "DEBUG") as logged:
            peer.answer([SECRET, *IDENTITY[1:]], WELCOME)
            permit = peer.granted()
            told = msgpack.packb([2, "lost", [77, 111, SECRET]])
            self.assertIsNone(peer.session.received(told, peer.now))
            self.assertEqual(peer.lost(), [permit])
        self.assertIn("connected to a:1 as '...'", logged.output[0])
        self.assertIn("lost token 77 of flow 111: ...", logged.output[1])

    def test_a_peer_that_sends_requests_back_is_not_quoted(self):
        with self.assertRaises(Wrong) as caught:
            list(Exchange().receive(msgpack.packb([0, 1, *IDENTIFY])))
        self.assertEqual(str(caught.exception), "it sends requests back")

    def test_no_repr_of_a_client_its_settings_or_its_session_has_the_secret(self):
        peer = Peer(secret=SECRET)
        session = peer.session
        client = nowcalls.aio.Client(secret=SECRET)
        shown = [session.config, session.config.secret, session, session.stats(), client]
        self.assertNotIn(SECRET, "".join(map(repr, shown)))


class StaysHereTest(unittest.TestCase):
    def stays(self, peer, own):
        sock = mock.Mock()
        sock.getpeername.return_value, sock.getsockname.return_value = peer, own
        return stays_here(sock)

    def test_loopback_and_the_own_addresses_are_this_machine(self):
        for host in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"):
            self.assertTrue(self.stays((host, 1), (host, 2)), host)
        for host in ("10.0.0.1", "2001:db8::1", "fe80::1%eth0"):
            self.assertTrue(self.stays((host, 1, 0, 0), (host, 2, 0, 0)), host)

    def test_all_others_are_not(self):
        for peer in ("10.0.0.2", "2001:db8::2", "::ffff:10.0.0.1", "128.0.0.1", "0.0.0.0", "x"):
            self.assertFalse(self.stays((peer, 1), ("10.0.0.1", 2)), peer)
        self.assertFalse(stays_here(None))
        self.assertFalse(self.stays("", ""))  # A socket of another family.

    def test_over_a_broken_connection_nothing_leaves(self):
        sock = mock.Mock()
        sock.getpeername.side_effect = OSError(errno.ENOTCONN, "not connected")
        self.assertTrue(stays_here(sock))
        sock.getpeername.side_effect = OSError(errno.EOPNOTSUPP, "what is that?")
        self.assertFalse(stays_here(sock))


if __name__ == "__main__":
    unittest.main()
