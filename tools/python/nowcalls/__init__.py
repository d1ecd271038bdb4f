"""Client of nowcalls, a durable token server for cluster concurrency control.

    with nowcalls.Client("127.0.0.1:18730", namespace="shop") as client:
        with client.permit(1001, wait=2.0) as permit:
            ...  # At most as many at once, over all processes, as rule 1001 allows.

`nowcalls.aio` has the same for asyncio.
"""

from . import aio
from ._calls import Rate, rate
from ._client import Client, Permit
from ._errors import (
    BadRequest,
    Error,
    NoRule,
    OutcomeUnknown,
    PermissionDenied,
    Refused,
    Unavailable,
)

__version__ = "1.0.0"

__all__ = [
    "BadRequest",
    "Client",
    "Error",
    "NoRule",
    "OutcomeUnknown",
    "PermissionDenied",
    "Permit",
    "Rate",
    "Refused",
    "Unavailable",
    "aio",
    "rate",
]
