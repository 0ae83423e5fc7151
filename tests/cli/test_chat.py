"""A talk with a room that answers from a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from app.cli.chat import Talk
from app.cli.conversation import Conversation
from app.cli.ending import DONE, FAILED, Ending
from app.prompt.ask import Ask, AssistantMessage, UserMessage
from app.prompt.pieces import Reasoning, Words
from app.room.api.events import (
    AskEvent,
    AskStream,
    Ended,
    Queued,
    Reason,
    Refusal,
    Refused,
    ServedModel,
    Spoken,
    Started,
    Usage,
)
from tests.cli.fake_room import Typist, printer, settle

BLUE = (
    Queued(2),
    Started("tiny", 70, 2048),
    Spoken((Words("It is"),)),
    Spoken((Words(" blue."),)),
    Ended(Reason.STOP, Usage(70, 34, 4)),
)


class Stream:
    """Says its events; after the last it waits where ``hangs``, until it is closed."""

    def __init__(self, events: Sequence[AskEvent], hangs: bool) -> None:
        self._events, self._hangs = events, hangs
        self.closed = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[AskEvent]:
        for event in self._events:
            yield event
            await asyncio.sleep(0)
        if self._hangs:
            await self.closed.wait()

    def close(self) -> None:
        self.closed.set()


class Script:
    """``events.Answers``."""

    room = "4TKG9P"
    model = ServedModel("tiny", "Tiny", 2048)

    def __init__(self, *answers: Sequence[AskEvent], hangs: bool = False) -> None:
        self._answers, self._hangs = list(answers), hangs
        self.asked: list[Ask] = []

    def ask(self, ask: Ask) -> AskStream:
        self.asked.append(ask)
        return Stream(self._answers.pop(0), self._hangs)

    async def count(self, ask: Ask) -> int:
        raise NotImplementedError


class Chat:
    """One talk at work, and what it has printed."""

    def __init__(self, script: Script, conversation: Conversation | None = None, *, interactive: bool = True) -> None:
        self.script, self.ending = script, Ending()
        self.typist = Typist(interactive=interactive)
        words, self.out = printer(interactive=interactive, color_system=None)
        aside, self.err = printer()
        self.talk = Talk(script, self.typist.keyboard, words, aside, self.ending, conversation or Conversation())

    @property
    def said(self) -> str:
        return self.out.getvalue()

    async def over(self, *lines: str) -> str:
        self.typist.type(*lines, "/exit")
        assert await asyncio.wait_for(self.talk.run(), 5) == DONE
        self.typist.end()
        await settle()
        return self.said


async def test_an_answer_comes_with_its_figures() -> None:
    said = await Chat(Script(BLUE)).over("Why?")
    assert "It is blue.\n4TK-G9P · Tiny · 4 tokens" in said
    assert "34 of 70 prompt tokens reused" in said


async def test_what_was_said_is_asked_again_until_it_is_cleared() -> None:
    chat = Chat(Script(BLUE, BLUE, BLUE), Conversation(system="Be brief.", most_tokens=9, temperature=0.5))
    await chat.over("Why?", "And at night?", "/clear", "Anew?")
    first, second, third = chat.script.asked
    assert first.messages == (UserMessage("Why?"),)
    assert second.messages == (UserMessage("Why?"), AssistantMessage("It is blue."), UserMessage("And at night?"))
    assert third.messages == (UserMessage("Anew?"),)
    assert (first.system, first.most_tokens, first.client) == ("Be brief.", 9, "pooled chat")
    assert first.sampling is not None
    assert first.sampling.temperature == 0.5


async def test_reasoning_is_switched_and_stands_before_the_answer() -> None:
    events = (Started("tiny", 1, 2048), Spoken((Reasoning("Hm."),)), Spoken((Words("\n\nBlue."),)), Ended(Reason.STOP))
    chat = Chat(Script(events, BLUE))
    said = await chat.over("/think on", "Why?", "/think", "Why?")
    assert "Hm.\nBlue.\n" in said
    assert [ask.thinking.on for ask in chat.script.asked] == [True, False]
    assert "Hm." not in str(chat.script.asked[1].messages)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/help", "/clear"),
        ("/thnik on", "Did you mean /think?"),
        ("/xyzzy", "/help lists"),
        ("/think maybe", "/think on"),
    ],
)
async def test_commands_are_no_questions(line: str, says: str) -> None:
    chat = Chat(Script())
    assert says in await chat.over(line)
    assert chat.script.asked == []


async def test_ctrl_c_stops_an_answer_and_keeps_it() -> None:
    chat = Chat(Script(BLUE[:4], hangs=True))
    running = asyncio.create_task(chat.talk.run())
    chat.typist.type("Why?")
    while "blue" not in chat.said:
        await settle()
    assert not chat.said.endswith("> ")
    assert chat.ending.stops()
    while "Stopped." not in chat.said:
        await settle()
    assert not chat.ending.stops()
    assert chat.talk.conversation.messages[-1] == AssistantMessage("It is blue.")
    assert chat.said.endswith("> ")
    chat.typist.end()
    assert await running == DONE


async def test_a_refused_question_is_said_and_not_kept() -> None:
    chat = Chat(Script((Refused(Refusal.QUEUE, "Too many\x1b[2J wait."),), BLUE))
    assert "Too many[2J wait." in await chat.over("Why?", "Why?")
    assert chat.script.asked[1].messages == (UserMessage("Why?"),)


async def test_one_answer_for_a_script_is_all_of_standard_output() -> None:
    chat = Chat(Script((*BLUE[:2], Spoken((Reasoning("Hm."),)), *BLUE[2:])), interactive=False)
    assert await chat.talk.once("Why?") == DONE
    assert chat.said == "It is blue.\n"
    assert "Hm.\n4TK-G9P · Tiny" in chat.err.getvalue()
    chat.typist.end()


@pytest.mark.parametrize(
    "events",
    [
        (Refused(Refusal.LOADING, "Loading."),),
        (*BLUE[:3], Ended(Reason.FAILED, why="A device left.")),
        (*BLUE[:3], Ended(Reason.ABORTED)),
    ],
)
async def test_a_script_learns_of_an_answer_that_is_not_whole(events: Sequence[AskEvent]) -> None:
    chat = Chat(Script(events), interactive=False)
    assert await chat.talk.once("Why?") == FAILED
    assert chat.err.getvalue().strip()
    chat.typist.end()


async def test_a_rooms_words_cannot_move_the_cursor() -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m"
    events = (Started(evil, 1, 2048), Spoken((Words(evil),)), Ended(Reason.FAILED, why=evil))
    chat = Chat(Script(events), interactive=False)
    await chat.talk.once("Why?")
    chat.typist.end()
    assert "owned" in chat.said
    assert not set(chat.said + chat.err.getvalue()) & set("\x1b\x07\x9b")
