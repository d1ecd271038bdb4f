"""Holders that are cut off or stopped: lost by their own clock before another is granted."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import nowcalls
from support import PATIENCE_S, ServerTest, rule

HOLD_MS = 600


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class AsyncHolder:
    """An asyncio client on a thread of its own, with the methods of the blocking one."""

    def __init__(self, address, **settings):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._client = nowcalls.aio.Client(address, **settings)

    def __getattr__(self, name):
        return lambda *args, **kwargs: self.run(getattr(self._client, name)(*args, **kwargs))

    def stats(self):
        return self._client.stats()

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE_S)

    def release(self, permit):
        return self.run(permit.release())

    def close(self):
        self.run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Holder(nowcalls.Client):
    def release(self, permit):
        return permit.release()


class StepsTest(ServerTest):
    def at_all_steps(self, check):
        """check(step, flow), side by side, since most of it is waiting."""
        config = {"resourceTimeout": HOLD_MS // 2, "clientOfflineTime": 20_000}
        flows = [self.load(rule, 1, **config) for _ in self.STEPS]
        with ThreadPoolExecutor(len(flows)) as pool:
            list(pool.map(check, self.STEPS, flows))


class CutOffTest(StepsTest):
    """A proxy that drops all bytes, from one step of a permit's life on."""

    # What the proxy still passes when it is hit: requests, answers.
    STEPS = {
        "before the acquire": (False, False),
        "when the acquire has arrived": (True, False),
        "when it is granted": (False, False),
        "when it was kept": (False, False),
        "when a keep has arrived": (True, False),
        "before the release": (False, False),
        "when the release has arrived": (True, False),
    }

    def cut_off(self, kind, step, flow):
        proxy = self.proxy()
        settings = {"namespace": self.namespace, "timeout": 0.4, "fallback": "fail"}
        holder = kind(proxy.address, **settings)
        holder.ping()
        told = []

        def drop():
            proxy.requests, proxy.answers = self.STEPS[step]

        if "acquire" in step:
            drop()
        permit = None
        with contextlib.suppress(nowcalls.OutcomeUnknown, nowcalls.Unavailable):
            permit = holder.acquire(flow, on_lost=told.append)
        if step == "when it was kept":
            self.assert_soon(lambda: holder.stats()["kept"] > 0)
        drop()
        if "release" in step and permit is not None:
            with contextlib.suppress(nowcalls.OutcomeUnknown, nowcalls.Unavailable):
                holder.release(permit)
        other = self.client(timeout=PATIENCE_S)
        with other.permit(flow, wait=PATIENCE_S):
            granted_at = now()
            if permit is not None and not permit.released:
                self.assertTrue(permit.lost, step)
                self.assertLessEqual(permit.valid_until, granted_at, step)
                self.assertIn(permit.lost_reason, ("resource_timeout", "client_offline"))
                self.assert_soon(lambda: told == [permit], step)
            # The network heals; what was lost stays so.
            proxy.requests = proxy.answers = True
            proxy.cut()
            holder.ping(timeout=PATIENCE_S)
            if permit is not None and not permit.released:
                self.assertTrue(permit.lost, step)
                self.assertFalse(holder.release(permit), step)
        self.assert_soon(lambda: self.server.now_calls(flow) == 0, step)
        self.assertEqual(holder.stats()["held"], 0)
        holder.close()

    def test_a_holder_behind_a_black_hole_knows_before_another_is_granted(self):
        self.at_all_steps(lambda step, flow: self.cut_off(Holder, step, flow))

    def test_so_does_an_asyncio_holder(self):
        self.at_all_steps(lambda step, flow: self.cut_off(AsyncHolder, step, flow))

    def test_a_holder_whose_server_frees_it_as_offline_knows_before_another_is_granted(self):
        flow = self.load(rule, 1, resourceTimeout=30_000, clientOfflineTime=400)
        proxy = self.proxy()
        holder = self.client(proxy.address, timeout=0.4)
        permit = holder.acquire(flow)
        proxy.accepts = False
        proxy.cut()
        with self.client(timeout=PATIENCE_S).permit(flow, wait=PATIENCE_S):
            granted_at = now()
            self.assertTrue(permit.lost)
            self.assertLessEqual(permit.valid_until, granted_at)
            self.assertEqual(permit.lost_reason, "client_offline")
        proxy.accepts = True
        self.assertFalse(permit.release(timeout=PATIENCE_S))

    def test_an_event_loop_that_is_blocked_does_not_hide_a_loss(self):
        flow = self.load(rule, 1, resourceTimeout=HOLD_MS // 2)
        other = self.client(timeout=PATIENCE_S)

        async def use():
            settings = {"namespace": self.namespace, "fallback": "fail"}
            async with nowcalls.aio.Client(self.server.address, **settings) as client:
                permit = await client.acquire(flow)
                with other.permit(flow, wait=PATIENCE_S):  # Blocks the loop.
                    granted_at = now()
                    self.assertTrue(permit.lost)
                    self.assertLessEqual(permit.valid_until, granted_at)
                self.assertFalse(await permit.release())

        asyncio.run(use())
        self.assertEqual(self.server.now_calls(flow), 0)


BLOCKING = """
import logging, sys, nowcalls

logging.disable()

def step(word):
    print(word, flush=True)
    return sys.stdin.readline()

address, namespace, flow = sys.argv[1], sys.argv[2], int(sys.argv[3])
with nowcalls.Client(address, namespace=namespace, timeout=20, fallback="fail") as client:
    client.ping()
    step("connected")
    print("asking", flush=True)
    permit = client.acquire(flow, wait=20)
    while step(f"granted {permit.lost} {permit.valid_until}") == "again\\n":
        pass
    permit.keep()
    while step(f"kept {permit.lost} {permit.valid_until}") == "again\\n":
        pass
    print("releasing", flush=True)
    permit.release()
    step("released")
"""

ASYNC = """
import asyncio, logging, sys, nowcalls

logging.disable()

async def step(word):
    print(word, flush=True)
    return await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)

async def main():
    address, namespace, flow = sys.argv[1], sys.argv[2], int(sys.argv[3])
    settings = {"namespace": namespace, "timeout": 20, "fallback": "fail"}
    async with nowcalls.aio.Client(address, **settings) as client:
        await client.ping()
        await step("connected")
        print("asking", flush=True)
        permit = await client.acquire(flow, wait=20)
        while await step(f"granted {permit.lost} {permit.valid_until}") == "again\\n":
            pass
        await permit.keep()
        while await step(f"kept {permit.lost} {permit.valid_until}") == "again\\n":
            pass
        print("releasing", flush=True)
        await permit.release()
        await step("released")

asyncio.run(main())
"""


class StoppedTest(StepsTest):
    """A process that is stopped at one step of a permit's life."""

    STEPS = ("connected", "asking", "granted", "kept", "releasing")

    def stop_at(self, program, stop_word, flow):
        command = [sys.executable, "-B", "-c", program]
        holder = subprocess.Popen(
            [*command, self.server.address, self.namespace, str(flow)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            word = ""
            while word != stop_word:
                word = holder.stdout.readline().split()[0]
                if word not in (stop_word, "asking", "releasing"):
                    self.go_on(holder)
            os.kill(holder.pid, signal.SIGSTOP)
            with self.client(timeout=PATIENCE_S).permit(flow, wait=PATIENCE_S):
                granted_at = now()
                os.kill(holder.pid, signal.SIGCONT)
                if word in ("granted", "kept"):
                    self.go_on(holder, "again")
                    again, lost, valid_until = holder.stdout.readline().split()
                    self.assertEqual((again, lost), (word, "True"))
                    self.assertLessEqual(float(valid_until), granted_at)
            while word != "released":
                if word not in ("asking", "releasing"):
                    self.go_on(holder)
                word = holder.stdout.readline().split()[0]
            self.assertEqual(self.server.now_calls(flow), 0)
            self.go_on(holder)
            self.assertEqual(holder.wait(PATIENCE_S), 0)
        finally:
            holder.kill()
            holder.wait()
            holder.stdin.close()
            holder.stdout.close()

    def go_on(self, holder, line="go on"):
        print(line, file=holder.stdin, flush=True)

    def test_a_process_that_was_stopped_knows_that_its_token_is_gone(self):
        self.at_all_steps(lambda word, flow: self.stop_at(BLOCKING, word, flow))

    def test_so_does_an_asyncio_process(self):
        self.at_all_steps(lambda word, flow: self.stop_at(ASYNC, word, flow))


if __name__ == "__main__":
    unittest.main()
