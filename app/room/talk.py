"""The room's one conversation: questions in turn, answers to every screen (spec: rooms §14, §17)."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from app.core.errors import PooledError, RoomError
from app.prompt.chat import QUESTION_CHARS, Style
from app.prompt.language import Language
from app.room import messages as m
from app.room.answer_ports import AnswerPorts
from app.room.answering import Draft, PersonsAnswer, Running
from app.room.asks import Question
from app.room.conversation import fit_turns
from app.room.crowd import tell_one
from app.room.dealing import Stage
from app.room.drafter import Acceptance, Source
from app.room.events import Member
from app.room.generate import Ending
from app.room.marks import Render, prompt_marks
from app.room.meta import OURS
from app.room.names import readable
from app.room.past import Past
from app.room.screens import Shown, pieces
from app.room.segments import Fed
from app.room.tasks import Tasks
from app.room.turns import Turn

LONGEST_MID = 40

REFUSALS = {
    Stage.IDLE: "No model runs in this room yet.",
    Stage.STARTING: "The model is still being loaded.",
    Stage.DEGRADED: "A device left; the room waits for it or deals its layers again.",
}


@dataclass(frozen=True)
class _Asked:
    """A question in the queue."""

    question: Question
    talk: Talk
    person: bool = True

    @property
    def asker(self) -> str:
        return self.question.asker

    def begin(self) -> None:
        self.talk.answer(self, self.question)

    def waits(self, place: int) -> None:
        self.talk.told_place(self.question, place)


@dataclass(frozen=True)
class _Redone:
    """An answer that is continued or written again; it goes before all that wait."""

    asker: str
    start: Callable[[Turn], None]
    person: bool = True

    def begin(self) -> None:
        self.start(self)

    def waits(self, place: int) -> None:
        """Nobody asked just now who would want to hear of it."""


class Talk:
    """Takes questions, and keeps the conversation through losses.

    ``past`` is where the conversation stands; ``on_past`` hears of every change. ``drafts``: of the last answer.
    """

    def __init__(self, ports: AnswerPorts, past: Past) -> None:
        self.on_past: Callable[[Past], None] = lambda _past: None
        self.drafts = Acceptance()
        self._crowd = ports.crowd
        self._dealing = ports.dealing
        self._writer = ports.writer
        self._turns = ports.turns
        self._screens = ports.screens
        self._figures = ports.figures
        self._settings = ports.settings
        self._tasks = Tasks()
        self._now: PersonsAnswer | None = None
        self._record = Fed()
        self.adopt(past)

    def adopt(self, past: Past) -> None:
        """Goes on with a conversation as another device left it."""
        self.past = past
        others = (turn for turn in self._turns.waiting if not isinstance(turn, _Asked))
        self._turns.waiting = (*(_Asked(question, self) for question in past.waiting), *others)

    def queue_changed(self) -> None:
        """Questions that wait are part of what a next model host is told."""
        waiting = tuple(turn.question for turn in self._turns.waiting if isinstance(turn, _Asked))
        if waiting != self.past.waiting:
            self._now_past(replace(self.past, waiting=waiting))

    @property
    def now(self) -> PersonsAnswer | None:
        """The answer to a person that is being written."""
        return self._now

    @property
    def cached(self) -> Fed:
        """What the caches of all devices hold, with the class each stretch was computed in."""
        return self._writer.held.fed

    # -- what people do ---------------------------------------------------------------------------------

    def ask(self, asker: str, name: str, text: str, style: Style | None = None, mid: str = "") -> None:
        """``style``: the asker's, where it differs from the room's; ``mid``: the asker's name for the exchange."""
        made, seed = _new_exchange()
        question = Question(asker, name, readable(text)[:QUESTION_CHARS], mid[:LONGEST_MID] or made, seed, style)
        if not question.text.strip() or self.past.knows(question.mid):
            return
        if self._dealing.stage is not Stage.ONLINE:
            tell_one(self._crowd, asker, m.Busy(why=REFUSALS[self._dealing.stage], mid=question.mid))
            return
        try:
            self._turns.ask(_Asked(question, self))
        except RoomError as error:
            tell_one(self._crowd, asker, m.Busy(why=str(error), mid=question.mid))

    def told_place(self, question: Question, place: int) -> None:
        tell_one(self._crowd, question.asker, m.Queued(pos=place, mid=question.mid))

    def stop(self, by: str, mid: str = "") -> None:
        """The asker, the model host and the creator may stop; ``mid``: only the exchange of that name."""
        now = self._now
        meant = now is not None and mid in {"", now.question.mid}
        if now is not None and meant and by in {now.question.asker, self._crowd.me, self._crowd.creator}:
            self._writer.stop(_Exchange(now, self))

    def continue_last(self, by: str) -> None:
        if self._may_redo(by) and self.past.can_continue and self.past.last is not None:
            last, past = self.past.last, self.past.going_on()
            self._turns.first(_Redone(last.asker, lambda turn: self.answer(turn, last, past)))

    def regenerate(self, by: str) -> None:
        """Asks the last question again, in its asker's name and the room's style."""
        if not self._may_redo(by) or self.past.last is None:
            return
        mid, seed = _new_exchange()
        question = replace(self.past.last, mid=mid, seed=seed, style=None)
        self._crowd.tell(m.Regenerated())
        past = self.past.without_last().asked(question)
        self._turns.first(_Redone(question.asker, lambda turn: self.answer(turn, question, past)))

    def _may_redo(self, by: str) -> bool:
        last = self.past.last
        asked = last is not None and by in {last.asker, self._crowd.me, self._crowd.creator}
        return asked and self._free and self._dealing.stage is Stage.ONLINE

    @property
    def _free(self) -> bool:
        """Whether no answer of the people's conversation runs, or waits to be written again."""
        return not self._turns.person_runs and not any(isinstance(turn, _Redone) for turn in self._turns.waiting)

    def new_chat(self, id: str, by: str) -> None:
        if self._now is not None:
            tell_one(self._crowd, id, m.Busy(why="An answer is being written. Stop it first."))
            return
        self._now_past(Past(model=self.past.model, waiting=self.past.waiting))
        self._crowd.tell(m.ChatReset(by=by))

    def _now_past(self, past: Past) -> None:
        self.past = past
        self.on_past(past)

    def member_left(self, id: str) -> None:
        """Questions of a device that left are not asked."""
        self._turns.drop(lambda turn: isinstance(turn, _Asked) and turn.asker == id)

    def greet(self, member: Member, *, back: bool) -> None:
        """A newcomer reads what was said, where everybody may. Of those that come back only our own kind
        is told again: it knows an exchange by its id, others would show it twice."""
        if member.meta.is_api:
            return
        if self._screens.reads(member.id, asker="") and (not back or member.meta.native == OURS):
            self._tell_past(member.id)

    def _tell_past(self, id: str) -> None:
        if self.past.history:
            self._crowd.send(id, m.History(items=self.past.history[-m.HISTORY_SENT :]))
        now = self._now
        if now is not None:
            self._crowd.send(id, _opening(now.question, continued=False))
            for piece in pieces(self.past.earlier_text + now.text):
                self._crowd.send(id, piece)

    # -- one answer -------------------------------------------------------------------------------------

    def answer(self, turn: Turn, question: Question, past: Past | None = None) -> None:
        """``past`` where the question stands in it already."""
        self._now_past(past or self.past.asked(question))
        self._begin(turn, question, continued=self.past.continued)

    def _begin_again(self, turn: Turn, question: Question) -> None:
        """The answer another model host did not end is written here from its beginning."""
        self._begin(turn, question, continued=False).say(self.past.earlier_text)

    def _begin(self, turn: Turn, question: Question, *, continued: bool) -> Shown:
        style = question.style or self._settings().style
        shown = self._screens.begin(_opening(question, continued), question.asker)
        self._now = now = PersonsAnswer(record=self._record, question=question, style=style, shown=shown)
        self._tasks.start(self._answer(now, turn), "answer", lambda error: self._broke(now, turn, error))
        return shown

    def _broke(self, now: PersonsAnswer, turn: Turn, error: BaseException) -> None:
        """No screen waits for an answer that met a fault of our own."""
        self._close_exchange(now, f"Something went wrong: {error}", failed=True)
        self._turns.over(turn)

    async def _answer(self, now: PersonsAnswer, turn: Turn) -> None:
        try:
            ending = await self._writer.write(_Exchange(now, self))
            stats = self._figures.line(now, ending, now.dropped)
            self._close_exchange(now, stats, capped=ending is Ending.CAPPED)
        except PooledError as error:
            self._close_exchange(now, str(error), failed=True)
        finally:
            self._now = None
        self._turns.over(turn)

    async def draft(self, now: PersonsAnswer, running: Running) -> Draft:
        """The conversation as it stands, as long as it fits."""
        render = _renderer(running.language, now.style)
        fitted = fit_turns(self.past.with_words(now.ids, open=True), render, running.context)
        now.dropped = fitted.dropped
        if not now.record.ids:
            now.record = self.past.computed(fitted.ids)
        return Draft(
            ids=fitted.ids,
            most=now.style.most_tokens - len(now.ids),
            sampling=replace(now.style.sampling, seed=now.question.seed),
            marks=lambda: prompt_marks(render, fitted.turns, fitted.ids),
            shared=None,
        )

    def say(self, now: PersonsAnswer, token: int, source: Source) -> None:
        """Shows what became whole with ``token``."""
        language = self._dealing.language
        text = now.stream.add(language.piece(token)) if language is not None else ""
        now.text += text
        if text and now.shown is not None:
            now.shown.say(text, int(source))

    def _close_exchange(self, now: PersonsAnswer, stats: str, *, failed: bool = False, capped: bool = False) -> None:
        context = self._dealing.planned.context.positions if self._dealing.planned else 0
        self._record, self.drafts = now.record, now.acceptance
        use = m.ContextUse(used=len(now.record.ids), max=context)
        answered = self.past.answered(now.ids, now.text, stats, capped=capped)
        self._now_past(replace(answered, segments=now.record.segments))
        self._figures.tell(now, live=False)
        if now.shown is not None:
            now.shown.end(m.AnswerDone(stats=m.line(stats), ctx=use, failed=failed, capped=capped))

    # -- losses and returns -----------------------------------------------------------------------------

    def online(self) -> None:
        """A model is there, perhaps another one, or the answer that another model host did not end."""
        planned, language = self._dealing.planned, self._dealing.language
        if planned is not None and language is not None and planned.record.key != self.past.model:
            self._record = Fed()
            self._now_past(self.past.in_words_of(planned.record.key, language))
        self._remind()
        last = self.past.last
        if self._free and self.past.unanswered and last is not None:
            self._turns.first(_Redone(last.asker, lambda turn: self._begin_again(turn, last)))

    def _remind(self) -> None:
        """Whoever came in while no device ran the model has heard nothing of what was said."""
        said = m.History(items=self.past.history[-m.HISTORY_SENT :])
        for member in self._crowd.members if said.items else ():
            if member.meta.native == OURS and self._screens.reads(member.id, asker=""):
                self._crowd.send(member.id, said)

    def ended(self) -> None:
        """The model does not run any more, so nobody waits for it."""
        self._turns.drop(lambda turn: isinstance(turn, _Asked | _Redone))

    async def close(self) -> None:
        await self._tasks.close()


@dataclass(frozen=True)
class _Exchange:
    """A person's answer as a ``Writer`` sees it."""

    now: PersonsAnswer
    talk: Talk

    async def draft(self, running: Running) -> Draft:
        return await self.talk.draft(self.now, running)

    def say(self, token: int, source: Source) -> bool:
        self.talk.say(self.now, token, source)
        return False


def _opening(question: Question, continued: bool) -> m.AnswerStart:
    return m.AnswerStart(name=question.name, text=question.text, asker=question.asker, cont=continued, mid=question.mid)


def _renderer(language: Language, style: Style) -> Render:
    return lambda turns: language.chat.render(turns, style.system, thinking=style.thinking)


def _new_exchange() -> tuple[str, int]:
    """A name for an exchange, and the seed its words are drawn with."""
    return secrets.token_hex(6), secrets.randbits(31)
