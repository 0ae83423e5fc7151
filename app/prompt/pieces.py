"""An answer as it comes: reasoning, words, and calls of tools piece by piece."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reasoning:
    text: str


@dataclass(frozen=True)
class Words:
    """What the model says to whoever asked."""

    text: str


@dataclass(frozen=True)
class CallBegun:
    """``name`` is whole. Calls are counted from 0."""

    index: int
    name: str


@dataclass(frozen=True)
class CallArguments:
    """A fragment of the JSON text; all fragments of a call joined are its arguments."""

    index: int
    text: str


@dataclass(frozen=True)
class CallEnded:
    index: int


Piece = Reasoning | Words | CallBegun | CallArguments | CallEnded
