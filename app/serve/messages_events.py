"""A Messages answer of Anthropic's API: events of a stream, or one object (spec: product A-081 to A-083)."""

from __future__ import annotations

import json

from app.room.api.events import Ended, Reason, Spoken, Started, Usage
from app.serve.blocks import Block, Blocks, Change, Closed, Grown, Kind, Opened
from app.serve.errors import Api, ApiError
from app.serve.messages_request import MessagesRequest
from app.serve.signature import signed
from app.serve.sse import event
from app.serve.writing import Naming

_REASONS = {
    Reason.STOP: "end_turn",
    Reason.STOP_SEQUENCE: "stop_sequence",
    Reason.MOST_TOKENS: "max_tokens",
    Reason.CONTEXT: "model_context_window_exceeded",
}


class MessagesWriter:
    """Blocks that start, grow and stop, between the message's start and its stop."""

    def __init__(self, request: MessagesRequest, naming: Naming) -> None:
        self._shown = request.shown
        self._naming = naming
        self._id = f"msg_{naming.id()}"
        self._blocks = Blocks(hold_space=True)
        self._opened = False
        self._ended = Ended(Reason.STOP)

    def open(self, started: Started | None) -> bytes:
        """Before the start nobody knows how long the prompt is; the end tells it again."""
        if self._opened:
            return b""
        self._opened = True
        usage = _usage(Usage(prompt=started.prompt_tokens if started else 0))
        message = {**self._message(), "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        return event("message_start", {"type": "message_start", "message": message})

    def say(self, spoken: Spoken) -> bytes:
        return b"".join(self._write(self._blocks.add(piece)) for piece in spoken.pieces)

    def close(self, ended: Ended) -> bytes:
        rest = self._write(self._blocks.end())
        self._ended = ended
        delta = {"stop_reason": self._stop_reason(), "stop_sequence": ended.stop or None}
        last = {"type": "message_delta", "delta": delta, "usage": _usage(ended.usage)}
        return rest + event("message_delta", last) + event("message_stop", {"type": "message_stop"})

    def fail(self, error: ApiError) -> bytes:
        return event("error", error.body(Api.ANTHROPIC))

    def alive(self, ahead: int) -> bytes:
        return _ping()

    def body(self) -> dict[str, object]:
        """A call that was cut is left out: its input is no JSON."""
        return {
            **self._message(),
            "content": [self._block(block) for block in self._blocks.all if block.whole],
            "stop_reason": self._stop_reason(),
            "stop_sequence": self._ended.stop or None,
            "usage": _usage(self._ended.usage),
        }

    def _message(self) -> dict[str, object]:
        return {"id": self._id, "type": "message", "role": "assistant", "model": self._naming.model}

    def _stop_reason(self) -> str:
        reason = _REASONS[self._ended.reason]
        return "tool_use" if reason == "end_turn" and self._blocks.of(Kind.CALL) else reason

    def _write(self, changes: list[Change]) -> bytes:
        return b"".join(self._event(change) for change in changes)

    def _event(self, change: Change) -> bytes:
        if isinstance(change, Opened):
            return self._start(change.block)
        if isinstance(change, Grown):
            return _delta(change.block, self._growth(change))
        return self._stop(change)

    def _start(self, block: Block) -> bytes:
        block.id = f"toolu_{self._naming.id()}" if block.kind is Kind.CALL else ""
        start = {"type": "content_block_start", "index": block.place, "content_block": _empty(block)}
        return event("content_block_start", start) + (_ping() if block.place == 0 else b"")

    def _growth(self, change: Grown) -> dict[str, object] | None:
        if change.block.kind is Kind.TEXT:
            return {"type": "text_delta", "text": change.text}
        if change.block.kind is Kind.CALL:
            return {"type": "input_json_delta", "partial_json": change.text}
        return {"type": "thinking_delta", "thinking": change.text} if self._shown else None

    def _stop(self, change: Closed) -> bytes:
        """Reasoning ends with its signature, which carries it to the next request."""
        block, before = change.block, b""
        if block.kind is Kind.REASONING:
            before = _delta(block, {"type": "signature_delta", "signature": signed(block.text)})
        return before + event("content_block_stop", {"type": "content_block_stop", "index": block.place})

    def _block(self, block: Block) -> dict[str, object]:
        if block.kind is Kind.TEXT:
            return {"type": "text", "text": block.text, "citations": None}
        if block.kind is Kind.REASONING:
            thinking = block.text if self._shown else ""
            return {"type": "thinking", "thinking": thinking, "signature": signed(block.text)}
        return {**_empty(block), "input": json.loads(block.text)}


def _empty(block: Block) -> dict[str, object]:
    if block.kind is Kind.TEXT:
        return {"type": "text", "text": ""}
    if block.kind is Kind.REASONING:
        return {"type": "thinking", "thinking": "", "signature": ""}
    return {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}


def _delta(block: Block, delta: dict[str, object] | None) -> bytes:
    if delta is None:
        return b""
    return event("content_block_delta", {"type": "content_block_delta", "index": block.place, "delta": delta})


def _ping() -> bytes:
    return event("ping", {"type": "ping"})


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "input_tokens": usage.prompt - usage.reused,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.reused,
        "output_tokens": usage.output,
    }
