"""Flows by name: the resource of a rule where its number could stand."""

import asyncio
import unittest

import nowcalls
from nowcalls import aio
from nowcalls._calls import Acquire, AcquireAll, RateRequest
from support import ServerTest
from test_session import GRANT, Peer

NUMBER = 7119573550062657  # Of PROTOCOL.md: shop, checkout.


def named_rule(resource="checkout", count=6.0, flow_id=NUMBER, **config):
    cluster = {"flowId": flow_id, "fallbackToLocalWhenFail": True, "thresholdType": 1, **config}
    return {"resource": resource, "count": count, "clusterConfig": cluster}


class NameTest(unittest.TestCase):
    """The session without sockets."""

    def test_a_name_is_asked_for_as_it_is(self):
        peer = Peer()
        peer.connect()
        call = peer.submit(Acquire("checkout", 2, None, None, False))
        peer.submit(RateRequest("search", 3))
        peer.submit(AcquireAll(["checkout", (7, 2), nowcalls.rate("search")], None, False))
        acquire, request, group = peer.asked()
        self.assertEqual(acquire, ["acquire", ["checkout", 2, {"request_id": 1001}]])
        self.assertEqual(request, ["request", ["search", 3]])
        items = [["checkout", 1], [7, 2], ["search", 1, None, 1]]
        self.assertEqual(group[1][0], items)
        peer.answer([0, 77, *GRANT[2:]])
        self.assertEqual(call.result().flow_id, "checkout")
        self.assertIn("flow 'checkout' token 77", repr(call.result()))

    def test_a_refusal_names_the_flow_as_the_caller_did(self):
        peer = Peer()
        peer.connect()
        call = peer.submit(Acquire("checkout", 1, None, None, False))
        peer.asked()
        peer.answer([1, 0, 0, 6, 6, 0, "level"])
        self.assertEqual(call.error.flow_id, "checkout")
        refused = "flow 'checkout' refused by level: 6 of 6 in progress"
        self.assertEqual(str(call.error), refused)
        rate = peer.submit(RateRequest("search", 1))
        peer.asked()
        peer.answer([3, 0, 0, None])
        self.assertEqual(str(rate.error), "flow 'search' has no rule")

    def test_a_refused_group_tells_the_name_where_the_number_leaves_no_doubt(self):
        for items, number, told in (
            (["checkout", 7], 9, "checkout"),
            (["checkout", 7], 7, 7),
            (["checkout", ("checkout", 1, "x"), 7], 9, "checkout"),
            (["checkout", "search"], 9, 9),
            (["checkout"], 0, 0),
        ):
            peer = Peer()
            peer.connect()
            call = peer.submit(AcquireAll(items, None, False))
            peer.asked()
            peer.answer([1, [], "level", number, 1, 1])
            self.assertEqual(call.error.flow_id, told, items)

    def test_what_is_no_name_is_refused_at_once(self):
        for flow, why in (
            ("", "must be 1 to 1024 bytes, not 0"),
            ("x" * 1025, "must be 1 to 1024 bytes, not 1025"),
            ("é" * 513, "must be 1 to 1024 bytes, not 1026"),
            (b"checkout", "must be an int or a str"),
            (None, "must be an int or a str"),
            (True, "must be an int or a str"),
            (1.0, "must be an int or a str"),
        ):
            for call in (
                lambda: Acquire(flow, 1, None, None, False),
                lambda: RateRequest(flow, 1),
                lambda: AcquireAll([(flow, 1)], None, False),
                lambda: nowcalls.rate(flow),
            ):
                with self.assertRaisesRegex(nowcalls.BadRequest, why):
                    call()

    def test_the_rule_of_a_name_is_asked_for_by_name(self):
        peer = Peer()
        peer.connect()
        call = peer.submit(Acquire("checkout", 1, None, None, True))
        peer.asked()
        peer.answer([1, 0, 0, 6, 6, 0, "level"])
        self.assertEqual(peer.asked(), [["rules_list", [None, 2, None, "checkout"]]])
        others = named_rule("other", acquireRefuseStrategy=0)
        peer.answer([[named_rule(acquireRefuseStrategy=1), others], None])
        peer.tick_at(100.02)
        self.assertEqual([method for method, _ in peer.asked()], ["acquire"])
        peer.answer([1, 0, 0, 6, 6, 0, "level"])
        self.assertEqual(call.error.refused_by, "level")

    def test_the_fallback_knows_the_share_of_a_name(self):
        peer = Peer(fallback="rule")
        peer.connect(sessions=3)
        first = peer.submit(Acquire("checkout", 1, None, None, False))
        asked = [method for method, _ in peer.asked()]
        self.assertEqual(asked, ["rules_list", "acquire"])
        peer.answer([[named_rule()], None], [0, 77, *GRANT[2:]])
        self.assertEqual(first.result().token_id, 77)
        peer.disconnect()
        # 6 of 3 sessions: 2 each, of which one is the server's token.
        second = peer.submit(Acquire("checkout", 1, None, None, False))
        peer.give_up(second)
        self.assertTrue(second.result().local)
        third = peer.submit(Acquire("checkout", 1, None, None, False))
        peer.give_up(third)
        local = "flow 'checkout' refused by the local share: 2 of 2 in progress"
        self.assertEqual(str(third.error), local)

    def test_local_levels_are_of_flows_as_calls_name_them(self):
        peer = Peer(fallback="local", local_levels={"checkout": 1, 7: 2})
        for flow, level in (("checkout", 1), (7, 2)):
            calls = [peer.submit(Acquire(flow, 1, None, None, False)) for _ in range(3)]
            for call in calls:
                peer.give_up(call)
            self.assertEqual([call.error is None for call in calls], [i < level for i in range(3)])


class ServedTest(ServerTest):
    """Against a server."""

    def load_names(self, *rules):
        self.server.call("rules_load", self.namespace, list(rules))
        return self.client()

    def rule(self, resource, count, **config):
        cluster = {"thresholdType": 1, "resourceTimeout": 30_000, **config}
        shared = {"resource": resource, "grade": 0, "clusterMode": True}
        return {**shared, "count": count, "clusterConfig": cluster}

    def number(self, resource):
        rows = self.server.call("rules_list", self.namespace, None, None, resource)[0]
        return rows[0]["clusterConfig"]["flowId"]

    def test_a_name_works_wherever_a_number_does(self):
        client = self.load_names(self.rule("checkout", 2), self.rule("search", 9, flowId=77_001))
        number = self.number("checkout")
        self.assertTrue(2**52 <= number < 2**53)
        with client.permit("checkout") as permit, client.permit(number):
            self.assertEqual(permit.flow_id, "checkout")
            self.assertEqual(client.flow("checkout")["now_calls"], 2)
            self.assertEqual(client.flow("checkout")["flow_id"], number)
            self.assertEqual(len(list(client.tokens("checkout"))), 2)
            with self.assertRaisesRegex(nowcalls.Refused, "flow 'checkout' refused by level"):
                client.acquire("checkout")
        self.assertEqual(client.request("search").remaining, 8)
        permits = client.acquire_all(["checkout", ("search", 2)])
        self.assertEqual([permit.flow_id for permit in permits], ["checkout", "search"])
        with self.assertRaisesRegex(nowcalls.BadRequest, "must not hold flow_id 77001"):
            client.acquire_all(["search", 77_001])
        for permit in permits:
            permit.release()
        with self.assertRaises(nowcalls.NoRule):
            client.acquire("Checkout")

    def test_a_name_of_two_rules_is_refused_with_both_numbers(self):
        client = self.load_names(
            self.rule("twice", 2, flowId=77_002), self.rule("twice", 2, flowId=77_003)
        )
        with self.assertRaisesRegex(nowcalls.BadRequest, "77002 .*77003 .*ask by number"):
            client.acquire("twice")
        client.acquire(77_003).release()

    def test_a_name_is_the_same_flow_after_kill_9(self):
        self.server = self.own_server()
        client = self.load_names(self.rule("checkout", 1, clientOfflineTime=60_000))
        number = self.number("checkout")
        permit = client.acquire("checkout", keep="always")
        self.server.kill()
        self.server.start()
        self.assertEqual(self.number("checkout"), number)
        with self.assertRaises(nowcalls.Refused):
            client.acquire("checkout")
        self.assertTrue(permit.release())
        client.acquire("checkout").release()

    def test_asyncio_takes_names(self):
        self.load_names(self.rule("checkout", 1), self.rule("search", 9))

        async def ask():
            async with aio.Client(self.server.address, namespace=self.namespace) as client:
                async with client.permit("checkout") as permit:
                    self.assertEqual(permit.flow_id, "checkout")
                    with self.assertRaises(nowcalls.Refused):
                        await client.acquire("checkout")
                self.assertEqual((await client.request("search")).remaining, 8)
                self.assertEqual((await client.flow("search"))["resource"], "search")

        asyncio.run(ask())


if __name__ == "__main__":
    unittest.main()
