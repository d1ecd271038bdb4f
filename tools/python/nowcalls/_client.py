"""Client and Permit: the blocking client. One background thread dials, reads and keeps permits.

A caller's thread sends by itself, and waits until the background thread has read the answer. The
lock protects the session and sending. Callbacks run on the background thread, without the lock.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import selectors
import socket
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, cast

from . import _fork
from ._calls import Acquire, AcquireAll, Call, Keep, KeepMode, Rate, RateRequest, values_of
from ._config import Addresses, check_keep, make_config
from ._errors import BadRequest, OutcomeUnknown, Unavailable
from ._permit import HELD, BasePermit, Param
from ._session import Session

logger = logging.getLogger("nowcalls")

PAGE_ROWS = 100
READ_BYTES = 64 * 1024


class Permit(BasePermit):
    """A token of a blocking client; as a context manager it is released at the end.

    Another thread than the one that acquired it may use it.
    """

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client

    def release(self, timeout: Optional[float] = None) -> bool:
        """Gives the token back; a second time does nothing.

        Returns False if the token had been lost. Raises Unavailable or OutcomeUnknown when no
        answer comes in time; the client then releases it in the background, as soon as it can.
        Raises Unavailable after close: the server then takes the token back.
        """
        return self._client._release(self, timeout)

    def keep(self, timeout: Optional[float] = None) -> bool:
        """Renews hold_ms now. Returns False if the token is lost."""
        return self._client._keep(self, timeout)

    def __enter__(self) -> Permit:
        return self

    def __exit__(self, *_: object) -> None:
        self._client._leave(self)


class Client:
    """A client of one namespace, for all threads of a process.

    address: "HOST:PORT", "[IPV6]:PORT", or several, which are tried in turn.
    client_id: names the session that holds the tokens. Give each process its own. Without one the
        client makes one up.
    timeout: seconds that a call may take besides the wait of an acquire, connecting anew included.
    keep: whether permits are kept in the background once a third of their hold is over. True:
        unless the rule has its clients release them at resourceTimeout. "always": even then.
    fallback: what acquires and requests do instead of raising Unavailable or OutcomeUnknown: no
        server is reached, it does not answer in time, or it answers that it failed. "fail" raises.
        "local" admits the last known level divided by the clients last known to be online. "pass"
        admits everything. "rule" is "local" or "pass", as the rule's fallbackToLocalWhenFail says.
    local_levels: shares by flow id for "local", instead of those from the last known levels.
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
        fallback: str = "fail",
        local_levels: Optional[Mapping[int, int]] = None,
        on_lost: Optional[Callable[[Permit], Any]] = None,
    ) -> None:
        config = make_config(address, namespace, client_id, timeout, keep, fallback, local_levels)
        self.on_lost = on_lost
        self._timeout = config.timeout
        self._keeps = config.keep
        self._lock = threading.RLock()
        self._session = Session(config, lambda: Permit(self), time.monotonic())
        self._closed = False
        self._forked = False
        self._drain_until = 0.0
        self._sock: Optional[socket.socket] = None
        self._watching_writes = False
        self._selector = selectors.DefaultSelector()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._selector.register(self._wake_in, selectors.EVENT_READ)
        _fork.watch(self)
        self._thread = threading.Thread(target=self._run, name="nowcalls", daemon=True)
        self._thread.start()

    # Permits.

    @contextlib.contextmanager
    def permit(
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
    ) -> Iterator[Permit]:
        """Holds a token for a with block, or for the calls of a function. See acquire."""
        with self.acquire(
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

    def acquire(
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
        """Takes a token for `count` calls in progress.

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
    ) -> List[Permit]:
        """Takes a token for each item, for all or for none. Nothing is held while it waits.

        items: flow ids, (flow_id, count) or (flow_id, count, param); each another flow or param.
        """
        call = AcquireAll(items, wait, prioritized)
        self._set(call, keep, on_lost)
        permits: List[Permit] = self._ask(call, timeout)
        return permits

    def _set(self, call: Acquire, keep: Optional[KeepMode], on_lost: Any) -> None:
        call.keep = self._keeps if keep is None else keep
        check_keep(call.keep)
        call.on_lost = on_lost

    # Calls a second.

    def request(
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
        rate: Rate = self._ask(RateRequest("request", flow_id, [count, prioritized]), timeout)
        return rate

    def request_param(
        self, flow_id: int, count: int, values: Sequence[Param], *, timeout: Optional[float] = None
    ) -> Rate:
        """Asks for `count` calls of each value of the rule's parameter: of all, or of none."""
        params = [count, values_of(values)]
        rate: Rate = self._ask(RateRequest("request_param", flow_id, params), timeout)
        return rate

    # What the server knows.

    def ping(self, timeout: Optional[float] = None) -> int:
        """The server's clock in ms."""
        return int(self._ask(Call("ping"), timeout)[0])

    def flow(self, flow_id: int) -> Dict[str, Any]:
        """The row of a flow as in PROTOCOL.md: level, now_calls, waiters, counters and more."""
        row: Dict[str, Any] = self._ask(Call("flow", [flow_id]))
        return row

    def flows(self) -> Iterator[Dict[str, Any]]:
        """Rows of all flows."""
        return self._rows("flows")

    def sessions(self) -> Iterator[Dict[str, Any]]:
        """Rows of all sessions of the server."""
        return self._rows("sessions")

    def tokens(
        self, flow_id: Optional[int] = None, client_id: Optional[str] = None
    ) -> Iterator[Dict[str, Any]]:
        """Rows of live tokens, the oldest first."""
        asked = {"flow_id": flow_id, "client_id": client_id}
        return self._rows("tokens", {key: asked[key] for key in asked if asked[key] is not None})

    def history(self) -> Iterator[Dict[str, Any]]:
        """Rows of tokens that ended without a release in time, the newest first."""
        return self._rows("history")

    def stats(self) -> Dict[str, Any]:
        """Figures of this client: its connection, permits held and lost, local calls."""
        with self._lock:
            return self._session.stats()

    # The end.

    def close(self) -> None:
        """Ends the client. Waits up to the timeout for releases on their way to a connected server.

        Permits that are still held stay with the server until their hold or the rule's
        clientOfflineTime is over.
        """
        if self._forked:
            return
        with self._lock:
            if not self._closed:
                self._closed = True
                now = time.monotonic()
                self._drain_until = now + self._timeout
                self._session.close(now)
                self._flush()
            self._wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Calls, on the caller's thread.

    def _ask(self, call: Call, timeout: Optional[float] = None) -> Any:
        self._check_usable()
        answered = threading.Event()
        call.notify = answered.set
        patience = (self._timeout if timeout is None else timeout) + call.patience
        with self._lock:
            if self._closed:
                raise BadRequest("the client is closed")
            self._session.submit(call, time.monotonic())
            self._flush()
        self._await(call, answered, patience)
        return call.result()

    def _await(self, call: Call, answered: threading.Event, patience: float) -> None:
        """Waits for the outcome of a call, and gives the call up when its time is over."""
        try:
            in_time = call.done or answered.wait(patience)
        except BaseException:  # KeyboardInterrupt: nobody will take the permit.
            with self._lock:
                self._session.abandon(call, time.monotonic())
                self._flush()
            raise
        if not in_time:
            with self._lock:
                self._session.give_up(call, time.monotonic())
                self._flush()

    def _release(self, permit: Permit, timeout: Optional[float]) -> bool:
        if self._forked:
            return False  # The parent has it.
        answered = threading.Event()
        with self._lock:
            call = self._session.release(permit, time.monotonic())
            self._flush()
            if call is None:
                return not permit.lost
            call.notify = answered.set
        if threading.current_thread() is self._thread:
            return True  # Cannot wait here; see on_lost.
        self._await(call, answered, self._timeout if timeout is None else timeout)
        return bool(call.result())

    def _leave(self, permit: Permit) -> None:
        """The end of a with block, which has done its work whether or not the server is there."""
        try:
            self._release(permit, None if self._forked or self._session.ready else 0.0)
        except (Unavailable, OutcomeUnknown) as error:
            how = "not released" if self._closed else "released in the background"
            logger.warning("%r is %s: %s", permit, how, error)

    def _keep(self, permit: Permit, timeout: Optional[float]) -> bool:
        if permit.local or permit._state != HELD:
            return permit.local and permit._state == HELD
        return self._ask(Keep(permit), timeout) is not None

    def _rows(self, method: str, *head: Any) -> Iterator[Dict[str, Any]]:
        cursor = None
        while True:
            rows, cursor = self._ask(Call(method, [*head, PAGE_ROWS, cursor]))[:2]
            yield from rows
            if cursor is None:
                return

    def _check_usable(self) -> None:
        if self._forked:
            raise BadRequest("this client was made before a fork; make one in the child")
        if threading.current_thread() is self._thread:
            raise BadRequest("a callback must not call the client that calls it")

    def _forget_connection(self) -> None:
        """In a forked child. The lock may be held for ever, by a thread that is not here."""
        self._forked = True
        for sock in (self._sock, self._wake_in, self._wake_out):
            if sock is not None and sock.fileno() >= 0:
                _fork.let_go(sock.fileno())

    # The connection. Callers hold the lock.

    def _flush(self) -> None:
        """Sends what can be sent now, and has the background thread send the rest."""
        output = self._session.output
        if self._sock is None or not output:
            return
        try:
            sent = self._sock.send(output)
            del output[:sent]
        except BlockingIOError:
            pass
        except OSError:
            return  # The background thread reads the same error.
        if output and not self._watching_writes:
            self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # Full: it is awake anyway.
            self._wake_out.send(b"\0")

    def _attach(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError):  # The peer may have gone already.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock
        self._watching_writes = False
        self._selector.register(sock, selectors.EVENT_READ)
        self._session.connected(time.monotonic())
        self._flush()

    def _detach(self, reason: str) -> None:
        if self._sock is None:
            return
        self._selector.unregister(self._sock)
        self._sock.close()
        self._sock = None
        self._session.disconnected(time.monotonic(), reason)

    # The background thread.

    def _run(self) -> None:
        try:
            while self._turn():
                self._tell_lost()
        finally:
            with self._lock:
                self._closed = True
                self._detach("the client was closed")
                self._session.stop()
                self._selector.close()
                self._wake_in.close()
                self._wake_out.close()

    def _turn(self) -> bool:
        """Does what is due, then waits for what comes next. False: the client is closed."""
        with self._lock:
            now = time.monotonic()
            broken = self._session.tick(now)
            if broken is not None:
                self._detach(broken)
            self._flush()
            if self._closed and self._drained(now):
                return False
            self._watch_writes()
            wakeup = self._session.wakeup()
            if self._closed:
                wakeup = min(wakeup, self._drain_until)
        delay = max(0.0, wakeup - now)
        if self._sock is None and delay == 0.0:
            self._connect()
            return True
        for key, events in self._selector.select(delay):
            if key.fileobj is self._wake_in:
                self._swallow_wakes()
            elif events & selectors.EVENT_READ:
                self._read()
        return True

    def _drained(self, now: float) -> bool:
        return not self._session.ready or self._session.settled or now >= self._drain_until

    def _watch_writes(self) -> None:
        if self._sock is None or self._watching_writes == bool(self._session.output):
            return
        self._watching_writes = not self._watching_writes
        extra = selectors.EVENT_WRITE if self._watching_writes else 0
        self._selector.modify(self._sock, selectors.EVENT_READ | extra)

    def _swallow_wakes(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while len(self._wake_in.recv(4096)) == 4096:
                pass

    def _read(self) -> None:
        assert self._sock is not None
        try:
            data = self._sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            data, reason = b"", error.strerror or str(error)
        else:
            reason = "the server closed the connection"
        with self._lock:
            broken = self._session.received(data, time.monotonic()) if data else reason
            if broken is not None:
                self._detach(broken)
            self._flush()

    def _connect(self) -> None:
        """Dials the address whose turn it is; a close ends the attempt."""
        reason = "unknown"
        try:
            found = socket.getaddrinfo(*self._session.address, type=socket.SOCK_STREAM)
            for family, kind, protocol, _, where in found:
                sock = socket.socket(family, kind, protocol)
                reason = self._dial(sock, where)
                if not reason:
                    with self._lock:
                        self._attach(sock)
                    return
                sock.close()
        except OSError as error:
            reason = error.strerror or str(error)
        with self._lock:
            if not self._closed:
                self._session.connect_failed(time.monotonic(), reason)

    def _dial(self, sock: socket.socket, where: Any) -> str:
        """Returns "" once connected, else why not."""
        sock.setblocking(False)
        code = sock.connect_ex(where)
        until = time.monotonic() + self._session.connect_timeout
        if code in (errno.EINPROGRESS, errno.EWOULDBLOCK):
            self._selector.register(sock, selectors.EVENT_WRITE)
            try:
                code = self._await_connect(sock, until)
            finally:
                self._selector.unregister(sock)
        return "" if code == 0 else os.strerror(code)

    def _await_connect(self, sock: socket.socket, until: float) -> int:
        while not self._closed:
            ready: List[Any] = self._selector.select(max(0.0, until - time.monotonic()))
            if any(key.fileobj is sock for key, _ in ready):
                return sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if not ready and time.monotonic() >= until:
                return errno.ETIMEDOUT
            self._swallow_wakes()
        return errno.ECANCELED

    def _tell_lost(self) -> None:
        with self._lock:
            lost = cast(List[Permit], self._session.take_lost())
        for permit in lost:
            for callback in (permit.on_lost, self.on_lost):
                if callback is None:
                    continue
                try:
                    callback(permit)
                except Exception:
                    logger.exception("on_lost of %r failed", permit)
