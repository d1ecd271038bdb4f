"""Wire: messages of one connection, and checks of what a server answers.

Thread: the session's. Whatever bytes come, they lead to a value of the type asked for or to Wrong,
within bounded memory.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Iterator, List, Optional, Sequence

import msgpack  # type: ignore[import]

MESSAGE_BYTES_MAX = 64 * 1024  # The server closes the connection beyond it.
ANSWER_BYTES_MAX = 8 * 1024 * 1024  # The server sends at most half of it.
ELEMENTS_MAX = 4096  # Of an array or map; servers send at most 1024.
HOLD_MS_MAX = 10**12
UINT_MAX, INT_MAX = 2**64 - 1, 2**63 - 1
USUAL_PORT = "the token port of a nowcalls-server is usually 18730"
# What a peer speaks that begins so.
_OTHERS = (
    (b"HTTP/", "HTTP"),
    (b"\x15\x03", "TLS; so must the client (tls=True), if that is a nowcalls-server"),
    *((b"SSH-", "SSH"), (b"-ERR", "Redis's protocol")),
)

_ERROR_BYTES_MAX = 1000  # Of a message in an exception.


class Wrong(Exception):
    """The peer does not speak the protocol."""


def _fail(what: str, value: Any) -> Wrong:
    return Wrong(f"{what} is {value!r:.60}")


def uint(what: str, value: Any, most: int = UINT_MAX) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise _fail(what, value)
    return value


def integer(what: str, value: Any) -> int:
    if type(value) is not int:
        raise _fail(what, value)
    return value


def text(what: str, value: Any) -> str:
    if type(value) is not str:
        raise _fail(what, value)
    return value[:_ERROR_BYTES_MAX]


def text_or_none(what: str, value: Any) -> Optional[str]:
    return None if value is None else text(what, value)


def array(what: str, value: Any, least: int = 0) -> List[Any]:
    if type(value) is not list or len(value) < least:
        raise _fail(what, value)
    return value


def hold(value: Any) -> int:
    return min(uint("hold_ms", value), HOLD_MS_MAX)


def number(value: Any, otherwise: float) -> float:
    """Of a field that may be missing or of another type."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return otherwise
    return float(max(min(value, 1e18), -1e18)) if math.isfinite(value) else otherwise


class Exchange:
    """The requests and answers of one connection. msgids count from 1.

    output: bytes to send; the client removes what it has sent.
    """

    def __init__(self) -> None:
        self.output = bytearray()
        self._last_msgid = 0
        self._heard = False
        self._unpacker = msgpack.Unpacker(
            max_buffer_size=ANSWER_BYTES_MAX,
            max_array_len=ELEMENTS_MAX,
            max_map_len=ELEMENTS_MAX,
            max_bin_len=0,
            max_ext_len=0,
        )

    def request(self, method: str, params: Sequence[Any]) -> int:
        """Returns the msgid. Raises ValueError for what no message can hold."""
        msgid = self._last_msgid % 0xFFFFFFFF + 1
        try:
            message = msgpack.packb([0, msgid, method, params])
        except (OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"{method}: {error}") from None
        if len(message) > MESSAGE_BYTES_MAX:
            raise ValueError(f"{method}: {len(message)} bytes are too many")
        self._last_msgid = msgid
        self.output += message
        return msgid

    def receive(self, data: bytes) -> Iterator[List[Any]]:
        """The messages that have come whole. Raises Wrong."""
        for begin, name in () if self._heard else _OTHERS:
            if data.startswith(begin):
                raise Wrong(f"it speaks {name}; {USUAL_PORT}")
        self._heard = True
        try:
            self._unpacker.feed(data)
            while True:
                try:
                    message = self._unpacker.unpack()
                except msgpack.OutOfData:
                    return
                yield _message(message)
        except Wrong:
            raise
        except Exception as error:  # Whatever a stranger's bytes may lead to.
            raise Wrong(f"{type(error).__name__}: {error!s:.100}") from None


def _message(message: Any) -> List[Any]:
    """[1, msgid, error, result] or [2, method, params]."""
    if type(message) is list and len(message) >= 4 and message[0] == 1:
        uint("msgid", message[1])
        return message
    if type(message) is list and len(message) == 3 and message[0] == 2:
        text("method", message[1])
        array("params", message[2])
        return message
    if type(message) is list and message[:1] == [0]:  # Perhaps with the secret.
        raise Wrong("it sends requests back")
    raise _fail("a message", message)


def row(what: str, value: Any) -> Dict[str, Any]:
    if type(value) is not dict:
        raise _fail(what, value)
    return value
