"""What a room's sessions need from the outside: links to peers and a device that computes.

Sessions see only these protocols, so a test hands them lossy links, a virtual clock and a toy model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.engine.types import Candidates, ColumnClass, Floats, KvFormat, Part, Shaping, Step, Stepped
from app.models.gather import Lenders
from app.room.frame import Frame

Message = Mapping[str, object]
Bytes = NDArray[np.uint8]


class Link(Protocol):
    """One connection to one peer: control messages in order, frames in order, each exactly once.

    A link handed to a session has passed its gate or mesh proof. Calls never block and never raise
    for a link that has died; its death is told once by ``on_closed``. Callbacks run on the event loop.
    """

    peer_id: str
    dialed: bool
    on_message: Callable[[Message], None]
    on_frame: Callable[[Frame], None]
    on_closed: Callable[[str], None]

    @property
    def open(self) -> bool: ...

    @property
    def path(self) -> str:
        """ "direct", "relay" or "unknown"."""
        ...

    @property
    def last_heard(self) -> float:
        """Clock seconds of the last byte of any kind from the peer."""
        ...

    def send(self, message: Message) -> None: ...

    def send_frame(self, frame: Frame) -> None: ...

    def close(self, reason: str = "") -> None: ...


@dataclass(frozen=True)
class LoadRequest:
    """Which layers of which model file to put on the GPU. ``pledge`` is the most bytes all of it may take.

    ``lenders`` are asked for missing weights before the model's source. ``draft`` is a small model of the same tokens
    that lies on this computer, "" for none; it is part of the pledge.
    """

    model: str
    part: Part
    context: int
    kv: KvFormat
    pledge: int
    lenders: Lenders | None = field(default=None, compare=False, repr=False)
    draft: str = ""


Progress = Callable[[float], None]
"""Told the loaded share, 0..1, on the event loop."""


@dataclass(frozen=True)
class State:
    """A part's share of a conversation below position ``end``, as the bytes its engine gave."""

    end: int
    data: Bytes


class Compute(Protocol):
    """This device's engine, one call at a time, off the event loop. Errors are PooledError.

    Hidden states are float32 arrays [columns, hidden size]. Each of ``sequences`` conversations has caches of its
    own. Positions are absolute; writing position p forgets everything after it, so rolling back is only a matter of
    the next position, and position 0 starts afresh. A model with recurrent layers goes back over the columns of its
    last STEP call only.
    """

    async def load(self, request: LoadRequest, progress: Progress) -> None:
        """Replaces what was loaded. Cancelling the task stops at the next tensor and frees everything."""
        ...

    async def unload(self) -> None: ...

    @property
    def sequences(self) -> int:
        """How many conversations are kept apart; 1 with nothing loaded."""
        ...

    async def tokens(self, ids: Sequence[int], position: int, kind: ColumnClass, sequence: int = 0) -> Floats:
        """Embeds and runs the own layers; needs ``part.embed``."""
        ...

    async def hidden(self, states: Floats, position: int, kind: ColumnClass, sequence: int = 0) -> Floats:
        """Runs the own layers over states that came from another device."""
        ...

    async def candidates(self, states: Floats, shaping: Shaping | None = None) -> list[Candidates]:
        """Output norm, head and the 64 best, a column each, after ``shaping``; needs ``part.head``."""
        ...

    async def step(self, steps: Sequence[Step]) -> list[Stepped]:
        """Steps of different sequences where every layer is here, each with the bits it has alone.

        Together at most 16 columns. With states where there is a draft block. Whoever is in front of the engine may
        put the steps of several callers into one pass.
        """
        ...

    async def greedy(self, token: int, position: int, stops: Sequence[int], count: int, sequence: int = 0) -> list[int]:
        """At most ``count`` of the likeliest tokens after ``token``, a whole model's, without a way back between them.

        The last may be one of ``stops``; all but the last are in the caches then, each as a step of its own.
        """
        ...

    @property
    def drafts(self) -> bool:
        """Whether what is loaded has a draft block."""
        ...

    async def learn(
        self, ids: Sequence[int], before: Floats, position: int, kind: ColumnClass, sequence: int = 0
    ) -> None:
        """Shows the draft block known columns; ``before`` [n, hidden] are the trunk's states before each."""
        ...

    async def draft(self, token: int, before: Floats, position: int, count: int, sequence: int = 0) -> list[int]:
        """``count`` guesses of what follows ``token``; ``before`` [hidden] is the trunk's state before it."""
        ...

    @property
    def draft_model(self) -> bool:
        """Whether a small model was loaded beside the model."""
        ...

    async def guesses(self, ids: Sequence[int], count: int, sequence: int = 0) -> list[int]:
        """The draft model's ``count`` guesses at most of what follows ``ids``, a whole conversation; 0: it reads."""
        ...

    @property
    def prompt_chunk(self) -> int:
        """How many columns of a prompt are best given in one call."""
        ...

    @property
    def signature(self) -> str:
        """Names what made the state: model, layers, formats, order of sums. "" with nothing loaded."""
        ...

    async def save(self, name: str, end: int, sequence: int = 0) -> None:
        """Keeps a copy of the state below ``end``, taking back columns of the last step; OutOfMemory, StateError."""
        ...

    async def restore(self, name: str, sequence: int = 0) -> int:
        """Brings a kept copy back, into any sequence; the position that comes next. StateError without one."""
        ...

    async def drop(self, name: str) -> None:
        """Forgets a kept copy, if there is one."""
        ...

    async def saved(self) -> list[str]:
        """Names of the kept copies."""
        ...

    async def export(self, sequence: int = 0) -> State:
        """The state as it stands, as bytes."""
        ...

    async def adopt(self, name: str, state: State, sequence: int = 0) -> None:
        """Keeps an exported state under a name; the sequence's live state is lost. StateError unless it fits."""
        ...
