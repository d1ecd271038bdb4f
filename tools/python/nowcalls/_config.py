"""Config: the settings of a client, checked."""

from __future__ import annotations

import socket
import unicodedata
import uuid
from typing import Dict, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._errors import BadRequest
from ._held import Flow
from ._secret import Secret, SecretSetting, make_secret
from ._tls import Path, Tls, TlsSetting, make_tls

DEFAULT_PORT = 18730
NAME_BYTES_MAX = 128
WAIT_MAX_S = TIMEOUT_MAX_S = 3600.0
FALLBACKS = ("rule", "local", "pass", "fail")
KEEPS = (True, False, "always")

Address = Tuple[str, int]
Addresses = Union[str, Sequence[str]]
# Keys of a Mapping are of one type only.
LocalLevels = Union[Mapping[Flow, int], Mapping[int, int], Mapping[str, int]]


class Config(NamedTuple):
    addresses: Tuple[Address, ...]
    namespace: str
    client_id: str
    timeout: float  # Seconds.
    keep: Union[bool, str]
    fallback: str
    local_levels: Mapping[Flow, int]
    exclusive: bool
    rejoin: bool
    tls: Optional[Tls]
    secret: Optional[Secret]


def make_config(
    address: Addresses,
    namespace: str,
    client_id: Optional[str],
    timeout: float,
    keep: Union[bool, str],
    fallback: str,
    local_levels: Optional[LocalLevels],
    exclusive: bool = False,
    rejoin: bool = False,
    tls: TlsSetting = None,
    tls_certificate: Optional[Path] = None,
    tls_key: Optional[Path] = None,
    tls_server_name: Optional[str] = None,
    secret: SecretSetting = None,
) -> Config:
    """Raises BadRequest for what no server would take."""
    texts = [address] if isinstance(address, str) else list(address)
    if not texts:
        raise BadRequest("there is no address")
    if fallback not in FALLBACKS:
        raise BadRequest(f"fallback must be one of {', '.join(FALLBACKS)}, not {fallback!r}")
    check_keep(keep)
    check_seconds("timeout", timeout)
    if timeout == 0:
        raise BadRequest("timeout must be above 0")
    levels: Dict[Flow, int] = {flow: level for flow, level in (local_levels or {}).items()}
    for flow_id, level in levels.items():
        if not isinstance(level, int) or level < 0:
            raise BadRequest(f"local_levels[{flow_id!r}] must be an int from 0 on, not {level!r}")
    _check_name("namespace", namespace)
    if client_id is None:
        client_id = f"python-{uuid.uuid4()}"
    _check_name("client_id", client_id)
    if client_id.startswith("@"):
        raise BadRequest("client_id must not begin with @")
    return Config(
        tuple(parse_address(text) for text in texts),
        namespace,
        client_id,
        float(timeout),
        keep,
        fallback,
        levels,
        bool(exclusive),
        bool(rejoin),
        make_tls(tls, tls_certificate, tls_key, tls_server_name),
        make_secret(secret),
    )


def check_seconds(what: str, value: object, most: float = TIMEOUT_MAX_S) -> None:
    """NaN would confuse timers, infinity overflows them."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= most:  # type: ignore[operator]
        raise BadRequest(f"{what} must be 0 to {most:.0f} seconds, not {value!r}")


def check_keep(keep: Union[bool, str]) -> None:
    if keep not in KEEPS:
        raise BadRequest(f'keep must be True, False or "always", not {keep!r}')


def parse_address(text: str) -> Address:
    """HOST, HOST:PORT or [IPV6]:PORT; without a port it is the default port."""
    host, port = text, str(DEFAULT_PORT)
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest[1:] if rest.startswith(":") else rest or port
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    if "/" in host or (":" in host and not _is_ipv6(host)):
        raise BadRequest(f"address {text!r} is not HOST:PORT or [IPV6]:PORT; it has no http://")
    try:  # The resolver raises the same, or ValueError; a dialer bears OSError alone.
        is_name = b"\0" not in host.encode("idna")
    except UnicodeError:  # An empty label, or one of more than 63 bytes.
        is_name = False
    if not host or not is_name or not port.isdecimal() or not 0 < int(port) < 65536:
        raise BadRequest(f"address {text!r} is not HOST:PORT or [IPV6]:PORT")
    return host, int(port)


def _is_ipv6(host: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
    except (OSError, ValueError):
        return False
    return True


def _check_name(what: str, name: str) -> None:
    if not isinstance(name, str) or not 0 < len(name.encode(errors="replace")) <= NAME_BYTES_MAX:
        raise BadRequest(f"{what} must be a text of 1 to {NAME_BYTES_MAX} bytes")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        raise BadRequest(f"{what} must not have control characters or surrogates")
