"""The asyncio client: what it shares with the blocking one is tested there."""

import asyncio
import gc
import os
import unittest
from unittest import mock

import nowcalls
from support import PATIENCE_S, ServerTest, rule, rule_of_keys


class AioTest(ServerTest, unittest.IsolatedAsyncioTestCase):
    def make_client(self, address=None, **settings):
        address = address or self.server.address
        settings.setdefault("fallback", "fail")
        return nowcalls.aio.Client(address, namespace=self.namespace, **settings)

    async def assert_soon_async(self, condition):
        end = asyncio.get_running_loop().time() + PATIENCE_S
        while not condition():
            self.assertLess(asyncio.get_running_loop().time(), end, "it did not come true")
            await asyncio.sleep(0.01)

    async def test_an_async_permit_is_held_within_its_block_and_released_at_its_end(self):
        flow = self.load(rule, 3)
        async with self.make_client() as client:
            async with client.permit(flow, count=2) as permit:
                self.assertGreater(permit.token_id, 0)
                self.assertEqual(self.server.now_calls(flow), 2)
                with self.assertRaises(nowcalls.Refused):
                    await client.acquire(flow, count=2)
                self.assertTrue(await permit.keep())
            self.assertTrue(permit.released)
            self.assertEqual(self.server.now_calls(flow), 0)
            async with await client.acquire(flow) as permit:
                self.assertEqual((await client.flow(flow))["now_calls"], 1)
            self.assertTrue(await permit.release())

    async def test_many_tasks_share_a_client_and_never_exceed_the_level(self):
        flow = self.load(rule, 4)
        now, most = 0, 0

        async def work():
            nonlocal now, most
            async with client.permit(flow, wait=30):
                now += 1
                most = max(most, now)
                await asyncio.sleep(0)
                now -= 1

        async with self.make_client() as client:
            await asyncio.gather(*[work() for _ in range(200)])
        self.assertEqual(self.server.now_calls(flow), 0)
        self.assertLessEqual(most, 4)
        self.assertGreater(most, 1)

    async def test_rates_pings_and_listings_are_awaited(self):
        flow, keys = self.load(rule, 50), self.load(rule_of_keys, 50)
        async with self.make_client(client_id="async-lister") as client:
            self.assertGreater(await client.ping(), 1_600_000_000_000)
            self.assertEqual((await client.request(flow)).wait, 0.0)
            self.assertEqual((await client.request_param(keys, 1, ["a", "b"])).remaining, -1)
            async with client.permit(flow) as permit:
                tokens = [row["token_id"] async for row in client.tokens(flow)]
                self.assertEqual(tokens, [permit.token_id])
            self.assertIn("async-lister", [row["client_id"] async for row in client.sessions()])
            self.assertIn(flow, [row["flow_id"] async for row in client.flows()])
            self.assertIsInstance([row async for row in client.history()], list)
            with self.assertRaises(nowcalls.BadRequest):
                await client.flow(999_999)

    async def test_a_cancelled_task_leaves_the_queue(self):
        flow = self.load(rule, 1)
        async with self.make_client() as client, client.permit(flow):
            task = asyncio.create_task(client.acquire(flow, wait=60))
            await self.assert_soon_async(lambda: self.server.waiters(flow) == 1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await self.assert_soon_async(lambda: self.server.waiters(flow) == 0)
        self.assertEqual(self.server.now_calls(flow), 0)

    async def test_a_task_that_is_cancelled_at_the_moment_of_its_grant_holds_nothing(self):
        flow = self.load(rule, 1)
        async with self.make_client() as client:
            await client.ping()
            cancelled = 0
            for _ in range(20):
                task = asyncio.create_task(client.acquire(flow))
                while client.stats()["held"] == 0 and not task.done():
                    await asyncio.sleep(0)
                task.cancel()
                try:
                    await (await task).release()
                except asyncio.CancelledError:
                    cancelled += 1
            self.assertGreater(cancelled, 0)
            await self.assert_soon_async(lambda: self.server.now_calls(flow) == 0)

    async def test_an_async_acquire_whose_answer_was_lost_gives_one_token(self):
        flow = self.load(rule, 5)
        proxy = self.proxy()
        async with self.make_client(proxy.address, timeout=PATIENCE_S) as client:
            await client.ping()
            proxy.answers = False
            task = asyncio.create_task(client.acquire(flow))
            await self.assert_soon_async(lambda: self.server.now_calls(flow) == 1)
            proxy.answers = True
            proxy.cut()
            permit = await task
            self.assertEqual(self.server.call("flow", flow)["counters"]["granted"], 1)
            await permit.release()

    async def test_an_async_call_without_answer_is_unknown_and_cancelled(self):
        flow = self.load(rule, 5)
        proxy = self.proxy()
        async with self.make_client(proxy.address) as client:
            await client.ping()
            proxy.answers = False
            with self.assertRaises(nowcalls.OutcomeUnknown):
                await client.acquire(flow, timeout=0.3)
            await self.assert_soon_async(lambda: self.server.now_calls(flow) == 0)
            proxy.answers = True
            proxy.cut()

    async def test_without_a_server_async_calls_are_unavailable(self):
        async with self.make_client("127.0.0.1:1", timeout=0.2) as client:
            with self.assertRaises(nowcalls.Unavailable):
                await client.ping()
        async with self.make_client("127.0.0.1:1", fallback="pass") as client:
            async with client.permit(1) as permit:
                self.assertTrue(permit.local)
        with self.assertRaises(nowcalls.BadRequest):
            await client.acquire(1)
        with self.assertRaisesRegex(nowcalls.BadRequest, "not str"):
            await client.request_param(1, 1, "letters")

    async def test_a_close_at_any_moment_of_an_attempt_to_connect_ends(self):
        for address in ("127.0.0.1:1", self.server.address):
            for steps in range(12):
                client = self.make_client(address)
                client.stats()  # The first use begins to dial.
                for _ in range(steps):
                    await asyncio.sleep(0)
                closing = asyncio.ensure_future(client.close())
                ended, _ = await asyncio.wait({closing}, timeout=PATIENCE_S)
                closing.cancel()
                self.assertTrue(ended, f"{address}, {steps}")
                self.assertFalse(client.stats()["connected"])

    async def test_an_async_release_after_close_is_unavailable_and_leaves_the_token(self):
        flow = self.load(rule, 2)
        client = self.make_client()
        permit = await client.acquire(flow)
        with self.assertLogs("nowcalls", "WARNING") as logged:
            async with client.permit(flow) as inner:
                await client.close()
        self.assertIn(f"{inner!r} is not released", logged.output[-1])
        with self.assertRaisesRegex(nowcalls.Unavailable, "the client is closed"):
            await permit.release()
        self.assertEqual(self.server.now_calls(flow), 2)

    async def test_a_lost_async_permit_is_told_by_functions_and_coroutines(self):
        flow = self.load(rule, 1, resourceTimeout=60_000)  # The loop keeps nothing meanwhile.
        told = []

        async def tell(permit):
            await asyncio.sleep(0)
            told.append(permit)

        async with self.make_client(on_lost=tell) as client:
            permit = await client.acquire(flow, on_lost=told.append)
            self.server.admin("reclaim", str(permit.token_id), "--reason", "the test")
            await self.assert_soon_async(lambda: len(told) == 2)
            self.assertEqual(told, [permit, permit])
            self.assertFalse(await permit.release())

    async def test_an_async_permit_is_kept_while_it_is_held(self):
        flow = self.load(rule, 1, resourceTimeout=150)
        async with self.make_client() as client, client.permit(flow) as permit:
            await self.assert_soon_async(lambda: client.stats()["kept"] >= 6)
            self.assertFalse(permit.lost)

    async def test_fifty_async_reconnects_leave_no_task_and_no_descriptor(self):
        proxy = self.proxy()
        with mock.patch("nowcalls._dialing.PAUSE_MIN_S", 0.001):
            async with self.make_client(proxy.address, timeout=PATIENCE_S) as client:
                await client.ping()

                def usage():
                    gc.collect()
                    return len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd"))

                before = usage()
                for _ in range(50):
                    proxy.cut()
                    await client.ping()
                await self.assert_soon_async(lambda: usage() == before)
        await self.assert_soon_async(lambda: usage()[0] == before[0] - 1 and usage()[1] < before[1])


if __name__ == "__main__":
    unittest.main()
