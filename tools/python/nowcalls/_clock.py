"""The clock of sessions: seconds of CLOCK_BOOTTIME, which goes on while the machine sleeps."""

from __future__ import annotations

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def after(moment: float, seconds: float) -> float:
    """In whole microseconds, so that sums of the same times are the same moment."""
    return round(moment + seconds, 6)


def now() -> float:
    return time.clock_gettime(_CLOCK)
