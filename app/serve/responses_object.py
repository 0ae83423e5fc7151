"""The objects of the Responses API: a response, its output items and their parts (spec: product A-053)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from app.prompt.ask import Json
from app.room.api.events import Ended, Reason, Usage
from app.serve.blocks import Block, Kind
from app.serve.responses_items import CUSTOM_INPUT
from app.serve.responses_request import ResponsesRequest
from app.serve.signature import signed
from app.serve.writing import Naming

INCOMPLETE = (Reason.MOST_TOKENS, Reason.CONTEXT)
_DEFAULTS: dict[str, object] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "previous_response_id": None,
    "temperature": None,
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
}


def response_of(
    request: ResponsesRequest, head: dict[str, object], output: Sequence[Json], ended: Ended | None
) -> dict[str, object]:
    """``head``: id, time, model and status; ``ended`` None before the end."""
    ask = request.ask
    cut = ended is not None and ended.reason in INCOMPLETE
    return {
        "object": "response",
        **head,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": output,
        "usage": _usage(ended.usage) if ended else None,
        **_DEFAULTS,
        **request.echo,
        "parallel_tool_calls": ask.form.parallel if ask else True,
        "reasoning": {"effort": ask.thinking.effort.value if ask and ask.thinking.effort else None, "summary": None},
        "store": request.store,
        "text": {"format": _format(request)},
        "truncation": "disabled",
    }


def item_of(block: Block, status: str, call_id: str, request: ResponsesRequest) -> dict[str, object]:
    """The output item a block is; without content while in progress."""
    begun = status == "in_progress"
    item: dict[str, object] = {"id": block.id, "status": status}
    if block.kind is Kind.TEXT:
        return {
            **item,
            "type": "message",
            "role": "assistant",
            "content": [] if begun else [part_of(block, block.text)],
        }
    if block.kind is Kind.REASONING:
        carried = signed(block.text) if request.encrypted and not begun else None
        content = [] if begun else [part_of(block, block.text)]
        return {**item, "type": "reasoning", "summary": [], "content": content, "encrypted_content": carried}
    item |= {"call_id": call_id, "name": block.name}
    if block.name in request.custom:
        return {**item, "type": "custom_tool_call", "input": custom_input(block)}
    return {**item, "type": "function_call", "arguments": block.text}


def part_of(block: Block, text: str) -> dict[str, object]:
    if block.kind is Kind.REASONING:
        return {"type": "reasoning_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def custom_input(block: Block) -> str:
    """The one text a custom tool takes; empty until its arguments are whole."""
    if not block.whole:
        return ""
    arguments = cast("dict[str, object]", json.loads(block.text))
    text = arguments.get(CUSTOM_INPUT, "")
    return text if isinstance(text, str) else json.dumps(text)


def with_ids(items: Sequence[Json], naming: Naming) -> tuple[Json, ...]:
    """Items that came without an id get one, by which they can be referred to."""
    return tuple(item if item.get("id") else {**item, "id": f"item_{naming.id()}"} for item in items)


def _format(request: ResponsesRequest) -> dict[str, object]:
    form = request.ask.form.format if request.ask else None
    if form is None:
        return {"type": "text"}
    if form.schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", "name": form.name, "schema": form.schema, "strict": True}


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.reused},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.output,
    }
