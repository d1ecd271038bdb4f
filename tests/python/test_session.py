"""The session without sockets: what it asks, when, and what it makes of answers."""

import unittest
import weakref

import msgpack
import nowcalls
from nowcalls._calls import Acquire, Ping, RateRequest, Release
from nowcalls._config import make_config
from nowcalls._permit import BasePermit
from nowcalls._dialing import PAUSE_MAX_S
from nowcalls._session import NO_HELLO, TLS_ONLY, Session

GRANT = [0, 77, 13, 1, 2, 6000, None]


class QuietPermit(BasePermit):
    """A permit that a test may drop."""

    def __del__(self):
        pass


HELLO = ["hello", [1, "shop", "worker", {"lost": True, "instance": 7, "terms": True}]]


class Peer:
    """A session and the server's end of its connection, at a time that the test sets."""

    def __init__(self, *addresses, **settings):
        values = {"client_id": "worker", "timeout": 5.0, "keep": True, "fallback": "fail"}
        values.update({"local_levels": None}, **settings)
        config = make_config(addresses or "a:1", "shop", **values)
        self.now = 100.0
        ids = iter(range(1001, 2000))
        self.session = Session(
            config, self.permit, self.now, lambda _, bound: bound, 7, lambda: next(ids), self.clock
        )

    def permit(self, held):
        held.grip = weakref.ref(permit := QuietPermit(held))
        return permit

    def clock(self):
        return self.now

    def asked(self):
        """The requests since the last look, without their msgids, which `answer` uses in order."""
        unpacker = msgpack.Unpacker()
        unpacker.feed(bytes(self.session.output))
        self.session.output.clear()
        messages = list(unpacker)
        self._msgids = [message[1] for message in messages]
        return [message[2:] for message in messages]

    def answer(self, *results, error=None):
        for result in results or [None]:
            message = msgpack.packb([1, self._msgids.pop(0), error, result])
            for at in range(len(message)):  # However bytes arrive.
                broken = self.session.received(message[at : at + 1], self.now)
                if broken is not None:
                    return broken
        return None

    def connect(self, resumed=0, sessions=1):
        self.session.connected(self.now)
        self.asked()
        self.answer(["0.1.0", 12, sessions, resumed])

    def submit(self, call):
        self.session.ask(call, self.now)
        return call

    def acquire(self, wait=None, keep="always"):
        call = Acquire(111, 1, wait, None, False)
        call.keep = keep
        return self.submit(call)

    def granted(self, token_id=77):
        call = self.acquire()
        self.asked()
        self.answer([0, token_id, *GRANT[2:]])
        return call.result()

    def release(self, permit, outcome="ok"):
        call = Release(permit._held, outcome)
        self.session.release(call, self.now)
        return call

    def give_up(self, call):
        reason = "in time" if self.session.ready else self.session._why_offline
        self.session._give_up(call, self.now, reason)

    def lost(self):
        return [held.permit for held in self.session.take_lost()]

    def disconnect(self):
        self.session.disconnected(self.now, "broken")

    def tick_at(self, now):
        self.now = now
        return self.session.tick(now)


class HelloTest(unittest.TestCase):
    def test_nothing_is_asked_before_hello_is_answered(self):
        peer = Peer()
        peer.submit(Ping())
        peer.session.connected(peer.now)
        self.assertEqual(peer.asked(), [HELLO])
        peer.answer(["0.1.0", 12, 1, 0])
        self.assertEqual(peer.asked(), [["ping", []]])

    def test_an_older_server_is_greeted_again_without_the_option_on_each_connection(self):
        peer = Peer()
        for _ in range(2):
            peer.session.connected(peer.now)
            peer.asked()
            peer.answer(error=[3, "BAD_PARAMS", "hello: options.lost is not known"])
            self.assertEqual(peer.asked(), [["hello", [1, "shop", "worker"]]])
            self.assertIsNone(peer.answer(["0.1.0", 12, 1, 0]))
            self.assertTrue(peer.session.ready)
            peer.disconnect()

    def test_a_hello_that_is_refused_for_the_clients_fault_ends_what_waits(self):
        peer = Peer()
        call = peer.acquire()
        peer.session.connected(peer.now)
        peer.asked()
        broken = peer.answer(error=[6, "UNSUPPORTED", "hello: protocol must be 2"])
        self.assertIn("hello refused", broken)
        with self.assertRaises(nowcalls.BadRequest) as caught:
            call.result()
        self.assertEqual(caught.exception.code, 6)

    def test_a_hello_that_an_overloaded_server_refuses_is_said_again_later(self):
        peer = Peer()
        call = peer.acquire()
        peer.session.connected(peer.now)
        peer.asked()
        broken = peer.answer(error=[5, "OVERLOADED", "hello: sessions_max"])
        with self.assertLogs("nowcalls", "WARNING"):
            peer.session.disconnected(peer.now, broken)
        self.assertFalse(call.done)
        peer.give_up(call)
        self.assertIsInstance(call.error, nowcalls.Unavailable)
        self.assertIn("OVERLOADED: hello: sessions_max", str(call.error))

    def test_a_hello_without_answer_ends_the_connection(self):
        peer = Peer()
        peer.session.connected(peer.now)
        self.assertEqual(peer.session.wakeup(), 105.0)
        self.assertIsNone(peer.tick_at(104.9))
        self.assertEqual(peer.tick_at(105.0), NO_HELLO + TLS_ONLY)


    def test_only_an_answer_to_hello_counts_before_it(self):
        peer = Peer()
        peer.session.connected(peer.now)
        for at in (102.0, 104.0):
            peer.session.received(msgpack.packb([2, "later", []]), at)
        self.assertEqual(peer.tick_at(105.0), NO_HELLO + TLS_ONLY)


class DialTest(unittest.TestCase):
    def test_pauses_double_up_to_a_bound_and_begin_anew_after_a_useful_connection(self):
        peer = Peer()
        pauses = []
        for _ in range(8):
            peer.session.connect_failed(peer.now, "refused")
            pauses.append(peer.session.dialing.at - peer.now)
            peer.now = peer.session.dialing.at
        pauses = [round(pause, 3) for pause in pauses]
        self.assertEqual(pauses, [0.1, 0.2, 0.4, 0.8, 1.6] + [PAUSE_MAX_S] * 3)
        peer.connect()
        peer.granted()
        peer.disconnect()
        self.assertAlmostEqual(peer.session.dialing.at - peer.now, 0.05)

    def test_a_server_that_ends_connections_at_once_is_dialled_ever_more_slowly(self):
        peer = Peer()
        pauses = []
        for _ in range(4):
            peer.connect()
            peer.disconnect()
            pauses.append(round(peer.session.dialing.at - peer.now, 3))
        self.assertEqual(pauses, [0.1, 0.2, 0.4, 0.8])

    def test_all_addresses_are_tried_before_a_pause(self):
        peer = Peer("a:1", "b:2", "c:3")
        tried = []
        for _ in range(4):
            tried.append((peer.session.dialing.address[0], peer.session.dialing.at > peer.now))
            peer.session.connect_failed(peer.now, "refused")
        self.assertEqual(tried, [("a", False), ("b", False), ("c", False), ("a", True)])


class RetryTest(unittest.TestCase):
    def test_an_acquire_is_asked_again_with_its_id_and_what_is_left_of_its_wait(self):
        peer = Peer()
        peer.connect()
        call = peer.acquire(wait=3.0)
        ((_, first),) = peer.asked()
        self.assertEqual(first, [111, 1, {"request_id": call.request_id, "wait_ms": 3000}])
        peer.disconnect()
        peer.now += 1.0
        peer.connect()
        ((_, second),) = peer.asked()
        self.assertEqual(second, [111, 1, {"request_id": call.request_id, "wait_ms": 2000}])
        peer.disconnect()
        peer.now += 2.5
        peer.connect()
        self.assertEqual(peer.asked()[0][1][2]["wait_ms"], 1)
        peer.answer(GRANT)
        self.assertEqual(call.result().token_id, 77)

    def test_a_server_that_ends_is_asked_again_on_the_next_connection(self):
        peer = Peer()
        peer.connect()
        call = peer.acquire(wait=3.0)
        peer.asked()
        peer.answer([5, 0, 0, 0, 0, 0, None])
        self.assertFalse(call.done)
        self.assertEqual(peer.asked(), [])
        peer.disconnect()
        peer.give_up(call)
        # The server said that it did not carry the acquire out, so there is nothing to cancel.
        self.assertIsInstance(call.error, nowcalls.Unavailable)
        peer.connect()
        self.assertEqual(peer.asked(), [])

    def test_an_unanswered_acquire_is_unknown_and_cancelled_after_the_next_hello(self):
        peer = Peer()
        peer.connect()
        call = peer.acquire()
        peer.asked()
        peer.disconnect()
        peer.give_up(call)
        self.assertIsInstance(call.error, nowcalls.OutcomeUnknown)
        for _ in range(2):  # Until the cancel is answered.
            self.assertFalse(peer.session.settled)
            peer.connect(resumed=1)
            self.assertEqual(peer.asked(), [["cancel", [call.request_id]]])
            peer.disconnect()
        peer.connect()
        peer.asked()
        peer.answer([6])
        self.assertTrue(peer.session.settled)

    def test_a_grant_that_comes_after_the_call_was_given_up_is_nobodys_permit(self):
        peer = Peer()
        peer.connect()
        call = peer.acquire()
        peer.give_up(call)
        # The ping asks whether the server is still there.
        self.assertEqual([method for method, _ in peer.asked()], ["acquire", "cancel", "ping"])
        peer.answer(GRANT, [6], [1])
        self.assertIsNone(call.value)
        self.assertEqual(peer.session.stats()["held"], 0)

    def test_an_acquire_that_was_given_up_is_not_asked_again(self):
        peer = Peer()
        peer.connect()
        call = peer.acquire()
        peer.give_up(call)
        peer.disconnect()
        peer.connect()
        self.assertEqual(peer.asked(), [["cancel", [call.request_id]]])

    def test_an_acquire_that_nobody_takes_any_more_is_given_back(self):
        peer = Peer()
        peer.connect()
        call = peer.acquire()
        peer.asked()
        peer.answer(GRANT)
        peer.session.abandon(call, peer.now)
        self.assertEqual(peer.asked(), [["release", [77]]])

    def test_an_acquire_that_was_never_sent_is_unavailable_and_needs_no_cancel(self):
        peer = Peer()
        call = peer.acquire()
        peer.give_up(call)
        self.assertIsInstance(call.error, nowcalls.Unavailable)
        peer.connect()
        self.assertEqual(peer.asked(), [])

    def test_a_release_goes_on_until_it_is_answered(self):
        peer = Peer()
        peer.connect()
        permit = peer.granted()
        call = peer.release(permit)
        peer.asked()
        peer.give_up(call)
        self.assertIsInstance(call.error, nowcalls.OutcomeUnknown)
        peer.disconnect()
        peer.connect(resumed=1)
        self.assertEqual(peer.asked(), [["release", [77]]])
        peer.answer([7])  # The first release had done it.
        self.assertFalse(permit.lost)
        self.assertTrue(peer.session.settled)

    def test_a_release_goes_on_while_the_client_closes_and_is_unavailable_once_it_has_stopped(self):
        peer = Peer()
        peer.connect()
        closing, stopped = peer.granted(), peer.granted(78)
        peer.session.close(peer.now)
        release = peer.release(closing)
        self.assertEqual(peer.asked(), [["release", [77]]])
        peer.answer([6])
        self.assertTrue(release.result())
        self.assertTrue(peer.session.settled)
        peer.disconnect()
        peer.session.stop("the client is closed")
        release = peer.release(stopped)
        with self.assertRaisesRegex(nowcalls.Unavailable, "the client is closed"):
            release.result()
        self.assertTrue(peer.session.settled)

    def test_a_first_release_that_finds_no_token_tells_that_it_was_lost(self):
        peer = Peer()
        peer.connect()
        permit = peer.granted()
        call = peer.release(permit)
        self.assertIsInstance(call, Release)
        peer.asked()
        peer.answer([7])
        self.assertIs(call.result(), False)
        self.assertTrue(permit.lost)

    def test_a_rate_request_that_was_sent_is_not_sent_again(self):
        peer = Peer()
        peer.connect()
        sent = peer.submit(RateRequest(111, 1))
        peer.asked()
        peer.disconnect()
        self.assertIsInstance(sent.error, nowcalls.OutcomeUnknown)
        waiting = peer.submit(RateRequest(111, 1))
        peer.connect()
        self.assertEqual(peer.asked(), [["request", [111, 1]]])
        peer.answer([0, 3, 0, None])
        self.assertEqual(waiting.result(), nowcalls.Rate(3, 0.0))

    def test_msgids_wrap_without_that_of_0(self):
        peer = Peer()
        peer.connect()
        peer.session._exchange._last_msgid = 2**32 - 2
        for _ in range(3):
            peer.submit(Ping())
        peer.asked()
        self.assertEqual(peer._msgids, [2**32 - 1, 1, 2])


class AnswerTest(unittest.TestCase):
    def outcome(self, result=None, error=None):
        peer = Peer()
        peer.connect()
        call = peer.acquire()
        peer.asked()
        peer.answer(result, error=error)
        return call.error

    def test_each_answer_has_its_exception(self):
        refused = self.outcome([-2, 0, 0, 3, 9, 0, "disk_low"])
        self.assertIs(type(refused), nowcalls.Refused)
        self.assertEqual((refused.status, refused.refused_by), (-2, "disk_low"))
        self.assertEqual((refused.now_calls, refused.level, refused.flow_id), (3, 9, 111))
        self.assertEqual(self.outcome([1, 0, 0, 3, 9, 0, "later"]).refused_by, "later")
        self.assertIs(type(self.outcome([3, 0, 0, 0, 0, 0, None])), nowcalls.NoRule)
        self.assertIs(type(self.outcome([-4, 0, 0, 0, 0, 0, "param"])), nowcalls.BadRequest)
        self.assertIs(type(self.outcome(error=[3, "BAD_PARAMS", "?"])), nowcalls.BadRequest)
        self.assertIs(type(self.outcome(error=[99, "LATER", "?", "more"])), nowcalls.Unavailable)
        self.assertIs(type(self.outcome(error=[5, "OVERLOADED", "sessions"])), nowcalls.Unavailable)
        self.assertIs(type(self.outcome(error=[8, "INTERNAL", "?"])), nowcalls.Unavailable)

    def test_elements_of_later_versions_are_ignored(self):
        self.assertIsNone(self.outcome([*GRANT, "more"]))

    def test_bytes_that_are_not_the_protocol_end_the_connection(self):
        for garbage in (b"HTTP/1.1", b"\xc1", b"\x94\x01\x00\xc0\x90", b"\x91\x01"):
            peer = Peer()
            peer.session.connected(peer.now)
            self.assertIn("does not speak nowcalls", peer.session.received(garbage, peer.now))

    def test_errors_can_be_pickled(self):
        import pickle

        refused = pickle.loads(pickle.dumps(self.outcome([1, 0, 0, 3, 9, 0, "level"])))
        self.assertEqual(str(refused), "flow 111 refused by level: 3 of 9 in progress")
        self.assertEqual(refused.level, 9)


class TimeTest(unittest.TestCase):
    def test_a_permit_is_kept_at_a_third_of_its_hold(self):
        peer = Peer()
        peer.connect()
        permit = peer.granted()  # 6000 ms
        self.assertEqual(peer.session.wakeup(), 102.001)
        peer.tick_at(101.9)
        self.assertEqual(peer.asked(), [])
        peer.tick_at(102.001)
        self.assertEqual(peer.asked(), [["keep", [77]]])
        peer.now = 103.0
        peer.answer([0, 9000])
        self.assertEqual(permit.hold_ms, 9000)
        peer.tick_at(105.002)  # A third of the new hold, from when the keep was sent.
        self.assertEqual(peer.asked(), [["keep", [77]]])
        peer.answer([7, 0])
        self.assertTrue(permit.lost)
        self.assertEqual(peer.lost(), [permit])
        self.assertEqual(peer.lost(), [])

    def test_whatever_hold_a_server_tells_keeps_have_pauses(self):
        peer = Peer()
        peer.connect()
        call = peer.acquire()
        peer.asked()
        peer.answer([0, 77, 13, 1, 2, 15, None])
        self.assertFalse(call.result().lost)
        self.assertAlmostEqual(peer.session.wakeup(), 100.01)

    def test_a_grant_that_no_server_gives_is_asked_again_on_the_next_connection(self):
        for token in (0, 2**63):
            peer = Peer()
            peer.connect()
            call = peer.acquire()
            (asked,) = peer.asked()
            self.assertIn("does not speak", peer.answer([0, token, 13, 1, 2, 6000, None]))
            self.assertFalse(call.done)
            peer.disconnect()
            peer.connect()
            (again,) = peer.asked()
            self.assertEqual(again[1][2]["request_id"], asked[1][2]["request_id"])
            peer.answer(GRANT)
            self.assertEqual(call.result().token_id, 77)

    def test_a_keep_that_failed_is_tried_again(self):
        peer = Peer()
        peer.connect()
        permit = peer.granted()
        peer.tick_at(102.001)
        peer.asked()
        peer.answer(error=[8, "INTERNAL", "?"])
        self.assertFalse(permit.lost)
        peer.tick_at(104.002)
        self.assertEqual(peer.asked(), [["keep", [77]]])

    def test_a_new_connection_begins_with_a_keep_of_every_kept_permit(self):
        peer = Peer()
        peer.connect()
        permit = peer.granted()
        peer.disconnect()
        peer.now += 1
        peer.connect(resumed=1)
        self.assertEqual(peer.asked(), [["keep", [77]]])
        self.assertFalse(permit.lost)

    def test_a_session_that_resumes_no_token_has_lost_all(self):
        peer = Peer()
        peer.connect()
        permit = peer.granted()
        peer.disconnect()
        peer.connect(resumed=0)
        self.assertEqual(peer.asked(), [])
        self.assertTrue(permit.lost)

    def test_silence_is_probed_and_then_ends_the_connection(self):
        peer = Peer()
        peer.connect()
        self.assertIsNone(peer.tick_at(109.9))
        self.assertEqual(peer.asked(), [])
        self.assertIsNone(peer.tick_at(110.0))
        self.assertEqual(peer.asked(), [["ping", []]])
        self.assertEqual(peer.session.wakeup(), 115.0)
        self.assertIsNone(peer.tick_at(114.9))
        self.assertEqual(peer.tick_at(115.0), "the server is silent")

    def test_any_byte_ends_a_probe(self):
        peer = Peer()
        peer.connect()
        peer.tick_at(110.0)
        peer.asked()
        peer.answer([1])
        self.assertIsNone(peer.tick_at(116.0))
        self.assertEqual(peer.session.wakeup(), 120.0)


class FallbackTest(unittest.TestCase):
    def test_calls_that_wait_fall_back_when_the_last_address_has_failed(self):
        peer = Peer("a:1", "b:2", fallback="pass")
        call = peer.acquire()
        peer.session.connect_failed(peer.now, "refused")
        self.assertFalse(call.done)
        with self.assertLogs("nowcalls", "WARNING"):
            peer.session.connect_failed(peer.now, "refused")
        self.assertTrue(call.result().local)
        self.assertTrue(peer.acquire().result().local)

    def test_calls_fall_back_when_the_server_answers_that_it_failed_not_that_they_are_wrong(self):
        peer = Peer(fallback="pass")
        peer.connect()
        for code in (5, 8):  # OVERLOADED, INTERNAL.
            call = peer.acquire()
            peer.asked()
            peer.answer(error=[code, "FAILED", "for a reason"])
            self.assertTrue(call.result().local)
        call = peer.acquire()
        peer.asked()
        peer.answer(error=[3, "BAD_PARAMS", "for a reason"])
        self.assertIsInstance(call.error, nowcalls.BadRequest)

    def test_keys_of_different_types_have_different_shares(self):
        peer = Peer(fallback="local", local_levels={111: 1})
        with self.assertLogs("nowcalls", "WARNING"):
            peer.session.connect_failed(peer.now, "refused")
        permits = [
            peer.submit(Acquire(111, 1, None, param, False)).result()
            for param in (1, 1.0, True, "1", None)
        ]
        self.assertEqual(len(permits), 5)
        self.assertIsInstance(
            peer.submit(Acquire(111, 1, None, True, False)).error, nowcalls.Refused
        )

    def test_a_closed_client_does_not_fall_back(self):
        peer = Peer(fallback="pass")
        call = peer.acquire()
        peer.session.close(peer.now)
        self.assertIsInstance(call.error, nowcalls.Unavailable)


if __name__ == "__main__":
    unittest.main()
