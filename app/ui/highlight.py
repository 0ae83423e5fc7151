"""Colours of code, a few words at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cache

from pygments.lexer import Lexer
from pygments.lexers import get_all_lexers, get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, String

from app.ui import theme

LONGEST = 40_000
"""Longer code stays plain."""

COMMON = ("python", "bash", "javascript", "json", "html", "css", "typescript", "rust", "c", "java", "go", "sql")

# Both only grow, by names from ``known_languages``; adding to a set is atomic.
_begun: set[str] = set()
_ready: set[str] = set()
_preparing: list[threading.Thread] = []
_ending = threading.Event()


@cache
def known_languages() -> frozenset[str]:
    return frozenset(alias for _, aliases, _, _ in get_all_lexers() for alias in aliases)


def find_lexer(language: str) -> Lexer | None:
    return _lexer(language.lower()) if language.lower() in known_languages() else None


@cache
def _lexer(language: str) -> Lexer:
    """Compiling a language's patterns takes up to a tenth of a second, once."""
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


def prepared(language: str) -> bool:
    """Whether colours can be had at once; if not, a thread prepares them, so ask again later."""
    language = language.lower()
    if language not in known_languages() or language in _ready:
        return True
    if language not in _begun:
        prepare((language,))
    return False


def prepare(languages: tuple[str, ...] = COMMON) -> threading.Thread:
    """In a thread, one after the other. Best before anything streams: the thread competes with the window."""
    _begun.update(languages)
    _ending.clear()
    thread = threading.Thread(target=_prepare, args=(languages,), name="prepare colours", daemon=True)
    _preparing.append(thread)
    thread.start()
    return thread


def stop() -> None:
    """Ends what is being prepared, after the language it is at."""
    _ending.set()
    while _preparing:
        _preparing.pop().join()


def _prepare(languages: tuple[str, ...]) -> None:
    known_languages()  # reads the list of all lexers, which the window would otherwise wait for
    for language in languages:
        if _ending.is_set():
            return
        list(_lexer(language).get_tokens(" "))
        _ready.add(language)


def colour_of(kind: tuple[str, ...]) -> str | None:
    """None: as the rest of the text. Few colours: keywords, quoted text and figures, remarks, names defined."""
    palette = theme.palette()
    if _is(kind, Comment):
        return palette.muted
    if _is(kind, Keyword, Name.Tag):
        return palette.accent
    if _is(kind, String, Number):
        return palette.good
    if _is(kind, Name.Function, Name.Class):
        return palette.devices[2]
    return None


def _is(kind: tuple[str, ...], *wanted: tuple[str, ...]) -> bool:
    """Kinds are paths; a kind is of those that begin its path."""
    return any(kind[: len(each)] == each for each in wanted)


def coloured_spans(code: str, language: str) -> Iterator[tuple[int, int, str]]:
    """Start, length and colour of every coloured stretch."""
    lexer = find_lexer(language)
    if lexer is None or len(code) > LONGEST:
        return
    at = 0
    for kind, piece in lexer.get_tokens(code):
        colour = colour_of(kind)
        if colour is not None and piece.strip():
            yield at, len(piece), colour
        at += len(piece)
