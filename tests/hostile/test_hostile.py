"""The tools and the C++ library against servers that answer wrong: support/hostile_answers.py.

Each run ends long before it is killed, in bounded memory, not by a signal, and shows nothing that a
terminal obeys. A sample of the cases is tried; `tools/dev test --whole` tries all.
"""

from __future__ import annotations

import concurrent.futures
import os
import pty
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from typing import Any, List, NamedTuple, Optional

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))

import hostile_answers  # noqa: E402
from hostile_answers import HONEST, BlackHole, Case, HostileServer  # noqa: E402

BIN_DIR = os.environ["NOWCALLS_BIN_DIR"]
WHOLE = os.environ.get("NOWCALLS_TEST_WHOLE", "0") != "0"
SEED = int(os.environ.get("NOWCALLS_TEST_SEED", random.randrange(2**31)))
PATIENCE_S = 60.0
# The most that a tool took is 150 MB: the values of a message of 4 MiB. Sanitizers take more.
MEMORY_MAX_KB = int(os.environ.get("NOWCALLS_TEST_MEMORY_MAX_MB", 300)) * 1024
# A listing of tokens has no bound, and is cut off here. A child's peak counts what we have, too.
OUTPUT_BYTES_MAX = 4 * 1024 * 1024

# C0 but the end of a line, DEL and C1; what reorders; what nobody sees. A sample of the last.
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff\u2800]")


class Ended(NamedTuple):
    code: int
    out: str
    err: str
    memory_kb: int
    late: bool


def run(argv: List[str], terminal: bool = False) -> Ended:
    """Runs to its end, with stdout on a terminal if told so."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        ours, theirs = pty.openpty() if terminal else (-1, -1)
        child = subprocess.Popen(
            ["prlimit", f"--fsize={OUTPUT_BYTES_MAX}", *argv],
            stdin=subprocess.DEVNULL,
            stdout=theirs if terminal else out,
            stderr=err,
            env={**os.environ, "NOWCALLS_CLIENT_ID": "me"},
        )
        shown = b""
        late: List[bool] = []
        watch = threading.Timer(PATIENCE_S, lambda: (late.append(True), child.kill()))
        watch.start()
        if terminal:
            os.close(theirs)
            shown = _read_terminal(ours)
        _, status, usage = os.wait4(child.pid, 0)
        watch.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        if not terminal:
            out.seek(0)
            shown = out.read()
        err.seek(0)
        texts = [data.decode("utf-8", "surrogateescape") for data in (shown, err.read())]
        return Ended(child.returncode, *texts, usage.ru_maxrss, bool(late))


def _read_terminal(fd: int) -> bytes:
    shown = bytearray()
    try:
        while len(shown) < OUTPUT_BYTES_MAX and (data := os.read(fd, 65536)):
            shown += data
    except OSError:  # The last program that had it has ended.
        pass
    os.close(fd)
    return bytes(shown).replace(b"\r\n", b"\n")


def wrong_with(ended: Ended) -> Optional[str]:
    if ended.late:
        return "it did not end"
    is_cut_off = ended.code == -signal.SIGXFSZ
    if ended.code < 0 and not is_cut_off:
        return f"it ended by signal {-ended.code}: {ended.err[-500:]}"
    if ended.memory_kb > MEMORY_MAX_KB:
        return f"it took {ended.memory_kb // 1024} MB"
    for text in (ended.out, ended.err):
        raw = RAW.search(text)
        if raw:
            return f"it shows {raw.group()!r} in {text[max(0, raw.start() - 60):raw.end() + 20]!r}"
        if re.search("[\udc80-\udcff]", text) and not is_cut_off:
            return "it shows bytes that are no UTF-8"
    if ended.code != 0 and not ended.err and not ended.out:
        return f"exit code {ended.code} without a word"
    if len(ended.err) > 100_000:
        return f"{len(ended.err)} characters of errors"
    return None


def run_against(case: Case, argv: List[str], terminal: bool = False) -> Ended:
    with HostileServer(case) as server:
        return run([word.replace("ADDRESS", server.address) for word in argv], terminal)


class HostileTest(unittest.TestCase):
    def try_all(self, argv: List[str], cases: List[Case], terminal: bool = False) -> None:
        # Else the cases would try nothing.
        patient = [{"300ms": "30s", "300": "30000"}.get(word, word) for word in argv]
        honest = run_against(HONEST, patient, terminal)
        self.assertEqual((honest.code in (0, 1), honest.err), (True, ""))

        def one(case: Case) -> Optional[str]:
            wrong = wrong_with(run_against(case, argv, terminal))
            return wrong and f"{case.name}: {wrong}"

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            failed = [wrong for wrong in pool.map(one, cases) if wrong]
        if failed:
            command = " ".join(argv).replace(BIN_DIR + "/", "")
            self.fail(
                f"{command}: {len(failed)} of {len(cases)} cases, NOWCALLS_TEST_SEED={SEED}:\n  "
                + "\n  ".join(failed[:20])
            )


def sample(cases: List[Case], usual: int) -> List[Case]:
    if WHOLE or len(cases) <= usual:
        return cases
    return random.Random(SEED).sample(cases, usual)


RULES = os.path.join(os.path.dirname(__file__), "..", "..", "data", "rules", "shop.json")
SHOP = ["--namespace", "shop"]
RECLAIM = ["reclaim", "--reason", "x", "--yes"]
COMMAND = {
    "exec": ("hello acquire rules_list release", ["exec", "--flow", "1001", "--", "true"]),
    "exec of two": ("hello acquire_all", ["exec", "--flow=1001", "--flow=1002", "--", "true"]),
    "acquire": ("hello acquire rules_list", ["acquire", "--flow", "1001"]),
    "keep": ("hello keep", ["keep", "77"]),
    "release": ("hello release", ["release", "77"]),
    "flow": ("flow", ["flow", "1001"]),
    "top": ("ping flow flows", ["top", "--once"]),
    "top 1001": ("ping flow flows tokens waiters", ["top", "1001", "--once"]),
    "ping": ("ping", ["ping", "--count", "2", "--interval", "10ms"]),
}
ADMIN = {
    "stat": ("flows", ["stat"]),
    "flow": ("flow", ["flow", "1001"]),
    "params": ("flow params", ["params", "--flow", "1001"]),
    "tokens": ("tokens", ["tokens", "--limit", "100000"]),
    "dump": ("tokens", ["dump"]),
    "waiters": ("waiters", ["waiters"]),
    "sessions": ("sessions", ["sessions"]),
    "history": ("history", ["history"]),
    "info": ("info", ["info"]),
    "ping": ("ping", ["ping"]),
    "rules list": ("rules_list", ["rules", "list"]),
    "rules sources": ("namespaces", ["rules", "sources"]),
    "cluster": ("cluster", ["cluster"]),
}


ACTIONS = {
    "rules diff": ("rules_list", ["rules", "diff", RULES, "--namespace", "shop"]),
    "rules load": ("rules_list rules_load", ["rules", "load", RULES, "--namespace", "shop"]),
    "reclaim": ("reclaim tokens", ["reclaim", "9007199254740994", "--reason", "x"]),
    "reclaim client": ("sessions reclaim_client", [*RECLAIM, "--client=worker-1", *SHOP]),
    "reclaim flow": ("flow reclaim_flow", [*RECLAIM, "--flow", "1001"]),
    "reclaim namespace": ("flows reclaim_namespace", [*RECLAIM, *SHOP]),
    "purge": ("flow purge", ["purge", "--flow", "1001", "--yes"]),
    "drain": ("drain", ["drain", "--flow", "1001"]),
    "drain namespace": ("drain_namespace", ["drain", *SHOP]),
    "backup": ("backup", ["backup", "--to", "/backup"]),
    "handover": ("cluster handover", ["cluster", "handover"]),
}
BENCH = {
    "load": ("info rules_load acquire release", []),
    "rates": ("info rules_load request", ["--operation", "request"]),
    "fill": ("info rules_load acquire", ["fill", "--tokens", "10"]),
}


def _add(
    cls: Any, name: str, argv: List[str], methods: str, terminal: bool = False, usual: int = 15
) -> None:
    def test(self: HostileTest) -> None:
        cases = sample(list(hostile_answers.wrong_streams()), usual)
        for method in methods.split():
            cases += sample(list(hostile_answers.wrong_answers(method)), usual)
        self.try_all(argv, cases, terminal)

    test.__name__ = "test_" + re.sub(r"\W+", "_", name)
    setattr(cls, test.__name__, test)


class Command(HostileTest):
    """`nowcalls` ends in time, in bounded memory, and shows nothing that a terminal obeys."""


class Admin(HostileTest):
    """So do the listings of `nowcalls-admin`, in each format."""


class Actions(HostileTest):
    """So does what `nowcalls-admin` changes."""


class Bench(HostileTest):
    """So does `nowcalls-bench`."""

    def test_a_fill_that_is_not_answered_any_more_ends_and_says_so(self) -> None:
        streams = hostile_answers.wrong_streams()
        silent = next(case for case in streams if case.name == "no answer after 2 answers")
        bench = os.path.join(BIN_DIR, "nowcalls-bench")
        ended = run_against(silent, [bench, "fill", "--tokens=10", "--target=nowcalls://ADDRESS"])
        self.assertEqual(ended.code, 69, ended)
        self.assertRegex(ended.err, "no answer for 10 s, and [0-9]+ requests without one")


class Library(HostileTest):
    """So does a program with the C++ library, and what that says of a server is as clean."""


class Addresses(unittest.TestCase):
    """Several addresses, wrong ones, and ports of other services."""

    def test_a_dead_first_address_leaves_the_next_its_time(self) -> None:
        with BlackHole() as dead, HostileServer(HONEST) as good:
            for words in (["ping", "--count", "1"], ["acquire", "--flow=1"], ["top", "--once"]):
                server = f"{dead.address},{dead.address},{good.address}"
                words += ["--server", server, "--timeout", "2s"]
                ended = run([os.path.join(BIN_DIR, "nowcalls"), *words])
                self.assertEqual(ended.code, 0, ended)

    def test_a_port_that_speaks_http_is_told_with_the_port_that_is_meant(self) -> None:
        http = hostile_answers.STREAMS["HTTP"]
        case = Case("HTTP", lambda peer, *_: peer.send(http))
        for argv in (
            ["nowcalls", "ping"],
            ["nowcalls", "acquire", "--flow=1"],
            ["nowcalls", "exec", "--flow=1", "--fallback=fail", "--", "true"],
            ["nowcalls-admin", "ping"],
        ):
            with HostileServer(case) as other:
                end = argv.index("--") if "--" in argv else len(argv)
                timeout = "3s" if argv[0] == "nowcalls" else "3000"  # The answer comes at once.
                options = ["--server", other.address, "--timeout", timeout]
                path = os.path.join(BIN_DIR, argv[0])
                ended = run([path, *argv[1:end], *options, *argv[end:]])
            self.assertIn(ended.code, (69, 122), ended)
            self.assertIn("it speaks HTTP; the token port of a nowcalls-server", ended.err)

    def test_a_port_that_never_speaks_is_told_so(self) -> None:
        with HostileServer(Case("silence", lambda *_: None)) as other:
            options = ["--server", other.address, "--timeout", "300ms"]
            ended = run([os.path.join(BIN_DIR, "nowcalls"), "acquire", "--flow=1", *options])
        self.assertEqual(ended.code, 69, ended)
        self.assertIn("is that a nowcalls-server? the token port", ended.err)

    def test_a_url_is_no_address(self) -> None:
        for program, words in (
            ("nowcalls", ["ping", "--server", "http://x:1"]),
            ("nowcalls-admin", ["ping", "--server", "http://x:1"]),
            ("nowcalls-bench", ["--target", "http://x:1"]),
        ):
            ended = run([os.path.join(BIN_DIR, program), *words])
            self.assertEqual(ended.code, 64, ended)
            self.assertIn("http://x:1", ended.err)


for _name, (_methods, _words) in COMMAND.items():
    _end = _words.index("--") if "--" in _words else len(_words)
    _argv = [*_words[:_end], "--server", "ADDRESS", "--timeout", "300ms", *_words[_end:]]
    _add(Command, _name, [os.path.join(BIN_DIR, "nowcalls"), *_argv], _methods)
for _name, (_methods, _words) in ADMIN.items():
    _argv = [os.path.join(BIN_DIR, "nowcalls-admin"), *_words]
    _argv += ["--server", "ADDRESS", "--timeout", "300"]
    _add(Admin, _name, _argv, _methods)
    if _name != "ping":
        _add(Admin, _name + " table", [*_argv, "--format", "table"], _methods)
        _add(Admin, _name + " csv", [*_argv, "--format", "csv"], _methods, terminal=True)
for _name, (_methods, _words) in ACTIONS.items():
    _argv = [os.path.join(BIN_DIR, "nowcalls-admin"), *_words]
    _add(Actions, _name, [*_argv, "--server", "ADDRESS", "--timeout", "300"], _methods)
for _name, (_methods, _words) in BENCH.items():
    _argv = [os.path.join(BIN_DIR, "nowcalls-bench"), *_words, "--target", "nowcalls://ADDRESS"]
    _argv += ["--connections", "2"]
    _argv += [] if "fill" in _words else ["--duration", "1", "--warm-up", "0"]
    _add(Bench, _name, _argv, _methods, usual=10)
_methods = "hello acquire acquire_all keep release cancel request request_param rules_list"
_add(Library, "every call", [os.environ["NOWCALLS_HOSTILE_LIBRARY"], "ADDRESS"], _methods)


if __name__ == "__main__":
    unittest.main()
