"""Blocks: `with client.permit(...)` and its asyncio twin, also as decorators of functions."""

from __future__ import annotations

import functools
import inspect
from types import TracebackType
from typing import Any, Awaitable, Callable, Generic, Optional, Type, TypeVar

from ._errors import BadRequest
from ._permit import BasePermit, outcome_of

P = TypeVar("P", bound=BasePermit)
F = TypeVar("F", bound=Callable[..., Any])


class Block(Generic[P]):
    """Holds a token for a with block, or for each call of a function.

    The block refers to its permit until its end. So a signal handler that raises before the first
    line of __exit__ releases the token all the same: the block is dropped.
    """

    def __init__(self, acquire: Callable[[], P], leave: Callable[[P, str], Any]) -> None:
        self._acquire = acquire
        self._leave = leave
        self._permit: Optional[P] = None

    def __enter__(self) -> P:
        if self._permit is not None:
            raise BadRequest("this block is entered already; call permit() for each")
        self._permit = permit = self._acquire()
        return permit

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        where: Optional[TracebackType],
    ) -> None:
        permit, self._permit = self._permit, None
        if permit is not None:
            self._leave(permit, outcome_of(kind))

    def __call__(self, function: F) -> F:
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise BadRequest(
                f"{function.__qualname__} is a coroutine function, and its calls would end before "
                "they begin to work; decorate it with permit of a nowcalls.aio.Client"
            )
        _refuse_generators(function)

        @functools.wraps(function)
        def limited(*args: Any, **kwargs: Any) -> Any:
            with Block(self._acquire, self._leave):
                return function(*args, **kwargs)

        return limited  # type: ignore[return-value]

    def __del__(self) -> None:
        if getattr(self, "_permit", None) is not None:
            self._permit._dropped()  # type: ignore[union-attr]


class AsyncBlock(Generic[P]):
    """The same for async with, and for coroutine functions."""

    def __init__(
        self, acquire: Callable[[], Awaitable[P]], leave: Callable[[P, str], Awaitable[Any]]
    ) -> None:
        self._acquire = acquire
        self._leave = leave
        self._permit: Optional[P] = None

    async def __aenter__(self) -> P:
        if self._permit is not None:
            raise BadRequest("this block is entered already; call permit() for each")
        self._permit = permit = await self._acquire()
        return permit

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        where: Optional[TracebackType],
    ) -> None:
        permit, self._permit = self._permit, None
        if permit is not None:
            await self._leave(permit, outcome_of(kind))

    def __call__(self, function: F) -> F:
        if not inspect.iscoroutinefunction(function):
            raise BadRequest(
                f"{getattr(function, '__qualname__', function)} is no coroutine function; write "
                "async def, or decorate it with permit of a nowcalls.Client"
            )

        @functools.wraps(function)
        async def limited(*args: Any, **kwargs: Any) -> Any:
            async with AsyncBlock(self._acquire, self._leave):
                return await function(*args, **kwargs)

        return limited  # type: ignore[return-value]

    def __del__(self) -> None:
        if getattr(self, "_permit", None) is not None:
            self._permit._dropped()  # type: ignore[union-attr]


def _refuse_generators(function: Callable[..., Any]) -> None:
    if inspect.isgeneratorfunction(function):
        raise BadRequest(
            f"{function.__qualname__} is a generator function, and its calls would end before they "
            "begin to work; write `with client.permit(...)` within it"
        )
