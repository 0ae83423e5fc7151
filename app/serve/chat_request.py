"""A Chat Completions request as an ask (spec: product §3.4, §3.5)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.prompt.ask import Ask, Call, Choice, Form, Thinking, Tool
from app.prompt.limits import MOST_CALLS_READ, MOST_MESSAGES, MOST_TOOLS
from app.serve.conversation import (
    FILE_NOTE,
    IMAGE_NOTE,
    NOTED,
    AssistantEntry,
    Entry,
    ResultEntry,
    SystemEntry,
    UserEntry,
    arguments_of,
    fold,
)
from app.serve.errors import bad
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
from app.serve.tools import checked, json_format, openai_form, skipped, tool

_UNSUPPORTED = (
    "n", "logprobs", "top_logprobs", "audio", "modalities", "prediction", "web_search_options", "functions",
    "function_call", "presence_penalty", "frequency_penalty",
)  # fmt: skip
_NEUTRAL: dict[str, tuple[object, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "modalities": (["text"],),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
}
_MOST_PARTS = 10_000


@dataclass(frozen=True)
class ChatRequest:
    """``usage``: a last chunk tells it. ``notes``: what was left out, for the log."""

    ask: Ask
    stream: bool = False
    usage: bool = False
    notes: tuple[str, ...] = ()

    @property
    def named(self) -> bool:
        return bool(self.ask.form.named)


def chat_request(fields: Fields, facts: Facts) -> ChatRequest:
    """Raises ApiError for what is wrong or not supported."""
    refuse_given(fields, _UNSUPPORTED, _NEUTRAL)
    fields.text("model", "")
    notes: list[str] = []
    tools = _tools(fields, notes)
    form = replace(openai_form(fields, tools), format=json_format(fields.object("response_format")))
    system, messages = fold(_entries(fields, notes))
    ask = Ask(
        messages,
        system,
        () if form.choice is Choice.NONE else tools,
        form if tools else Form(format=form.format),
        _thinking(fields),
        most_tokens(fields, "max_completion_tokens", "max_tokens"),
        sampling(fields, 2),
        seed_of(fields),
        bias(fields),
        stops(fields, "stop"),
    )
    options = fields.object("stream_options")
    usage = options is not None and options.flag("include_usage", False)
    return ChatRequest(complete(ask, facts), fields.flag("stream", False), usage, tuple(dict.fromkeys(notes)))


def _thinking(fields: Fields) -> Thinking:
    if fields.has("reasoning_effort"):
        return thinking_of(fields, "reasoning_effort")
    template = fields.object("chat_template_kwargs")
    return Thinking(on=template is not None and template.flag("enable_thinking", False))


def _tools(fields: Fields, notes: list[str]) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for each in fields.objects("tools", MOST_TOOLS):
        kind = each.text("type", "function")
        if kind == "custom":
            each.refuse("type", "is custom, which only the Responses API takes")
        if kind != "function":
            notes.append(skipped(kind))
            continue
        tools.append(tool(each.object("function") or each, "parameters"))
    return checked(tools)


def _entries(fields: Fields, notes: list[str]) -> list[Entry]:
    return [_entry(message, notes) for message in fields.objects("messages", MOST_MESSAGES)]


def _entry(message: Fields, notes: list[str]) -> Entry:
    role = message.word("role", ("system", "developer", "user", "assistant", "tool"), "")
    if role == "assistant":
        text = _text(message, notes) or message.text("refusal", "")
        reasoning = message.text("reasoning_content", "") or message.text("reasoning", "")
        return AssistantEntry(text, _calls(message), reasoning)
    if role == "tool":
        return ResultEntry(message.text("tool_call_id"), _text(message, notes))
    if not message.has("content"):
        message.refuse("content", "is missing")
    return UserEntry(_text(message, notes)) if role == "user" else SystemEntry(_text(message, notes))


def _calls(message: Fields) -> tuple[tuple[str, Call], ...]:
    if message.has("function_call"):
        message.refuse("function_call", "is not supported here: use tool_calls")
    return tuple(_call(call) for call in message.objects("tool_calls", MOST_CALLS_READ))


def _call(call: Fields) -> tuple[str, Call]:
    function = call.object("function")
    if function is None:
        raise bad(f"'{call.at('function')}' is missing.", param=call.at("function"))
    return call.text("id", ""), Call(function.text("name"), arguments_of(function.text("arguments", "")))


def _text(message: Fields, notes: list[str]) -> str:
    if isinstance(message.raw.get("content"), list):
        return "\n".join(_part(part, notes) for part in message.objects("content", _MOST_PARTS))
    return message.text("content", "")


def _part(part: Fields, notes: list[str]) -> str:
    kind = part.text("type", "")
    if kind == "text":
        return part.text("text")
    if kind == "refusal":
        return part.text("refusal")
    notes.append(NOTED)
    return IMAGE_NOTE if kind == "image_url" else FILE_NOTE
