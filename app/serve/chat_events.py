"""A Chat Completions answer: chunks of a stream, or one object (spec: product A-040 to A-042)."""

from __future__ import annotations

from app.room.api.events import Ended, Reason, Spoken, Started, Usage
from app.serve.blocks import Block, Blocks, Change, Grown, Kind, Opened
from app.serve.chat_request import ChatRequest
from app.serve.errors import Api, ApiError
from app.serve.sse import DONE, comment, data
from app.serve.writing import Naming


class ChatWriter:
    """A chunk for every token: role, reasoning, content, calls, finish, usage when asked for, the end mark."""

    def __init__(self, request: ChatRequest, naming: Naming) -> None:
        self._request = request
        self._naming = naming
        self._id = f"chatcmpl-{naming.id()}"
        self._created = naming.seconds()
        self._blocks = Blocks(hold_space=False)
        self._calls: list[Block] = []
        self._opened = False
        self._ended = Ended(Reason.STOP)

    def open(self, started: Started | None) -> bytes:
        if started is None or self._opened:
            return b""
        self._opened = True
        return self._chunk({"role": "assistant", "content": ""})

    def say(self, spoken: Spoken) -> bytes:
        return b"".join(self._write(self._blocks.add(piece)) for piece in spoken.pieces)

    def close(self, ended: Ended) -> bytes:
        self._blocks.end()
        self._ended = ended
        usage = self._chunk_of([], _usage(ended.usage)) if self._request.usage else b""
        return self._chunk({}, self._finish()) + usage + DONE

    def fail(self, error: ApiError) -> bytes:
        return data(error.body(Api.OPENAI))

    def alive(self, ahead: int) -> bytes:
        return comment(f"queued, {ahead} ahead" if ahead else "working")

    def body(self) -> dict[str, object]:
        choice = {"index": 0, "message": self._message(), "logprobs": None, "finish_reason": self._finish()}
        return {
            "id": self._id,
            "object": "chat.completion",
            "created": self._created,
            "model": self._naming.model,
            "choices": [choice],
            "usage": _usage(self._ended.usage),
        }

    def _write(self, changes: list[Change]) -> bytes:
        return b"".join(self._chunk(delta) for change in changes if (delta := self._delta(change)))

    def _delta(self, change: Change) -> dict[str, object]:
        if isinstance(change, Opened) and change.block.kind is Kind.CALL:
            self._name(change.block)
            return {"tool_calls": [{"index": len(self._calls) - 1, **_call(change.block, "")}]}
        if not isinstance(change, Grown):
            return {}
        if change.block.kind is Kind.CALL:
            return {"tool_calls": [{"index": len(self._calls) - 1, "function": {"arguments": change.text}}]}
        return {"reasoning_content" if change.block.kind is Kind.REASONING else "content": change.text}

    def _name(self, block: Block) -> None:
        block.id = f"call_{self._naming.id()}"
        self._calls.append(block)

    def _chunk(self, delta: dict[str, object], finish: str | None = None) -> bytes:
        return self._chunk_of([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}])

    def _chunk_of(self, choices: list[object], usage: dict[str, object] | None = None) -> bytes:
        chunk: dict[str, object] = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._naming.model,
            "choices": choices,
        }
        if self._request.usage:
            chunk["usage"] = usage
        return data(chunk)

    def _message(self) -> dict[str, object]:
        """A call that was cut is left out: its arguments are no JSON."""
        text = "".join(block.text for block in self._blocks.of(Kind.TEXT))
        reasoning = "".join(block.text for block in self._blocks.of(Kind.REASONING))
        whole = [_call(block, block.text) for block in self._calls if block.whole]
        message: dict[str, object] = {"role": "assistant", "content": text or (None if whole else ""), "refusal": None}
        if reasoning:
            message["reasoning_content"] = reasoning
        if whole:
            message["tool_calls"] = whole
        return message

    def _finish(self) -> str:
        """A named call is what was asked for, so it ends like a text."""
        if self._ended.reason in (Reason.MOST_TOKENS, Reason.CONTEXT):
            return "length"
        return "tool_calls" if self._calls and not self._request.named else "stop"


def _call(block: Block, arguments: str) -> dict[str, object]:
    return {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": arguments}}


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.reused},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
