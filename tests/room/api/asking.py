"""Programs in toy rooms: a model with tools, and everything it says to one ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.models.table import ModelRecord
from app.prompt.ask import Ask, Form, Tool, UserMessage
from app.prompt.language import Language, language
from app.prompt.pieces import CallArguments, CallBegun, Piece, Reasoning, Words
from app.room.api.events import AskEvent, AskStream, Ended, Refused, Spoken, Started
from tests.room.toy import IM_END, IM_START
from tests.room.world import Box, World

CALL, CALLED = 258, 259
SPECIAL = {"<|im_start|>": IM_START, "<|im_end|>": IM_END, "<tool_call>": CALL, "</tool_call>": CALLED}
TEMPLATE = """\
{%- if tools %}<|im_start|>system
{{ messages[0].content if messages[0].role == 'system' else '' }}
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}Call as <tool_call>{"name": NAME, "arguments": OBJECT}</tool_call><|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}
{%- for message in messages if message.role != 'system' %}<|im_start|>{{ message.role }}
{{ message.content }}
{%- for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


@dataclass(frozen=True)
class ToolTokenizer:
    """Ids are bytes, and the special tokens of a model that knows tools."""

    stop_ids: frozenset[int] = frozenset({IM_END})

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def special(self, text: str) -> int | None:
        return SPECIAL.get(text)

    def piece(self, token: int) -> bytes:
        return bytes([token]) if token < 256 else b""


async def open_tool_language(_record: ModelRecord) -> Language:
    return language(ToolTokenizer(), TEMPLATE)


class ToolWorld(World):
    open_language = staticmethod(open_tool_language)


COLOUR = Tool(
    "paint",
    "Paints a wall.",
    {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "green", "blue"]}, "coats": {"type": "integer", "enum": [1, 2, 3]}},
        "required": ["colour", "coats"],
        "additionalProperties": False,
    },
)


def said(text: str, **more: Any) -> Ask:
    return Ask((UserMessage(text),), **({"most_tokens": 24} | more))


def calling(text: str, form: Form, *, tools: Sequence[Tool] = (COLOUR,), **more: Any) -> Ask:
    return said(text, tools=tuple(tools), form=form, **({"most_tokens": 400} | more))


@dataclass
class Heard:
    """All events of one ask."""

    events: list[AskEvent] = field(default_factory=list[AskEvent])
    hearing: asyncio.Future[None] | None = None

    @property
    def pieces(self) -> list[Piece]:
        return [piece for event in self.events if isinstance(event, Spoken) for piece in event.pieces]

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces if isinstance(piece, Words))

    @property
    def reasoning(self) -> str:
        return "".join(piece.text for piece in self.pieces if isinstance(piece, Reasoning))

    @property
    def calls(self) -> list[tuple[str, str]]:
        names = {piece.index: piece.name for piece in self.pieces if isinstance(piece, CallBegun)}
        return [
            (name, "".join(p.text for p in self.pieces if isinstance(p, CallArguments) and p.index == index))
            for index, name in names.items()
        ]

    @property
    def started(self) -> Started:
        return next(event for event in self.events if isinstance(event, Started))

    @property
    def ended(self) -> Ended:
        last = self.events[-1]
        assert isinstance(last, Ended), self.events
        return last

    @property
    def refused(self) -> Refused:
        last = self.events[-1]
        assert isinstance(last, Refused), self.events
        return last

    @property
    def over(self) -> bool:
        return bool(self.events) and isinstance(self.events[-1], Ended | Refused)


def listen(stream: AskStream) -> Heard:
    """Hears in the background."""
    heard = Heard()

    async def hear() -> None:
        async for event in stream:
            heard.events.append(event)

    heard.hearing = asyncio.ensure_future(hear())
    return heard


async def until(world: World, condition: Callable[[], bool]) -> None:
    """Threads beside the loop do their part in real time."""
    while not condition():
        await asyncio.sleep(0.002)
        await world.run(0.05)


async def asked(world: World, box: Box, ask: Ask) -> Heard:
    """One ask to its end."""
    heard = listen(box.room.answers.ask(ask))
    await until(world, lambda: heard.over)
    return heard
