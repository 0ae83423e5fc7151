"""An answer's Markdown as widgets, a widget a block; only blocks that changed are touched."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtWidgets import QWidget

from app.ui.markdown import Block, GrowingMarkdown, portions
from app.ui.widgets.card import column
from app.ui.widgets.code_block import CodeBlock
from app.ui.widgets.prose import Prose
from app.ui.widgets.slices import Slices


class AnswerText(QWidget):
    def __init__(self, slices: Slices) -> None:
        super().__init__()
        self._slices = slices
        self._markdown = GrowingMarkdown()
        self._shown: list[tuple[Block, bool]] = []
        self._wanted: tuple[str, bool] | None = None
        self._working = False
        self._column = column(self, 10)

    def display(self, text: str, *, live: bool) -> None:
        """Takes effect a slice at a time; the newest text wins."""
        self._wanted = (text, live)
        if not self._working:
            self._working = True
            self._slices.add(self._work())

    def _work(self) -> Iterator[None]:
        while self._wanted is not None:
            (text, live), self._wanted = self._wanted, None
            for portion in portions(text):
                blocks = self._markdown.blocks(portion)
                yield
                yield from self._place(blocks, live or portion != text)
        self._working = False

    def _place(self, blocks: list[Block], live: bool) -> Iterator[None]:
        for i, block in enumerate(blocks):
            growing = live and i == len(blocks) - 1
            if i >= len(self._shown) or self._shown[i] != (block, growing):
                yield from self._make_room(i, block)
                self._fill(i, block, growing)
                yield
        while len(self._shown) > len(blocks):
            self._remove(len(self._shown) - 1)

    def _make_room(self, i: int, block: Block) -> Iterator[None]:
        """A widget of the block's kind at its place; making one and showing it are a slice each."""
        if i < len(self._shown) and self._shown[i][0].code == block.code:
            return
        made = CodeBlock(self._slices) if block.code else Prose()
        yield
        if i < len(self._shown):
            self._remove(i)
        self._column.insertWidget(i, made)
        self._shown.insert(i, (Block("", code=block.code), False))
        yield

    def _fill(self, i: int, block: Block, growing: bool) -> None:
        self._shown[i] = (block, growing)
        item = self._column.itemAt(i)
        widget = item.widget() if item is not None else None
        if isinstance(widget, CodeBlock):
            widget.display(block, complete=not growing)
        elif isinstance(widget, Prose):
            widget.display(block, live=growing)

    def _remove(self, i: int) -> None:
        item = self._column.takeAt(i)
        widget = item.widget() if item is not None else None
        if widget is not None:
            widget.hide()
            widget.deleteLater()
        del self._shown[i]
