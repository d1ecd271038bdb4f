"""Link: the connection of an asyncio client, one after the other, and the timer of its session."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections import deque
from typing import Any, Callable, Deque, Dict, Optional

from . import _clock, _fork, _tls
from ._calls import Call
from ._errors import BadRequest
from ._held import Grip, Held
from ._permit import BasePermit
from ._secret import stays_here
from ._session import Session

# Timers stand still while the machine sleeps; the clock of tokens does not.
HELD_SLEEP_MAX_S = 1.0
SLEEP_MAX_S = 60.0


class Link(asyncio.Protocol):
    """session: set right after the link is made."""

    session: Session

    def __init__(
        self, loop: asyncio.AbstractEventLoop, tell_lost: Callable[[Held], None]
    ) -> None:
        self.loop = loop
        self._tell_lost = tell_lost
        self._transport: Optional[asyncio.Transport] = None
        self._timer: Optional[asyncio.TimerHandle] = None
        self._ended = asyncio.Event()  # The connection.
        self._settled = asyncio.Event()
        self._draining = False
        self._stopped = False
        self._pumping = False
        self._thread = threading.get_ident()
        self._dropped: Deque[Any] = deque()  # Held, or Grip.

    def permits(self, make_permit: Callable[[Held], BasePermit]) -> Callable[[Held], BasePermit]:
        def make(held: Held) -> BasePermit:
            permit = make_permit(held)
            permit._drop = self.drop
            held.grip = Grip(permit, self._dropped.append)
            held.grip.held = held
            return permit

        return make

    def drop(self, held: Held) -> None:
        """Nobody refers to its permit any more. Called by destructors, on any thread."""
        self._dropped.append(held)
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            self.loop.call_soon_threadsafe(self.pump)

    async def dial_until_drained(self) -> None:
        """Dials whenever there is no connection.

        Before Python 3.12 wait_for may swallow the cancel that ends this task, so it looks itself.
        """
        dialing = self.session.dialing
        while not self._draining:
            await asyncio.sleep(max(0.0, min(dialing.at - _clock.now(), SLEEP_MAX_S)))
            if _clock.now() < dialing.at:
                continue
            dialing.begin()
            self._ended.clear()
            try:
                await self._dial(*dialing.address)
            except (OSError, asyncio.TimeoutError, OverflowError, BadRequest) as error:
                why = _tls.why(error, shaking=self.session.config.tls is not None)
                if _tls.denies(error):
                    self.session.denied(_clock.now(), why)
                self.session.connect_failed(_clock.now(), why)
            else:
                if not self._draining:
                    await self._ended.wait()
            self.pump()

    async def _dial(self, host: str, port: int) -> None:
        """Each address of the name has its share of what is left of the time, so one that drops
        packets does not eat that of the next."""
        timeout = self.session.connect_timeout
        tls = self.session.config.tls
        secured: Dict[str, Any] = {}
        if tls is not None:
            secured = {"ssl": tls.context(), "server_hostname": tls.name_for(host)}
        finding = self.loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        found = await asyncio.wait_for(finding, timeout)
        end = self.loop.time() + timeout
        failure: Exception = OSError("no address")
        for index, (family, _, _, _, where) in enumerate(found):
            share = max(0.0, end - self.loop.time()) / (len(found) - index)
            connecting = self.loop.create_connection(
                lambda: self, *where[:2], family=family, flags=socket.AI_NUMERICHOST, **secured
            )
            try:
                await asyncio.wait_for(connecting, share)
                return
            except (OSError, asyncio.TimeoutError) as error:
                failure = error
                if self._transport is not None:
                    return  # At the last moment.
        raise failure

    def notified(self, call: Call) -> asyncio.Future[None]:
        """A future that is done once the call has its outcome."""
        answered: asyncio.Future[None] = self.loop.create_future()

        def notify() -> None:
            if not answered.done():
                answered.set_result(None)

        call.notify = notify
        return answered

    def pump(self) -> None:
        """Sends, tells losses and sets the timer. Follows whatever the session was told."""
        if self._pumping or self._stopped:
            return  # A callback released a permit; the loop below goes on.
        self._pumping = True
        try:
            while self._dropped:
                gone = self._dropped.popleft()
                self.session.drop(gone.held if isinstance(gone, Grip) else gone, _clock.now())
            for held in self.session.take_lost():
                self._tell_lost(held)
        finally:
            self._pumping = False
        if self._transport is not None and self.session.output:
            self._transport.write(bytes(self.session.output))
            self.session.output.clear()
        if self._draining and (self.session.settled or not self.session.ready):
            self._settled.set()
        longest = HELD_SLEEP_MAX_S if self.session.holds else SLEEP_MAX_S
        delay = max(0.0, min(self.session.wakeup() - _clock.now(), longest))
        if self._transport is None and delay == 0.0:
            delay = 0.01  # The dialer's moment; nothing of the session is due.
        at = self.loop.time() + delay
        if self._timer is not None:
            if self._timer.when() <= at:
                return  # A timer that rings too early does no harm.
            self._timer.cancel()
        self._timer = self.loop.call_at(at, self._tick)

    async def drain(self, timeout: float) -> None:
        """Ends the calls that wait, and waits for the releases that are on their way."""
        self._draining = True
        self.session.close(_clock.now())
        self.pump()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._settled.wait(), timeout)

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self._break("the client was closed")
        self.session.stop("the client is closed")

    def stop_soon(self) -> None:
        """Of a client that was dropped, on any thread."""
        self._draining = True
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            self.loop.call_soon_threadsafe(self.stop)
            self.loop.call_soon_threadsafe(self._ended.set)

    def forget(self) -> None:
        sock = self._transport.get_extra_info("socket") if self._transport is not None else None
        if sock is not None and sock.fileno() >= 0:
            _fork.let_go(sock.fileno())

    def _tick(self) -> None:
        self._timer = None
        broken = self.session.tick(_clock.now())
        if broken is not None:
            self._break(broken)
        self.pump()

    def _break(self, reason: str) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            self.session.disconnected(_clock.now(), reason)
            transport.abort()
            self._ended.set()

    # asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if self._draining:
            transport.abort()
            return
        self._transport = transport
        private = self.session.config.tls is not None or stays_here(
            transport.get_extra_info("socket")
        )
        refusal = self.session.connected(_clock.now(), private)
        if refusal is not None:
            self._break(refusal)
        self.pump()

    def data_received(self, data: bytes) -> None:
        if self._transport is None:
            return  # What comes behind a break.
        broken = self.session.received(data, _clock.now())
        if broken is not None:
            self._break(broken)
        self.pump()

    def connection_lost(self, error: Optional[Exception]) -> None:
        if self._transport is not None:
            if error and _tls.denies(error):  # TLS 1.3 tells it behind the handshake.
                self.session.denied(_clock.now(), _tls.why(error))
            ended = self.session.end_of_connection
            self._break(ended(_tls.why(error)) if error else ended())
            self.pump()
