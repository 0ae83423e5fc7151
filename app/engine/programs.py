"""The programs of one loaded part, compiled when they are first needed."""

from __future__ import annotations

from collections.abc import Callable

from app.engine.builder import Builder
from app.engine.device import Gpu
from app.engine.ops.attention import splits_within
from app.engine.program import Dispatch, Program, compile_program
from app.engine.types import STEP_COLUMNS, ColumnClass

STEP_WIDTHS = (1, 2, 4, 8, STEP_COLUMNS)
PROMPT_WIDTHS = (16, 64, 256, 512, 1024, 2048)
LAYERS_A_PIECE = 2
_SMALLEST_BUCKET = 256


def width_of(kind: ColumnClass, count: int) -> int:
    """The narrowest program that holds ``count`` columns."""
    widths = STEP_WIDTHS if kind is ColumnClass.STEP else PROMPT_WIDTHS
    return next(w for w in widths if w >= count)


class Programs:
    """Keyed by segment, class of columns, width and, for step columns, the most splits of a position."""

    def __init__(self, gpu: Gpu, builder: Builder, context: int, layers: int) -> None:
        self._gpu = gpu
        self._builder = builder
        self._context = context
        self._layers = layers
        self._made: dict[tuple[object, ...], Program] = {}

    def embed(self, width: int) -> Program:
        return self._get(("embed", width), lambda: self._builder.embed(width))

    def trunk(self, kind: ColumnClass, width: int, end: int) -> list[Program]:
        """``end`` is one past the last position; its bucket sizes the split grid of step columns.

        A prompt chunk comes in pieces of a few layers, so that it can be submitted in pieces.
        """
        splits, piece = self._splits(kind, end), self._layers if kind is ColumnClass.STEP else LAYERS_A_PIECE
        pieces = [range(lo, min(lo + piece, self._layers)) for lo in range(0, self._layers, max(piece, 1))]
        return [
            self._get(
                ("trunk", kind, width, splits, part),
                lambda part=part: self._builder.trunk(kind, width, splits, part),
            )
            for part in pieces
        ]

    def head(self, width: int, *, advance: bool = False, masked: bool = False) -> Program:
        key = ("head", width, advance, masked)
        return self._get(key, lambda: self._builder.head(width, collect=not advance, advance=advance, masked=masked))

    def settle(self) -> Program:
        return self._get(("settle",), self._builder.settle)

    def draft(self, kind: ColumnClass, width: int, end: int, *, first: bool) -> Program:
        splits = self._splits(kind, end)
        key = ("draft", kind, width, splits, first)
        return self._get(key, lambda: self._builder.draft(kind, width, splits, first=first))

    def draft_head(self, width: int, *, advance: bool) -> Program:
        key = ("draft head", width, advance)
        return self._get(key, lambda: self._builder.draft_head(width, advance=advance))

    def clear(self) -> None:
        self._made.clear()

    def _splits(self, kind: ColumnClass, end: int) -> int:
        return 1 if kind is ColumnClass.PROMPT else splits_within(min(_bucket(end), self._context))

    def _get(self, key: tuple[object, ...], build: Callable[[], list[Dispatch]]) -> Program:
        if key not in self._made:
            self._made[key] = compile_program(self._gpu, build())
        return self._made[key]


def _bucket(end: int) -> int:
    size = _SMALLEST_BUCKET
    while size < end:
        size *= 2
    return size
