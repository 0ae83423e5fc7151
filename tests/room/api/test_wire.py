"""A program's ask as a message: nothing is lost between two of ours, and nonsense is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.core.errors import ProtocolError
from app.engine.types import Sampling
from app.prompt.ask import (
    Ask,
    AssistantMessage,
    Call,
    Choice,
    Effort,
    Form,
    JsonFormat,
    Thinking,
    Tool,
    ToolMessage,
    UserMessage,
)
from app.room import messages as m
from app.room.api.wire import ask_message, read_ask
from app.room.binarypack import pack, unpack

SCHEMA = {
    "type": "object",
    "properties": {"n": {"minimum": -(2**53) + 1, "default": None, "const": None}, "f": {"const": False}},
    "additionalProperties": False,
}
ASK = Ask(
    messages=(
        UserMessage("Paint."),
        AssistantMessage("Yes", (Call("paint", {"colour": None, "wet": False, "n": 10**20}),), "Hm"),
        ToolMessage("Done"),
        UserMessage("beside", aside=True),
    ),
    system="You paint.",
    tools=(Tool("paint", "Paints", SCHEMA),),
    form=Form(Choice.REQUIRED, "paint", ("paint",), False, 3, JsonFormat(SCHEMA, "wall")),
    thinking=Thinking(True, Effort.EXTRA, 77),
    most_tokens=99,
    sampling=Sampling(0.7, 12, 0.9, 0.05),
    seed=-7,
    bias={3: -100.0, 8: 1.5},
    stops=("END",),
    client="tester",
)


def travelled(message: m.Ask) -> m.Ask:
    """Through the packing and the checks of a link."""
    raw: Any = unpack(pack(m.encode(message)))
    read = m.decode(raw)
    assert isinstance(read, m.Ask)
    return read


def test_between_two_of_ours_nothing_is_lost() -> None:
    assert read_ask(travelled(ask_message(ASK, "r1", ours=True))) == ASK


def test_a_published_host_gets_all_it_can_carry() -> None:
    plain = {"type": "object", "properties": {"n": {"minimum": 0, "const": None}, "f": {"const": False}}}
    ask = Ask((UserMessage("Hi"),), tools=(Tool("t", "", plain),), sampling=Sampling(0.7, 12))
    assert read_ask(travelled(ask_message(ask, "r1", ours=False))) == ask


def test_bounds_that_a_published_host_cannot_carry_are_left_out() -> None:
    ask = Ask((UserMessage("Hi"),), tools=(Tool("t", "", SCHEMA),))
    (tool,) = read_ask(travelled(ask_message(ask, "r1", ours=False))).tools
    assert tool.parameters["properties"] == {"n": {"default": None, "const": None}, "f": {"const": False}}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": []},
        {"messages": [{"role": "assistant", "text": "Me"}]},
        {"messages": [{"role": "system", "text": "x"}, {"role": "user"}]},
        {"messages": [{"role": "user"}], "params": {"bias": {"9" * 5_000: 1}}},
        {"messages": [{"role": "user"}], "params": {"bias": {"x": 1}}},
        {"messages": [{"role": "user"}], "params": {"toolChoice": "some"}},
        {"messages": [{"role": "user"}], "params": {"temperature": 3}},
        {"messages": [{"role": "user", "text": "x" * 800_000}, {"role": "user", "text": "x" * 800_000}]},
        {"messages": [{"role": "user"}] * 1_001},
    ],
    ids=range(10),
)
def test_nonsense_is_refused_in_words(body: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        read_ask(m.Ask(rid="r1", body=json.dumps(body)))


def test_text_that_is_no_json_is_refused() -> None:
    for body in ("[", "[" * 100_000, "null", "\x00"):
        with pytest.raises(ProtocolError):
            read_ask(m.Ask(rid="r1", body=body))
