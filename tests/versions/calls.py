"""Every call of the Python package 1.0, against the server at the address of the command line.

test_clients.py runs it with the package of some release in PYTHONPATH, so it uses nothing that 1.0
did not have. It asks for what only an operator can do by a line on stdout, and goes on when a line
comes on stdin.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from typing import Any, Callable, List

import nowcalls

logging.getLogger("nowcalls").addHandler(logging.NullHandler())  # Else warnings go to stderr.
ADDRESS, NAMESPACE = sys.argv[1:]
# The rules of test_clients.py.
TOKENS, VALUES, RATES, RATES_OF_VALUES = 1, 2, 3, 4
PATIENCE_S = 20.0


def expect(found: Any, expected: Any) -> None:
    if found != expected:
        raise AssertionError(f"{found!r}, expected {expected!r}")


def refused_by(call: Callable[[], Any]) -> str:
    try:
        call()
    except nowcalls.Refused as refused:
        return str(refused.refused_by)
    raise AssertionError("it was not refused")


def soon(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it did not come true")
        time.sleep(0.01)


def operator(*words: Any) -> None:
    print(*words, flush=True)
    expect(sys.stdin.readline(), "done\n")


def acquire_and_release(client: nowcalls.Client) -> None:
    two = client.acquire(TOKENS, 2)
    expect((two.now_calls, two.level, two.local), (2, 2, False))
    expect(refused_by(lambda: client.acquire(TOKENS)), "level")
    expect(two.release(), True)
    with client.permit(TOKENS) as one:
        expect((one.now_calls, one.token_id > 0, one.fence > two.fence), (1, True, True))
    expect(client.flow(TOKENS)["now_calls"], 0)
    try:
        client.acquire(99)
    except nowcalls.NoRule:
        return
    raise AssertionError("flow 99 has a rule")


def keep(client: nowcalls.Client) -> None:
    permit = client.acquire(TOKENS, keep=False)
    until = permit.valid_until
    soon(lambda: permit.keep() and permit.valid_until > until)
    expect(permit.release(), True)


def wait(client: nowcalls.Client) -> None:
    held = client.acquire(TOKENS, 2)
    expect(refused_by(lambda: client.acquire(TOKENS, wait=0.05)), "queue_timeout")
    granted: List[nowcalls.Permit] = []
    waiter = threading.Thread(
        target=lambda: granted.append(client.acquire(TOKENS, wait=PATIENCE_S, prioritized=True))
    )
    waiter.start()
    soon(lambda: client.flow(TOKENS)["waiters"] == 1)
    held.release()
    waiter.join()
    expect(granted[0].release(), True)


def values(client: nowcalls.Client) -> None:
    with client.permit(VALUES, param="a"), client.permit(VALUES, param=7):
        expect(refused_by(lambda: client.acquire(VALUES, param="a")), "param")


def groups(client: nowcalls.Client) -> None:
    group = client.acquire_all(
        [(TOKENS, 2), (VALUES, 1, "group"), nowcalls.rate(RATES_OF_VALUES, 1, "group")]
    )
    expect([permit is None for permit in group], [False, False, True])
    both = [(VALUES, 1, "other"), (TOKENS, 3)]
    expect(refused_by(lambda: client.acquire_all(both)), "over_level")
    for permit in group[:2]:
        expect(permit.release(), True)


def rates(client: nowcalls.Client) -> None:
    expect(client.request(RATES).wait, 0)
    refused_by(lambda: client.request(RATES, 100))
    client.request_param(RATES_OF_VALUES, 1, ["x", 2])
    refused_by(lambda: client.request_param(RATES_OF_VALUES, 100, ["x"]))


def listings(client: nowcalls.Client) -> None:
    with client.permit(TOKENS) as permit:
        rows = [row["token_id"] for row in client.tokens(flow_id=TOKENS)]
        expect(rows, [permit.token_id])
    expect({TOKENS, VALUES} <= {row["flow_id"] for row in client.flows()}, True)
    expect([row["client_id"] for row in client.sessions()], ["caller"])
    expect(client.ping() > 0, True)
    expect(client.stats()["connected"], True)


def lost(client: nowcalls.Client) -> None:
    told: List[nowcalls.Permit] = []
    permit = client.acquire(TOKENS, on_lost=told.append)
    operator("reclaim", permit.token_id)
    soon(lambda: told)
    expect((permit.lost, permit.lost_reason, permit.release()), (True, "admin", False))


def outcomes(client: nowcalls.Client) -> None:
    expect(client.acquire(TOKENS).release("failed"), True)
    rows = [(row["reason"], row.get("outcome")) for row in client.history()]
    expect(("released", "failed") in rows, True)


def reconnect(client: nowcalls.Client) -> None:
    permit = client.acquire(TOKENS)
    operator("restart")
    expect(client.flow(TOKENS)["now_calls"], 1)
    expect((permit.keep(), permit.lost), (True, False))
    with client.permit(TOKENS) as other:
        expect(other.now_calls, 2)
    expect(permit.release(), True)
    expect(client.flow(TOKENS)["now_calls"], 0)


def tasks(_: nowcalls.Client) -> None:
    async def calls() -> None:
        async with nowcalls.aio.Client(ADDRESS, namespace=NAMESPACE, fallback="fail") as client:
            async with client.permit(TOKENS, 2):
                try:
                    await client.acquire(TOKENS, wait=0.05)
                except nowcalls.Refused as refused:
                    expect(refused.refused_by, "queue_timeout")
                else:
                    raise AssertionError("it was not refused")
            expect((await client.request(RATES)).wait, 0)

    asyncio.run(calls())


STEPS = [
    acquire_and_release, keep, wait, values, groups, rates, listings, lost, outcomes, reconnect,
    tasks,
]  # fmt: skip


def main() -> None:
    with nowcalls.Client(
        ADDRESS, namespace=NAMESPACE, client_id="caller", fallback="fail", timeout=PATIENCE_S
    ) as client:
        for step in STEPS:
            step(client)
            print("passed", step.__name__, flush=True)


if __name__ == "__main__":
    main()
