"""A request of the Responses API as an ask (spec: product §3.4, §3.6)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.prompt.ask import Ask, Choice, Form, Json, JsonFormat, Thinking, Tool
from app.prompt.limits import MOST_CALLS, MOST_TOOLS
from app.serve.conversation import SystemEntry, fold
from app.serve.fields import Fields
from app.serve.parameters import (
    Facts,
    bias,
    complete,
    most_tokens,
    refuse_given,
    sampling,
    seed_of,
    stops,
    thinking_of,
)
from app.serve.responses_items import CUSTOM_INPUT, entries_of, new_items
from app.serve.store import Store
from app.serve.tools import checked, json_format, openai_form, skipped, tool

ENCRYPTED = "reasoning.encrypted_content"
_UNSUPPORTED = (
    "background", "conversation", "prompt", "top_logprobs", "logprobs", "presence_penalty", "frequency_penalty",
)  # fmt: skip
_NEUTRAL: dict[str, tuple[object, ...]] = {
    "background": (False,),
    "top_logprobs": (0,),
    "logprobs": (False,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
}
_ECHOED = ("instructions", "max_output_tokens", "max_tool_calls", "metadata", "previous_response_id", "temperature",
           "tool_choice", "tools", "top_p", "user", "safety_identifier", "prompt_cache_key")  # fmt: skip
_MOST_INCLUDED = 32


@dataclass(frozen=True)
class ResponsesRequest:
    """``ask`` None: nothing is asked, as a probe does. ``custom``: tools that take one text.

    ``items``: the whole conversation so far. ``echo``: what the answer repeats of the request.
    """

    ask: Ask | None
    items: tuple[Json, ...]
    echo: Json
    custom: frozenset[str] = frozenset()
    encrypted: bool = False
    store: bool = True
    stream: bool = False
    notes: tuple[str, ...] = ()


def responses_request(fields: Fields, facts: Facts, store: Store) -> ResponsesRequest:
    """Raises ApiError for what is wrong or not supported."""
    refuse_given(fields, _UNSUPPORTED, _NEUTRAL)
    fields.text("model", "")
    included = fields.texts("include", _MOST_INCLUDED)
    if any("logprobs" in each for each in included):
        fields.refuse("include", "asks for logprobs, which are not supported here")
    notes: list[str] = []
    items = _before(fields, store) + new_items(fields, store)
    return ResponsesRequest(
        _ask(fields, facts, items, notes) if items else None,
        items,
        {name: fields.raw[name] for name in _ECHOED if fields.has(name)},
        frozenset(each.text("name") for each in fields.objects("tools", MOST_TOOLS) if _is_custom(each)),
        ENCRYPTED in included,
        fields.flag("store", True),
        fields.flag("stream", False),
        tuple(dict.fromkeys(notes)),
    )


def _before(fields: Fields, store: Store) -> tuple[Json, ...]:
    identity = fields.text("previous_response_id", "")
    return store.previous(identity).conversation if identity else ()


def _ask(fields: Fields, facts: Facts, items: tuple[Json, ...], notes: list[str]) -> Ask:
    tools = _tools(fields, notes)
    form = _form(fields, tools)
    system, messages = fold([SystemEntry(fields.text("instructions", "")), *entries_of(items, notes)])
    ask = Ask(
        messages,
        system,
        () if form.choice is Choice.NONE else tools,
        form,
        _thinking(fields),
        most_tokens(fields, "max_output_tokens"),
        sampling(fields, 2),
        seed_of(fields),
        bias(fields),
        stops(fields, "stop"),
    )
    return complete(ask, facts)


def _form(fields: Fields, tools: tuple[Tool, ...]) -> Form:
    form = openai_form(fields, tools)
    most = fields.whole("max_tool_calls", 1, 128) or MOST_CALLS
    form = replace(form, most_calls=min(form.most_calls, most)) if tools else Form()
    return replace(form, format=_format(fields))


def _format(fields: Fields) -> JsonFormat | None:
    text = fields.object("text")
    return json_format(text.object("format")) if text else None


def _thinking(fields: Fields) -> Thinking:
    reasoning = fields.object("reasoning")
    return thinking_of(reasoning, "effort") if reasoning else Thinking()


def _tools(fields: Fields, notes: list[str]) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for each in fields.objects("tools", MOST_TOOLS):
        kind = each.text("type", "function")
        if _is_custom(each):
            tools.append(_custom(each))
        elif kind == "function":
            tools.append(tool(each, "parameters"))
        else:
            notes.append(skipped(kind))
    return checked(tools)


def _is_custom(fields: Fields) -> bool:
    return fields.raw.get("type") == "custom"


def _custom(fields: Fields) -> Tool:
    """A tool that takes one text. The form that text must have is told the model in words."""
    form = fields.object("format")
    definition = form.text("definition", "") if form else ""
    described = "\n\n".join(text for text in (fields.text("description", ""), definition) if text)
    schema: Json = {
        "type": "object",
        "properties": {CUSTOM_INPUT: {"type": "string"}},
        "required": [CUSTOM_INPUT],
        "additionalProperties": False,
    }
    return replace(tool(fields, "parameters"), description=described, parameters=schema)
