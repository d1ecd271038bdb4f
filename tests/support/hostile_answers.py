"""What a broken or hostile server may answer: one list, for all clients and tools.

    for case in cases(methods={"hello", "acquire"}):
        with HostileServer(case) as server:
            ...  # A client at server.address: ends in time, in bounded memory, and says why.

A case answers one method wrong, or any (`method` is empty then), and all others as a server does.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import socket
import threading
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import msgpack

# What a terminal obeys (an OSC that sets the clipboard, a CSI of C1, BEL, a line's end), what
# reorders, what nobody sees, and bytes that are no UTF-8.
NASTY = "x\x1b]52;c;aGk=\x07\x1b[31m\x9b2J\r\n\x00\x7f\u202e\u2066\u2028\ufeff\u2800\udcff\udc9by"
HUGE = 2**64 - 1


def pack(value: Any) -> bytes:
    return bytes(msgpack.packb(value, unicode_errors="surrogateescape"))


class Peer:
    """The server's side of one connection. Methods raise OSError when the client is gone."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.requests = 0

    def send(self, data: bytes) -> None:
        self._sock.sendall(data)

    def reply(self, msgid: int, result: Any, error: Any = None) -> None:
        self.send(pack([1, msgid, error, result]))

    def close(self) -> None:
        self._sock.shutdown(socket.SHUT_RDWR)


Answer = Callable[[Peer, int, str, List[Any]], None]


class Case(NamedTuple):
    name: str
    answer: Answer
    method: str = ""  # The one that is answered wrong; empty: any.
    greeting: bytes = b""  # Sent before any request.


# Honest answers.

_token_ids = itertools.count(2**62)
_terms = itertools.count(4)

TERMS = [1, 2000, 2000]
COUNTERS = {
    **{"granted": 1, "refused": {"level": 1}, "queued": 1, "longest_wait_ms": 1, "kept": 1},
    "ended": {"released": 1},
    "held_ms": {"p50": 1, "p90": 1, "p99": 1, "longest": 1, "sum": 1, "count": 1, "upto": [1, 1]},
}
FLOW = {
    **{"flow_id": 1001, "kind": "flow", "namespace": "shop", "resource": "db", "removed": True},
    **{"draining": False, "level": 10, "now_calls": 1, "tokens": 1, "waiters": 1, "sessions": 1},
    **{"waiting_since_ms": 5, "oldest_issued_ms": 5, "counters": COUNTERS},
    "rate": {"in_window": 1, "limit": 10, "window_ms": 1000, "passed": 1, "blocked": 0},
}
WHOSE = {"flow_id": 1001, "namespace": "shop", "client_id": "worker-1", "count": 1, "param": "key"}
TOKEN = {
    **{**WHOSE, "token_id": 2**61, "session": 1, "fence": 1, "issued_ms": 5, "deadline_ms": 9000},
    **{"online": True, "instance": 7},
}
WAITER = {**WHOSE, "prioritized": False, "place": 1, "since_ms": 5, "deadline_ms": 9000}
HISTORY = {
    **{**WHOSE, "sequence": 1, "ended_ms": 9, "reason": "admin", "token_id": 5, "session": 1},
    **{"fence": 1, "issued_ms": 5, "held_ms": 4, "note": "by hand", "instance": 7},
}
SESSION = {
    **{"session": 1, "namespace": "shop", "client_id": "worker-1", "kind": "named", "online": True},
    **{"connections": 1, "tokens": 1, "now_calls": 1, "opened_ms": 5, "waiters": 0, "instance": 7},
    "addresses": ["127.0.0.1:5"],
}
PARAM = {"param": "key", "now_calls": 1, "tokens": 1, "level": 2, "waiters": 0, "passed": 1}
MEMBER = {
    **{"member": "0a", "address": "127.0.0.1:1", "version": "0.1.0", "leads": True},
    **{"applied": 9, "synced": 8, "lag": 0, "silent_ms": 0},
}
NAMESPACE = {"namespace": "shop", "source": "rpc", "rules": 1, "skipped": 0, "ignored": 0}
RULE = {
    **{"namespace": "shop", "kind": "flow", "resource": "db", "grade": 0, "count": 10.0},
    "clusterMode": True,
    "clusterConfig": {
        **{"flowId": 1001, "thresholdType": 1, "resourceTimeout": 2000, "clientOfflineTime": 2000},
        **{"resourceTimeoutStrategy": 0, "acquireRefuseStrategy": 0, "windowIntervalMs": 1000},
        "fallbackToLocalWhenFail": True,
    },
}
INFO = {
    **{"version": "0.1.0", "ledger": {"durability": "sync", "ledger_ms": 9}},
    **{"settings": {"resource_timeout_factor": 2.5}, "counts": {"oldest_issued_ms": 5}},
}
ROWS = {
    **{"flows": FLOW, "tokens": TOKEN, "sessions": SESSION, "history": HISTORY, "params": PARAM},
    **{"waiters": WAITER, "namespaces": NAMESPACE, "rules_list": RULE},
}


def honest(method: str, params: List[Any]) -> Any:
    """What a server answers. Each token is another, and so is each writer of a cluster."""
    if method in ROWS:
        return [[ROWS[method]], None]
    if method == "acquire":
        return [0, next(_token_ids), 13, 1, 10, 4000, None, None, TERMS]
    if method == "acquire_all":
        items = params[0] if params else [[1001, 1]]
        rates = [len(item) > 3 and item[3] == 1 for item in items]
        tokens = [[0, 0, 0] if r else [next(_token_ids), 13, 4000, TERMS] for r in rates]
        return [0, tokens, None, 0, 0, 0]
    if method == "cluster":
        term = next(_terms)
        return ["c1", "p", term, f"m{term}:1", 9, 5, 6, [MEMBER]]
    return {
        **{"hello": ["0.1.0", 12, 1, 1], "ping": [1000], "flow": FLOW, "info": INFO},
        **{"rules_load": [1], "identify": ["checkout", "client", "secret", ["shop"]]},
        **{"keep": [0, 4000, TERMS], "release": [6], "cancel": [6], "reclaim": [6]},
        **{"request": [0, 5, 0, None], "request_param": [0, 5, 0, None], "purge": [1, False]},
        **{"reclaim_client": [1, False], "reclaim_flow": [1, False], "drain": [0, 1, 1]},
        **{"reclaim_namespace": [1, None], "drain_namespace": [0, 1, 1, 1, None]},
        **{"backup": [1, 1, 1, 1, 1, 1, 1, 1], "handover": [3]},
    }.get(method, [])


METHODS = [
    *("hello", "ping", "acquire", "acquire_all", "keep", "release", "cancel", "request"),
    *("request_param", "info", "flow", *ROWS, "rules_load", "reclaim", "reclaim_client"),
    *("reclaim_flow", "reclaim_namespace", "drain", "drain_namespace", "purge", "backup"),
    *("cluster", "handover"),
]


def answer_honestly(peer: Peer, msgid: int, method: str, params: List[Any]) -> None:
    peer.reply(msgid, honest(method, params))


# Wrong fields: each field of each answer, with each of these in its place.

WRONG: Dict[str, Any] = {
    **{"nil": None, "true": True, "-1": -1, "2^63": 2**63, "2^64-1": HUGE, "-2^63": -(2**63)},
    **{"0.5": 0.5, "1e308": 1e308, "NaN": math.nan, "infinity": math.inf, "-infinity": -math.inf},
    **{"a text": "text", "a nasty text": NASTY, "bytes": b"\xff\x00"},
    **{"an ext": msgpack.ExtType(5, b"x"), "[]": [], "nested arrays": [[[[[[]]]]]]},
    **{"1024 nils": [None] * 1024, "{}": {}, "{1: nil}": {1: None}},
    "1 MB of text": "x" * 1_000_000,
}
Path = Tuple[Any, ...]


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    inner = enumerate(value) if isinstance(value, list) else ()
    for key, element in value.items() if isinstance(value, dict) else inner:
        yield from paths(element, (*path, key))


def replaced(value: Any, path: Path, wrong: Any) -> Any:
    if not path:
        return wrong
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], wrong)
    return copy


def each_text(value: Any, text: str) -> Any:
    """`value` with `text` for each text in it but the words that say a row's kind."""
    if isinstance(value, dict):
        return {k: v if k == "kind" else each_text(v, text) for k, v in value.items()}
    if isinstance(value, list):
        return [each_text(element, text) for element in value]
    return text if isinstance(value, str) else value


def on(method: str, wrong: Answer) -> Answer:
    """Answers this method wrong, the others as a server does."""

    def answer(peer: Peer, msgid: int, asked: str, params: List[Any]) -> None:
        (wrong if asked == method else answer_honestly)(peer, msgid, asked, params)

    return answer


def result(make: Callable[[Any], Any]) -> Answer:
    """Answers with what `make` makes of the honest result."""
    return lambda peer, msgid, method, params: peer.reply(msgid, make(honest(method, params)))


def wrong_fields(method: str) -> Iterator[Case]:
    for path in paths(honest(method, [])):
        where = ".".join(map(str, path)) or "the result"
        for name, wrong in WRONG.items():
            # Both of this round of the loops, not of the last.
            answer = result(lambda right, at=path, put=wrong: replaced(right, at, put))
            yield Case(f"{method}: {where} is {name}", on(method, answer), method)


# Wrong answers to one method.

ERRORS = [
    *("MALFORMED", "UNKNOWN_METHOD", "BAD_PARAMS", "HELLO_STATE", "OVERLOADED", "UNSUPPORTED"),
    *("CONFLICT", "INTERNAL"),
]


def _failure(error: Any) -> Answer:
    return lambda peer, msgid, method, params: peer.reply(msgid, None, error)


def wrong_errors(method: str) -> Iterator[Case]:
    texts = {"": "no", "nasty ": NASTY, "endless ": "word " * 200_000}
    errors: Dict[str, Any] = {
        f"{kind}{code} {name}": [code, name, text]
        for kind, text in texts.items()
        for code, name in enumerate(ERRORS, 1)
    }
    errors.update({f"error with {name} for {name}": wrong for name, wrong in WRONG.items()})
    errors["error [9, nasty, nasty]"] = [9, NASTY, NASTY]
    for name, error in errors.items():
        yield Case(f"{method}: {name}", on(method, _failure(error)), method)


def _grant(*token_ids: int) -> Answer:
    given = itertools.cycle(token_ids)

    def make(right: Any) -> Any:
        if isinstance(right[1], list):
            return [0, [[next(given), 13, 4000, TERMS] for _ in right[1]], *right[2:]]
        return [0, next(given), *right[2:]]

    return result(make)


def _tokens(make: Callable[[List[Any]], List[Any]]) -> Answer:
    return result(lambda right: [0, make(right[1]), *right[2:]])


def _page(make: Callable[[int, Any], Any]) -> Answer:
    """Pages without end. make(cursor, row)"""

    def answer(peer: Peer, msgid: int, method: str, params: List[Any]) -> None:
        cursor = params[-1] if params and isinstance(params[-1], int) else 0
        peer.reply(msgid, make(cursor, ROWS[method]))

    return answer


def wrong_answers(method: str) -> Iterator[Case]:
    yield from wrong_fields(method)
    yield from wrong_errors(method)
    answers: Dict[str, Answer] = {
        "each text is nasty": result(lambda right: each_text(right, NASTY)),
        "each text is long": result(lambda right: each_text(right, "x" * 100_000)),
    }
    if method in ("acquire", "acquire_all"):
        answers.update(
            {f"a token whose id is {number}": _grant(number) for number in (0, 2**63, HUGE, -1)}
        )
        answers["one token id for all"] = _grant(77)
        answers["status OK without a token"] = result(lambda right: [0])
        for status in (-1, 1, 2, 3, 4, 5, 6, 99):
            answers[f"status {status}"] = result(lambda right, s=status: [s, *right[1:]])
    if method == "acquire_all":
        answers["a token too few"] = _tokens(lambda tokens: tokens[:-1])
        answers["a token too many"] = _tokens(lambda tokens: [*tokens, [99, 13, 4000, TERMS]])
        answers["1000 tokens"] = _tokens(lambda tokens: [[n, n, n] for n in range(1, 1001)])
    if method in ("request", "request_param"):
        answers["wait for ever"] = result(lambda right: [2, 0, HUGE, None])
    if method in ROWS:
        answers["pages without end, the cursor stays"] = _page(lambda cursor, row: [[row], 7])
        answers["pages without end, the cursor falls"] = _page(
            lambda cursor, row: [[row], (cursor or HUGE) - 1]
        )
        answers["empty pages without end"] = _page(lambda cursor, row: [[], cursor + 1])
        answers["full pages without end"] = _page(lambda cursor, row: [[row] * 100, cursor + 1])
        answers["1024 rows of {}"] = result(lambda right: [[{}] * 1024, None])
        answers["more rows than a page has"] = result(lambda right: [right[0] * 3000, None])
    if method == "info":
        keys = {f"{NASTY}{n}": NASTY for n in range(3)}
        answers["nasty keys"] = result(lambda right: {**right, **keys, "counts": keys})
        maps = {str(n): {str(i): i for i in range(1000)} for n in range(100)}
        answers["100 maps of 1000"] = result(lambda right: {**right, **maps})
    if method in ("reclaim_client", "reclaim_flow", "purge"):
        answers["more without end"] = result(lambda right: [1, True])
        answers["nothing and more without end"] = result(lambda right: [0, True])
        answers["all there are and more"] = result(lambda right: [HUGE, True])
    if method in ("reclaim_namespace", "drain_namespace"):
        answers["the cursor stays"] = result(lambda right: [*right[:-1], 7])
        answers["the cursor falls"] = lambda peer, msgid, asked, params: peer.reply(
            msgid, [*honest(asked, params)[:-1], max(1, (params[-1] or 2**40) - 1)]
        )
    if method in ("info", "rules_list"):
        nils = [[None] * 1000] * 1000
        answers["a million nils"] = result(lambda right: nils)
        answers["a million empty arrays"] = result(lambda right: [[[]] * 1000] * 1000)
        answers["a million empty maps"] = result(lambda right: [[{}] * 1000] * 1000)
    if method in ("flow", "flows"):
        row = b"\xde\x03\xe8" + 1000 * (pack("by_value") + pack({}))
        page = b"\x92\xdc\x01\x2c" + 300 * row + b"\xc0"
        again = row if method == "flow" else page
        answers["one key again and again"] = lambda peer, msgid, *_: peer.send(
            b"\x94\x01" + pack(msgid) + b"\xc0" + again
        )
    if method == "rules_list":
        for count in (math.inf, math.nan, -1.0, 1e308, HUGE, -(2**63)):
            config = {**RULE["clusterConfig"], "windowIntervalMs": count, "resourceTimeout": count}
            items = [{"object": "key", "classType": "String", "count": count}] * 1000
            rule = {**RULE, "count": count, "clusterConfig": config, "paramFlowItemList": items}
            answers[f"a rule with {count}"] = result(lambda right, r=rule: [[r], None])
        answers["a rule within a rule"] = result(
            lambda right: [[{**RULE, "clusterConfig": {"clusterConfig": RULE}}], None]
        )
    for name, answer in answers.items():
        yield Case(f"{method}: {name}", on(method, answer), method)


# Wrong streams of bytes, whatever was asked.

# Of each the first bytes of a response, so that a client looks further.
_HEAD = b"\x94\x01\x01\xc0"
STREAMS: Dict[str, bytes] = {
    "a str of 4 GiB": _HEAD + b"\xdb\xff\xff\xff\xff",
    "a bin of 4 GiB": _HEAD + b"\xc6\xff\xff\xff\xff",
    "an array of 4 G elements": _HEAD + b"\xdd\xff\xff\xff\xff",
    "a map of 4 G pairs": _HEAD + b"\xdf\xff\xff\xff\xff",
    "an ext of 4 GiB": _HEAD + b"\xc9\xff\xff\xff\xff\x01",
    "arrays of 4 G within each other": _HEAD + b"\xdd\xff\xff\xff\xff" * 1000,
    "maps within each other": _HEAD + b"\x81" * 100_000,
    "arrays within each other": _HEAD + b"\x91" * 8_000_000,
    "8 million empty arrays": _HEAD + b"\xdc\xff\xff" + b"\x90" * 8_000_000,
    "an error that nests": b"\x94\x01\x01" + b"\x91" * 1_000_000,
    "the byte that is none": _HEAD + b"\xc1",
    "a message of one element": b"\x91\x01",
    "a message of 15 elements": b"\x9f" + b"\x01" * 15,
    "a request": pack([0, 1, "ping", []]),
    "a map": pack({"a": 1}),
    "a response of type 7": pack([7, 1, None, []]),
    "HTTP": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "a TLS alert": b"\x15\x03\x01\x00\x02\x02\x46",
    "an SSH banner": b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n",
    "an SMTP banner": b"220 mail.example.com ESMTP\r\n",
    "a Redis error": b"-ERR unknown command\r\n",
    "a nasty banner": NASTY.encode("utf-8", "surrogateescape") * 100,
    "zeros": b"\x00" * 100_000,
}


def _notice(token_id: Any = 5, flow_id: Any = 1001, reason: Any = "admin") -> bytes:
    return pack([2, "lost", [token_id, flow_id, reason]])


NOTICES: Dict[str, bytes] = {
    "lost of nobody's tokens": b"".join(_notice(n) for n in range(1, 1000)),
    "lost with 1 MB of reason": _notice(reason="x" * 1_000_000),
    "nasty methods": pack([2, NASTY, [NASTY]]) * 100,
    "notifications of 1 MB": pack([2, "later", ["x" * 1_000_000]]),
}


def _wrong_notices() -> Iterator[bytes]:
    for wrong in WRONG.values():
        yield _notice(token_id=wrong)
        yield _notice(flow_id=wrong)
        yield _notice(reason=wrong)
        yield pack([2, "lost", wrong])
        yield pack([2, wrong, []])


Wrong = Callable[[Peer, int], None]


def _stage(name: str, after: int, wrong: Wrong) -> Case:
    """Answers so many requests of a connection as a server does, then wrong."""

    def answer(peer: Peer, msgid: int, method: str, params: List[Any]) -> None:
        peer.requests += 1
        if peer.requests <= after:
            answer_honestly(peer, msgid, method, params)
        else:
            wrong(peer, msgid)

    return Case(f"{name} after {after} answers", answer)


def _sent(data: bytes) -> Wrong:
    return lambda peer, _: peer.send(data)


def _sent_and_closed(data: bytes) -> Wrong:
    def wrong(peer: Peer, _: int) -> None:
        peer.send(data)
        peer.close()

    return wrong


def _endless(begin: bytes, rest: bytes) -> Wrong:
    def wrong(peer: Peer, _: int) -> None:
        peer.send(begin)
        while True:
            peer.send(rest)

    return wrong


def _half(peer: Peer, msgid: int) -> None:
    peer.send(pack([1, msgid, None, []])[:3])
    peer.close()


def _twice(peer: Peer, msgid: int, method: str, params: List[Any]) -> None:
    right = pack([1, msgid, None, honest(method, params)])
    peer.send(right + right)


def _byte_by_byte(peer: Peer, msgid: int, method: str, params: List[Any]) -> None:
    for byte in pack([1, msgid, None, honest(method, params)]):
        peer.send(bytes([byte]))


def _wrong_moments() -> Dict[str, Wrong]:
    """What happens at a stage, by name."""
    wrong: Dict[str, Wrong] = {
        "a str without end": _endless(STREAMS["a str of 4 GiB"], b"x" * 65536),
        "nils without end": _endless(_HEAD + b"\xdd\x7f\xff\xff\xff", b"\xc0" * 65536),
        "answers to nobody for ever": _endless(b"", pack([1, 4_000_000, None, []])),
        "half an answer and the end": _half,
        "the end": lambda peer, _: peer.close(),
        "no answer": lambda peer, _: None,
    }
    for name, data in STREAMS.items():
        wrong[f"{name}, and silence,"] = _sent(data)
        wrong[f"{name} and the end"] = _sent_and_closed(data)
        wrong[f"{name} for ever"] = _endless(b"", data)
    for name, data in NOTICES.items():
        wrong[f"{name} for ever"] = _endless(b"", data)
    for number, data in enumerate(_wrong_notices()):
        wrong[f"wrong notification {number}"] = _sent(data)
    for msgid in (0, 2**32 - 1, -1, HUGE, "x", None):
        wrong[f"an answer to msgid {msgid}"] = _sent(pack([1, msgid, None, []]))
    return wrong


def wrong_streams() -> Iterator[Case]:
    # From the first answer on; behind that of hello; behind that of the first call.
    for after in (0, 1, 2):
        for name, wrong in _wrong_moments().items():
            yield _stage(name, after, wrong)
    for name, data in STREAMS.items():
        yield Case(f"{name} before it is asked", lambda *_: None, greeting=data)
    yield Case("each answer comes twice", _twice)
    yield Case("answers come byte by byte", _byte_by_byte)


def cases(methods: Optional[Set[str]] = None, streams: bool = True) -> Iterator[Case]:
    """The cases of these methods, or of all; and those of any method."""
    if streams:
        yield from wrong_streams()
    for method in METHODS:
        if methods is None or method in methods:
            yield from wrong_answers(method)


HONEST = Case("none", answer_honestly)


class BlackHole:
    """A port that swallows connections, as a firewall does: its queue is full."""

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(0)
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self._waiting: List[socket.socket] = []
        full = False
        while not full:
            self._waiting.append(socket.socket())
            self._waiting[-1].settimeout(0.2)
            try:
                self._waiting[-1].connect(self._listener.getsockname())
            except socket.timeout:
                full = True

    def __enter__(self) -> BlackHole:
        return self

    def __exit__(self, *_: Any) -> None:
        for sock in [*self._waiting, self._listener]:
            sock.close()


class HostileServer:
    """Plays a case on each connection of a free port."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self._socks: List[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> HostileServer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for sock in self._socks:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._socks.append(sock)
            self._threads.append(threading.Thread(target=self._serve, args=(sock,), daemon=True))
            self._threads[-1].start()

    def _serve(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer = Peer(sock)
            peer.send(self._case.greeting)
            unpacker = msgpack.Unpacker(strict_map_key=False)
            while data := sock.recv(65536):
                unpacker.feed(data)
                for _, msgid, method, params in unpacker:
                    self._case.answer(peer, msgid, method, params)
