"""Permits that are kept, and permits that are lost."""

import threading
import time
import unittest

import nowcalls
from nowcalls._fork import instance
from support import ScriptedServer, ServerTest, rule


class KeepTest(ServerTest):
    def test_a_permit_held_for_longer_than_its_hold_is_kept(self):
        flow = self.load(rule, 1, resourceTimeout=150)
        client = self.client()
        permit = client.acquire(flow)
        self.assertEqual(permit.hold_ms, 300)
        self.assert_soon(lambda: client.stats()["kept"] >= 6)
        self.assertFalse(permit.lost)
        self.assertTrue(permit.release())

    def test_a_permit_that_is_not_to_be_kept_ends_with_its_hold(self):
        flow = self.load(rule, 1, resourceTimeout=150)
        client = self.client()
        permit = client.acquire(flow, keep=False)
        self.assert_soon(lambda: self.server.now_calls(flow) == 0)
        self.assertFalse(permit.release())
        self.assertTrue(permit.lost)
        self.assertEqual(client.stats()["kept"], 0)

    def test_the_rule_says_whether_a_permit_is_kept_released_or_left(self):
        ends = {}
        for strategy in (0, 1, 2):
            timeout = 150 if strategy != 1 else 400
            config = {"resourceTimeout": timeout, "resourceTimeoutStrategy": strategy}
            flow = self.load(rule, 1, **config)
            client = self.client()
            permit = client.acquire(flow)
            if strategy == 2:
                self.assert_soon(lambda: client.stats()["kept"] >= 6)
                self.assertFalse(permit.lost)
                self.assertTrue(permit.release())
                continue
            self.assert_soon(lambda: permit.lost)
            self.assertEqual(permit.lost_reason, "resource_timeout")
            self.assert_soon(lambda: self.server.now_calls(flow) == 0)
            counters = self.server.call("flow", flow)["counters"]
            ended = {reason for reason, count in counters["ended"].items() if count}
            ends[strategy] = ended, counters.get("outcomes", {}).get("timeout", 0)
            self.assertEqual(client.stats()["kept"], 0)
            self.assertFalse(permit.release())
        self.assertEqual(ends, {0: ({"resource_timeout"}, 0), 1: ({"released"}, 1)})

    def test_a_permit_that_outlives_its_hold_says_what_to_set(self):
        flow = self.load(rule, 1, resourceTimeout=150, resourceTimeoutStrategy=0)
        client = self.client()
        with self.assertLogs("nowcalls", "WARNING") as logged:
            permit = client.acquire(flow)
            self.assert_soon(lambda: client.stats()["lost"] == 1)
            self.assertFalse(permit.release())
        self.assertIn("the 300 ms that its rule holds a token", logged.output[0])
        self.assertIn("set resourceTimeoutStrategy 2 in the rule, or ask to keep", logged.output[0])

    def test_always_keeps_a_permit_of_a_rule_that_does_not(self):
        flow = self.load(rule, 1, resourceTimeout=150, resourceTimeoutStrategy=0)
        client = self.client(keep="always")
        with client.permit(flow) as permit:
            self.assert_soon(lambda: client.stats()["kept"] >= 6)
            self.assertFalse(permit.lost)

    def test_a_client_can_leave_all_keeping_to_its_user(self):
        flow = self.load(rule, 1, resourceTimeout=150)
        client = self.client(keep=False)
        permit = client.acquire(flow)
        self.assertTrue(permit.keep())
        self.assertEqual(client.stats()["kept"], 1)
        self.assert_soon(lambda: self.server.now_calls(flow) == 0)
        self.assertFalse(permit.keep())
        self.assertTrue(permit.lost)

    def test_short_permits_leave_nothing_to_be_kept(self):
        flow = self.load(rule, 1)
        client = self.client()
        for _ in range(200):
            with client.permit(flow):
                pass
        self.assertLess(len(client._worker._session._held._due), 100)
        self.assertEqual(client.stats()["held"], 0)


class LostTest(ServerTest):
    def test_a_reclaimed_permit_is_lost_and_told_by_both_callbacks(self):
        flow = self.load(rule, 1, resourceTimeout=150)
        told = []
        client = self.client(on_lost=lambda permit: told.append(("client", permit)))
        permit = client.acquire(flow, on_lost=lambda permit: told.append(("permit", permit)))
        self.server.admin("reclaim", str(permit.token_id), "--reason", "the test")
        self.assert_soon(lambda: len(told) == 2)
        self.assertEqual(told, [("permit", permit), ("client", permit)])
        self.assertTrue(permit.lost)
        self.assertFalse(permit.released)
        self.assertFalse(permit.release())
        self.assertEqual(client.stats()["lost"], 1)

    def test_a_server_that_tells_makes_a_reclaimed_permit_lost_at_once(self):
        flow = self.load(rule, 1)  # The next keep is 20 s away.
        client = self.client()
        permit = client.acquire(flow)
        if not client.stats()["tells_lost"]:
            permit.release()
            self.skipTest("this server does not know the option lost")
        began = time.monotonic()
        self.server.admin("reclaim", str(permit.token_id), "--reason", "the test")
        self.assert_soon(lambda: permit.lost)
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(permit.lost_reason, "admin")

    def test_a_callback_that_fails_harms_nobody(self):
        flow = self.load(rule, 1, resourceTimeout=150)

        def fail(permit):
            raise ZeroDivisionError

        client = self.client(on_lost=fail)
        permit = client.acquire(flow)
        with self.assertLogs("nowcalls", "ERROR"):
            self.server.admin("reclaim", str(permit.token_id), "--reason", "the test")
            self.assert_soon(lambda: client.stats()["lost"] == 1)
            client.ping()
        client.acquire(flow).release()

    def test_a_callback_may_not_wait_for_the_client_that_calls_it(self):
        flow = self.load(rule, 2, resourceTimeout=150)
        outcomes = []
        client = self.client()

        def call_back(permit):
            try:
                client.ping()
            except nowcalls.BadRequest:
                outcomes.append("refused")
            outcomes.append(other.release())

        other = client.acquire(flow)
        permit = client.acquire(flow, on_lost=call_back)
        self.server.admin("reclaim", str(permit.token_id), "--reason", "the test")
        self.assert_soon(lambda: len(outcomes) == 2)
        self.assertEqual(outcomes, ["refused", True])
        self.assert_soon(lambda: self.server.now_calls(flow) == 0)


class NotificationTest(unittest.TestCase):
    def test_a_lost_notification_is_told_at_once_with_its_reason(self):
        hellos = []

        def answer(method, params):
            if method == "hello":
                hellos.append(params)
                return [None, ["9.9.9", 1, 1, 0, "an element of a later version"]]
            return [None, [0, 77, 1, 1, 5, 60_000, None]]

        server = ScriptedServer(answer)
        self.addCleanup(server.close)
        with nowcalls.Client(server.address, client_id="worker") as client:
            lost = threading.Event()
            permit = client.acquire(1001, on_lost=lambda _: lost.set())
            options = {"lost": True, "instance": instance(), "terms": True}
            self.assertEqual(hellos, [[1, "default", "worker", options]])
            self.assertTrue(client.stats()["tells_lost"])
            server.notify("unknown", "of a later version")
            server.notify("lost", 78, 1001, "admin")  # Not a token of this client.
            self.assertFalse(permit.lost)
            server.notify("lost", 77, 1001, "client_offline", "an element of a later version")
            self.assertTrue(lost.wait(20))
            self.assertTrue(permit.lost)
            self.assertEqual(permit.lost_reason, "client_offline")
            self.assertFalse(permit.release())


if __name__ == "__main__":
    unittest.main()
