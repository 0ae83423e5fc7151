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
                yield from self._place(self._markdown.blocks(portion), live or portion != text)
        self._working = False

    def _place(self, blocks: list[Block], live: bool) -> Iterator[None]:
        for i, block in enumerate(blocks):
            growing = live and i == len(blocks) - 1
            if i >= len(self._shown) or self._shown[i] != (block, growing):
                self._put(i, block, growing)
                yield
        while len(self._shown) > len(blocks):
            self._remove(len(self._shown) - 1)

    def _put(self, i: int, block: Block, growing: bool) -> None:
        if i < len(self._shown) and self._shown[i][0].code != block.code:
            self._remove(i)
            self._insert(i, block)
        elif i >= len(self._shown):
            self._insert(i, block)
        self._shown[i] = (block, growing)
        item = self._column.itemAt(i)
        widget = item.widget() if item is not None else None
        if isinstance(widget, CodeBlock):
            widget.display(block, complete=not growing)
        elif isinstance(widget, Prose):
            widget.display(block, live=growing)

    def _insert(self, i: int, block: Block) -> None:
        self._column.insertWidget(i, CodeBlock(self._slices) if block.code else Prose())
        self._shown.insert(i, (block, False))

    def _remove(self, i: int) -> None:
        item = self._column.takeAt(i)
        widget = item.widget() if item is not None else None
        if widget is not None:
            widget.hide()
            widget.deleteLater()
        del self._shown[i]
