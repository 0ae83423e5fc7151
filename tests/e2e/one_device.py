"""The model on one GPU, rounding its hidden states to half precision at a room's cuts and at the end."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from pathlib import Path

from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile
from app.engine.options import Options, arithmetic_for
from app.engine.sampling import choose
from app.engine.types import ColumnClass, Floats, KvFormat, Part, Sampling
from app.room.halves import pack_halves, unpack_halves
from app.room.segments import Fed, rounds

CHUNK = 256


class Differs(Exception):
    """A token of the room is not the one device's."""


class OneDevice:
    """``cuts`` are the ends of the parts, the last one being the number of layers."""

    def __init__(self, path: Path, cuts: Sequence[int], context: int) -> None:
        self._gpu, file = Gpu.open(), GgufFile.open(path)
        options = Options(context, 2 << 30, KvFormat.F16, arithmetic=arithmetic_for(self._gpu))
        self._parts = [
            Engine.load(self._gpu, file, Part(lo, hi, embed=lo == 0, head=lo == 0), options)
            for lo, hi in itertools.pairwise([0, *cuts])
        ]

    def run(self, ids: Sequence[int], position: int, kind: ColumnClass) -> Floats:
        states = _rounded(self._parts[0].tokens(ids, position, kind))
        for part in self._parts[1:]:
            states = _rounded(part.hidden(states, position, kind))
        return states

    def next_token(self, states: Floats) -> int:
        return choose(self._parts[0].candidates(states[-1:])[0], Sampling(), 0)

    def close(self) -> None:
        for part in self._parts:
            part.close()
        self._gpu.close()


def _rounded(states: Floats) -> Floats:
    return unpack_halves(pack_halves(states, "the check"), states.shape[1])


def compare(fed: Fed, path: Path, cuts: Sequence[int], context: int) -> tuple[int, float]:
    """Computes a conversation again and compares each sampled token; how many, and tokens a second.

    Raises Differs for the first that is another one.
    """
    device = OneDevice(path, cuts, context)
    sampled, compared, seconds = _steps(fed), 0, 0.0
    for part in rounds(fed.segments, CHUNK):
        if part.kind is ColumnClass.PROMPT:
            device.run(fed.ids[part.start : part.end], part.start, part.kind)
            continue
        for position in range(part.start, part.end):
            began = time.monotonic()
            token = device.next_token(device.run([fed.ids[position]], position, part.kind))
            seconds += time.monotonic() - began
            if position + 1 in sampled:
                if token != fed.ids[position + 1]:
                    raise Differs(f"token {position + 1} is {fed.ids[position + 1]} in the room, {token} on one device")
                compared += 1
    device.close()
    return compared, compared / seconds if seconds else 0.0


def _steps(fed: Fed) -> frozenset[int]:
    steps = (range(s.start, s.end) for s in fed.segments if s.kind is ColumnClass.STEP)
    return frozenset(itertools.chain.from_iterable(steps))
