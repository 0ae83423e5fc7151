"""What every API's answer needs, and what each must be able to write."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from app.room.api.events import Ended, Spoken, Started
from app.serve.errors import ApiError


def random_id() -> str:
    return secrets.token_hex(12)


@dataclass(frozen=True)
class Naming:
    """Where ids and times of answers come from. ``model`` is the id clients know the model by."""

    model: str
    id: Callable[[], str] = random_id
    seconds: Callable[[], int] = lambda: int(time.time())


def model_id(key: str) -> str:
    return f"pooled/{key}"


class Writer(Protocol):
    """Turns one answer into the bytes of a stream, and at its end into a body. Pure but for ids and times.

    ``open`` comes first: with None when a client waits so long that it must hear something before the start.
    """

    def open(self, started: Started | None) -> bytes: ...

    def say(self, spoken: Spoken) -> bytes: ...

    def close(self, ended: Ended) -> bytes:
        """The rest of the stream of an answer that came to its end."""
        ...

    def fail(self, error: ApiError) -> bytes:
        """The rest of a stream that broke."""
        ...

    def alive(self, ahead: int) -> bytes:
        """What is sent after a silence; ``ahead`` answers come before this one."""
        ...

    def body(self) -> dict[str, object]:
        """The answer as one object; after ``close``."""
        ...
