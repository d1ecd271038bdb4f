"""Processes: a forked child lets go of its parent's connections, and each process has a number.

A child that kept connections open would keep the parent's session online after the parent's death.
"""

from __future__ import annotations

import os
import weakref
from typing import Dict, Protocol


class Forkable(Protocol):
    def forget_connection(self) -> None:
        """Runs in the child: closes what was inherited, and refuses calls from then on."""


_clients: weakref.WeakSet[Forkable] = weakref.WeakSet()
_instances: Dict[int, int] = {}


def watch(client: Forkable) -> None:
    _clients.add(client)


def instance() -> int:
    """The instance of this process in hello: 1..2^63-1, drawn once, anew after a fork."""
    drawn = (int.from_bytes(os.urandom(8), "big") >> 1) or 1
    return _instances.setdefault(os.getpid(), drawn)


def let_go(descriptor: int) -> None:
    """Ends this process's share of a connection.

    The number stays taken, so that the owner of the descriptor does not close another's file later.
    """
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.dup2(null, descriptor, inheritable=False)
    finally:
        os.close(null)


def _in_child() -> None:
    _instances.clear()
    for client in list(_clients):
        client.forget_connection()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
