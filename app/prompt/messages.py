"""An ask in the form chat templates read, with every word of the client in a placeholder (spec: rooms §18.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.prompt.ask import AskMessage, AssistantMessage, Call, Tool, ToolMessage, UserMessage
from app.prompt.json_text import DEEPEST, too_deep
from app.prompt.parameter_types import TYPES
from app.prompt.slots import Slots

KEYWORDS = (
    "type properties required items enum const description title default anyOf oneOf allOf additionalProperties "
    "prefixItems minItems maxItems minimum maximum minLength maxLength pattern format nullable"
)
SCHEMA_WORDS = TYPES | frozenset(KEYWORDS.split())
"""Templates ask for these by name. None of them means anything to a model's tokenizer."""


@dataclass
class Messages:
    """What a template is given. ``spans``: by message, the numbers of its placeholders."""

    slots: Slots
    rows: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    spans: list[range] = field(default_factory=list[range])
    needed: list[int] = field(default_factory=list[int])
    thoughts: dict[int, int] = field(default_factory=dict[int, int])
    """The placeholder of an answer's reasoning, by message."""

    def system(self, text: str) -> None:
        if text:
            self.rows.append({"role": "system", "content": self._text(text)})

    def add(self, messages: Sequence[AskMessage], exact: int | None = None) -> None:
        """``exact``: the answer that only its sampled ids stand for; its place stays empty here.

        Raises PromptError for arguments that are nested too deeply.
        """
        results = _ResultIds()
        for at, message in enumerate(messages):
            first = len(self.slots.all)
            match message:
                case UserMessage():
                    self.rows.append({"role": "user", "content": self._text(message.text)})
                case AssistantMessage():
                    names = results.begin(message.calls)
                    shown = AssistantMessage("") if at == exact else message
                    self.rows.append(self._answer(at, shown, names))
                case ToolMessage():
                    self.rows.append(self._result(message, *results.next()))
            self.spans.append(range(first, len(self.slots.all)))

    def tools(self, tools: Sequence[Tool]) -> list[dict[str, object]] | None:
        return [self._tool(tool) for tool in tools] or None

    def _text(self, text: str) -> str:
        """Text the conversation makes no sense without."""
        first = len(self.slots.all)
        placed = self.slots.text(text)
        self.needed += range(first, len(self.slots.all))
        return placed

    def _answer(self, at: int, message: AssistantMessage, names: Sequence[str]) -> dict[str, object]:
        calls = [self._call(call, name) for call, name in zip(message.calls, names, strict=False)]
        empty = not message.text.strip() and not calls
        row: dict[str, object] = {"role": "assistant"}
        row["content"] = self.slots.exact(()) if empty else self._text(message.text)
        if calls:
            row["tool_calls"] = calls
        if message.reasoning.strip():
            self.thoughts[at] = len(self.slots.all)
            row["reasoning_content"] = self.slots.text(message.reasoning)
        return row

    def _call(self, call: Call, name: str) -> dict[str, object]:
        called = {"name": self.slots.whole(call.name), "arguments": self._masked(call.arguments, frozenset())}
        return {"id": name, "type": "function", "function": called}

    def _result(self, message: ToolMessage, name: str, called: str) -> dict[str, object]:
        row: dict[str, object] = {"role": "tool", "content": self._text(message.text), "tool_call_id": name}
        return row | ({"name": self.slots.whole(called)} if called else {})

    def _tool(self, tool: Tool) -> dict[str, object]:
        parameters = tool.parameters or {"type": "object", "properties": {}}
        told = {
            "name": self.slots.whole(tool.name),
            "description": self.slots.whole(tool.description) if tool.description else "",
            "parameters": self._masked(parameters, SCHEMA_WORDS),
        }
        return {"type": "function", "function": told}

    def _masked(self, value: object, plain: frozenset[str], depth: int = 0) -> object:
        """A JSON value whose keys and strings are placeholders, but for the words in ``plain``."""
        if depth > DEEPEST:
            raise too_deep()
        if isinstance(value, str):
            return value if value in plain or not value else self.slots.whole(value)
        if isinstance(value, Mapping):
            pairs = value.items()
            return {self._masked(str(k), plain, depth): self._masked(v, plain, depth + 1) for k, v in pairs}
        if isinstance(value, (list, tuple)):
            return [self._masked(item, plain, depth + 1) for item in value]
        return value


class _ResultIds:
    """Names for calls, which results name again; nine letters and digits suit every template."""

    def __init__(self) -> None:
        self._count = 0
        self._open: list[tuple[str, str]] = []

    def begin(self, calls: Sequence[Call]) -> list[str]:
        names = [f"call{self._count + i:05d}" for i in range(len(calls))]
        self._count += len(calls)
        self._open = [(name, call.name) for name, call in zip(names, calls, strict=True)]
        return names

    def next(self) -> tuple[str, str]:
        """The name and tool of the call whose result comes next."""
        return self._open.pop(0) if self._open else (f"call{self._count:05d}", "")
