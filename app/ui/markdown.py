"""Markdown as blocks for the window, parsed again only from where a growing text can still change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.ui import theme
from app.ui.fonts import MONO, points

CHUNK = 4096
LONGEST_LANGUAGE = 24


@dataclass(frozen=True)
class Block:
    """``text`` is HTML in Qt's subset, or plain code when ``code`` is set."""

    text: str
    code: bool = False
    language: str = ""


def parser() -> MarkdownIt:
    """No raw HTML and no pictures: the text comes from a model, and a picture would fetch something."""
    return MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"]).disable("image")


class GrowingMarkdown:
    """Blocks of a text that mostly grows at its end."""

    def __init__(self) -> None:
        self._markdown = parser()
        self.restart()

    def restart(self) -> None:
        self._settled: list[Block] = []
        self._settled_text = ""

    def blocks(self, text: str) -> list[Block]:
        """All blocks but the last two of ``text`` are not parsed again the next time."""
        if not text.startswith(self._settled_text):
            self.restart()
        start = len(self._settled_text)
        groups = list(top_level(self._markdown.parse(text[start:])))
        made = [self._block(group) for group in groups]
        shown = [*self._settled, *made]
        if len(groups) > 1:
            self._settled.extend(made[:-1])
            self._settled_text = text[: start + offset_of_line(text[start:], first_line(groups[-1]))]
        return shown

    def _block(self, tokens: Sequence[Token]) -> Block:
        first = tokens[0]
        if first.type in ("fence", "code_block"):
            language = first.info.strip().split(" ")[0][:LONGEST_LANGUAGE]
            return Block(first.content.rstrip("\n"), code=True, language=language)
        html = str(self._markdown.renderer.render(tokens, self._markdown.options, {}))
        return Block(html.replace("<table>", TABLE).strip())


TABLE = '<table cellspacing="0" cellpadding="6" border="1" width="100%">'


def top_level(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Groups of tokens, a group for each outermost block."""
    group: list[Token] = []
    for token in tokens:
        group.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield group
            group = []


def first_line(tokens: Sequence[Token]) -> int:
    return tokens[0].map[0] if tokens[0].map else 0


def offset_of_line(text: str, line: int) -> int:
    at = 0
    for _ in range(line):
        at = text.index("\n", at) + 1
    return at


def portions(text: str) -> Iterator[str]:
    """The text growing by a few kilobytes, so that a long one is parsed in slices."""
    for end in range(CHUNK, len(text), CHUNK):
        at = text.rfind("\n", 0, end) + 1
        if at:
            yield text[:at]
    yield text


def style() -> str:
    """The look of prose, for the head of a block's HTML."""
    palette = theme.palette()
    return (
        "<style>p, li { line-height: 124%; margin: 0; } ul, ol { margin: 0; margin-left: 0; }"
        f" h1, h2 {{ font-size: {points(theme.HEAD):.2f}pt; font-weight: 600; margin: 4px 0 0 0; }}"
        f" h3, h4, h5, h6 {{ font-size: {points(theme.BODY):.2f}pt; font-weight: 600; margin: 4px 0 0 0; }}"
        f" strong {{ font-weight: 600; }} a {{ color: {palette.accent}; }}"
        f" code {{ font-family: '{MONO}'; background-color: {palette.code}; font-size: {points(theme.SMALL):.2f}pt; }}"
        f" blockquote {{ color: {palette.soft}; margin: 0 0 0 16px; }}"
        f" table {{ border-collapse: collapse; border-color: {palette.line}; }}"
        f" th {{ font-weight: 600; text-align: left; background-color: {palette.code}; }}</style>"
    )


def with_cursor(html: str) -> str:
    """The mark of a text that is still being written."""
    sign = f'<span style="color:{theme.palette().accent}">▍</span>'
    return f"{html.removesuffix('</p>')}{sign}</p>" if html.endswith("</p>") else html
