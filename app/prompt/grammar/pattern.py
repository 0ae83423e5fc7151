"""A pattern that may match anywhere in a text, as one that matches the whole text (JSON Schema 2020-12 §6.3.3)."""

from __future__ import annotations

from collections.abc import Iterator

from llguidance import regex_to_lark

ANCHORS = frozenset({"^", "$", r"\b", r"\B"})


def whole(pattern: str) -> str | None:
    r"""Between slashes for a grammar. ``\d \w \s`` mean what they mean in ECMAScript.

    None where an anchor stands inside an alternative, which cannot be said of a whole text.
    """
    branches = [_branch(pieces) for pieces in _split(pattern)]
    return None if None in branches else f"/{'|'.join(map(str, branches))}/"


def _branch(pieces: list[str]) -> str | None:
    start, end = pieces[:1] == ["^"], pieces[-1:] == ["$"]
    inner = pieces[start : len(pieces) - end]
    if ANCHORS & set(inner):
        return None
    body = regex_to_lark("".join(inner), "dw")
    return f"{'' if start else '(?s:.*)'}(?:{body}){'' if end else '(?s:.*)'}"


def _split(pattern: str) -> Iterator[list[str]]:
    depth, branch = 0, list[str]()
    for piece in pieces(pattern):
        depth += (piece == "(") - (piece == ")")
        if piece == "|" and not depth:
            yield branch
            branch = []
        else:
            branch.append(piece)
    yield branch


def pieces(pattern: str) -> Iterator[str]:
    """Single characters, with escapes and bracketed classes each in one piece."""
    at = 0
    while at < len(pattern):
        end = at + 2 if pattern[at] == "\\" else _class_end(pattern, at) if pattern[at] == "[" else at + 1
        yield pattern[at:end]
        at = end


def _class_end(pattern: str, at: int) -> int:
    at += 1
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1
