"""Worker: the background thread of a blocking client. It alone uses the session and the sockets.

Callers put commands into a deque, and wake the thread by a byte. They take no lock that the thread
takes, and it takes none of theirs. So an exception that a signal handler raises in a caller, at any
bytecode, leaves nothing half done and nobody waiting. Callbacks run on the thread.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import random
import selectors
import socket
import ssl
import threading
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from . import _clock, _fork, _tls
from ._config import Address, Config
from ._errors import BadRequest
from ._held import Grip, Held
from ._permit import BasePermit
from ._secret import stays_here
from ._session import Session
from ._tls import Tls

logger = logging.getLogger("nowcalls")

READ_BYTES = 64 * 1024
NOT_YET = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
# Timers stand still while the machine sleeps; the clock of tokens does not.
HELD_SLEEP_MAX_S = 1.0
SLEEP_MAX_S = 60.0

Command = Tuple[Callable[..., Any], Tuple[Any, ...]]


class Worker:
    """make_permit, tell_lost: must not refer to the client, so that one that is dropped ends."""

    def __init__(
        self,
        config: Config,
        make_permit: Callable[[Held], BasePermit],
        tell_lost: Callable[[Held], None],
    ) -> None:
        self.closed = False  # No more calls.
        self.ended: Optional[str] = None  # Why; nothing runs on the thread any more.
        self.forked = False
        self._make_permit = make_permit
        self._tell_lost = tell_lost
        self._timeout = config.timeout
        self._tls = config.tls
        number = 0 if config.rejoin else _fork.instance()
        self._session = Session(config, self._permit_of, _clock.now(), random.uniform, number)
        self._commands: Deque[Command] = deque()
        # Wakes callers, once no frame of this thread refers to what they get.
        self.finished: Deque[Callable[[], None]] = deque()
        self._dropped: Deque[Any] = deque()  # Held, or Grip.
        self._asleep = False
        self._drain_until = 0.0
        self._sock: Optional[socket.socket] = None
        self._watching_writes = False
        self._dial: Optional[_Dial] = None
        self._lookups: Dict[Address, _Lookup] = {}
        self._selector = selectors.DefaultSelector()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._selector.register(self._wake_in, selectors.EVENT_READ)
        _fork.watch(self)
        self.thread = threading.Thread(target=self._run, name="nowcalls", daemon=True)
        self.thread.start()

    # On any thread.

    def post(self, function: Callable[..., Any], *args: Any) -> None:
        """Has function(*args) run on the thread, soon."""
        self._commands.append((function, args))
        self._wake()
        if self.ended is not None:
            self._run_commands()
            self._wake_callers()

    def drop(self, held: Held) -> None:
        """Nobody refers to its permit any more. Also called by destructors."""
        self._dropped.append(held)
        self._wake()

    def ask(self, call: Any, timeout: Optional[float]) -> None:
        self._session.ask(call, _clock.now(), timeout)

    def release(self, call: Any, timeout: Optional[float]) -> None:
        self._session.release(call, _clock.now(), timeout)

    def abandon(self, call: Any) -> None:
        self._session.abandon(call, _clock.now())

    def stats(self) -> Dict[str, Any]:
        return self._session.stats()

    def close_soon(self) -> None:
        """Ends the thread, once the releases on their way are answered."""
        self.closed = True
        self.post(self._close)

    def forget_connection(self) -> None:
        """In a forked child, where the thread is not."""
        self.forked = True
        dialing = self._dial.sock if self._dial is not None else None
        for sock in (self._sock, dialing, self._wake_in, self._wake_out):
            if sock is not None and sock.fileno() >= 0:
                _fork.let_go(sock.fileno())

    def _wake(self) -> None:
        if self._asleep:
            with contextlib.suppress(OSError):  # Full: it is awake anyway.
                self._wake_out.send(b"\0")

    # On the thread.

    def _run(self) -> None:
        reason = "the client is closed"
        try:
            while self._turn():
                pass
        except BaseException as error:  # Nobody would tell the callers that wait.
            logger.critical("the client's thread ends", exc_info=True)
            reason = f"the client's thread ended: {error!r}"
            self._session.lose_all(None, _clock.now())
        finally:
            self._end(reason)

    def _end(self, reason: str) -> None:
        self.closed = True
        try:
            self._detach(reason)
        except Exception:
            logger.exception("the connection was not closed")
        self._session.stop(reason)
        self._tell_all_lost()
        self.ended = reason
        self._run_commands()
        self._wake_callers()
        if self._dial is not None:
            self._dial.close(self._selector)
        self._selector.close()
        self._wake_in.close()
        self._wake_out.close()

    def _turn(self) -> bool:
        """Does what is due, then waits for what comes next. False: the client is closed."""
        self._wake_callers()  # Of what was read.
        self._run_commands()
        session, now = self._session, _clock.now()
        broken = session.tick(now)
        if broken is not None:
            self._detach(broken)
        self._dial_on(now)
        self._flush()
        self._wake_callers()
        self._tell_all_lost()
        wakeup = session.wakeup()
        if self.closed and self._drain_until > 0.0:
            if not session.ready or session.settled or now >= self._drain_until:
                return False
            wakeup = min(wakeup, self._drain_until)
        if self._dial is not None:
            wakeup = min(wakeup, self._dial.until)
        self._watch_writes()
        self._asleep = True
        longest = HELD_SLEEP_MAX_S if session.holds else SLEEP_MAX_S
        delay = max(0.0, min(wakeup - _clock.now(), longest))
        if self._commands or self._dropped:  # Posted before _asleep was seen.
            delay = 0.0
        events = self._selector.select(delay)
        self._asleep = False
        for key, ready in events:
            if key.fileobj is self._wake_in:
                self._swallow_wakes()
            elif key.fileobj is self._sock and ready & selectors.EVENT_READ:
                self._read()
        return True

    def _run_commands(self) -> None:
        self._run_drops()
        while self._commands:
            try:
                function, args = self._commands.popleft()
            except IndexError:  # Another caller took it, after the end.
                break
            function(*args)
            del function, args  # A call that nobody waits for goes with its permits.
            self._run_drops()  # What was dropped before the next command was posted.

    def _wake_callers(self) -> None:
        while self.finished:
            try:
                wake = self.finished.popleft()
            except IndexError:
                break
            wake()

    def _run_drops(self) -> None:
        while self._dropped:
            gone = self._dropped.popleft()
            self._session.drop(gone.held if isinstance(gone, Grip) else gone, _clock.now())

    def _permit_of(self, held: Held) -> BasePermit:
        permit = self._make_permit(held)
        permit._drop = self.drop
        # A destructor that a signal handler interrupts runs no further; this callback is in C.
        held.grip = Grip(permit, self._dropped.append)
        held.grip.held = held
        return permit

    def _close(self) -> None:
        if self._drain_until == 0.0:
            now = _clock.now()
            self._drain_until = now + self._timeout
            self._session.close(now)

    def _tell_all_lost(self) -> None:
        for held in self._session.take_lost():
            self._tell_lost(held)

    # The connection.

    def _flush(self) -> None:
        output = self._session.output
        if self._sock is None or not output:
            return
        try:
            sent = self._sock.send(output)
            del output[:sent]
        except OSError:
            pass  # Full; or broken, and reading meets the same error.

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
        """Reads until nothing is left that select(2) would not see: TLS reads ahead."""
        sock = self._sock
        while self._sock is sock:
            self._read_once()
            if not isinstance(sock, ssl.SSLSocket) or self._sock is None or not sock.pending():
                return

    def _read_once(self) -> None:
        assert self._sock is not None
        try:
            data = self._sock.recv(READ_BYTES)
        except NOT_YET:
            return
        except OSError as error:
            if _tls.denies(error):  # TLS 1.3 tells it behind the handshake.
                self._session.denied(_clock.now(), _tls.why(error))
            data, reason = b"", self._session.end_of_connection(_tls.why(error))
        else:
            reason = self._session.end_of_connection()
        broken = self._session.received(data, _clock.now()) if data else reason
        if broken is not None:
            self._detach(broken)

    def _attach(self, sock: socket.socket, now: float) -> None:
        with contextlib.suppress(OSError):  # The peer may have gone already.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock
        self._watching_writes = False
        self._selector.register(sock, selectors.EVENT_READ)
        refusal = self._session.connected(now, self._tls is not None or stays_here(sock))
        if refusal is not None:
            self._detach(refusal)

    def _detach(self, reason: str) -> None:
        if self._sock is None:
            return
        self._selector.unregister(self._sock)
        self._sock.close()
        self._sock = None
        self._session.disconnected(_clock.now(), reason)

    def _dial_on(self, now: float) -> None:
        """Begins to dial, or goes on with it."""
        session = self._session
        if self._dial is None:
            if self._sock is not None or self.closed or now < session.dialing.at:
                return
            session.dialing.begin()
            address = session.dialing.address
            lookup = self._lookups.get(address)
            if lookup is None or lookup.failed:
                lookup = self._lookups[address] = _Lookup(address, self._wake)
            self._dial = _Dial(lookup, now, session.connect_timeout, self._tls)
        sock = self._dial.step(now, self._selector)
        if sock is None and self._dial.failure is None:
            return
        if self._dial.lookup.done:
            self._lookups.pop(session.dialing.address, None)
        failure, denied, self._dial = self._dial.failure, self._dial.denied, None
        if sock is not None:
            self._attach(sock, now)
        else:
            if denied:
                session.denied(now, failure or "unknown")
            session.connect_failed(now, failure or "unknown")


class _Lookup:
    """Finds the addresses of a name; on a thread of its own unless it is a number."""

    def __init__(self, address: Address, wake: Callable[[], None]) -> None:
        self.found: List[Any] = []
        self.failure: Optional[str] = None
        self.done = False
        self.host = address[0]
        self._address = address
        self._wake = wake
        try:
            self._find(socket.AI_NUMERICHOST)
        except OSError:
            threading.Thread(target=self._run, name="nowcalls-name", daemon=True).start()

    @property
    def failed(self) -> bool:
        return self.failure is not None

    def _find(self, flags: int) -> None:
        # By position: the getaddrinfo of eventlet has other names.
        self.found = socket.getaddrinfo(*self._address, 0, socket.SOCK_STREAM, 0, flags)
        self.done = True

    def _run(self) -> None:
        try:
            self._find(0)
        except Exception as error:
            self.failure = getattr(error, "strerror", None) or str(error)
        self.done = True
        self._wake()


class _Dial:
    """One attempt to connect, and to shake hands if TLS is wanted. Each address of the name has its
    share of what is left of the time, so one that drops packets does not eat that of the next."""

    def __init__(
        self, lookup: _Lookup, now: float, timeout: float, tls: Optional[Tls] = None
    ) -> None:
        self.lookup = lookup
        self.until = now + timeout
        self.failure: Optional[str] = None
        self.denied = False  # Of the last address.
        self.sock: Optional[socket.socket] = None
        self._timeout = timeout
        self._tls = tls
        self._end = 0.0
        self._left: Optional[List[Any]] = None
        self._why = "no address"

    def step(self, now: float, selector: selectors.BaseSelector) -> Optional[socket.socket]:
        """A connected socket, once there is one. `failure` says that there will be none."""
        if self._left is None:
            if not self.lookup.done:
                if now >= self.until:
                    self.failure = "its name was not found in time"
                return None
            if self.lookup.failure is not None:
                self.failure = self.lookup.failure
                return None
            self._left = list(self.lookup.found)
            self._end = now + self._timeout
        if self.sock is not None:
            try:
                if not self._advance(now, selector):
                    return None
            except (OSError, ValueError, BadRequest) as error:
                self._why = _tls.why(error, isinstance(self.sock, ssl.SSLSocket))
                self.denied = _tls.denies(error)
                self.close(selector)
            else:
                selector.unregister(self.sock)
                sock, self.sock = self.sock, None
                return sock
        while self._left:
            share = max(0.0, self._end - now) / len(self._left)
            family, kind, protocol, _, where = self._left.pop(0)
            try:
                sock = socket.socket(family, kind, protocol)
                sock.setblocking(False)
                code = sock.connect_ex(where)
            except (OSError, OverflowError) as error:
                self._why = str(error)
                continue
            if code in (0, errno.EINPROGRESS, errno.EWOULDBLOCK):
                self.sock, self.until = sock, now + share
                selector.register(sock, selectors.EVENT_WRITE)
                return None
            self._why = os.strerror(code)
            sock.close()
        self.failure = self._why
        return None

    def close(self, selector: selectors.BaseSelector) -> None:
        if self.sock is not None:
            if self.sock.fileno() >= 0:
                selector.unregister(self.sock)
            self.sock.close()
            self.sock = None

    def _advance(self, now: float, selector: selectors.BaseSelector) -> bool:
        """Whether the socket is ready for use. Raises OSError or BadRequest if it never will be."""
        assert self.sock is not None
        if not isinstance(self.sock, ssl.SSLSocket):
            code = self._state_of(self.sock, now)
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, os.strerror(code))
            if code == errno.EINPROGRESS or self._tls is None:
                return code == 0
            self._begin_tls(self._tls, selector)
        return self._shake(now, selector)

    def _begin_tls(self, tls: Tls, selector: selectors.BaseSelector) -> None:
        assert self.sock is not None
        context, name = tls.context(), tls.name_for(self.lookup.host)
        selector.unregister(self.sock)
        # The plain socket has no descriptor any more, whether or not this raises.
        self.sock = context.wrap_socket(
            self.sock, server_hostname=name, do_handshake_on_connect=False
        )
        selector.register(self.sock, selectors.EVENT_READ)

    def _shake(self, now: float, selector: selectors.BaseSelector) -> bool:
        assert isinstance(self.sock, ssl.SSLSocket)
        try:
            self.sock.do_handshake()
            return True
        except ssl.SSLWantReadError:
            selector.modify(self.sock, selectors.EVENT_READ)
        except ssl.SSLWantWriteError:
            selector.modify(self.sock, selectors.EVENT_WRITE)
        if now >= self.until:
            raise TimeoutError("the TLS handshake timed out; does it speak TLS?")
        return False

    def _state_of(self, sock: socket.socket, now: float) -> int:
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code != 0:
            return code
        try:
            sock.getpeername()
        except OSError:
            return errno.ETIMEDOUT if now >= self.until else errno.EINPROGRESS
        return 0
