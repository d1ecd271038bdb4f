"""Client and Permit for asyncio: as in nowcalls, with await.

A client belongs to the event loop on which it is first used. One task dials; a protocol object
reads and sends.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from typing import Any, AsyncIterator, Callable, Dict, List, Mapping, Optional, Sequence, Set

from . import _fork
from ._calls import Acquire, AcquireAll, Call, Keep, KeepMode, Rate, RateRequest, values_of
from ._config import Addresses, check_keep, make_config
from ._errors import BadRequest, OutcomeUnknown, Unavailable
from ._permit import HELD, BasePermit, Param
from ._session import Session

logger = logging.getLogger("nowcalls")

PAGE_ROWS = 100

__all__ = ["Client", "Permit"]


class Permit(BasePermit):
    """A token of an asyncio client. As an asynchronous context manager it ends with a release."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client

    async def release(self, timeout: Optional[float] = None) -> bool:
        """Gives the token back; a second time does nothing.

        Returns False if the token had been lost. Raises Unavailable or OutcomeUnknown when no
        answer comes in time; the client then releases it in the background, as soon as it can.
        Raises Unavailable after close: the server then takes the token back.
        """
        return await self._client._release(self, timeout)

    async def keep(self, timeout: Optional[float] = None) -> bool:
        """Renews hold_ms now. Returns False if the token is lost."""
        return await self._client._keep(self, timeout)

    async def __aenter__(self) -> Permit:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client._leave(self)


class Client:
    """A client of one namespace, for all tasks of an event loop. Its settings: nowcalls.Client.

    on_lost: called with each lost permit on the event loop; it may be a coroutine function.

    Use it as an asynchronous context manager, or await close at the end.
    """

    def __init__(
        self,
        address: Addresses = "127.0.0.1:18730",
        *,
        namespace: str = "default",
        client_id: Optional[str] = None,
        timeout: float = 5.0,
        keep: KeepMode = True,
        fallback: str = "fail",
        local_levels: Optional[Mapping[int, int]] = None,
        on_lost: Optional[Callable[[Permit], Any]] = None,
    ) -> None:
        self._config = make_config(
            address, namespace, client_id, timeout, keep, fallback, local_levels
        )
        self.on_lost = on_lost
        self._closed = False
        self._forked = False
        # From the first use on.
        self._link: Optional[_Link] = None
        self._dialer: Optional[asyncio.Task[None]] = None
        self._callbacks: Set[asyncio.Task[Any]] = set()

    # Permits.

    @contextlib.asynccontextmanager
    async def permit(
        self,
        flow_id: int,
        count: int = 1,
        *,
        wait: Optional[float] = None,
        param: Param = None,
        prioritized: bool = False,
        keep: Optional[KeepMode] = None,
        timeout: Optional[float] = None,
        on_lost: Optional[Callable[[Permit], Any]] = None,
    ) -> AsyncIterator[Permit]:
        """Holds a token for the time of an async with block. See acquire."""
        async with await self.acquire(
            flow_id,
            count,
            wait=wait,
            param=param,
            prioritized=prioritized,
            keep=keep,
            timeout=timeout,
            on_lost=on_lost,
        ) as permit:
            yield permit

    async def acquire(
        self,
        flow_id: int,
        count: int = 1,
        *,
        wait: Optional[float] = None,
        param: Param = None,
        prioritized: bool = False,
        keep: Optional[KeepMode] = None,
        timeout: Optional[float] = None,
        on_lost: Optional[Callable[[Permit], Any]] = None,
    ) -> Permit:
        """Takes a token for `count` calls in progress. A task cancelled meanwhile holds nothing.

        wait: seconds to wait for room. None: as the rule has it.
        param: the value of the rule's parameter, if it has one.
        Raises Refused, NoRule, Unavailable, OutcomeUnknown or BadRequest.
        """
        call = Acquire(flow_id, count, wait, param, prioritized)
        self._set(call, keep, on_lost)
        permit: Permit = await self._ask(call, timeout)
        return permit

    async def acquire_all(
        self,
        items: Sequence[Any],
        *,
        wait: Optional[float] = None,
        prioritized: bool = False,
        keep: Optional[KeepMode] = None,
        timeout: Optional[float] = None,
        on_lost: Optional[Callable[[Permit], Any]] = None,
    ) -> List[Permit]:
        """Takes a token for each item, for all or for none. Nothing is held while it waits.

        items: flow ids, (flow_id, count) or (flow_id, count, param); each another flow or param.
        """
        call = AcquireAll(items, wait, prioritized)
        self._set(call, keep, on_lost)
        permits: List[Permit] = await self._ask(call, timeout)
        return permits

    def _set(self, call: Acquire, keep: Optional[KeepMode], on_lost: Any) -> None:
        call.keep = self._config.keep if keep is None else keep
        check_keep(call.keep)
        call.on_lost = on_lost

    # Calls a second.

    async def request(
        self,
        flow_id: int,
        count: int = 1,
        prioritized: bool = False,
        *,
        timeout: Optional[float] = None,
    ) -> Rate:
        """Asks for `count` calls under a rule of calls a second. Nothing is held.

        Raises Refused if they may not be made now. Sleep for the answer's `wait` before them.
        """
        rate: Rate = await self._ask(RateRequest("request", flow_id, [count, prioritized]), timeout)
        return rate

    async def request_param(
        self, flow_id: int, count: int, values: Sequence[Param], *, timeout: Optional[float] = None
    ) -> Rate:
        """Asks for `count` calls of each value of the rule's parameter: of all, or of none."""
        params = [count, values_of(values)]
        rate: Rate = await self._ask(RateRequest("request_param", flow_id, params), timeout)
        return rate

    # What the server knows.

    async def ping(self, timeout: Optional[float] = None) -> int:
        """The server's clock in ms."""
        return int((await self._ask(Call("ping"), timeout))[0])

    async def flow(self, flow_id: int) -> Dict[str, Any]:
        """The row of a flow as in PROTOCOL.md: level, now_calls, waiters, counters and more."""
        row: Dict[str, Any] = await self._ask(Call("flow", [flow_id]))
        return row

    def flows(self) -> AsyncIterator[Dict[str, Any]]:
        """Rows of all flows."""
        return self._rows("flows")

    def sessions(self) -> AsyncIterator[Dict[str, Any]]:
        """Rows of all sessions of the server."""
        return self._rows("sessions")

    def tokens(
        self, flow_id: Optional[int] = None, client_id: Optional[str] = None
    ) -> AsyncIterator[Dict[str, Any]]:
        """Rows of live tokens, the oldest first."""
        asked = {"flow_id": flow_id, "client_id": client_id}
        return self._rows("tokens", {key: asked[key] for key in asked if asked[key] is not None})

    def history(self) -> AsyncIterator[Dict[str, Any]]:
        """Rows of tokens that ended without a release in time, the newest first."""
        return self._rows("history")

    def stats(self) -> Dict[str, Any]:
        """Figures of this client: its connection, permits held and lost, local calls."""
        return self._started().session.stats()

    # The end.

    async def close(self) -> None:
        """Ends the client. Waits up to the timeout for releases on their way to a connected server.

        Permits that are still held stay with the server until their hold or the rule's
        clientOfflineTime is over.
        """
        if self._closed or self._forked:
            return
        self._closed = True
        if self._link is not None and self._dialer is not None:
            await self._link.drain(self._config.timeout)
            self._dialer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._dialer
            self._link.stop()
            await asyncio.sleep(0)  # In which the event loop closes the socket.

    async def __aenter__(self) -> Client:
        self._started()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Calls.

    def _started(self) -> _Link:
        if self._forked:
            raise BadRequest("this client was made before a fork; make one in the child")
        if self._link is None:
            loop = asyncio.get_running_loop()
            session = Session(self._config, lambda: Permit(self), loop.time())
            self._link = _Link(loop, session, self._tell_lost)
            self._dialer = loop.create_task(self._link.dial_until_drained())
            _fork.watch(self)
        return self._link

    async def _ask(self, call: Call, timeout: Optional[float] = None) -> Any:
        link = self._started()
        if self._closed:
            raise BadRequest("the client is closed")
        answered = link.notified(call)
        link.session.submit(call, link.loop.time())
        await self._await(link, call, answered, timeout)
        return call.result()

    async def _await(
        self, link: _Link, call: Call, answered: asyncio.Future[None], timeout: Optional[float]
    ) -> None:
        """Waits for the outcome of a call, and gives the call up when its time is over."""
        link.pump()
        patience = (self._config.timeout if timeout is None else timeout) + call.patience
        timer = link.loop.call_later(patience, link.give_up, call)
        try:
            await answered
        except asyncio.CancelledError:  # Nobody will take the permit.
            link.session.abandon(call, link.loop.time())
            link.pump()
            raise
        finally:
            timer.cancel()

    async def _release(self, permit: Permit, timeout: Optional[float]) -> bool:
        if self._forked:
            return False  # The parent has it.
        link = self._started()
        call = link.session.release(permit, link.loop.time())
        if call is None:
            link.pump()
            return not permit.lost
        answered = link.notified(call)
        await self._await(link, call, answered, timeout)
        return bool(call.result())

    async def _leave(self, permit: Permit) -> None:
        """The end of a with block, which has done its work whether or not the server is there."""
        try:
            ready = self._forked or self._started().session.ready
            await self._release(permit, None if ready else 0.0)
        except (Unavailable, OutcomeUnknown) as error:
            how = "not released" if self._closed else "released in the background"
            logger.warning("%r is %s: %s", permit, how, error)

    async def _keep(self, permit: Permit, timeout: Optional[float]) -> bool:
        if permit.local or permit._state != HELD:
            return permit.local and permit._state == HELD
        return await self._ask(Keep(permit), timeout) is not None

    async def _rows(self, method: str, *head: Any) -> AsyncIterator[Dict[str, Any]]:
        cursor = None
        while True:
            rows, cursor = (await self._ask(Call(method, [*head, PAGE_ROWS, cursor])))[:2]
            for row in rows:
                yield row
            if cursor is None:
                return

    def _tell_lost(self, permit: BasePermit) -> None:
        for callback in (permit.on_lost, self.on_lost):
            if callback is None:
                continue
            try:
                outcome = callback(permit)  # type: ignore[arg-type]
            except Exception:
                logger.exception("on_lost of %r failed", permit)
                continue
            if inspect.isawaitable(outcome):
                task = asyncio.ensure_future(outcome)
                self._callbacks.add(task)
                task.add_done_callback(self._callbacks.discard)

    def _forget_connection(self) -> None:
        self._forked = True
        if self._link is not None:
            self._link.forget()


class _Link(asyncio.Protocol):
    """The connection of a client, one after the other, and the timer of its session."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        session: Session,
        tell_lost: Callable[[BasePermit], None],
    ) -> None:
        self.loop = loop
        self.session = session
        self._tell_lost = tell_lost
        self._transport: Optional[asyncio.Transport] = None
        self._timer: Optional[asyncio.TimerHandle] = None
        self._ended = asyncio.Event()  # The connection.
        self._settled = asyncio.Event()
        self._draining = False

    async def dial_until_drained(self) -> None:
        """Dials whenever there is no connection.

        Before Python 3.12 wait_for may swallow the cancel that ends this task, so it looks itself.
        """
        while not self._draining:
            await asyncio.sleep(max(0.0, self.session.connect_at - self.loop.time()))
            self._ended.clear()
            host, port = self.session.address
            connecting = self.loop.create_connection(lambda: self, host, port)
            try:
                await asyncio.wait_for(connecting, self.session.connect_timeout)
            except asyncio.TimeoutError:
                self.session.connect_failed(self.loop.time(), "timed out")
            except OSError as error:
                self.session.connect_failed(self.loop.time(), error.strerror or str(error))
            else:
                if not self._draining:
                    await self._ended.wait()
            self.pump()

    def notified(self, call: Call) -> asyncio.Future[None]:
        """A future that is done once the call has its outcome."""
        answered: asyncio.Future[None] = self.loop.create_future()

        def notify() -> None:
            if not answered.done():
                answered.set_result(None)

        call.notify = notify
        if call.done:
            answered.set_result(None)
        return answered

    def pump(self) -> None:
        """Sends, tells losses and sets the timer. Follows whatever the session was told."""
        if self._transport is not None and self.session.output:
            self._transport.write(bytes(self.session.output))
            self.session.output.clear()
        for permit in self.session.take_lost():
            self._tell_lost(permit)
        if self._draining and (self.session.settled or not self.session.ready):
            self._settled.set()
        wakeup = self.session.wakeup()
        if self._transport is None or (self._timer is not None and self._timer.when() <= wakeup):
            return  # A timer that rings too early does no harm.
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(wakeup, self._tick)

    def give_up(self, call: Call) -> None:
        self.session.give_up(call, self.loop.time())
        self.pump()

    async def drain(self, timeout: float) -> None:
        """Ends the calls that wait, and waits for the releases that are on their way."""
        self._draining = True
        self.session.close(self.loop.time())
        self.pump()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._settled.wait(), timeout)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._break("the client was closed")
        self.session.stop()

    def forget(self) -> None:
        sock = self._transport.get_extra_info("socket") if self._transport is not None else None
        if sock is not None and sock.fileno() >= 0:
            _fork.let_go(sock.fileno())

    def _tick(self) -> None:
        self._timer = None
        broken = self.session.tick(self.loop.time())
        if broken is not None:
            self._break(broken)
        self.pump()

    def _break(self, reason: str) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            self.session.disconnected(self.loop.time(), reason)
            transport.abort()
            self._ended.set()

    # asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.session.connected(self.loop.time())
        self.pump()

    def data_received(self, data: bytes) -> None:
        if self._transport is None:
            return  # What comes behind a break.
        broken = self.session.received(data, self.loop.time())
        if broken is not None:
            self._break(broken)
        self.pump()

    def connection_lost(self, error: Optional[Exception]) -> None:
        if self._transport is not None:
            self._break(str(error) if error else "the server closed the connection")
            self.pump()
