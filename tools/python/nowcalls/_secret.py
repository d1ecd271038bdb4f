"""Secret: what a client shows its server, which knows the client by it. Nobody else sees it.

No exception of this module has the secret, and none has another exception that does.
"""

from __future__ import annotations

import errno
import inspect
import ipaddress
import os
import stat
import unicodedata
from typing import Any, Callable, Optional, Union

from ._errors import BadRequest

SECRET_BYTES_MAX = 256
FILE_BYTES_MAX = 4096
VARIABLE = "NOWCALLS_SECRET_FILE"
PLAIN = (
    "the secret needs TLS, or a server on this machine: over a plain connection anybody on the way "
    "could read it"
)

SecretSetting = Union[str, Callable[[], str], None]


class Secret:
    """A text, or a function that tells it anew for each connection."""

    def __init__(self, source: Union[str, Callable[[], str]]) -> None:
        self._source = source

    def read(self) -> str:
        """Raises BadRequest if the function fails."""
        if not callable(self._source):
            return self._source
        value: Any = None
        failure: Optional[str] = None
        try:
            value = self._source()
        except BaseException as error:  # SystemExit, too: the thread is not the function's to end.
            failure = f"raised {type(error).__name__}"  # Its text may have the secret.
        else:
            wrong = _wrong(value)
            if wrong is None:
                return str(value)
            failure = f"returned what is no secret: it {wrong}"
        del value
        raise BadRequest(f"secret: its function {failure}")


def masked(told: Any, secret: str) -> Any:
    """A text with dots for the secret; or a list whose texts are such; or what is neither."""

    def cover(part: Any) -> Any:
        return part.replace(secret, "...") if isinstance(part, str) else part

    return [cover(part) for part in told] if isinstance(told, list) else cover(told)


def make_secret(secret: SecretSetting) -> Optional[Secret]:
    """From the setting, or else the file of the environment. Raises BadRequest."""
    if secret is None:
        path = os.environ.get(VARIABLE)
        return Secret(_of_file(path)) if path else None
    if inspect.iscoroutinefunction(secret):
        raise BadRequest("secret must be a str or a function, not a coroutine function")
    wrong = None if callable(secret) else _wrong(secret)
    if wrong is not None:
        raise BadRequest(f"secret {wrong}")
    return Secret(secret)


def _wrong(value: object) -> Optional[str]:
    if not isinstance(value, str):
        return f"must be a str, not {type(value).__name__}"
    if not 0 < len(value.encode("utf-8", "replace")) <= SECRET_BYTES_MAX:
        return f"must have 1 to {SECRET_BYTES_MAX} bytes"
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in value):
        return "must not have control characters, such as the end of a line, or surrogates"
    return None


def _of_file(path: str) -> str:
    try:
        data = _read_own(path)
    except OSError as error:
        raise BadRequest(f"{VARIABLE}: cannot read {path}: {error.strerror}") from None
    if len(data) > FILE_BYTES_MAX:
        raise BadRequest(f"{VARIABLE}: {path} has more than {FILE_BYTES_MAX} bytes")
    # What is no UTF-8 becomes surrogates, which are refused.
    line = data.split(b"\n", 1)[0].decode("utf-8", "surrogateescape")
    line = line[:-1] if line.endswith("\r") else line
    if not line:
        raise BadRequest(f"{VARIABLE}: {path} has no secret in its first line")
    wrong = _wrong(line)
    if wrong is not None:
        raise BadRequest(f"{VARIABLE}: the first line of {path} {wrong}")
    return line


def _is_private(info: os.stat_result) -> bool:
    """Kubernetes gives a mounted secret to root and to the group of fsGroup."""
    others = stat.S_IMODE(info.st_mode) & 0o077
    own_group = info.st_uid == 0 and info.st_gid in (os.getegid(), *os.getgroups())
    return others == 0 or (others == stat.S_IRGRP and own_group)


def _read_own(path: str) -> bytes:
    """The file is judged by its descriptor, so that it cannot be replaced in between."""
    with open(path, "rb") as file:
        if not _is_private(os.fstat(file.fileno())):
            raise BadRequest(
                f"{VARIABLE}: others than its owner may read or write {path}, which has a secret; "
                f"run: chmod 600 {path}"
            )
        return file.read(FILE_BYTES_MAX + 1)


def stays_here(sock: Any) -> bool:
    """Whether the peer of a plain connection is on this machine, as the server judges it."""
    try:
        peer, own = (
            ipaddress.ip_address(end[0].partition("%")[0])
            for end in (sock.getpeername(), sock.getsockname())
        )
    except OSError as error:
        return error.errno in (errno.ENOTCONN, errno.EINVAL)  # It broke: nothing leaves.
    except (AttributeError, IndexError, TypeError, ValueError):  # No socket, or of no host.
        return False
    return (getattr(peer, "ipv4_mapped", None) or peer).is_loopback or peer == own
