"""Tools and how they may be called, as the two OpenAI APIs and Anthropic's say it (spec: product §3.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.prompt.ask import Choice, Form, JsonFormat, Tool
from app.prompt.limits import MOST_CALLS, MOST_TOOLS, TOOL_NAME
from app.serve.errors import bad
from app.serve.fields import Fields


def tool(fields: Fields, schema: str) -> Tool:
    """The tool whose JSON Schema is the field ``schema``."""
    name = fields.text("name")
    if not TOOL_NAME.fullmatch(name):
        fields.refuse("name", "must be 1 to 128 letters, digits or _ . : -")
    parameters = fields.object(schema)
    return Tool(name, fields.text("description", ""), parameters.raw if parameters else {})


def skipped(kind: str) -> str:
    """What is noted about a tool that runs at another provider."""
    return f"tools of the type {kind[:40]!r} are left out: they run elsewhere"


def checked(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """Raises ApiError for two tools of one name."""
    names = [each.name for each in tools]
    twice = next((name for name in names if names.count(name) > 1), "") if len(set(names)) < len(names) else ""
    if twice:
        raise bad(f"Two tools are named '{twice}'.", param="tools")
    return tuple(tools)


def openai_form(fields: Fields, tools: Sequence[Tool]) -> Form:
    """``tool_choice`` and ``parallel_tool_calls``, in the nested shapes of Chat Completions and the flat ones."""
    form = _chosen(fields, {each.name for each in tools})
    parallel = fields.flag("parallel_tool_calls", True) and not form.named
    return replace(form, parallel=parallel, most_calls=MOST_CALLS if parallel else 1)


def _chosen(fields: Fields, declared: set[str]) -> Form:
    if isinstance(fields.raw.get("tool_choice"), str):
        choice = Choice(fields.word("tool_choice", [each.value for each in Choice], "auto"))
        return required(declared) if choice is Choice.REQUIRED else Form(choice)
    given = fields.object("tool_choice")
    if given is None:
        return Form()
    kind = given.text("type", "")
    if kind in ("function", "custom"):
        return named(_name(given, kind), declared)
    if kind == "allowed_tools":
        return _allowed(given.object("allowed_tools") or given, declared)
    return given.refuse("type", "names a tool that does not run here")


def _allowed(given: Fields, declared: set[str]) -> Form:
    """Tools that run elsewhere drop out; with none left, nothing may be called."""
    mode = given.word("mode", ("auto", "required"), "auto")
    listed = given.objects("tools", MOST_TOOLS)
    mine = [each for each in listed if each.text("type", "function") in ("function", "custom")]
    names = tuple(_name(each, each.text("type", "function")) for each in mine)
    for name in names:
        named(name, declared)
    if not names and mode == "required":
        given.refuse("tools", "names no function, but a call is required")
    if not names:
        return Form(Choice.NONE)
    return Form(Choice(mode), allowed=tuple(dict.fromkeys(names)))


def _name(fields: Fields, kind: str) -> str:
    return (fields.object(kind) or fields).text("name")


def named(name: str, declared: set[str]) -> Form:
    """Exactly this tool is called. Raises ApiError when there is none of that name."""
    if name not in declared:
        raise bad(f"There is no tool named '{name[:128]}'.", "Name one of 'tools'.", "tool_choice")
    return Form(Choice.REQUIRED, named=name, parallel=False, most_calls=1)


def required(declared: set[str]) -> Form:
    if not declared:
        raise bad("A call is required, but there are no tools.", "Send 'tools'.", "tool_choice")
    return Form(Choice.REQUIRED)


def json_format(
    fields: Fields | None, kinds: Sequence[str] = ("text", "json_object", "json_schema")
) -> JsonFormat | None:
    """A format in either nesting: {type, json_schema: {name, schema}} or {type, name, schema}."""
    if fields is None:
        return None
    kind = fields.word("type", kinds, "text")
    if kind == "text":
        return None
    if kind == "json_object":
        return JsonFormat()
    inner = fields.object("json_schema") or fields
    schema = inner.object("schema")
    if schema is None:
        inner.refuse("schema", "must be an object")
    return JsonFormat(schema.raw, inner.text("name", ""))
