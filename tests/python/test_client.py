"""The blocking client against a server that is there."""

import contextlib
import os
import signal
import threading
import time
import unittest
import warnings

import nowcalls
from support import PATIENCE_S, ServerTest, rule, rule_of_keys


class PermitTest(ServerTest):
    def test_a_permit_is_held_within_its_block_and_released_at_its_end(self):
        flow = self.load(rule, 3)
        client = self.client()
        with client.permit(flow, count=2) as permit:
            self.assertGreater(permit.token_id, 0)
            self.assertGreater(permit.fence, 0)
            self.assertEqual(permit.hold_ms, 60_000)
            self.assertEqual((permit.now_calls, permit.level), (2, 3))
            self.assertFalse(permit.lost or permit.released or permit.local)
            self.assertEqual(self.server.now_calls(flow), 2)
        self.assertTrue(permit.released)
        self.assertEqual(self.server.now_calls(flow), 0)

    def test_a_permit_is_released_when_its_block_raises(self):
        flow = self.load(rule, 1)
        client = self.client()
        with self.assertRaises(ZeroDivisionError), client.permit(flow):
            raise ZeroDivisionError
        self.assertEqual(self.server.now_calls(flow), 0)

    def test_a_second_release_does_nothing(self):
        client = self.client()
        permit = client.acquire(self.load(rule, 1))
        self.assertTrue(permit.release())
        self.assertTrue(permit.release())
        self.assertFalse(permit.lost)

    def test_a_function_can_be_decorated_with_a_permit(self):
        flow = self.load(rule, 1)
        client = self.client()

        @client.permit(flow)
        def call():
            return self.server.now_calls(flow)

        self.assertEqual([call(), call()], [1, 1])
        self.assertEqual(self.server.now_calls(flow), 0)

    def test_a_refusal_says_the_limit_and_the_calls_in_progress(self):
        flow = self.load(rule, 2)
        client = self.client()
        with client.permit(flow, count=2), self.assertRaises(nowcalls.Refused) as caught:
            client.acquire(flow)
        refused = caught.exception
        self.assertEqual((refused.status, refused.refused_by), (1, "level"))
        self.assertEqual((refused.now_calls, refused.level), (2, 2))
        self.assertFalse(refused.local)

    def test_a_flow_without_a_rule_raises_no_rule(self):
        with self.assertRaises(nowcalls.NoRule):
            self.client().acquire(999_999)

    def test_an_acquire_waits_for_room_and_is_refused_when_its_wait_is_over(self):
        flow = self.load(rule, 1)
        client = self.client()
        first = client.acquire(flow)
        with self.assertRaises(nowcalls.Refused) as caught:
            client.acquire(flow, wait=0.05)
        self.assertEqual(caught.exception.refused_by, "queue_timeout")
        releaser = threading.Timer(0.1, first.release)
        releaser.start()
        with client.permit(flow, wait=10.0) as second:
            self.assertGreater(second.fence, first.fence)
        releaser.join()

    def test_a_wait_longer_than_the_timeout_is_waited_for(self):
        flow = self.load(rule, 1)
        client = self.client(timeout=0.2)
        client.ping(timeout=10)
        first = client.acquire(flow, timeout=10)
        releaser = threading.Timer(0.5, lambda: first.release(timeout=10))
        releaser.start()
        with client.permit(flow, wait=10.0):
            pass
        releaser.join()

    def test_a_key_has_a_level_of_its_own(self):
        flow = self.load(rule_of_keys, 1)
        client = self.client()
        with client.permit(flow, param="acme"), client.permit(flow, param="other"):
            with self.assertRaises(nowcalls.Refused) as caught:
                client.acquire(flow, param="acme")
        self.assertEqual(caught.exception.refused_by, "param")

    def test_the_callers_own_faults_are_bad_requests(self):
        flow = self.load(rule, 1)
        client = self.client()
        for fault in (
            lambda: client.acquire(flow, count=0),
            lambda: client.acquire(flow, count="1"),
            lambda: client.acquire(flow, wait=-1),
            lambda: client.acquire(flow, param=b"bytes"),
            lambda: client.acquire(flow, param="no such parameter"),
            lambda: client.acquire(flow, param="x" * 100_000),
            lambda: client.acquire(2**70),
            lambda: client.request_param(flow, 1, [["nested"]]),
            lambda: client.flow(999_999),
        ):
            with self.assertRaises(nowcalls.BadRequest):
                fault()
        for text in ("letters", b"bytes"):  # Not a value for each letter.
            with self.assertRaisesRegex(nowcalls.BadRequest, "a list of values"):
                client.request_param(flow, 1, text)
        self.assertEqual(client.stats()["connects"], 1)
        for settings in (
            {"namespace": ""},
            {"client_id": "@1"},
            {"client_id": "\ud800"},
            {"fallback": "none"},
            {"timeout": 0},
        ):
            with self.assertRaises(nowcalls.BadRequest):
                nowcalls.Client(self.server.address, **settings)
        for address in (
            *("host:port", "", ":1", "host:0", "[::1]:x", []),
            *("a..b:1", "x" * 64 + ":1", "\ud800:1", "nul\0:1"),
        ):
            for kind in (nowcalls.Client, nowcalls.aio.Client):
                with self.assertRaises(nowcalls.BadRequest, msg=repr(address)):
                    kind(address)

    def test_a_dropped_permit_is_warned_of_and_no_longer_kept(self):
        flow = self.load(rule, 1, resourceTimeout=150)
        client = self.client()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            client.acquire(flow)
        self.assertEqual([warning.category for warning in caught], [ResourceWarning])
        self.assert_soon(lambda: self.server.now_calls(flow) == 0)

    def test_an_interrupted_acquire_leaves_the_queue(self):
        flow = self.load(rule, 1)
        client = self.client()

        def interrupt(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        with client.permit(flow):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with self.assertRaises(KeyboardInterrupt):
                client.acquire(flow, wait=60)
            self.assert_soon(lambda: self.server.waiters(flow) == 0)
        self.assertEqual(self.server.now_calls(flow), 0)

    def test_many_threads_share_a_client_and_never_exceed_the_level(self):
        flow = self.load(rule, 4)
        client = self.client()
        lock = threading.Lock()
        now, most, done = 0, 0, 0

        def work():
            nonlocal now, most, done
            for _ in range(10):
                with client.permit(flow, wait=30):
                    with lock:
                        now += 1
                        most = max(most, now)
                    time.sleep(0.001)
                    with lock:
                        now -= 1
                        done += 1

        threads = [threading.Thread(target=work) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((done, self.server.now_calls(flow)), (160, 0))
        self.assertLessEqual(most, 4)
        self.assertGreater(most, 1)


class RateTest(ServerTest):
    def test_a_request_passes_up_to_the_rate_and_is_refused_beyond(self):
        flow = self.load(rule, 3, windowIntervalMs=10_000, sampleCount=1)
        client = self.client()
        # The window may end between two requests, so the limit is met a second time at most.
        with self.assertRaises(nowcalls.Refused) as caught:
            for _ in range(3):
                self.assertEqual(client.request(flow, 20).wait, 0.0)
                self.assertEqual(client.request(flow, 10).remaining, 0)
                client.request(flow)
        self.assertEqual(caught.exception.refused_by, "rate")

    def test_a_prioritized_request_may_borrow_and_is_told_how_long_to_wait(self):
        flow = self.load(rule, 10, windowIntervalMs=10_000, sampleCount=1)
        client = self.client()
        waits = []
        for _ in range(2):  # The window may end between the two.
            with contextlib.suppress(nowcalls.Refused):
                client.request(flow, 100)
            waits.append(client.request(flow, 1, True).wait)
        self.assertIn(10.0, waits)

    def test_a_request_that_should_wait_sleeps_before_it_returns(self):
        flow = self.load(rule, 50, windowIntervalMs=200, sampleCount=1)  # 10 in a bucket.
        client = self.client(timeout=PATIENCE_S)
        slept = False
        for _ in range(20):  # The window may end between two requests.
            with contextlib.suppress(nowcalls.Refused):
                while True:
                    client.request(flow)
            with contextlib.suppress(nowcalls.Refused):
                self.assertEqual(client.request(flow, 10, True), nowcalls.Rate(0, 0.0))
            slept = self.server.call("flow", flow)["rate"].get("borrowed", 0) > 0
            if slept:
                break
        self.assertTrue(slept, self.server.call("flow", flow)["rate"])

    def test_a_group_takes_a_token_and_a_rate_in_one_decision(self):
        calls = self.load(rule_of_keys, 1)
        rates = self.load(rule_of_keys, 2, windowIntervalMs=60_000, countPerWindow=True)
        client = self.client()
        asked = [(calls, 1, "key"), nowcalls.rate(rates, 1, "key")]
        permit, nothing = client.acquire_all(asked)
        self.assertIsNone(nothing)
        for _ in range(5):  # What the level refuses uses up nothing of the rate.
            with self.assertRaises(nowcalls.Refused) as caught:
                client.acquire_all(asked)
            self.assertEqual(caught.exception.flow_id, calls)
        permit.release()
        client.acquire_all(asked)[0].release()
        with self.assertRaises(nowcalls.Refused) as caught:
            client.acquire_all(asked)
        self.assertEqual(caught.exception.flow_id, rates)
        self.assertEqual(self.server.now_calls(calls), 0)

    def test_each_value_has_a_rate_of_its_own(self):
        flow = self.load(rule_of_keys, 1, windowIntervalMs=10_000, sampleCount=1)
        client = self.client()
        client.request_param(flow, 10, ["a"])
        self.assertEqual(client.request_param(flow, 10, ["b", "c"]).remaining, -1)
        with self.assertRaises(nowcalls.Refused) as caught:
            for _ in range(2):
                client.request_param(flow, 6, ["d", "b"])
                client.request_param(flow, 6, ["d", "b"])
        self.assertEqual(caught.exception.refused_by, "param")


class KnowledgeTest(ServerTest):
    def test_the_server_tells_its_clock_and_the_state_of_a_flow(self):
        flow = self.load(rule, 7)
        client = self.client()
        self.assertGreater(client.ping(), 1_600_000_000_000)
        with client.permit(flow, 3):
            row = client.flow(flow)
        self.assertEqual((row["level"], row["now_calls"]), (7, 3))

    def test_listings_go_on_over_their_pages(self):
        flow = self.load(rule, 1000)
        client = self.client(client_id="lister")
        permits = [client.acquire(flow) for _ in range(105)]
        rows = list(client.tokens(flow_id=flow))
        self.assertEqual([row["token_id"] for row in rows], [permit.token_id for permit in permits])
        self.assertIn("lister", [row["client_id"] for row in client.sessions()])
        self.assertIn(flow, [row["flow_id"] for row in client.flows()])
        for permit in permits:
            permit.release()
        self.assertEqual(list(client.tokens(client_id="lister")), [])
        self.assertIsInstance(list(client.history()), list)


class EndTest(ServerTest):
    def test_a_closed_client_refuses_calls_and_may_be_closed_again(self):
        client = self.client()
        client.ping()
        client.close()
        client.close()
        with self.assertRaises(nowcalls.BadRequest):
            client.ping()

    def test_closing_ends_the_acquires_that_wait(self):
        flow = self.load(rule, 1)
        client = self.client()
        permit = client.acquire(flow)
        failures = []

        def wait():
            try:
                client.acquire(flow, wait=60)
            except nowcalls.Error as error:
                failures.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        self.assert_soon(lambda: self.server.waiters(flow) == 1)
        client.close()
        waiting.join()
        self.assertIsInstance(failures[0], nowcalls.OutcomeUnknown)
        self.assert_soon(lambda: self.server.waiters(flow) == 0)
        # What is held outlives the client: the rule's clientOfflineTime decides.
        self.assertEqual(self.server.now_calls(flow), 1)
        with self.assertRaises(nowcalls.Unavailable):
            permit.release()

    def test_a_release_after_close_is_unavailable_and_leaves_the_token(self):
        flow = self.load(rule, 2)
        client = self.client(timeout=PATIENCE_S)
        permit = client.acquire(flow)
        with self.assertLogs("nowcalls", "WARNING") as logged, client.permit(flow) as inner:
            begin = time.monotonic()
            client.close()
        self.assertIn(f"{inner!r} is not released", logged.output[-1])
        with self.assertRaisesRegex(nowcalls.Unavailable, "the client is closed"):
            permit.release()
        self.assertLess(time.monotonic() - begin, PATIENCE_S / 2)  # Nothing waits for an answer.
        self.assertEqual(self.server.now_calls(flow), 2)

    def test_a_process_that_resumes_a_client_id_finds_its_tokens(self):
        flow = self.load(rule, 1)
        first = self.client(client_id="resumed")
        permit = first.acquire(flow)
        first.close()
        second = self.client(client_id="resumed")
        self.assertEqual([row["online"] for row in second.tokens(flow_id=flow)], [True])
        self.server.call("reclaim", permit.token_id, "the test is over")
        with self.assertRaises(nowcalls.Unavailable):
            permit.release()

    def test_a_forked_child_leaves_the_connection_to_its_parent(self):
        flow = self.load(rule, 1)
        client = self.client(client_id="parent")
        permit = client.acquire(flow)
        verdict_in, verdict_out = os.pipe()
        end_in, end_out = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(end_out)
            verdict = b"wrong"
            try:
                client.ping()
            except nowcalls.BadRequest:
                verdict = b"right" if permit.release() is False else b"released"
            os.write(verdict_out, verdict)
            os.read(end_in, 1)  # Until the parent's end is closed.
            os._exit(0)
        self.addCleanup(os.waitpid, child, 0)
        for descriptor in (verdict_in, verdict_out, end_in, end_out):
            self.addCleanup(os.close, descriptor)
        self.assertEqual(os.read(verdict_in, 10), b"right")
        self.assertEqual(self.server.now_calls(flow), 1)
        self.assertTrue(permit.release())
        client.close()
        # The child still lives, but the session is gone with its parent.
        self.assert_soon(lambda: "parent" not in str(self.server.call("sessions", 1000)))


if __name__ == "__main__":
    unittest.main()
