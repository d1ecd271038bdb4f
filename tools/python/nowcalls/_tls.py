"""Tls: how a client makes sure of its server, and words for what fails.

Thread: that which dials.
"""

from __future__ import annotations

import os
import ssl
from typing import Any, List, Optional, Tuple, Union

from ._errors import BadRequest

ALPN = "nowcalls/1"
# Of the setting and the environment.
CERTIFICATE = "tls_certificate or NOWCALLS_TLS_CLIENT_CERT"
KEY = "tls_key or NOWCALLS_TLS_CLIENT_KEY"
_PARTIAL_CHAIN = getattr(ssl, "VERIFY_X509_PARTIAL_CHAIN", 0x80000)  # Of OpenSSL; Python 3.10.

Path = Union[str, "os.PathLike[str]"]
TlsSetting = Union[bool, Path, ssl.SSLContext, None]

# Reasons of OpenSSL that people meet.
_NO_TLS = (
    *("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "PACKET_LENGTH_TOO_LONG"),
    *("UNEXPECTED_MESSAGE", "BAD_LENGTH", "RECORD_LAYER_FAILURE"),
)
_ENDS = (
    *(ssl.SSLEOFError, ssl.SSLZeroReturnError),
    *(ConnectionResetError, ConnectionAbortedError, BrokenPipeError),
)
_OTHER_VERSIONS = "it speaks other versions of TLS; 1.2 and 1.3 are spoken here"
_REFUSED = "it refuses the client's certificate"
_WORDS = {
    "UNSUPPORTED_PROTOCOL": _OTHER_VERSIONS,
    "TLSV1_ALERT_PROTOCOL_VERSION": _OTHER_VERSIONS,
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": (
        "it asks for a client certificate, and none was shown; set tls_certificate and tls_key"
    ),
    "SSLV3_ALERT_HANDSHAKE_FAILURE": (
        "it refuses the handshake: no cipher suite in common, or it asks for a client certificate"
    ),
    "TLSV1_ALERT_UNKNOWN_CA": f"{_REFUSED}: it does not know the CA that signed it",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": f"{_REFUSED}: it has expired",
    "SSLV3_ALERT_BAD_CERTIFICATE": _REFUSED,
    "SSLV3_ALERT_CERTIFICATE_REVOKED": f"{_REFUSED}: it was revoked",
    "TLSV1_ALERT_ACCESS_DENIED": _REFUSED,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _REFUSED,
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": _REFUSED,
    "TLSV1_ALERT_NO_APPLICATION_PROTOCOL": (
        f"it asks for another application protocol (ALPN) than {ALPN}"
    ),
}


# Alerts about what the client shows. Before TLS 1.3 a server that misses a certificate says
# handshake_failure, which may mean anything.
_DENIALS = (
    *("TLSV13_ALERT_CERTIFICATE_REQUIRED", "TLSV1_ALERT_UNKNOWN_CA", "TLSV1_ALERT_ACCESS_DENIED"),
    *("SSLV3_ALERT_BAD_CERTIFICATE", "SSLV3_ALERT_CERTIFICATE_EXPIRED"),
    *("SSLV3_ALERT_CERTIFICATE_REVOKED", "SSLV3_ALERT_CERTIFICATE_UNKNOWN"),
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
)


class Tls:
    """ca: None for the system's. context: the program's own, used as it is."""

    def __init__(
        self,
        ca: Optional[Path] = None,
        certificate: Optional[Path] = None,
        key: Optional[Path] = None,
        server_name: Optional[str] = None,
        context: Optional[ssl.SSLContext] = None,
    ) -> None:
        self._ca, self._certificate, self._key = ca, certificate, key
        self._server_name = server_name
        self._own_context = context
        self._loaded: Optional[ssl.SSLContext] = None
        self._stamps: List[Any] = []
        self.context()

    def context(self) -> ssl.SSLContext:
        """For the next dial: files that have changed are read again. Raises BadRequest."""
        if self._own_context is not None:
            return self._own_context
        stamps = [_stamp(path) for path in (self._ca, self._certificate, self._key)]
        if self._loaded is None or stamps != self._stamps:
            self._loaded, self._stamps = self._load(), stamps
        return self._loaded

    def name_for(self, host: str) -> str:
        """What the certificate must have, for a host that is dialled."""
        name = self._server_name or host.partition("%")[0]  # fe80::1%eth0.
        return name[:-1] if name.endswith(".") else name

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # It checks certificate and name.
        context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.hostname_checks_common_name = False
        context.set_alpn_protocols([ALPN])
        if self._ca is None:
            context.load_default_certs()
        else:
            _load_ca(context, self._ca)
        if self._certificate is not None and self._key is not None:
            _load_pair(context, self._certificate, self._key)
        return context


def _load_ca(context: ssl.SSLContext, ca: Path) -> None:
    """A CA of the file is believed also if another one has signed it."""
    context.verify_flags |= _PARTIAL_CHAIN
    try:
        context.load_verify_locations(cafile=ca)
    except ssl.SSLError as error:
        raise BadRequest(f"tls: {ca} is no PEM file of certificates: {_reason(error)}") from None
    except OSError as error:
        raise BadRequest(f"tls: cannot read {ca}: {error.strerror}") from None


def _load_pair(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    def no_password() -> str:  # Else OpenSSL asks at the terminal.
        raise BadRequest(f"{KEY}: {key} has a passphrase; give a key without one")

    try:
        context.load_cert_chain(certificate, key, no_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise BadRequest(f"{KEY}: {key} is not the key of {certificate}") from None
        raise BadRequest(
            f"{CERTIFICATE}: {certificate} and {key} are no PEM files of a certificate and its "
            f"key: {_reason(error)}"
        ) from None
    except OSError as error:
        raise BadRequest(
            f"{CERTIFICATE}: cannot read {certificate} or {key}: {error.strerror}"
        ) from None


def _stamp(path: Optional[Path]) -> Optional[Tuple[int, ...]]:
    if path is None:
        return None
    try:
        info = os.stat(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadRequest(f"tls: cannot read {path}: {why}") from None
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def make_tls(
    tls: TlsSetting,
    certificate: Optional[Path],
    key: Optional[Path],
    server_name: Optional[str],
) -> Optional[Tls]:
    """From settings, and the environment where they say nothing. None: plain. Raises BadRequest."""
    settings = {"tls_certificate": certificate, "tls_key": key, "tls_server_name": server_name}
    given = [name for name, value in settings.items() if value is not None]
    if server_name is not None:
        _check_name(server_name)
    if isinstance(tls, ssl.SSLContext):
        return _with_context(tls, given, server_name)
    if tls is False:
        if given:
            raise BadRequest(f"{given[0]} is set, but tls is False")
        return None
    if tls is not None and tls is not True and not (isinstance(tls, (str, os.PathLike)) and tls):
        raise BadRequest(
            f"tls must be True, False, the path of a CA file or an ssl.SSLContext, not {tls!r}"
        )
    if tls is None and not given and not _environment_has_tls():
        return None
    ca = os.environ.get("NOWCALLS_TLS_CA") if tls is None or tls is True else tls
    certificate = certificate or os.environ.get("NOWCALLS_TLS_CLIENT_CERT")
    key = key or os.environ.get("NOWCALLS_TLS_CLIENT_KEY")
    if bool(certificate) != bool(key):
        one, other = (CERTIFICATE, KEY) if certificate else (KEY, CERTIFICATE)
        raise BadRequest(f"{one} is set without {other}; give both, or none")
    return Tls(ca or None, certificate or None, key or None, server_name)


def _with_context(tls: ssl.SSLContext, given: List[str], server_name: Optional[str]) -> Tls:
    for name in given:
        if name != "tls_server_name":
            raise BadRequest(f"tls is a context, so it must have what {name} says itself")
    if tls.protocol == ssl.PROTOCOL_TLS_SERVER:
        raise BadRequest("tls is a server's context; make one with ssl.create_default_context()")
    return Tls(server_name=server_name, context=tls)


def _environment_has_tls() -> bool:
    says = os.environ.get("NOWCALLS_TLS", "")
    if says not in ("", "on", "off"):
        raise BadRequest(f"NOWCALLS_TLS: {says!r} is neither on nor off")
    files = ("NOWCALLS_TLS_CA", "NOWCALLS_TLS_CLIENT_CERT", "NOWCALLS_TLS_CLIENT_KEY")
    return says == "on" or (not says and any(map(os.environ.get, files)))


def _check_name(name: object) -> None:
    try:
        right = isinstance(name, str) and name.strip(".") and b"\0" not in name.encode("idna")
    except UnicodeError:
        right = False
    if not right or str(name).startswith("."):
        raise BadRequest(f"tls_server_name must be a host's name or address, not {name!r:.300}")


def denies(error: Optional[BaseException]) -> bool:
    """Whether the server does not let the client's certificate in, or asks for one."""
    return isinstance(error, ssl.SSLError) and error.reason in _DENIALS


def why(error: BaseException, shaking: bool = False) -> str:
    """What ended a connection. shaking: or its dial, which speaks TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not believed: {error.verify_message.rstrip('.')}"
    if shaking and isinstance(error, _ENDS):
        return "the server closed the connection in the TLS handshake; does it speak TLS?"
    if isinstance(error, _ENDS[:2]):
        return "the server closed the connection"
    if isinstance(error, ssl.SSLError):
        if shaking and error.reason in _NO_TLS:
            return "it does not speak TLS"
        return _WORDS.get(error.reason or "") or f"TLS failed: {_reason(error)}"
    timed_out = "it timed out; does it speak TLS?" if shaking else "timed out"
    return getattr(error, "strerror", None) or str(error) or timed_out


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).lower().replace("_", " ")
