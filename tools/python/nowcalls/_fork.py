"""A forked child lets go of the connections of its parent.

A child that kept them open would keep the parent's session online after the parent's death.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    def _forget_connection(self) -> None:
        """Runs in the child: closes what was inherited, and refuses calls from then on."""


_clients: weakref.WeakSet[Forkable] = weakref.WeakSet()


def watch(client: Forkable) -> None:
    _clients.add(client)


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
    for client in list(_clients):
        client._forget_connection()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
