"""Items of a Responses request as entries of a conversation (spec: product A-050)."""

from __future__ import annotations

from app.prompt.ask import Call, Json
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
)
from app.serve.errors import bad
from app.serve.fields import Fields
from app.serve.signature import reasoning_of
from app.serve.store import Store

CUSTOM_INPUT = "input"
MOST_ITEMS = 10_000
MOST_REFERRED = 4 << 20
"""Characters."""
_ELSEWHERE = "items of tools that ran elsewhere are left out"


def new_items(fields: Fields, store: Store) -> tuple[Json, ...]:
    """What ``input`` holds, references looked up. Raises ApiError for one that leads nowhere."""
    if isinstance(fields.raw.get("input"), str):
        text = fields.text("input")
        content = [{"type": "input_text", "text": text}]
        return ({"type": "message", "role": "user", "content": content},) if text else ()
    referred = _Referred(store)
    return tuple(referred.item(item) for item in fields.objects("input", MOST_ITEMS))


def entries_of(items: tuple[Json, ...], notes: list[str]) -> list[Entry]:
    """Raises ApiError for an item of a type nobody knows."""
    read = (_entry(Fields(item, f"input[{index}]"), notes) for index, item in enumerate(items))
    return [entry for entry in read if entry is not None]


class _Referred:
    """Looks references up. Items referred to count as if they were sent: a few bytes may name a large one often."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left = MOST_REFERRED

    def item(self, item: Fields) -> Json:
        if item.raw.get("type") != "item_reference":
            return item.raw
        found = self._store.item(item.text("id"))
        if found is None:
            item.refuse("id", "names an item that is not kept here")
        self._left -= found.size
        if self._left < 0:
            raise bad("The items referred to are too large together.", "Refer to fewer of them.", "input")
        return found.value


def _entry(item: Fields, notes: list[str]) -> Entry | None:
    kind = item.text("type", "message")
    if kind == "message":
        return _message(item, notes)
    if kind == "reasoning":
        return AssistantEntry(reasoning=_reasoning(item))
    if kind == "function_call":
        return _call(item, arguments_of(item.text("arguments", "")))
    if kind == "custom_tool_call":
        return _call(item, {CUSTOM_INPUT: item.text("input", "")})
    if kind in ("function_call_output", "custom_tool_call_output"):
        return ResultEntry(item.text("call_id"), _text(item, "output", notes))
    if kind.endswith(("_call", "_call_output")) or kind.startswith("mcp_"):
        notes.append(_ELSEWHERE)
        return None
    return item.refuse("type", "is not known here")


def _call(item: Fields, arguments: Json) -> Entry:
    return AssistantEntry(calls=((item.text("call_id"), Call(item.text("name"), arguments)),))


def _message(item: Fields, notes: list[str]) -> Entry:
    role = item.word("role", ("user", "assistant", "system", "developer"), "")
    text = _text(item, "content", notes)
    if role == "user":
        return UserEntry(text)
    return AssistantEntry(text) if role == "assistant" else SystemEntry(text)


def _reasoning(item: Fields) -> str:
    """Ours exactly as it was; another's as far as it can be read."""
    own = reasoning_of(item.text("encrypted_content", ""))
    if own is not None:
        return own
    shown = item.objects("content", MOST_ITEMS) or item.objects("summary", MOST_ITEMS)
    return "\n\n".join(part.text("text", "") for part in shown)


def _text(item: Fields, name: str, notes: list[str]) -> str:
    if isinstance(item.raw.get(name), list):
        return "\n".join(_part(part, notes) for part in item.objects(name, MOST_ITEMS))
    return item.text(name)


def _part(part: Fields, notes: list[str]) -> str:
    kind = part.text("type", "")
    if kind in ("input_text", "output_text", "text", "summary_text"):
        return part.text("text")
    if kind == "refusal":
        return part.text("refusal")
    notes.append(NOTED)
    return IMAGE_NOTE if kind == "input_image" else FILE_NOTE
