"""The vectors of data/golden/sessions, written by the session of C++: Python's does the same."""

import glob
import json
import os
import re
import subprocess
import tempfile
import unittest

import msgpack
from nowcalls._calls import Acquire, AcquireAll, Keep, RateRequest, Release, rate
from nowcalls._config import make_config
from nowcalls._errors import (
    BadRequest,
    NoRule,
    OutcomeUnknown,
    PermissionDenied,
    Refused,
    Unavailable,
)
from nowcalls._permit import BasePermit
from nowcalls._session import Session

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILES = sorted(glob.glob(os.path.join(ROOT, "data", "golden", "sessions", "*.json")))
UNIT_CLIENT = os.environ.get("NOWCALLS_UNIT_CLIENT")
KEEPS = {"rule": True, "always": "always", "off": False}
# What may come of a step, and what stands for nothing.
NOTHING = (
    ("lost", []),
    ("valid_until_ms", {}),
    ("dials", None),
    ("settled", False),
)
# The most exact first.
OUTCOMES = (
    (NoRule, "no_rule"),
    (Refused, "refused"),
    (PermissionDenied, "permission_denied"),
    (BadRequest, "bad_request"),
    (Unavailable, "unavailable"),
    (OutcomeUnknown, "unknown"),
)


def seconds(ms):
    return None if ms is None else ms / 1000


def ms(moment):
    return round(moment * 1000)


def messages(data):
    unpacker = msgpack.Unpacker()
    unpacker.feed(data)
    return list(unpacker)


class Quiet(BasePermit):
    """A permit that may be dropped."""

    def __del__(self):
        pass


class Player:
    """A session and its owner, who does what the steps say."""

    def __init__(self, script):
        client = script["client"]
        levels = {
            int(flow) if flow.isdecimal() else flow: level
            for flow, level in client["local_levels"].items()
        }
        config = make_config(
            client["addresses"],
            client["namespace"],
            client["client_id"],
            seconds(client["timeout_ms"]),
            True,
            client["fallback"],
            levels,
            client["exclusive"],
            secret=client.get("secret"),
        )
        ids = iter(script["request_ids"])
        self.now = 0.0
        self.permits = {}
        self.answers = []
        self.told = {}
        self.hangs_up = None
        self.pause_ms = None
        self.dials = client["addresses"][0]
        self.closed = False
        self.session = Session(
            config,
            Quiet,
            self.now,
            self.pause,
            client["instance"],
            lambda: next(ids),
            lambda: self.now,
        )

    def play(self, step):
        """Returns what came of it, as the step has it."""
        self.now = seconds(step["at_ms"])
        self.answers, self.hangs_up, self.pause_ms = [], None, step.get("pause_ms")
        getattr(self, step["do"])(step)
        came = {"sent": bytes(self.session.output).hex(), "answers": self.answers}
        self.session.output.clear()
        came["hangs_up"] = self.hangs_up is not None
        lost = [(self.name_of(held), held.lost_reason or "") for held in self.session.take_lost()]
        came["lost"] = [{"permit": permit, "reason": reason} for permit, reason in lost]
        came["valid_until_ms"] = self.changed_validity()
        dials, self.dials = self.dials, self.session.dialing.name
        came["dials"] = None if dials == self.dials else self.dials
        came["settled"] = self.closed and self.session.settled
        self.closed = self.closed and not came["settled"]
        return came

    def pause(self, low, high):
        """What a session draws: as the step has it."""
        if self.pause_ms is None:
            return low
        assert low <= seconds(self.pause_ms) <= high, f"a pause of {low} to {high} s"
        return seconds(self.pause_ms)

    # The connection.

    def dial(self, _):
        self.session.dialing.begin()

    def denied(self, step):
        self.session.denied(self.now, step["reason"])

    def connected(self, _):
        self.session.connected(self.now)

    def dial_failed(self, step):
        self.session.connect_failed(self.now, step["reason"])

    def disconnected(self, step):
        self.session.disconnected(self.now, step["reason"])

    def received(self, step):
        self.hangs_up = self.session.received(bytes.fromhex(step["bytes"]), self.now)

    def tick(self, _):
        self.hangs_up = self.session.tick(self.now)

    # Calls.

    def acquire(self, step):
        asked = step["flow"], step["count"], seconds(step["wait_ms"]), step["param"]
        self.ask(step, Acquire(*asked, step["prioritized"], step["hold_ms"]))

    def acquire_all(self, step):
        items = [
            rate(flow, count, param) if is_rate else (flow, count, param)
            for flow, count, param, is_rate in step["items"]
        ]
        wait = seconds(step["wait_ms"])
        self.ask(step, AcquireAll(items, wait, step["prioritized"], step["sleep"], step["hold_ms"]))

    def request(self, step):
        call = RateRequest(step["flow"], step["count"], None, step["sleep"])
        self.ask(step, call.prioritize(step["prioritized"]))

    def request_param(self, step):
        self.ask(step, RateRequest(step["flow"], step["count"], step["values"], step["sleep"]))

    def ask(self, step, call):
        if isinstance(call, Acquire):
            call.keep = KEEPS[step["keep"]]
        call.notify = lambda: self.answered(step["call"], call)
        self.session.ask(call, self.now, seconds(step["timeout_ms"]))

    def release(self, step):
        call = Release(self.permits[step["permit"]]._held, step["outcome"])
        call.notify = lambda: self.answered("release " + step["permit"], call)
        self.session.release(call, self.now)

    def keep(self, step):
        call = Keep(self.permits[step["permit"]]._held)
        call.notify = lambda: self.answered("keep " + step["permit"], call)
        self.session.ask(call, self.now)

    def close(self, _):
        self.session.close(self.now)
        self.closed = True

    # What came of it.

    def answered(self, name, call):
        outcome = "ok"
        for kind, word in reversed(OUTCOMES):
            outcome = word if isinstance(call.error, kind) else outcome
        told = {"call": name, "outcome": outcome}
        if isinstance(call.error, Refused):
            if outcome == "refused" and call.error.refused_by is not None:
                told["flow"], told["refused_by"] = call.error.flow_id, call.error.refused_by
                told["now_calls"], told["level"] = call.error.now_calls, call.error.level
            if call.error.local:
                told["local"] = True
        elif isinstance(call, Release):
            told["lost"] = call.held.lost
            if call.held.local:
                told["local"] = True
        if isinstance(call, Keep) and outcome == "ok" and call.value is None:
            told["outcome"] = "refused"
        elif outcome == "ok":
            told.update(self.value_of(name, call))
        self.answers.append(told)

    def value_of(self, name, call):
        value = call.value
        if isinstance(call, RateRequest):
            told = {"remaining": value.remaining, "wait_ms": ms(value.wait)}
            return {**told, "local": True} if call.passed is None else told
        if isinstance(call, Keep):
            return {"hold_ms": value[0]}
        if not isinstance(call, Acquire):
            return {}
        group = isinstance(call, AcquireAll)
        permits = value if group else [value]
        for index, permit in enumerate(permits):
            if permit is not None:
                self.permits[f"{name}/{index}" if group else name] = permit
        told = {"tokens": [None if permit is None else permit.token_id for permit in permits]}
        told.update(now_calls=0, level=0)
        if permits[0] is not None:
            told.update(now_calls=permits[0].now_calls, level=permits[0].level)
        if any(permit is not None and permit.local for permit in permits):
            told["local"] = True
        if group:
            told["wait_ms"] = 0 if "local" in told else max(0, ms(call.wait_until - self.now))
        return told

    def name_of(self, held):
        return next(name for name, permit in self.permits.items() if permit._held is held)

    def changed_validity(self):
        held = {n: p for n, p in self.permits.items() if not p.local and p._held.state == "held"}
        valid = {name: ms(permit.valid_until) for name, permit in held.items()}
        changed = {name: at for name, at in valid.items() if self.told.get(name) != at}
        self.told.update(valid)
        return changed


def comparable(answers):
    """Without what this client does not tell: of a group of rates alone, that it is local; and
    without the calls in progress where they limit nothing."""
    told = []
    for answer in answers:
        answer = dict(answer)
        if set(answer.get("tokens", [0])) <= {None}:
            answer.pop("local", None)
        if answer.get("level") == 0:
            answer.pop("now_calls")
        told.append(answer)
    return told


class VectorTest(unittest.TestCase):
    maxDiff = None

    def test_each_vector_is_what_the_session_does(self):
        self.play(FILES)

    @unittest.skipUnless(UNIT_CLIENT, "no NOWCALLS_UNIT_CLIENT writes lives")
    def test_random_lives_are_what_the_session_does(self):
        with tempfile.TemporaryDirectory(prefix="nowcalls-lives-") as lives:
            environment = {**os.environ, "NOWCALLS_LIVES_DIR": lives}
            writes = [UNIT_CLIENT, "--test-case=random lives*"]
            subprocess.run(writes, env=environment, check=True, stdout=subprocess.DEVNULL)
            files = sorted(glob.glob(os.path.join(lives, "*.json")))
            self.assertGreater(len(files), 99)
            self.play(files)

    def play(self, files):
        for file in files:
            with open(file) as text:
                script = json.load(text)
            with self.subTest(script["name"]), self.assertNoLogs("nowcalls", "ERROR"):
                player = Player(script)
                for number, step in enumerate(script["steps"]):
                    where = f"step {number}: {step['do']} at {step['at_ms']} ms"
                    if "due" in step:
                        self.assertEqual(ms(player.session.wakeup()), step["at_ms"], where)
                    came = player.play(step)
                    sent = bytes.fromhex(step.get("sent", ""))
                    if came["sent"] != sent.hex():
                        self.assertEqual(
                            messages(bytes.fromhex(came["sent"])), messages(sent), where
                        )
                    self.assertEqual(came["sent"], sent.hex(), where)
                    self.assertEqual(came["hangs_up"], "hangs_up" in step, where)
                    wanted = comparable(step.get("answers", []))
                    self.assertEqual(comparable(came["answers"]), wanted, where)
                    for key, nothing in NOTHING:
                        self.assertEqual(came[key], step.get(key, nothing), f"{where}: {key}")

    def test_the_page_for_authors_has_each_vector_in_its_order(self):
        with open(os.path.join(ROOT, "tools", "manual", "client-authors.md")) as text:
            _, order = text.read().split("## In which order")
        order = order.split("\n## ")[0]
        names = re.findall(r"`(\w+)`", order)
        files = [os.path.basename(file).removesuffix(".json") for file in FILES]
        self.assertEqual(sorted(names), sorted(files))
        sixth = os.path.join(ROOT, "tests", "languages", "sixth", "vectors.txt")
        with open(sixth) as text:
            least = text.read().split()
        self.assertEqual(least, names[: len(least)])

    @unittest.skipUnless(FILES, "the session of C++ has written none yet")
    def test_there_are_vectors(self):
        self.assertGreaterEqual(len(FILES), 72)


if __name__ == "__main__":
    unittest.main()
