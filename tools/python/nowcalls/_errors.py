"""The exceptions of the package. All derive from Error."""

from __future__ import annotations

from typing import Optional, Union


class Error(Exception):
    """Base of all errors that a client raises on purpose."""


class BadRequest(Error):
    """The caller's own fault: wrong arguments, a closed client, or a server that is too old for it.

    `code` is the error code of PROTOCOL.md, or None if no server answered.
    """

    def __init__(self, message: str, *, code: Optional[int] = None) -> None:
        super().__init__(message)
        self.code = code


class PermissionDenied(BadRequest):
    """The server does not let this client in, or not to this flow. No fallback admits the call."""


def again(error: BadRequest) -> BadRequest:
    """The same for another call: an exception that is raised twice has the traces of both."""
    return type(error)(str(error), code=error.code)


class Refused(Error):
    """The server refused. Nothing is held and nothing is counted.

    status: 1 BLOCKED, -2 TOO_MANY_REQUEST, or 3 for NoRule.
    refused_by: the word of PROTOCOL.md for the limit, such as "level" or "queue_timeout", or None.
    now_calls, level: of the rule or of the parameter's value; 0 where the answer has none.
    local: the fallback of this process refused, not the server.
    """

    def __init__(
        self,
        message: str,
        *,
        flow_id: Union[int, str] = 0,
        status: int = 1,
        refused_by: Optional[str] = None,
        now_calls: int = 0,
        level: int = 0,
        local: bool = False,
    ) -> None:
        super().__init__(message)
        self.flow_id = flow_id
        self.status = status
        self.refused_by = refused_by
        self.now_calls = now_calls
        self.level = level
        self.local = local


class NoRule(Refused):
    """No rule has this flow id, so nothing limits the call. The caller decides what that means."""


class Unavailable(Error):
    """No server could be asked in time. The request was surely not carried out."""


class OutcomeUnknown(Error):
    """The request was sent, and its answer did not come in time. Perhaps it was carried out.

    The client cancels an acquire as soon as it can, so that no token stays behind.
    """
