"""Acquires and releases a second of the five clients, one at a time and 64 at once, as a table.

    tools/dev bench clients [ROUNDS]     5 rounds by default

One server with its default durability serves all. A round runs each client once, in turn; the table
has the medians of the rounds. A line of a client says: N at once: M a second.
"""

from __future__ import annotations

import asyncio
import os
import re
import statistics
import subprocess
import sys
import time
from typing import Dict, List

import nowcalls

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
AT_ONCE = 64
SECONDS = 3.0
FLOW = 1001


def measure_python(address: str) -> None:
    with nowcalls.Client(address, fallback="fail") as client:
        calls, begin = 0, time.monotonic()
        while time.monotonic() < begin + SECONDS:
            client.acquire(FLOW).release()
            calls += 1
        print(f"1 at once: {calls / (time.monotonic() - begin):.0f} a second")
    asyncio.run(measure_asyncio(address))


async def measure_asyncio(address: str) -> None:
    calls, begin = 0, time.monotonic()

    async def work(client: nowcalls.aio.Client) -> None:
        nonlocal calls
        while time.monotonic() < begin + SECONDS:
            permit = await client.acquire(FLOW)
            await permit.release()
            calls += 1

    async with nowcalls.aio.Client(address, fallback="fail") as client:
        await asyncio.gather(*(work(client) for _ in range(AT_ONCE)))
        print(f"{AT_ONCE} at once: {calls / (time.monotonic() - begin):.0f} a second")


def commands(address: str, out: str) -> Dict[str, List[List[str]]]:
    """By language: what prints its lines."""
    common = ["--server", address, "--seconds", str(SECONDS), "--at-once", str(AT_ONCE)]
    cpp = [os.path.join(ROOT, "build/release/tests/bin/nowcalls-client-bench"), "--server", address]
    cpp += ["--flow", str(FLOW), "--duration", str(SECONDS), "--in-flight"]
    return {
        "C++": [[*cpp, "0"], [*cpp, str(AT_ONCE)]],
        "Go": [[os.path.join(out, "go-bench"), *common]],
        "Java": [["java", "-cp", f"{out}/java:{MSGPACK_JAR}", "Bench", *common]],
        "Node": [["node", os.path.join(ROOT, "tools/node/bench/bench.js"), *common]],
        "Python": [[sys.executable, "-B", __file__, "--python", address]],
    }
