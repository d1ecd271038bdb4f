"""Permits a second of the five clients, one at a time and 64 at once, as a table.

    tools/dev bench clients [ROUNDS]     5 rounds by default

A permit is an acquire and its release. One server with its default durability serves all. A round
runs each client once, in turn; the table has the medians. A client prints: N at once: M a second.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Dict, List, Tuple

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


def build(out: str) -> str:
    """Compiles what must be, into `out`. Returns Java's class path."""
    go = {**os.environ, "GOFLAGS": "-modfile=debian.mod"}
    go_bench = ["go", "build", "-o", f"{out}/go-bench", "./bench"]
    subprocess.run(go_bench, cwd=f"{ROOT}/tools/go", env=go, check=True)
    library = "/usr/share/java/msgpack-core.jar"
    sources = [f"{ROOT}/tools/java/bench/Bench.java"]
    sources += ["-sourcepath", f"{ROOT}/tools/java/src/main/java", "-cp", library]
    subprocess.run(["javac", "-d", out, *sources], check=True)
    subprocess.run(["npm", "ci", "--silent"], cwd=f"{ROOT}/tools/node", check=True)
    return f"{out}:{library}"


def commands(address: str, out: str, class_path: str) -> Dict[str, List[List[str]]]:
    """By language: what prints its lines."""
    common = ["--server", address, "--namespace", "default", "--flow", str(FLOW)]
    common += ["--seconds", str(SECONDS), "--at-once", str(AT_ONCE)]
    cpp = [f"{ROOT}/build/release/tests/bin/nowcalls-client-bench", "--server", address]
    cpp += ["--flow", str(FLOW), "--duration", str(SECONDS), "--in-flight"]
    return {
        "C++": [[*cpp, "0"], [*cpp, str(AT_ONCE)]],
        "Go": [[f"{out}/go-bench", *common]],
        "Java": [["java", "-cp", class_path, "Bench", *common]],
        "Node": [["node", f"{ROOT}/tools/node/bench/bench.js", *common]],
        "Python": [[sys.executable, "-B", __file__, "--python", address]],
    }


def figures(programs: List[List[str]]) -> Tuple[float, float]:
    """One at a time, and AT_ONCE at once."""
    said = "".join(subprocess.check_output(program, text=True) for program in programs)
    found = re.findall(r"at once: (\d+) a second", said)
    if not found:  # C++ counts an acquire and its release as two.
        found = [float(two) / 2 for two in re.findall(r"(\d+) operations/s", said)]
    one, many = found
    return float(one), float(many)


def serve(out: str) -> Tuple[subprocess.Popen[bytes], str]:
    config = {"flowId": FLOW, "thresholdType": 1}
    rule = {"resource": "speed", "grade": 0, "count": 10_000, "clusterMode": True}
    with open(f"{out}/rules.json", "w", encoding="utf-8") as file:
        json.dump([{**rule, "clusterConfig": config}], file)
    arguments = ["--listen", "127.0.0.1:0", "--port-file", f"{out}/port"]
    arguments += ["--data-dir", f"{out}/data", "--rules", f"default={out}/rules.json"]
    server = subprocess.Popen(
        [f"{ROOT}/build/bin/nowcalls-server", *arguments], stderr=subprocess.DEVNULL
    )
    while not os.path.exists(f"{out}/port") or os.path.getsize(f"{out}/port") == 0:
        time.sleep(0.05)
    with open(f"{out}/port", encoding="utf-8") as file:
        return server, f"127.0.0.1:{file.read().strip()}"


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="nowcalls-speed-", dir=f"{ROOT}/build") as out:
        class_path = build(out)
        server, address = serve(out)
        try:
            programs = commands(address, out, class_path)
            seen: Dict[str, List[Tuple[float, float]]] = {name: [] for name in programs}
            for _ in range(rounds):
                for name, runs in programs.items():
                    seen[name].append(figures(runs))
        finally:
            server.terminate()
            server.wait()
    print(f"permits a second, medians of {rounds} rounds of {SECONDS:.0f} s")
    print(f"{'client':8} {'1 at a time':>12} {f'{AT_ONCE} at once':>12}")
    for name, pairs in seen.items():
        one, many = (statistics.median(column) for column in zip(*pairs))
        print(f"{name:8} {one:12,.0f} {many:12,.0f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--python"]:
        measure_python(sys.argv[2])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
