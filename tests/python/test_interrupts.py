"""Exceptions that come from outside, at each point of each call: no token stays, nothing hangs."""

import asyncio
import contextlib
import gc
import os
import random
import signal
import sys
import threading
import types
import unittest
import warnings
from unittest import mock

import nowcalls
from support import PATIENCE_S, ServerTest, poll_until, rule

WHOLE = os.environ.get("NOWCALLS_TEST_WHOLE") == "1"
PACKAGE = os.path.dirname(nowcalls.__file__)
LEVEL = 1000
SEED = 51


class Interrupt(BaseException):
    """What a signal handler raises."""


class Walk:
    """Raises an Interrupt in this thread, before the given bytecode of the package."""

    def __init__(self, at, opcodes):
        self._at = at
        self._event = "opcode" if opcodes else "line"
        self._seen = 0
        self.where = ""

    def __enter__(self):
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def _trace(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        if event == self._event and not self.where:
            self._seen += 1
            if self._seen == self._at:
                self.where = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
                raise Interrupt
        return self._trace


def rate_and_token(flow):
    return [flow, nowcalls.rate(flow)]


def use_block(client, flow):
    with client.permit(flow):
        pass


def use_block_that_fails(client, flow):
    with contextlib.suppress(ZeroDivisionError), client.permit(flow):
        raise ZeroDivisionError


def use_permit_as_block(client, flow):
    with client.acquire(flow):
        pass


def use_decorator(client, flow):
    client.permit(flow)(lambda: None)()


CALLS = {
    "acquire and release": lambda client, flow: client.acquire(flow).release(),
    "acquire, dropped": lambda client, flow: client.acquire(flow),
    "acquire_all": lambda client, flow: client.acquire_all(rate_and_token(flow))[0].release(),
    "keep": lambda client, flow: client.acquire(flow).keep(),
    "request": lambda client, flow: client.request(flow),
    "with permit": use_block,
    "with permit, failing": use_block_that_fails,
    "with acquire": use_permit_as_block,
    "decorated": use_decorator,
}


async def use_async_block(client, flow):
    async with client.permit(flow):
        pass


async def acquire_and_release(client, flow):
    await (await client.acquire(flow)).release("failed")


async def acquire_all(client, flow):
    await (await client.acquire_all(rate_and_token(flow)))[0].release()


async def keep(client, flow):
    async with await client.acquire(flow) as permit:
        await permit.keep()


async def request(client, flow):
    await client.request(flow)


ASYNC_CALLS = [use_async_block, acquire_and_release, acquire_all, keep, request]


class InterruptTest(ServerTest):
    def setUp(self):
        super().setUp()
        # Permits that an interrupted caller drops are warned of, here and in destructors.
        quiet = warnings.catch_warnings()
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        warnings.simplefilter("ignore", ResourceWarning)
        warnings.simplefilter("ignore", DeprecationWarning)  # Of forks with threads.
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = lambda _: None

    def assert_no_token(self, flow, message=""):
        gone = poll_until(lambda: self.server.now_calls(flow) == 0)
        self.assertTrue(gone, f"{message}: {self.server.now_calls(flow)} tokens are left")


class WalkTest(InterruptTest):
    def walk(self, opcodes):
        # The thread finds what a destructor did not hand over when it wakes next.
        patch = mock.patch("nowcalls._worker.HELD_SLEEP_MAX_S", 0.02)
        patch.start()
        self.addCleanup(patch.stop)
        flow = self.load(rule, LEVEL)
        client = self.client(timeout=PATIENCE_S)
        client.ping()
        for name, call in CALLS.items():
            at, walked = 0, True
            while walked:
                at += 1
                with contextlib.suppress(Interrupt), Walk(at, opcodes) as walk:
                    call(client, flow)
                walked = walk.where
                self.assert_no_token(flow, f"{name} at {walk.where}")
                self.assertEqual(client.stats()["held"], 0, f"{name} at {walk.where}")
            self.assertGreater(at, 10, name)

    def test_an_exception_at_any_line_of_a_call_leaves_no_token_and_the_next_call_works(self):
        self.walk(opcodes=False)

    @unittest.skipUnless(WHOLE, "takes its time")
    def test_an_exception_at_any_bytecode_of_a_call_leaves_no_token_and_the_next_call_works(self):
        self.walk(opcodes=True)


class AsyncWalkTest(InterruptTest):
    def walk(self, interrupt):
        flow = self.load(rule, LEVEL)

        @types.coroutine
        def walked(coroutine, at):
            """Awaits it; its await number `at` is interrupted."""
            seen = 0
            while True:
                try:
                    yielded = coroutine.send(None)
                except StopIteration:
                    return seen
                seen += 1
                try:
                    yielded = interrupt(coroutine) or yielded if seen == at else yielded
                except StopIteration:
                    return seen
                yield yielded

        async def run(coroutine, at):
            return await walked(coroutine, at)

        async def use():
            settings = {"namespace": self.namespace, "timeout": PATIENCE_S}
            async with nowcalls.aio.Client(self.server.address, **settings) as client:
                await client.ping()
                for call in ASYNC_CALLS:
                    at, seen = 0, None
                    while seen is None or seen >= at:
                        at += 1
                        task = asyncio.ensure_future(run(call(client, flow), at))
                        try:
                            seen = await task
                        except (asyncio.CancelledError, Interrupt):
                            seen = at
                        del task
                        gc.collect(0)
                        end = asyncio.get_running_loop().time() + PATIENCE_S
                        while self.server.now_calls(flow):
                            self.assertLess(asyncio.get_running_loop().time(), end, call.__name__)
                            await asyncio.sleep(0.001)
                    self.assertGreater(at, 1, call.__name__)
                self.assertEqual(client.stats()["held"], 0)

        asyncio.run(use())

    def test_a_cancel_at_any_await_leaves_no_token(self):
        self.walk(lambda _: asyncio.current_task().cancel())

    def test_an_exception_at_any_await_leaves_no_token(self):
        def interrupt(coroutine):
            return coroutine.throw(Interrupt())

        self.walk(interrupt)


class StressTest(InterruptTest):
    """Whole: 3,000 interrupts, 3,000 cancellations, 200 threads, 60 forks."""

    def test_a_signal_handler_that_raises_leaves_no_token_and_hangs_nothing(self):
        flow = self.load(rule, LEVEL)
        client = self.client(timeout=PATIENCE_S)
        client.ping()
        chance = random.Random(SEED)
        raised = 0

        def handler(*_):
            raise Interrupt

        before = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        calls = list(CALLS.values())
        while raised < (3000 if WHOLE else 150):
            try:
                try:
                    # Again and again: one that meets a destructor is swallowed by Python.
                    signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00002, 0.003), 0.01)
                    while True:
                        chance.choice(calls)(client, flow)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupt:
                raised += 1
        self.assert_no_token(flow)
        self.assertEqual(client.stats()["waiting"], 0)
        with client.permit(flow):
            pass

    def test_tasks_that_are_cancelled_at_any_moment_leave_no_token(self):
        flow = self.load(rule, LEVEL)
        chance = random.Random(SEED)

        async def use():
            settings = {"namespace": self.namespace, "timeout": PATIENCE_S}
            async with nowcalls.aio.Client(self.server.address, **settings) as client:
                await client.ping()
                cancelled = 0
                while cancelled < (3000 if WHOLE else 300):
                    calls = chance.choices(ASYNC_CALLS, k=20)
                    tasks = [asyncio.ensure_future(call(client, flow)) for call in calls]
                    for task in tasks:
                        await asyncio.sleep(chance.uniform(0, 0.0003))
                        task.cancel()
                    ends = await asyncio.gather(*tasks, return_exceptions=True)
                    cancelled += sum(isinstance(end, asyncio.CancelledError) for end in ends)
                del tasks, ends
                gc.collect()
                await client.ping()
                self.assertEqual(client.stats()["held"], 0)

        asyncio.run(use())
        self.assert_no_token(flow)

    def test_many_threads_that_share_a_client_leave_no_token(self):
        flow = self.load(rule, LEVEL)
        client = self.client(timeout=PATIENCE_S)
        failures = []

        def use():
            try:
                for call in CALLS.values():
                    call(client, flow)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=use) for _ in range(200 if WHOLE else 30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        self.assertFalse(any(thread.is_alive() for thread in threads))
        self.assertEqual(failures, [])
        self.assert_no_token(flow)

    def test_forks_at_any_moment_harm_neither_parent_nor_child(self):
        flow = self.load(rule, LEVEL)
        client = self.client(timeout=PATIENCE_S)
        client.ping()
        end = threading.Event()

        def use():
            while not end.is_set():
                for call in CALLS.values():
                    call(client, flow)

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        children = []
        for _ in range(60 if WHOLE else 6):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    address, settings = self.server.address, {"timeout": PATIENCE_S}
                    with nowcalls.Client(address, namespace=self.namespace, **settings) as own:
                        use_block(own, flow)
                    code = 0
                finally:
                    os._exit(code)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        end.set()
        for thread in threads:
            thread.join(PATIENCE_S)
        self.assertFalse(any(thread.is_alive() for thread in threads))
        self.assertEqual(codes, [0] * len(codes))
        self.assert_no_token(flow)
        self.assertEqual(client.acquire(flow).release(), True)


if __name__ == "__main__":
    unittest.main()
