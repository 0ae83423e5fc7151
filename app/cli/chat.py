"""``pooled chat``: a talk with a room's model, or one answer for a script (spec: product §4.5)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace

from app.cli.answer import Answered, AnswerWriter
from app.cli.commands import unknown_command
from app.cli.console import make_console
from app.cli.conversation import Conversation
from app.cli.device import asking_room, settings_for
from app.cli.ending import DONE, FAILED, Ending
from app.cli.entering import check, enter, model_of
from app.cli.keyboard import Keyboard, standard_input
from app.cli.options import ChatOptions
from app.cli.printer import ACCENT, QUIET, Printer
from app.cli.session import first_of
from app.cli.text import safe
from app.cli.waiting import ENDS, until
from app.core.errors import PooledError
from app.room.api.events import Answers
from app.room.codes import format_code
from app.room.room import Room

LONGEST_PIPED = 1 << 20

HELP = {
    "/clear": "forget what was said",
    "/think on|off": "let the model reason before it answers",
    "/help": "this list",
    "/exit, /bye": "leave; so do Ctrl-D, and Ctrl-C where nothing is being answered",
}
_WORDS = ("/clear", "/think", "/help", "/exit", "/bye")


async def chat(options: ChatOptions, ending: Ending) -> int:
    keyboard = Keyboard(standard_input())
    aside = Printer(make_console(stderr=True, colour=options.colour), interactive=False)
    question = options.prompt or ("" if keyboard.interactive else await _piped(keyboard))
    if not question and not keyboard.interactive:
        raise PooledError("There is no question.", "Give one as an argument, or pipe one in.")
    settings = settings_for(options)
    async with asking_room(settings, "pooled chat") as room:
        await enter(room, options.where, settings.name, aside)
        if room.answers.model is None:
            aside.status("Waiting for a model…")
        model = await model_of(room, options.wait)
        talk = _talk(options, room.answers, keyboard, aside, ending)
        if question:
            return await talk.once(question)
        talk.greet(f"{format_code(room.answers.room)} · {safe(model.label)}, context {model.context}")
        return await first_of({"talk": talk.run(), "room": _ended(room)}) or DONE


async def _ended(room: Room) -> int:
    """Raises what the room has ended with."""
    check(await until(room, lambda state: state.phase in ENDS))
    return FAILED


def _talk(options: ChatOptions, answers: Answers, keyboard: Keyboard, aside: Printer, ending: Ending) -> Talk:
    words = Printer(make_console(colour=options.colour), interactive=keyboard.interactive)
    conversation = Conversation(
        system=options.system, think=options.think, most_tokens=options.most_tokens, temperature=options.temperature
    )
    return Talk(answers, keyboard, words, aside, ending, conversation)


async def _piped(keyboard: Keyboard) -> str:
    lines: list[str] = []
    while (line := await keyboard.line()) is not None:
        lines.append(line)
        if sum(map(len, lines)) > LONGEST_PIPED:
            raise PooledError("The question is too long.", "Ask about a part of it.")
    return "\n".join(lines).strip()


class Talk:
    """Questions and answers in turns. Ctrl-C stops an answer, which is kept as far as it came."""

    def __init__(
        self,
        answers: Answers,
        keyboard: Keyboard,
        words: Printer,
        aside: Printer,
        ending: Ending,
        conversation: Conversation,
    ) -> None:
        self._answers = answers
        self._keyboard = keyboard
        self._words = words
        self._aside = aside
        self._ending = ending
        self.conversation = conversation

    def greet(self, text: str) -> None:
        self._words.line(text, ACCENT)
        self._words.line("/help lists what there is, Ctrl-D leaves.", QUIET)

    async def once(self, question: str) -> int:
        """One answer, with nothing else on standard output."""
        answered = await self._answer(question, self._aside)
        return FAILED if answered.wrong or answered.stopped else DONE

    async def run(self) -> int:
        """The prompt is there only between answers."""
        while True:
            self._words.prompt()
            line = await self._keyboard.line()
            self._words.typed()
            if line is None or line.strip() in ("/exit", "/bye"):
                return DONE
            await self._obey(line.strip())

    async def _obey(self, line: str) -> None:
        if line.startswith("/"):
            self._words.line(self._command(line), QUIET)
        elif line:
            answered = await self._answer(line, self._words)
            self.conversation = self.conversation.answered(line, answered.text)
            if answered.stopped:
                self._words.line("Stopped.", QUIET)

    async def _answer(self, question: str, aside: Printer) -> Answered:
        stream, model = self._answers.ask(self.conversation.ask(question)), self._answers.model
        writer = AnswerWriter(self._answers.room, model.label if model else "", self._words, aside)
        with _stoppable(self._ending, stream.close):
            return await writer.write(stream)

    def _command(self, line: str) -> str:
        word, _, rest = line.lower().partition(" ")
        match word:
            case "/clear":
                self.conversation = self.conversation.cleared()
                return "What was said is forgotten."
            case "/think":
                return self._think(rest.strip())
            case "/help":
                return "\n".join(f"{command:<16} {meaning}" for command, meaning in HELP.items())
            case _:
                return unknown_command(word, _WORDS)

    def _think(self, word: str) -> str:
        if word not in ("", "on", "off"):
            return "Say /think on or /think off."
        on = word == "on" if word else not self.conversation.think
        self.conversation = replace(self.conversation, think=on)
        return "The model reasons first." if on else "The model answers at once."


@contextmanager
def _stoppable(ending: Ending, stop: Callable[[], None]) -> Generator[None]:
    """Within the block Ctrl-C stops the answer; the next one leaves, should it not end."""
    before = ending.stops

    def stopped() -> bool:
        ending.stops = before
        stop()
        return True

    ending.stops = stopped
    try:
        yield
    finally:
        ending.stops = before
