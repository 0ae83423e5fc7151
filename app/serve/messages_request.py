"""A Messages request of Anthropic's API as an ask (spec: product §3.4, §3.8)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.prompt.ask import Ask, Call, Choice, Form, Thinking, Tool
from app.prompt.limits import MOST_CALLS, MOST_MESSAGES, MOST_TOOLS
from app.serve.conversation import (
    FILE_NOTE,
    IMAGE_NOTE,
    NOTED,
    AssistantEntry,
    Entry,
    ResultEntry,
    SystemEntry,
    UserEntry,
    fold,
)
from app.serve.fields import Fields
from app.serve.parameters import Facts, complete, most_tokens, refuse_given, sampling, stops, thinking_of
from app.serve.signature import reasoning_of
from app.serve.tools import checked, json_format, named, required, skipped, tool

BILLING = "x-anthropic-billing-header"
_MOST_PARTS = 10_000


@dataclass(frozen=True)
class MessagesRequest:
    """``shown``: the reasoning is sent as text, and not only within its signature."""

    ask: Ask
    stream: bool = False
    shown: bool = True
    notes: tuple[str, ...] = ()


def messages_request(fields: Fields, facts: Facts) -> MessagesRequest:
    """Raises ApiError for what is wrong or not supported."""
    fields.text("model")
    if not fields.has("max_tokens"):
        fields.refuse("max_tokens", "is missing")
    notes: list[str] = []
    ask = _ask(fields, facts, notes)
    shown = _thinking_field(fields).text("display", "") != "omitted"
    return MessagesRequest(ask, fields.flag("stream", False), shown, tuple(dict.fromkeys(notes)))


def count_request(fields: Fields, facts: Facts) -> Ask:
    """The ask whose tokens a client wants to know."""
    return _ask(fields, facts, [])


def _ask(fields: Fields, facts: Facts, notes: list[str]) -> Ask:
    refuse_given(fields, ("mcp_servers",), {})
    tools = _tools(fields, notes)
    output = fields.object("output_config") or Fields({})
    form = _form(fields, {each.name for each in tools})
    form = form if tools else Form()
    format_given = output.object("format") or fields.object("output_format")
    form = replace(form, format=json_format(format_given, ("text", "json_schema")))
    system, messages = fold(_entries(fields, notes))
    most = most_tokens(fields, "max_tokens")
    ask = Ask(
        messages,
        system,
        () if form.choice is Choice.NONE else tools,
        form,
        _thinking(fields, output, most),
        most,
        sampling(fields, 1),
        stops=stops(fields, "stop_sequences"),
    )
    return complete(ask, facts)


def _thinking_field(fields: Fields) -> Fields:
    return fields.object("thinking") or Fields({})


def _thinking(fields: Fields, output: Fields, most: int) -> Thinking:
    given = _thinking_field(fields)
    kind = given.word("type", ("enabled", "adaptive", "disabled"), "disabled")
    if kind == "disabled":
        return Thinking()
    effort = thinking_of(output, "effort").effort
    if kind == "adaptive":
        return Thinking(True, effort)
    budget = given.whole("budget_tokens", 1)
    if budget is None:
        given.refuse("budget_tokens", "is missing")
    if budget >= (fields.whole("max_tokens", 1) or most + budget + 1):
        given.refuse("budget_tokens", "must be less than 'max_tokens'")
    return Thinking(True, effort, min(budget, most - 1))


def _tools(fields: Fields, notes: list[str]) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for each in fields.objects("tools", MOST_TOOLS):
        kind = each.text("type", "custom")
        if kind == "custom":
            tools.append(tool(each, "input_schema"))
        else:
            notes.append(skipped(kind))
    return checked(tools)


def _form(fields: Fields, declared: set[str]) -> Form:
    given = fields.object("tool_choice")
    if given is None:
        return Form(most_calls=MOST_CALLS)
    kind = given.word("type", ("auto", "any", "tool", "none"), "")
    if kind == "none":
        return Form(Choice.NONE)
    if kind == "tool":
        return named(given.text("name"), declared)
    parallel = not given.flag("disable_parallel_tool_use", False)
    form = required(declared) if kind == "any" else Form()
    return replace(form, parallel=parallel, most_calls=MOST_CALLS if parallel else 1)


def _entries(fields: Fields, notes: list[str]) -> list[Entry]:
    entries: list[Entry] = [SystemEntry(text) for text in _system(fields)]
    for message in fields.objects("messages", MOST_MESSAGES):
        role = message.word("role", ("user", "assistant", "system", "developer"), "")
        parts = _parts(message)
        if role == "assistant":
            entries += [entry for part in parts if (entry := _said(part, notes))]
        elif role == "user":
            entries += _turn(parts, notes)
        else:
            entries += [SystemEntry(_text(part, notes)) for part in parts]
    return entries


def _system(fields: Fields) -> list[str]:
    """A block that tells who pays changes with every request; it would keep any prompt from being reused."""
    if isinstance(fields.raw.get("system"), str):
        texts = [fields.text("system")]
    else:
        texts = [block.text("text", "") for block in fields.objects("system", _MOST_PARTS)]
    return [text for text in texts if not text.lstrip().lower().startswith(BILLING)]


def _parts(message: Fields) -> list[Fields]:
    if isinstance(message.raw.get("content"), str):
        return [Fields({"type": "text", "text": message.text("content")}, message.at("content"))]
    if not message.has("content"):
        message.refuse("content", "is missing")
    return message.objects("content", _MOST_PARTS)


def _turn(parts: list[Fields], notes: list[str]) -> list[Entry]:
    """A user's message: results of tools come first, and what is said beside them is an aside."""
    results = [_result(part, notes) for part in parts if part.raw.get("type") == "tool_result"]
    words = [_text(part, notes) for part in parts if part.raw.get("type") != "tool_result"]
    said = [UserEntry("\n\n".join(words), aside=bool(results))] if words else []
    return [*results, *said]


def _result(part: Fields, notes: list[str]) -> Entry:
    failed = "The tool failed: " if part.flag("is_error", False) else ""
    inner = _parts(part) if part.has("content") else []
    return ResultEntry(part.text("tool_use_id"), failed + "\n".join(_text(each, notes) for each in inner))


def _text(part: Fields, notes: list[str]) -> str:
    kind = part.text("type", "")
    if kind == "text":
        return part.text("text")
    if kind == "search_result":
        part.refuse("type", "is search_result, which is not supported here")
    notes.append(NOTED)
    return IMAGE_NOTE if kind == "image" else FILE_NOTE


def _said(part: Fields, notes: list[str]) -> Entry | None:
    """A block of an earlier answer."""
    kind = part.text("type", "")
    if kind == "tool_use":
        given = part.object("input")
        call = Call(part.text("name"), given.raw if given else {})
        return AssistantEntry(calls=((part.text("id"), call),))
    if kind == "thinking":
        own = reasoning_of(part.text("signature", ""))
        return AssistantEntry(reasoning=part.text("thinking", "") if own is None else own)
    if kind == "text":
        return AssistantEntry(part.text("text"))
    notes.append(skipped(kind))
    return None
