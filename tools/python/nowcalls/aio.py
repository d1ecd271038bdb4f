"""Client and Permit for asyncio: as in nowcalls, with await.

A client belongs to the event loop on which it is first used.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import random
import warnings
import weakref
from typing import (
    Any,
    AsyncIterator,
    Awaitable,
    Callable,
    Dict,
    List,
    Optional,
    Sequence,
    Set,
    Type,
)

from . import _clock, _fork
from ._block import AsyncBlock
from ._calls import (
    Acquire,
    AcquireAll,
    Call,
    Keep,
    Page,
    Ping,
    Rate,
    RateRequest,
    Release,
    Row,
    values_of,
)
from ._config import Addresses, LocalLevels, check_keep, check_seconds, make_config
from ._errors import BadRequest, Error, OutcomeUnknown, Unavailable
from ._held import HELD, Flow, Held, KeepMode, Param
from ._link import Link
from ._permit import BasePermit, outcome_of
from ._secret import SecretSetting
from ._session import Session
from ._tls import Path, TlsSetting

logger = logging.getLogger("nowcalls")

PAGE_ROWS = 100

__all__ = ["Client", "Permit"]


class Permit(BasePermit):
    """A token of an asyncio client. As an asynchronous context manager it ends with a release."""

    def __init__(self, held: Held, client: Client) -> None:
        super().__init__(held)
        self._client = client

    async def release(self, outcome: str = "ok", *, timeout: Optional[float] = None) -> bool:
        """Gives the token back; a second time does nothing.

        outcome: how the call ended: "ok", "failed" or "timeout". The server counts them.
        Returns False if the token had been lost. Raises Unavailable or OutcomeUnknown when no
        answer comes in time; the client then releases it in the background, as soon as it can.
        Raises Unavailable after close: the server then takes the token back.
        """
        return await self._client._release(self, outcome, timeout)

    async def keep(self, timeout: Optional[float] = None) -> bool:
        """Renews hold_ms now. Returns False if the token is lost."""
        return await self._client._keep(self, timeout)

    async def __aenter__(self) -> Permit:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        await self._client._leave(self, outcome_of(kind))


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
        fallback: str = "rule",
        local_levels: Optional[LocalLevels] = None,
        exclusive: bool = False,
        rejoin: bool = False,
        tls: TlsSetting = None,
        tls_certificate: Optional[Path] = None,
        tls_key: Optional[Path] = None,
        tls_server_name: Optional[str] = None,
        secret: SecretSetting = None,
        on_lost: Optional[Callable[[Permit], Any]] = None,
    ) -> None:
        self._config = make_config(
            address,
            namespace,
            client_id,
            timeout,
            keep,
            fallback,
            local_levels,
            exclusive,
            rejoin,
            tls,
            tls_certificate,
            tls_key,
            tls_server_name,
            secret,
        )
        self.on_lost = on_lost
        self._closed = False
        self._forked = False
        # From the first use on.
        self._link: Optional[Link] = None
        self._dialer: Optional[asyncio.Task[None]] = None

    # Permits.

    def permit(
        self,
        flow_id: Flow,
        count: int = 1,
        *,
        wait: Optional[float] = None,
        param: Param = None,
        prioritized: bool = False,
        keep: Optional[KeepMode] = None,
        timeout: Optional[float] = None,
        on_lost: Optional[Callable[[Permit], Any]] = None,
    ) -> AsyncBlock[Permit]:
        """Holds a token for an async with block, or for the calls of a coroutine function.

        A block that is left by an exception releases it as "failed"; by TimeoutError or
        CancelledError as "timeout". See acquire.
        """

        def acquire() -> Awaitable[Permit]:
            return self.acquire(
                flow_id,
                count,
                wait=wait,
                param=param,
                prioritized=prioritized,
                keep=keep,
                timeout=timeout,
                on_lost=on_lost,
            )

        return AsyncBlock(acquire, self._leave)

    async def acquire(
        self,
        flow_id: Flow,
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
        sleep: bool = True,
    ) -> List[Any]:
        """Takes a token for each item, for all or for none. Nothing is held while it waits.

        items: flow ids or names, (flow_id, count) or (flow_id, count, param); each of another flow
            or param.
            nowcalls.rate(flow_id, count, param) asks for calls a second in the same decision.
        sleep: whether to wait until the calls of the rates may be made.
        Returns a permit for each item, None for a rate.
        """
        call = AcquireAll(items, wait, prioritized, sleep)
        self._set(call, keep, on_lost)
        permits: List[Optional[Permit]] = await self._ask(call, timeout)
        return permits

    def _set(self, call: Acquire, keep: Optional[KeepMode], on_lost: Any) -> None:
        call.keep = self._config.keep if keep is None else keep
        check_keep(call.keep)
        call.on_lost = on_lost

    # Calls a second.

    async def request(
        self,
        flow_id: Flow,
        count: int = 1,
        prioritized: bool = False,
        *,
        timeout: Optional[float] = None,
        sleep: bool = True,
    ) -> Rate:
        """Asks for `count` calls under a rule of calls a second. Nothing is held.

        Sleeps until the calls may be made, if that is within the timeout. sleep=False: the
        answer's `wait` says how long to sleep. Raises Refused if they may not be made now.
        """
        call = RateRequest(flow_id, count, None, sleep).prioritize(prioritized)
        rate: Rate = await self._ask(call, timeout)
        return rate

    async def request_param(
        self,
        flow_id: Flow,
        count: int,
        values: Sequence[Param],
        *,
        timeout: Optional[float] = None,
        sleep: bool = True,
    ) -> Rate:
        """Asks for `count` calls of each value of the rule's parameter: of all, or of none."""
        call = RateRequest(flow_id, count, values_of(values), sleep)
        rate: Rate = await self._ask(call, timeout)
        return rate

    # What the server knows.

    async def ping(self, timeout: Optional[float] = None) -> int:
        """The server's clock in ms."""
        return int(await self._ask(Ping(), timeout))

    async def flow(self, flow_id: Flow) -> Dict[str, Any]:
        """The row of a flow as in PROTOCOL.md: level, now_calls, waiters, counters and more."""
        row: Dict[str, Any] = await self._ask(Row("flow", [flow_id]))
        return row

    def flows(self) -> AsyncIterator[Dict[str, Any]]:
        """Rows of all flows."""
        return self._rows("flows")

    def sessions(self) -> AsyncIterator[Dict[str, Any]]:
        """Rows of all sessions of the server."""
        return self._rows("sessions")

    def tokens(
        self, flow_id: Optional[Flow] = None, client_id: Optional[str] = None
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
        link, dialer = self._link, self._dialer
        if link is None or dialer is None:
            self._closed = True
            return
        self._check_loop(link)
        self._closed = True
        try:
            await link.drain(self._config.timeout)
            dialer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await dialer
        finally:  # Also if this task is cancelled.
            dialer.cancel()
            link.stop()
        await asyncio.sleep(0)  # In which the event loop closes the socket.

    async def __aenter__(self) -> Client:
        self._started()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self) -> None:
        link: Optional[Link] = getattr(self, "_link", None)
        if link is None or self._closed or self._forked:
            return
        link.stop_soon()
        warnings.warn(f"unclosed {self!r}", ResourceWarning, stacklevel=2, source=self)

    # Calls.

    def _started(self) -> Link:
        if self._forked:
            raise BadRequest("this client was made before a fork; make one in the child")
        if self._link is None:
            loop = asyncio.get_running_loop()
            number = 0 if self._config.rejoin else _fork.instance()
            # The link refers to the client weakly, so a client that is dropped ends it.
            client = weakref.ref(self)

            def permit_of(held: Held) -> BasePermit:
                return Permit(held, client())  # type: ignore[arg-type]

            def tell_lost(held: Held) -> None:
                _tell_lost(client(), held)

            link = Link(loop, tell_lost)
            link.session = Session(
                self._config, link.permits(permit_of), _clock.now(), random.uniform, number
            )
            self._dialer = loop.create_task(link.dial_until_drained())
            self._link = link
            _fork.watch(self)
        return self._link

    def _check_loop(self, link: Link) -> None:
        if asyncio.get_running_loop() is not link.loop:
            raise BadRequest(
                "this client belongs to another event loop, that of its first use; make a client "
                "for each loop"
            )

    async def _ask(self, call: Call, timeout: Optional[float] = None) -> Any:
        link = self._started()
        if self._closed:
            raise BadRequest("the client is closed")
        return await self._await(link, call, link.session.ask, timeout)

    async def _await(
        self, link: Link, call: Call, ask: Callable[..., None], timeout: Optional[float]
    ) -> Any:
        """Asks, and waits for the outcome."""
        self._check_loop(link)
        if timeout is not None:
            check_seconds("timeout", timeout)
        answered = link.notified(call)
        try:
            ask(call, _clock.now(), timeout)
            link.pump()
            await answered
        except BaseException:  # Nobody will take the outcome.
            if isinstance(call, Release):
                link.session.drop(call.held, _clock.now())
            else:
                link.session.abandon(call, _clock.now())
            link.pump()
            raise
        return call.take()

    async def _release(
        self,
        permit: Permit,
        outcome: str,
        timeout: Optional[float] = None,
        leaves: bool = False,
    ) -> bool:
        if self._forked:
            return False  # The parent has it.
        link = self._started()
        call = Release(permit._held, outcome, leaves)
        if not permit._held.open:
            return not permit.lost
        return bool(await self._await(link, call, link.session.release, timeout))

    async def _leave(self, permit: Permit, outcome: str) -> None:
        """The end of a with block, which has done its work whether or not the server is there."""
        try:
            await self._release(permit, outcome, leaves=True)
        except (Unavailable, OutcomeUnknown) as error:
            how = "not released" if self._closed else "released in the background"
            logger.warning("%r is %s: %s", permit, how, error)

    async def _keep(self, permit: Permit, timeout: Optional[float]) -> bool:
        held = permit._held
        if held.local or held.state != HELD or held.lost:
            return held.local and held.state == HELD
        return await self._ask(Keep(held), timeout) is not None

    async def _rows(self, method: str, *head: Any) -> AsyncIterator[Dict[str, Any]]:
        cursor, patience = None, _clock.now() + self._config.timeout
        while True:
            rows, after = await self._ask(Page(method, [*head, PAGE_ROWS, cursor]))
            for row in rows:
                yield row
            if after is None:
                return
            now = _clock.now()
            patience = now + self._config.timeout if rows else patience
            if after == cursor or now > patience:
                raise Error(f"{method}: the server's pages do not end")
            cursor = after

    def forget_connection(self) -> None:
        """In a forked child."""
        self._forked = True
        if self._link is not None:
            self._link.forget()


_callbacks: Set[asyncio.Future[Any]] = set()


def _tell_lost(client: Optional[Client], held: Held) -> None:
    permit = held.permit
    for callback in (held.on_lost, client.on_lost if client is not None else None):
        if callback is None or permit is None:
            continue
        try:
            outcome = callback(permit)
        except BaseException:  # SystemExit, too: the loop is not the callback's to end.
            logger.exception("on_lost of %r failed", permit)
            continue
        if inspect.isawaitable(outcome):
            task = asyncio.ensure_future(_watched(outcome, permit))
            _callbacks.add(task)
            task.add_done_callback(_callbacks.discard)


async def _watched(outcome: Awaitable[Any], permit: BasePermit) -> None:
    try:
        await outcome
    except asyncio.CancelledError:
        raise
    except BaseException:
        logger.exception("on_lost of %r failed", permit)
