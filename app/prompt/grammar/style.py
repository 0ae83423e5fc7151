"""How a model family writes calls, and where its reasoning stands when an answer begins (spec: rooms §18.5)."""

from __future__ import annotations

from enum import Enum


class CallStyle(Enum):
    """JSON: one object with name and arguments inside the tags. XML: a function block, one block a parameter."""

    JSON = "json"
    XML = "xml"


class ThinkState(Enum):
    """OPEN: the prompt ends inside a think block. MAY: the answer may begin with one. NEVER: it may not."""

    OPEN = "open"
    MAY = "may"
    NEVER = "never"
