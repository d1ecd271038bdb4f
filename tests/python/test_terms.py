"""What a rule's terms make a session do, and until when it calls a token its own."""

import math
import unittest

import msgpack
import nowcalls
from nowcalls._calls import Acquire, AcquireAll, RateRequest
from test_session import HELLO, Peer

NOT_KEPT, RELEASED, KEPT = 0, 1, 2
OFFLINE_MS = 30_000


def grant(strategy, hold_ms=6000, token_id=77, offline_ms=OFFLINE_MS, timeout_ms=3000):
    return [0, token_id, 13, 1, 2, hold_ms, None, None, [strategy, timeout_ms, offline_ms]]


class TermsTest(unittest.TestCase):
    def granted(self, answer, keep=True, **settings):
        peer = Peer(**settings)
        peer.connect()
        call = peer.acquire(keep=keep)
        peer.asked()
        self.assertIsNone(peer.answer(answer))
        return peer, call.result()

    def asked(self, peer):
        return [message for message in peer.asked() if message[0] != "ping"]


class KeepByRuleTest(TermsTest):
    def test_a_token_of_strategy_0_is_not_kept_and_its_loss_says_what_to_set(self):
        peer, permit = self.granted(grant(NOT_KEPT))
        peer.tick_at(105.93)
        self.assertEqual(self.asked(peer), [])
        self.assertFalse(permit.lost)
        peer.tick_at(105.938)  # 6 s less 1 % and 2 ms.
        with self.assertLogs("nowcalls", "WARNING") as logged:
            self.assertEqual(peer.lost(), [permit])
        self.assertEqual((permit.lost, permit.lost_reason), (True, "resource_timeout"))
        self.assertIn("longer than the 6000 ms that its rule holds", logged.output[0])
        self.assertIn("resourceTimeoutStrategy 2", logged.output[0])

    def test_a_token_of_strategy_1_is_released_as_a_timeout_a_little_before_its_time(self):
        peer, permit = self.granted(grant(RELEASED))
        peer.tick_at(102.94)
        self.assertEqual(self.asked(peer), [])
        peer.tick_at(102.95)
        self.assertEqual(self.asked(peer), [["release", [77, {"outcome": "timeout"}]]])
        self.assertEqual((permit.lost, permit.lost_reason), (True, "resource_timeout"))
        self.assertFalse(peer.release(permit).result())
        self.assertEqual(peer.asked(), [])

    def test_a_token_of_strategy_2_is_kept_at_each_third_of_its_hold(self):
        peer, permit = self.granted(grant(KEPT))
        for at in (102.001, 104.002, 106.003, 108.004):
            peer.tick_at(at)
            self.assertEqual(peer.asked(), [["keep", [77]]])
            peer.answer([0, 6000, [KEPT, 3000, OFFLINE_MS]])
        self.assertFalse(permit.lost)

    def test_without_terms_of_an_older_server_a_token_is_kept(self):
        peer, permit = self.granted([0, 77, 13, 1, 2, 6000, None])
        peer.tick_at(102.001)
        self.assertEqual(peer.asked(), [["keep", [77]]])
        self.assertFalse(permit.lost)

    def test_always_keeps_and_false_does_not_whatever_the_rule_says(self):
        for strategy in (NOT_KEPT, RELEASED, KEPT):
            peer, permit = self.granted(grant(strategy), keep="always")
            peer.tick_at(103.0)
            self.assertEqual(peer.asked(), [["keep", [77]]])
            peer, permit = self.granted(grant(strategy), keep=False)
            peer.tick_at(103.0)
            self.assertEqual(self.asked(peer), [])
            self.assertFalse(permit.lost)

    def test_a_rule_that_changes_is_learned_with_the_next_keep(self):
        peer, permit = self.granted(grant(KEPT))
        peer.tick_at(102.001)
        peer.asked()
        peer.answer([0, 6000, [NOT_KEPT, 3000, OFFLINE_MS]])
        peer.tick_at(107.0)
        self.assertEqual(self.asked(peer), [])
        peer.tick_at(107.94)
        self.assertTrue(permit.lost)

    def test_an_older_server_that_knows_no_terms_is_greeted_once_more_without_options(self):
        peer = Peer()
        peer.session.connected(peer.now)
        self.assertEqual(peer.asked(), [HELLO])
        peer.answer(error=[3, "BAD_PARAMS", "hello: options.terms is not known"])
        self.assertEqual(peer.asked(), [["hello", [1, "shop", "worker"]]])
        self.assertIsNone(peer.answer(["0.1.0", 12, 1, 0]))

    def test_each_process_says_its_instance_and_one_that_rejoins_says_none(self):
        peer = Peer(exclusive=True)
        peer.session._instance = 0
        peer.session.connected(peer.now)
        options = {"lost": True, "exclusive": True, "terms": True}
        self.assertEqual(peer.asked(), [["hello", [1, "shop", "worker", options]]])
        refusal = peer.answer(error=[7, "CONFLICT", "hello: worker is online"])
        self.assertIn("CONFLICT", refusal)


class ValidityTest(TermsTest):
    """valid_until = the earlier of hold and contact, from when the request was sent."""

    def test_it_counts_from_when_the_acquire_was_sent(self):
        peer = Peer()
        peer.connect()
        call = peer.acquire(keep=False)
        peer.asked()
        peer.now = 101.0
        peer.answer(grant(NOT_KEPT, hold_ms=6000))
        permit = call.result()
        self.assertAlmostEqual(permit.valid_until, 100 + 5.938)
        self.assertAlmostEqual(permit.valid_for, 4.938)
        peer.now = 106.0  # Nobody has told the session that time passes.
        self.assertTrue(permit.lost)
        self.assertEqual((permit.valid_for, permit.lost_reason), (0.0, "resource_timeout"))

    def test_the_offline_time_counts_from_the_last_request_that_was_answered(self):
        peer, permit = self.granted(grant(KEPT, hold_ms=60_000, offline_ms=3000))
        self.assertAlmostEqual(permit.valid_until, 100 + 2.968)
        peer.tick_at(101.0)
        self.assertEqual(peer.asked(), [["ping", []]])  # A third of the offline time has passed.
        peer.now = 101.5
        peer.answer([1])
        self.assertAlmostEqual(permit.valid_until, 101 + 2.968)
        peer.tick_at(102.001)
        self.assertEqual(peer.asked(), [["ping", []]])
        peer.tick_at(103.97)  # It is not answered.
        self.assertEqual((permit.lost, permit.lost_reason), (True, "client_offline"))
        with self.assertLogs("nowcalls", "WARNING"):
            self.assertEqual(peer.lost(), [permit])

    def test_a_late_answer_does_not_bring_a_lost_token_back(self):
        peer, permit = self.granted(grant(KEPT))
        peer.tick_at(102.001)
        self.assertEqual(peer.asked(), [["keep", [77]]])
        peer.now = 106.0  # The process was stopped meanwhile.
        peer.answer([0, 6000, [KEPT, 3000, OFFLINE_MS]])
        self.assertTrue(permit.lost)
        peer.tick_at(110.0)
        self.assertEqual(self.asked(peer), [])

    def test_who_saw_it_lost_never_sees_it_held_again(self):
        peer, permit = self.granted(grant(KEPT))
        peer.tick_at(102.001)
        peer.asked()
        peer.now = 105.95
        self.assertTrue(permit.lost)  # By whoever asked, before the session did.
        peer.session.received(b"", 105.9)
        self.assertTrue(permit.lost)

    def test_the_release_of_a_token_lost_by_our_clock_is_still_sent(self):
        peer, permit = self.granted(grant(NOT_KEPT))
        peer.tick_at(106.0)
        self.asked(peer)
        call = peer.release(permit, "failed")
        self.assertEqual(peer.asked(), [["release", [77, {"outcome": "failed"}]]])
        peer.answer([6])
        self.assertIs(call.result(), False)
        self.assertTrue(permit.lost)

    def test_a_token_is_lost_while_nothing_is_connected(self):
        peer, permit = self.granted(grant(KEPT))
        peer.disconnect()
        self.assertEqual(peer.session.wakeup(), 100.05)  # To dial.
        peer.session.dialing.begin()
        self.assertAlmostEqual(peer.session.wakeup(), 102.001)
        peer.tick_at(102.001)
        self.assertAlmostEqual(peer.session.wakeup(), 105.938)
        peer.tick_at(105.94)
        self.assertTrue(permit.lost)
        peer.release(permit)
        peer.connect(resumed=1)
        self.assertEqual(peer.asked(), [["release", [77]]])

    def test_all_tokens_lost_for_one_reason_are_one_line_of_the_log(self):
        peer = Peer()
        peer.connect()
        permits = [peer.granted(token_id) for token_id in range(1, 61)]
        peer.disconnect()
        peer.connect(resumed=0)
        with self.assertLogs("nowcalls", "WARNING") as logged:
            self.assertEqual(peer.lost(), permits)
        self.assertEqual(len(logged.output), 1)
        self.assertIn("lost 60 tokens (1, 2, 3, ...)", logged.output[0])

    def test_a_grant_that_comes_late_is_asked_again_before_the_caller_is_told(self):
        peer = Peer()
        peer.connect()
        call = peer.acquire(wait=20.0, keep=False)
        (first,) = peer.asked()
        peer.now = 104.0  # It waited for more than half of its hold.
        peer.answer(grant(NOT_KEPT))
        self.assertFalse(call.done)
        (second,) = peer.asked()
        self.assertEqual(second[1][2]["request_id"], first[1][2]["request_id"])
        peer.now = 104.1
        peer.answer(grant(NOT_KEPT, hold_ms=5900))
        self.assertAlmostEqual(call.result().valid_until, 104 + 5.9 - 0.061)

    def test_a_hello_with_fewer_tokens_has_all_asked_for(self):
        peer = Peer()
        peer.connect()
        permits = []
        for keep, token_id in ((True, 2), (False, 3), (True, 1)):
            call = peer.acquire(keep=keep)
            peer.asked()
            peer.answer(grant(NOT_KEPT, token_id=token_id))
            permits.append(call.result())
        peer.disconnect()
        peer.connect(resumed=2)
        self.assertEqual(peer.asked(), [["keep", [1]], ["keep", [2]]])
        peer.answer([7, 0], [0, 6000, [NOT_KEPT, 3000, OFFLINE_MS]])
        self.assertEqual([permit.lost for permit in permits], [False, False, True])

    def test_a_local_permit_is_valid_for_ever(self):
        peer = Peer(fallback="pass")
        with self.assertLogs("nowcalls", "WARNING"):
            peer.session.connect_failed(peer.now, "refused")
        permit = peer.acquire().result()
        self.assertEqual((permit.valid_until, permit.valid_for), (math.inf, math.inf))


class FallbackTest(TermsTest):
    def rule(self, flow_id=111, count=6.0, by_value=False, **cluster):
        config = {"flowId": flow_id, "fallbackToLocalWhenFail": True, "thresholdType": 1, **cluster}
        return {"count": count, "kind": "value" if by_value else "flow", "clusterConfig": config}

    def down(self, peer):
        peer.disconnect()
        with self.assertLogs("nowcalls", "WARNING"):
            peer.session.connect_failed(peer.now, "refused")

    def ask(self, peer, call, *rows, answer=None):
        peer.submit(call)
        self.assertEqual(peer.asked()[0][0], "rules_list")
        peer.answer([list(rows), None], answer)
        return call

    def test_what_the_process_holds_on_the_server_counts_against_its_share(self):
        peer = Peer(fallback="rule")
        peer.connect()
        call = self.ask(peer, Acquire(111, 3, None, None, False), self.rule(), answer=grant(KEPT))
        held = call.result()
        self.down(peer)
        permits = [peer.acquire().result() for _ in range(3)]
        self.assertEqual([permit.now_calls for permit in permits], [4, 5, 6])
        self.assertIsInstance(peer.acquire().error, nowcalls.Refused)
        peer.release(held)
        self.assertTrue(peer.acquire().result().local)

    def test_a_key_that_was_not_seen_before_is_limited_by_the_rules_count(self):
        for mode in ("rule", "local"):
            peer = Peer(fallback=mode)
            peer.connect()
            refused = [1, 0, 0, 2, 2, 0, "param"]
            call = Acquire(111, 1, None, "seen", False)
            self.ask(peer, call, self.rule(count=2.0, by_value=True), answer=refused)
            self.down(peer)
            calls = [peer.submit(Acquire(111, 1, None, "new", False)) for _ in range(5)]
            self.assertEqual(sum(call.error is None for call in calls), 2)

    def test_rates_have_a_share_of_each_window(self):
        peer = Peer(fallback="rule")
        peer.connect(sessions=2)
        row = self.rule(count=3.0, windowIntervalMs=2000)  # 6 in a window, for two sessions.
        self.ask(peer, RateRequest(111, 1), row, answer=[0, 5, 0, None])
        self.down(peer)

        def passed():
            return sum(peer.submit(RateRequest(111, 1)).error is None for _ in range(9))

        self.assertEqual(passed(), 3)
        peer.now += 1.9
        self.assertEqual(passed(), 0)
        peer.now += 0.2
        self.assertEqual(passed(), 3)

    def test_all_values_of_a_request_pass_or_none(self):
        peer = Peer(fallback="local")
        peer.connect()
        row = self.rule(count=2.0, by_value=True)
        self.ask(peer, RateRequest(111, 1, ["x"]), row, answer=[0, 1, 0, None])
        self.down(peer)
        self.assertIsNone(peer.submit(RateRequest(111, 2, ["a"])).error)
        self.assertTrue(peer.submit(RateRequest(111, 1, ["b", "a"])).error.local)
        self.assertIsNone(peer.submit(RateRequest(111, 2, ["b"])).error)

    def test_local_levels_of_a_rate_are_calls_of_a_window(self):
        peer = Peer(fallback="local", local_levels={111: 2})
        with self.assertLogs("nowcalls", "WARNING"):
            peer.session.connect_failed(peer.now, "refused")
        calls = [peer.submit(RateRequest(111, 1)) for _ in range(5)]
        self.assertEqual(sum(call.error is None for call in calls), 2)

    def test_a_server_that_is_full_falls_back_unless_the_mode_is_fail(self):
        for limit in ("token_limit", "key_limit", "namespace_qps", "disk_low"):
            for mode in ("rule", "pass", "fail"):
                peer = Peer(fallback=mode)
                peer.connect()
                call = Acquire(111, 1, None, None, False)
                peer.submit(call)
                if peer.asked()[0][0] == "rules_list":
                    peer.answer([[], None])
                peer.answer([-2, 0, 0, 0, 0, 0, limit])
                self.assertEqual(call.error is None, mode != "fail", (limit, mode))

    def test_neither_a_block_nor_a_missing_rule_falls_back(self):
        for answer in ([1, 0, 0, 2, 2, 0, "level"], [3, 0, 0, 0, 0, 0, None]):
            peer = Peer(fallback="pass")
            peer.connect()
            call = peer.acquire()
            peer.asked()
            peer.answer(answer)
            self.assertIsInstance(call.error, nowcalls.Refused)

    def test_a_count_that_no_rule_has_leaves_the_fallback_whole(self):
        for count in (math.inf, -math.inf, math.nan, "many", None, 10**400, []):
            peer = Peer(fallback="local")
            peer.connect()
            call = peer.submit(Acquire(111, 1, None, None, False))
            peer.asked()
            row = {"count": count, "clusterConfig": {"flowId": 111}}
            try:
                peer.answer([[row], None], [1, 0, 0, 2, 2, 0, "level"])
            except OverflowError:
                continue  # MessagePack cannot say it.
            self.down(peer)
            self.assertIsInstance(peer.acquire().error, nowcalls.Error)
            self.assertTrue(call.done)


class SleepTest(TermsTest):
    def test_a_request_that_should_wait_is_answered_after_its_wait(self):
        peer = Peer()
        peer.connect()
        call = peer.submit(RateRequest(111, 1))
        peer.asked()
        peer.answer([2, 0, 1500, None])
        self.assertFalse(call.done)
        self.assertEqual(peer.session.wakeup(), 101.5)
        peer.tick_at(101.5)
        self.assertEqual(call.result(), nowcalls.Rate(0, 0.0))

    def test_or_at_once_if_it_does_not_sleep_or_its_time_ends_before(self):
        for sleep, wait_ms in ((False, 1500), (True, 5001)):
            peer = Peer()
            peer.connect()
            call = peer.submit(RateRequest(111, 1, None, sleep))
            peer.asked()
            peer.answer([2, 0, wait_ms, None])
            self.assertEqual(call.result(), nowcalls.Rate(0, wait_ms / 1000))

    def test_a_client_that_closes_tells_what_is_left_of_the_wait(self):
        peer = Peer()
        peer.connect()
        call = peer.submit(RateRequest(111, 1))
        peer.asked()
        peer.answer([2, 0, 1500, None])
        peer.now = 100.5
        peer.session.close(peer.now)
        self.assertEqual(call.result(), nowcalls.Rate(0, 1.0))

    def group(self, peer, sleep=True):
        items = [(111, 1, "key"), nowcalls.rate(112, 2, "key"), nowcalls.rate(113)]
        return peer.submit(AcquireAll(items, None, False, sleep))

    def test_a_group_with_rates_is_handed_over_when_its_calls_may_be_made(self):
        peer = Peer()
        peer.connect()
        call = self.group(peer)
        ((method, (items, _)),) = peer.asked()
        self.assertEqual(method, "acquire_all")
        self.assertEqual(items, [[111, 1, "key"], [112, 2, "key", 1], [113, 1, None, 1]])
        token = [77, 13, 60_000, [KEPT, 30_000, OFFLINE_MS]]
        peer.answer([0, [token, [0, 0, 0], [0, 0, 700]], None, 0, 1, 2])
        self.assertFalse(call.done)
        peer.tick_at(100.7)
        permit, first, second = call.result()
        self.assertEqual((permit.token_id, permit.wait, first, second), (77, 0.0, None, None))

    def test_a_group_that_does_not_sleep_says_its_wait(self):
        peer = Peer()
        peer.connect()
        call = self.group(peer, sleep=False)
        peer.asked()
        peer.answer([0, [[77, 13, 60_000], [0, 0, 0], [0, 0, 700]], None, 0, 1, 2])
        self.assertAlmostEqual(call.result()[0].wait, 0.7)

    def test_a_group_whose_caller_leaves_while_it_sleeps_is_given_back(self):
        peer = Peer()
        peer.connect()
        call = self.group(peer)
        peer.asked()
        peer.answer([0, [[77, 13, 60_000], [0, 0, 0], [0, 0, 700]], None, 0, 1, 2])
        peer.session.abandon(call, peer.now)
        self.assertEqual(peer.asked(), [["release", [77]]])
        peer.tick_at(101.0)
        self.assertEqual(peer.session.stats()["held"], 0)

    def test_rates_alone_are_not_asked_again(self):
        peer = Peer()
        peer.connect()
        call = peer.submit(AcquireAll([nowcalls.rate(111)], None, False))
        peer.asked()
        peer.disconnect()
        self.assertIsInstance(call.error, nowcalls.OutcomeUnknown)


class OutcomeTest(TermsTest):
    def test_a_release_says_how_the_call_ended_unless_it_was_well(self):
        for outcome, options in (
            ("ok", []),
            ("failed", [{"outcome": "failed"}]),
            ("timeout", [{"outcome": "timeout"}]),
        ):
            peer, permit = self.granted(grant(KEPT))
            peer.release(permit, outcome)
            self.assertEqual(peer.asked(), [["release", [77, *options]]])
        with self.assertRaisesRegex(nowcalls.BadRequest, "ok, failed, timeout"):
            peer.release(permit, "perhaps")

    def test_a_notification_of_a_loss_needs_no_release(self):
        peer, permit = self.granted(grant(KEPT))
        peer.session.received(msgpack.packb([2, "lost", [77, 111, "admin"]]), peer.now)
        self.assertFalse(peer.release(permit).result())
        self.assertEqual(peer.asked(), [])


if __name__ == "__main__":
    unittest.main()
