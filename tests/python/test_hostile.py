"""Clients against servers that answer wrong: the list of tests/support/hostile_answers.py."""

import asyncio
import gc
import os
import random
import resource
import sys
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

import nowcalls
from support import PATIENCE_S

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(__file__)), "support"))

from hostile_answers import METHODS, HostileServer, cases  # noqa: E402

WHOLE = os.environ.get("NOWCALLS_TEST_WHOLE") == "1"
SAMPLE = 100
AT_ONCE = 10
MEMORY_MAX_KIB = 400 * 1024  # Above that at the start, of client and server.
ROWS_MAX = 300  # That a reader takes of endless pages.


def take(rows):
    for number, _ in enumerate(rows):
        if number == ROWS_MAX:
            return


def keep(client):
    permit = client.acquire(1001)
    permit.keep()
    permit.release()


def release(client):
    client.acquire(1001).release("failed")


CALLS = {
    "acquire": lambda client: client.acquire(1001, wait=0.1, prioritized=True).release(),
    "acquire_all": lambda client: [
        permit and permit.release()
        for permit in client.acquire_all([1001, (1002, 2), nowcalls.rate(1003)])
    ],
    "keep": keep,
    "release": release,
    "request": lambda client: client.request(1001),
    "request_param": lambda client: client.request_param(1001, 1, ["key"]),
    "ping": lambda client: client.ping(),
    "flow": lambda client: client.flow(1001),
    "flows": lambda client: take(client.flows()),
    "tokens": lambda client: take(client.tokens()),
    "sessions": lambda client: take(client.sessions()),
    "history": lambda client: take(client.history()),
}
CALLS["cancel"] = CALLS["hello"] = CALLS["rules_list"] = CALLS[""] = CALLS["acquire"]


def chosen():
    """Seeded, so that a failure can be had again."""
    known = set(CALLS) & set(METHODS)
    all_cases = list(cases(known))
    return all_cases if WHOLE else random.Random(51).sample(all_cases, SAMPLE)


def errors_only(function):
    """Any other exception than an Error is a defect."""
    try:
        function()
    except nowcalls.Error:
        pass


class HostileServerTest(unittest.TestCase):
    def run_bounded(self, case, function):
        """Runs it on a thread of its own, a daemon, so a hang fails the test alone."""
        failures = []

        def run():
            try:
                function()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(PATIENCE_S)
        self.assertFalse(thread.is_alive(), f"{case.name}: hangs")
        self.assertEqual(failures, [], case.name)

    def check_all(self, check, what):
        def failure_of(one):
            try:
                return check(one)
            except AssertionError as error:
                return str(error)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            failures = [failure for failure in pool.map(failure_of, what) if failure]
        self.assertEqual(failures, [])

    def check(self, case, fallback):
        def use():
            with HostileServer(case) as server:
                settings = {"timeout": 0.3, "fallback": fallback}
                with nowcalls.Client(server.address, **settings) as client:
                    for _ in range(2):
                        errors_only(lambda: CALLS[case.method](client))
                    ended = client._worker.ended
                self.assertIsNone(ended, case.name)

        self.run_bounded(case, use)

    def test_each_wrong_answer_is_an_error_of_the_call_in_bounded_memory(self):
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        def check(numbered):
            number, case = numbered
            self.check(case, ("rule", "local", "fail")[number % 3])
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            self.assertLess(after - before, MEMORY_MAX_KIB, case.name)

        with self.assertNoLogs("nowcalls", "CRITICAL"):
            self.check_all(check, enumerate(chosen()))

    def test_an_asyncio_client_bears_them_too(self):
        async def use(address):
            client = nowcalls.aio.Client(address, timeout=0.3, fallback="rule")
            async with client:
                for _ in range(2):
                    try:
                        permit = await client.acquire(1001, wait=0.1)
                        await permit.keep()
                        await permit.release("failed")
                    except nowcalls.Error:
                        pass

        def check(case):
            with HostileServer(case) as server:
                self.run_bounded(case, lambda: asyncio.run(use(server.address)))

        mine = [case for case in chosen() if case.method in ("", "hello", "acquire", "keep")]
        self.check_all(check, mine)


if __name__ == "__main__":
    unittest.main()
