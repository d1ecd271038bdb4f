"""Client and Permit: the blocking client. A background thread dials, sends, reads and keeps
permits (Worker); the caller's thread waits for it.
"""

from __future__ import annotations

import _thread
import functools
import logging
import threading
import warnings
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Type

from . import _clock
from ._block import Block
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
from ._permit import BasePermit, outcome_of
from ._secret import SecretSetting
from ._tls import Path, TlsSetting
from ._worker import Worker

logger = logging.getLogger("nowcalls")

PAGE_ROWS = 100
GRACE_S = 2.0  # For the background thread to give a call up; a callback may hold it.


class Permit(BasePermit):
    """A token of a blocking client; as a context manager it is released at the end.

    Another thread than the one that acquired it may use it.
    """

    def __init__(self, held: Held, client: Client) -> None:
        super().__init__(held)
        self._client = client

    def release(self, outcome: str = "ok", *, timeout: Optional[float] = None) -> bool:
        """Gives the token back; a second time does nothing.

        outcome: how the call ended: "ok", "failed" or "timeout". The server counts them.
        Returns False if the token had been lost. Raises Unavailable or OutcomeUnknown when no
        answer comes in time; the client then releases it in the background, as soon as it can.
        Raises Unavailable after close: the server then takes the token back.
        """
        return self._client._release(self, outcome, timeout)

    def keep(self, timeout: Optional[float] = None) -> bool:
        """Renews hold_ms now. Returns False if the token is lost."""
        return self._client._keep(self, timeout)

    def __enter__(self) -> Permit:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        self._client._leave(self, outcome_of(kind))


class Client:
    """A client of one namespace, for all threads of a process.

    address: "HOST:PORT", "[IPV6]:PORT", or several, which are tried in turn.
    client_id: names the session that holds the tokens. Without one the client makes one up.
    timeout: seconds that a call may take besides the wait of an acquire, connecting anew included.
    keep: whether permits are kept in the background once a third of their hold is over. True: as
        the rule's resourceTimeoutStrategy says: 0: not kept; 1: released at resourceTimeout, and
        lost; 2: kept. "always": kept. False: not kept.
    fallback: what acquires and requests do when no server is reached, it does not answer in time,
        answers that it failed, or is full (TOO_MANY_REQUEST). "rule" is "local" or "pass", as the
        rule's fallbackToLocalWhenFail says. "local" admits the rule's count divided by the clients
        last known to be online. "pass" admits everything. "fail" raises.
    local_levels: shares by flow, as calls name it, instead of those from the rules. Of a rate:
        calls of one window.
    exclusive: refuse to share the client id with another process that is online.
    rejoin: take over the tokens of a process before that had the client id and rejoined, too.
        Otherwise each process holds its own.
    tls: whether to speak TLS. True: the server's certificate is checked by the system's
        authorities; the path of a PEM file: by those in it; an ssl.SSLContext: as that says. None:
        as NOWCALLS_TLS and NOWCALLS_TLS_CA say, else not.
    tls_certificate, tls_key: PEM files of a certificate to show to the server.
    tls_server_name: the server's certificate must have it, in place of the host of the address.
    secret: shows the server who the client is: a text, or a short function that tells it for each
        connection. It leaves over TLS, or to this machine. None: as NOWCALLS_SECRET_FILE says.
    on_lost: called with each lost permit, on the background thread. It must be short, and must not
        call the client.

    The constructor does not wait for a connection. A forked child needs a client of its own.
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
        config = make_config(
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
        self._timeout = config.timeout
        self._keeps = config.keep
        # The thread refers to the client weakly, so a client that is dropped ends it.
        client = weakref.ref(self)

        def tell_lost(held: Held) -> None:
            _tell_lost(client(), held)

        self._worker = Worker(config, lambda held: _permit_of(client(), held), tell_lost)

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
    ) -> Block[Permit]:
        """Holds a token for a with block, or for the calls of a function. See acquire.

        A block that is left by an exception releases it as "failed"; by TimeoutError or
        CancelledError as "timeout".
        """

        def acquire() -> Permit:
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

        return Block(acquire, self._leave)

    def acquire(
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
        """Takes a token for `count` calls in progress.

        flow_id: the flowId of a rule, or the resource of a rule of the namespace.
        wait: seconds to wait for room. None: as the rule has it.
        param: the value of the rule's parameter, if it has one.
        Raises Refused, NoRule, Unavailable, OutcomeUnknown or BadRequest.
        """
        call = Acquire(flow_id, count, wait, param, prioritized)
        self._set(call, keep, on_lost)
        permit: Permit = self._ask(call, timeout)
        return permit

    def acquire_all(
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
        permits: List[Optional[Permit]] = self._ask(call, timeout)
        return permits

    def _set(self, call: Acquire, keep: Optional[KeepMode], on_lost: Any) -> None:
        call.keep = self._keeps if keep is None else keep
        check_keep(call.keep)
        call.on_lost = on_lost

    # Calls a second.

    def request(
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
        rate: Rate = self._ask(call, timeout)
        return rate

    def request_param(
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
        rate: Rate = self._ask(call, timeout)
        return rate

    # What the server knows.

    def ping(self, timeout: Optional[float] = None) -> int:
        """The server's clock in ms."""
        return int(self._ask(Ping(), timeout))

    def flow(self, flow_id: Flow) -> Dict[str, Any]:
        """The row of a flow as in PROTOCOL.md: level, now_calls, waiters, counters and more."""
        row: Dict[str, Any] = self._ask(Row("flow", [flow_id]))
        return row

    def flows(self) -> Iterator[Dict[str, Any]]:
        """Rows of all flows."""
        return self._rows("flows")

    def sessions(self) -> Iterator[Dict[str, Any]]:
        """Rows of all sessions of the server."""
        return self._rows("sessions")

    def tokens(
        self, flow_id: Optional[Flow] = None, client_id: Optional[str] = None
    ) -> Iterator[Dict[str, Any]]:
        """Rows of live tokens, the oldest first."""
        asked = {"flow_id": flow_id, "client_id": client_id}
        return self._rows("tokens", {key: asked[key] for key in asked if asked[key] is not None})

    def history(self) -> Iterator[Dict[str, Any]]:
        """Rows of tokens that ended without a release in time, the newest first."""
        return self._rows("history")

    def stats(self) -> Dict[str, Any]:
        """Figures of this client: its connection, permits held and lost, local calls."""
        return self._worker.stats()

    # The end.

    def close(self) -> None:
        """Ends the client. Waits up to the timeout for releases on their way to a connected server.

        Permits that are still held stay with the server until their hold or the rule's
        clientOfflineTime is over.
        """
        worker = self._worker
        if worker.forked:
            return
        worker.close_soon()
        if threading.current_thread() is not worker.thread:
            worker.thread.join()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        worker: Optional[Worker] = getattr(self, "_worker", None)
        if worker is None or worker.closed or worker.forked:
            return
        worker.close_soon()
        warnings.warn(f"unclosed {self!r}", ResourceWarning, stacklevel=2, source=self)

    # Calls. What a signal handler raises may come at any point.

    def _ask(self, call: Call, timeout: Optional[float] = None) -> Any:
        worker = self._worker
        if worker.forked:
            raise BadRequest("this client was made before a fork; make one in the child")
        if threading.current_thread() is worker.thread:
            raise BadRequest("a callback must not call the client that calls it")
        if worker.closed:
            raise BadRequest(worker.ended or "the client is closed")
        return self._await(call, worker.ask, timeout)

    def _await(self, call: Call, ask: Callable[..., Any], timeout: Optional[float]) -> Any:
        """Has the thread ask, and waits for the outcome."""
        if timeout is not None:
            check_seconds("timeout", timeout)
        patience = (self._timeout if timeout is None else timeout) + call.patience + GRACE_S
        answered = _thread.allocate_lock()  # Given once, by the thread; nobody waits for us.
        answered.acquire()
        call.notify = functools.partial(self._worker.finished.append, answered.release)
        try:
            self._worker.post(ask, call, timeout)
            in_time = answered.acquire(True, patience)
        except BaseException:  # Nobody will take the outcome.
            self._leave_call(call, ask, timeout)
            raise
        if not in_time:
            self._leave_call(call, ask, timeout)
            raise OutcomeUnknown(f"{call.method}: the client's thread is held up")
        return call.take()

    def _leave_call(self, call: Call, ask: Callable[..., Any], timeout: Optional[float]) -> None:
        if isinstance(call, Release):  # Perhaps it was not posted. A second one does nothing.
            self._worker.drop(call.held)
        else:
            self._worker.post(self._worker.abandon, call)

    def _release(
        self,
        permit: Permit,
        outcome: str,
        timeout: Optional[float] = None,
        leaves: bool = False,
    ) -> bool:
        worker = self._worker
        if worker.forked:
            return False  # The parent has it.
        call = Release(permit._held, outcome, leaves)
        if not permit._held.open:
            return not permit.lost
        if threading.current_thread() is worker.thread:
            worker.release(call, timeout)
            return True  # Cannot wait here; see on_lost.
        return bool(self._await(call, worker.release, timeout))

    def _leave(self, permit: Permit, outcome: str) -> None:
        """The end of a with block, which has done its work whether or not the server is there."""
        try:
            self._release(permit, outcome, leaves=True)
        except (Unavailable, OutcomeUnknown) as error:
            how = "not released" if self._worker.closed else "released in the background"
            logger.warning("%r is %s: %s", permit, how, error)

    def _keep(self, permit: Permit, timeout: Optional[float]) -> bool:
        held = permit._held
        if held.local or held.state != HELD or held.lost:
            return held.local and held.state == HELD
        return self._ask(Keep(held), timeout) is not None

    def _rows(self, method: str, *head: Any) -> Iterator[Dict[str, Any]]:
        cursor, patience = None, _clock.now() + self._timeout
        while True:
            rows, after = self._ask(Page(method, [*head, PAGE_ROWS, cursor]))
            yield from rows
            if after is None:
                return
            now = _clock.now()
            patience = now + self._timeout if rows else patience
            if after == cursor or now > patience:
                raise Error(f"{method}: the server's pages do not end")
            cursor = after


def _permit_of(client: Optional[Client], held: Held) -> Permit:
    return Permit(held, client)  # type: ignore[arg-type]  # Nobody takes that of a dropped client.


def _tell_lost(client: Optional[Client], held: Held) -> None:
    permit = held.permit
    for callback in (held.on_lost, client.on_lost if client is not None else None):
        if callback is None or permit is None:
            continue
        try:
            callback(permit)
        except BaseException:  # SystemExit, too: the thread is not the callback's to end.
            logger.exception("on_lost of %r failed", permit)
