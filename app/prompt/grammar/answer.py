"""The grammar of a whole answer: reasoning, then text, calls or a value as was asked (spec: A-060, A-062, A-065)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.prompt.ask import Choice, Form
from app.prompt.grammar.compiling import json_rule
from app.prompt.grammar.json_calls import json_call
from app.prompt.grammar.schema import Schema
from app.prompt.grammar.style import CallStyle, ThinkState
from app.prompt.grammar.xml_calls import COMMON, xml_call
from app.prompt.limits import MOST_CALLS

GAP = r"GAP: /[ \n]{1,4}/"


@dataclass(frozen=True)
class Wanted:
    """``calls``: tools that may be called, their schemas read. ``value``: the format's schema, or None."""

    calls: Sequence[tuple[str, Schema]]
    value: Schema | None
    form: Form


@dataclass(frozen=True)
class Tags:
    """Tags are single tokens where the model has them, else their letters."""

    ids: Mapping[str, int]

    def one(self, tag: str) -> str:
        return f"<[{self.ids[tag]}]>" if tag in self.ids else json.dumps(tag)

    def after_text(self, rule: str, tag: str) -> str:
        """A rule for any text, then ``tag``."""
        if tag in self.ids:
            return f"{rule}: /(?s:.*)/ {self.one(tag)}"
        return f"{rule}[lazy]: /(?s:.*)/ {json.dumps(tag)}"


def answer_grammar(tags: Tags, style: CallStyle, think: ThinkState, wanted: Wanted) -> str:
    """Lines for the grammar library."""
    lines = [GAP, *_thinking(tags, think), *_body(tags, wanted)]
    if wanted.calls:
        lines += _calls(tags, style, wanted)
    if wanted.value:
        lines.append(f"value: {json_rule(wanted.value, wanted.value.root)}")
    return "\n".join(lines)


def _thinking(tags: Tags, think: ThinkState) -> list[str]:
    end = tags.after_text("reasoning", "</think>")
    match think:
        case ThinkState.OPEN:
            return ["start: reasoning body", end]
        case ThinkState.MAY:
            return [f"start: (GAP? {tags.one('<think>')} reasoning)? body", end]
        case ThinkState.NEVER:
            return ["start: body"]


def _body(tags: Tags, wanted: Wanted) -> list[str]:
    """What follows the reasoning. Where a text may come, it takes the white space too."""
    called = bool(wanted.calls)
    if wanted.value:
        return ["body: GAP? (value | calls) GAP?" if called else "body: GAP? value GAP?"]
    if wanted.form.choice is Choice.REQUIRED or wanted.form.named:
        return ["body: GAP? calls GAP?"]
    if not called:
        return ["body: /(?s:.*)/"]
    if "<tool_call>" in tags.ids:
        return ["body: /(?s:.*)/ (calls GAP?)?"]
    tag = "<tool_call>".replace("/", r"\/")
    return [
        f"FREE: /(?s:.*)/ & ~/(?s:.*){tag}(?s:.*)/",
        "body: FREE | begun more GAP?",
        tags.after_text("begun", "<tool_call>"),
    ]


def _calls(tags: Tags, style: CallStyle, wanted: Wanted) -> list[str]:
    most = min(MOST_CALLS, wanted.form.most_calls) if wanted.form.parallel and not wanted.form.named else 1
    opening, closing = tags.one("<tool_call>"), tags.one("</tool_call>")
    again = f" (GAP? {opening} tool {closing}){{0,{most - 1}}}" if most > 1 else ""
    tools = [_tool(style, f"t{number}", name, schema) for number, (name, schema) in enumerate(wanted.calls)]
    shared = COMMON if style is CallStyle.XML else []
    choice = " | ".join(f"t{number}" for number in range(len(tools)))
    head = [f"calls: {opening} more", f"more: tool {closing}{again}", f"tool: {choice}"]
    return [*head, *shared, *(line for tool in tools for line in tool)]


def _tool(style: CallStyle, rule: str, name: str, schema: Schema) -> list[str]:
    return xml_call(rule, name, schema) if style is CallStyle.XML else json_call(rule, name, schema)
