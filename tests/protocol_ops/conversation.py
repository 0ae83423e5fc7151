"""Conversation operations, with the vectors' toy tokenizer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from app.core.errors import PromptError
from app.prompt.chat import AssistantTurn, Turn, UserTurn
from app.prompt.chatml import ChatMl
from app.room.conversation import fit_turns, reused_prefix, split_thinking
from tests.protocol_ops import op

SPECIALS = {
    "<|im_start|>": 1000,
    "<|im_end|>": 1001,
    "<|endoftext|>": 1002,
    "<think>": 1003,
    "</think>": 1004,
}
VOCABULARIES = {
    "full": SPECIALS,
    "noThink": {name: SPECIALS[name] for name in ("<|im_start|>", "<|im_end|>")},
    "noChat": {},
}


@dataclass(frozen=True)
class ByteTokenizer:
    """Ids are UTF-8 bytes; specials by name."""

    specials: dict[str, int] = field(default_factory=lambda: dict(SPECIALS))
    stop_ids: frozenset[int] = frozenset({1001, 1002})

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def special(self, text: str) -> int | None:
        return self.specials.get(text)

    def piece(self, token: int) -> bytes:
        return bytes([token]) if token < 256 else b""


def _turn(raw: dict[str, Any]) -> Turn:
    if raw["role"] == "user":
        return UserTurn(raw["text"])
    return AssistantTurn(tuple(raw["ids"]), open=bool(raw.get("open")))


def _format(given: dict[str, Any]) -> ChatMl:
    return ChatMl(ByteTokenizer(VOCABULARIES[given["tokenizer"]]))


@op("build")
def _build(given: dict[str, Any]) -> Any:
    turns = [_turn(raw) for raw in given["turns"]]
    try:
        return _format(given).render(turns, given.get("system", ""), thinking=given.get("thinking", False))
    except PromptError:
        return {"error": True}


@op("fit")
def _fit(given: dict[str, Any]) -> dict[str, Any]:
    chat = _format(given)
    turns = [_turn(raw) for raw in given["turns"]]

    def render(kept: Any) -> list[int]:
        return chat.render(kept, thinking=given["thinking"])

    try:
        fitted = fit_turns(turns, render, given["maxSeq"], given["reserve"])
    except PromptError:
        return {"error": True}
    ids = list(fitted.ids)
    return {"length": len(ids), "dropped": fitted.dropped, "turnsLeft": len(fitted.turns), "ids": ids}


@op("reuse")
def _reuse(given: dict[str, Any]) -> int:
    return reused_prefix(given["fed"], given["ids"])


@op("split_think")
def _split_think(given: str) -> dict[str, Any]:
    thought = split_thinking(given)
    said: dict[str, Any] = {"think": thought.thinking, "answer": thought.answer}
    return {**said, "open": True} if thought.open else said
