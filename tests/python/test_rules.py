"""The client's half of rules, groups, and attempts that were left on broken connections."""

import unittest

import msgpack
import nowcalls
from nowcalls._calls import Acquire, AcquireAll
from test_session import GRANT, Peer


RULE = {"count": 6.0, "clusterConfig": {"flowId": 111, "resourceTimeout": 3000}}


def rule(**cluster):
    return {**RULE, "clusterConfig": {**RULE["clusterConfig"], **cluster}}


class RuleTest(unittest.TestCase):
    """The client's half of a rule."""

    def refuse_prioritized(self, **cluster):
        peer = Peer()
        peer.connect()
        call = peer.submit(Acquire(111, 1, None, None, True))
        peer.asked()
        peer.answer([1, 0, 0, 6, 6, 0, "level"])
        self.assertEqual(peer.asked(), [["rules_list", [None, 2, 110]]])
        self.assertFalse(call.done)
        peer.answer([[rule(**cluster)], None])
        return peer, call

    def test_a_prioritized_acquire_is_asked_once_more(self):
        peer, call = self.refuse_prioritized(acquireRefuseStrategy=1)
        peer.tick_at(100.02)
        self.assertEqual([method for method, _ in peer.asked()], ["acquire"])
        peer.answer([1, 0, 0, 6, 6, 0, "level"])
        self.assertEqual(call.error.refused_by, "level")

    def test_or_until_its_time_is_over(self):
        peer, call = self.refuse_prioritized(acquireRefuseStrategy=2)
        for _ in range(5):
            peer.tick_at(peer.now + 0.7)
            self.assertEqual([method for method, _ in peer.asked()], ["acquire"])
            peer.answer([1, 0, 0, 6, 6, 0, "level"])
        self.assertFalse(call.done)
        peer.give_up(call)
        self.assertEqual(call.error.refused_by, "level")

    def test_but_not_so_late_that_its_answer_would_come_too_late(self):
        for left, took, refused in ((0.0201, 0, True), (0.05, 0, False), (0.05, 0.03, True)):
            peer, call = self.refuse_prioritized(acquireRefuseStrategy=2)
            peer.tick_at(peer.now + 0.02)
            self.assertEqual([method for method, _ in peer.asked()], ["acquire"])
            peer.tick_at(call.deadline - left)
            call.sent_at = peer.now - took
            peer.answer([1, 0, 0, 6, 6, 0, "level"])
            self.assertEqual(call.done, refused)

    def test_or_not_at_all(self):
        _, call = self.refuse_prioritized(acquireRefuseStrategy=0)
        self.assertEqual(call.error.refused_by, "level")

    def test_the_fallback_by_rule_is_that_of_the_rule_as_last_seen(self):
        for cluster, admitted in (
            ({"fallbackToLocalWhenFail": True, "thresholdType": 1}, 3),
            ({"fallbackToLocalWhenFail": True, "thresholdType": 0}, 6),
            ({"fallbackToLocalWhenFail": False}, 10),
        ):
            peer = Peer(fallback="rule")
            peer.connect(sessions=2)
            peer.acquire()
            self.assertEqual([method for method, _ in peer.asked()], ["rules_list", "acquire"])
            peer.answer([[rule(**cluster)], None], [1, 0, 0, 6, 6, 0, "level"])
            peer.disconnect()
            with self.assertLogs("nowcalls", "WARNING"):
                peer.session.connect_failed(peer.now, "refused")
            calls = [peer.acquire() for _ in range(10)]
            self.assertEqual(sum(call.error is None for call in calls), admitted)


    def test_the_share_is_the_count_divided_by_the_sessions_and_at_least_one(self):
        for sessions, share in ((1, 2), (2, 1), (50, 1)):
            peer = Peer(fallback="local")
            peer.connect(sessions=sessions)
            peer.acquire()
            peer.asked()
            seen = {**rule(thresholdType=1), "count": 2}
            peer.answer([[seen], None], [1, 0, 0, 2, 2, 0, "level"])
            peer.disconnect()
            with self.assertLogs("nowcalls", "WARNING"):
                peer.session.connect_failed(peer.now, "refused")
            permits = [peer.acquire().result() for _ in range(share)]
            self.assertEqual([permit.level for permit in permits], [share] * share)
            self.assertIsInstance(peer.acquire().error, nowcalls.Refused)


class StrayTest(unittest.TestCase):
    """An attempt that was left on a broken connection may still arrive."""

    def asked_twice(self):
        peer = Peer()
        peer.connect()
        call = peer.acquire()
        ((_, (_, _, options)),) = peer.asked()
        peer.disconnect()
        peer.session.connected(peer.now)
        peer.asked()
        peer.answer(["0.1.0", 12, 1, 1])
        self.assertEqual([method for method, _ in peer.asked()], ["acquire"])
        return peer, call, ["cancel", [options["request_id"]]]

    def test_it_is_cancelled_when_the_next_one_is_refused(self):
        peer, call, cancel = self.asked_twice()
        peer.answer([1, 0, 0, 6, 6, 0, "level"])
        self.assertEqual(call.error.refused_by, "level")
        self.assertEqual(peer.asked(), [cancel])

    def test_it_is_cancelled_behind_the_release(self):
        peer, call, cancel = self.asked_twice()
        peer.answer(GRANT)
        self.assertEqual(peer.asked(), [])
        peer.release(call.result())
        self.assertEqual(peer.asked(), [["release", [77]], cancel])

    def test_it_is_cancelled_when_the_token_is_lost(self):
        peer, call, cancel = self.asked_twice()
        peer.answer(GRANT)
        permit = call.result()
        peer.session.received(msgpack.packb([2, "lost", [77, 111, "admin"]]), peer.now)
        self.assertTrue(permit.lost)
        self.assertEqual(peer.asked(), [cancel])

    def test_an_acquire_that_was_asked_once_needs_no_cancel(self):
        peer = Peer()
        peer.connect()
        call = peer.acquire()
        peer.asked()
        peer.answer(GRANT)
        peer.release(call.result())
        self.assertEqual(peer.asked(), [["release", [77]]])


class AcquireAllTest(unittest.TestCase):
    def acquire_all(self, peer):
        return peer.submit(AcquireAll([111, (112, 2), (113, 1, "key")], None, False))

    def test_it_gives_a_permit_for_each_item(self):
        peer = Peer()
        peer.connect()
        call = self.acquire_all(peer)
        (method, (items, options)), = peer.asked()
        self.assertEqual(method, "acquire_all")
        self.assertEqual(items, [[111, 1], [112, 2], [113, 1, "key"]])
        self.assertEqual(list(options), ["request_id"])
        peer.answer([0, [[1, 11, 900], [2, 12, 900], [3, 13, 900]], None, 0, 0, 0])
        permits = call.result()
        self.assertEqual([permit.token_id for permit in permits], [1, 2, 3])
        self.assertEqual([permit.count for permit in permits], [1, 2, 1])
        self.assertEqual(permits[2].param, "key")

    def test_a_refusal_names_the_flow(self):
        peer = Peer()
        peer.connect()
        call = self.acquire_all(peer)
        peer.asked()
        peer.answer([1, [], "level", 112, 3, 4])
        self.assertEqual((call.error.flow_id, call.error.refused_by), (112, "level"))

    def test_a_group_of_which_a_token_ended_before_its_answer_came_is_given_up(self):
        peer = Peer()
        peer.connect()
        call = self.acquire_all(peer)
        peer.asked()
        peer.disconnect()
        peer.connect()
        self.assertEqual([method for method, _ in peer.asked()], ["acquire_all"])
        peer.answer([-4, [], "request_id", 0, 0, 0])
        self.assertIsInstance(call.error, nowcalls.Unavailable)
        self.assertEqual([method for method, _ in peer.asked()], ["cancel"])

    def test_wrong_items_are_named(self):
        for items in ([], [()], [(1, 2, 3, 4)], [(1, 1, [])], [1] * 65):
            with self.assertRaises(nowcalls.BadRequest):
                AcquireAll(items, None, False)
