"""The room's one conversation: questions in turn, answers to every screen (spec: rooms §14, §17)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace

from app.core.clock import Clock
from app.core.errors import DeviceLost, PooledError, RoomError
from app.prompt.chat import QUESTION_CHARS, Style
from app.prompt.language import Language
from app.room import messages as m
from app.room.answer_line import AnswerFigures, answer_line
from app.room.answering import Answering
from app.room.asks import AskQueue, Question
from app.room.chain import Chain
from app.room.checkpoints import WORTH_SAVING, Keep, Mark
from app.room.conversation import Fitted, fit_turns
from app.room.crowd import Crowd, tell_one
from app.room.dealing import Dealing, Stage
from app.room.drafter import Acceptance, Source
from app.room.events import Member, PromptRead
from app.room.generate import Choose, Ending, Generation, Request
from app.room.held import Held
from app.room.laps import LapFailed
from app.room.marks import Render, prompt_marks
from app.room.meta import OURS
from app.room.names import readable
from app.room.pace import Pace
from app.room.past import Past
from app.room.room_map import room_map
from app.room.saves import Saves
from app.room.segments import Fed
from app.room.settings import RoomSettings, may_read
from app.room.tasks import Tasks

MOST_TRIES = 4
LONGEST_RECOVERY = 360.0
MAP_PERIOD = 0.8
PIECE = 2_000
LONGEST_MID = 40

REFUSALS = {
    Stage.IDLE: "No model runs in this room yet.",
    Stage.STARTING: "The model is still being loaded.",
    Stage.DEGRADED: "A device left; the room waits for it or deals its layers again.",
}


class Talk:
    """Takes questions, runs one answer at a time, and keeps the conversation through losses.

    ``past`` is where the conversation stands; ``on_past`` hears of every change.
    """

    def __init__(
        self,
        crowd: Crowd,
        dealing: Dealing,
        saves: Saves,
        choose: Choose,
        clock: Clock,
        settings: Callable[[], RoomSettings],
        past: Past,
    ) -> None:
        self.on_past: Callable[[Past], None] = lambda _past: None
        self.past = past
        self._crowd = crowd
        self._dealing = dealing
        self._saves = saves
        self._choose = choose
        self._clock = clock
        self._settings = settings
        self._tasks = Tasks()
        self._now: Answering | None = None
        self.drafts = Acceptance()
        self._held = Held()
        self._record = Fed()
        self._waiter: asyncio.Future[None] | None = None
        self._waiting_since = 0.0
        self._pace = Pace()
        self._told_map_at = 0.0
        dealing.on_online = self._online
        dealing.on_lost = self._lost
        dealing.on_failed = self._stopped

    @property
    def _queue(self) -> AskQueue:
        return AskQueue(self.past.waiting)

    def _now_waiting(self, queue: AskQueue) -> None:
        if queue.waiting != self.past.waiting:
            self._now_past(replace(self.past, waiting=queue.waiting))

    @property
    def answering(self) -> bool:
        return self._now is not None

    @property
    def cached(self) -> Fed:
        """What the caches of all devices hold, with the class each stretch was computed in."""
        return self._held.fed

    # -- what people do ---------------------------------------------------------------------------------

    def ask(self, asker: str, name: str, text: str, style: Style | None = None, mid: str = "") -> None:
        """``style``: the asker's, where it differs from the room's; ``mid``: the asker's name for the exchange."""
        made, seed = _new_exchange()
        question = Question(asker, name, readable(text)[:QUESTION_CHARS], mid[:LONGEST_MID] or made, seed, style)
        if not question.text.strip() or self.past.knows(question.mid):
            return
        if self._dealing.stage is not Stage.ONLINE:
            tell_one(self._crowd, asker, m.Busy(why=REFUSALS[self._dealing.stage], mid=question.mid))
        elif self._now is None:
            self._begin(question, self.past.asked(question))
        else:
            self._enqueue(question)

    def _enqueue(self, question: Question) -> None:
        try:
            self._now_waiting(self._queue.push(question))
        except RoomError as error:
            tell_one(self._crowd, question.asker, m.Busy(why=str(error), mid=question.mid))
            return
        tell_one(self._crowd, question.asker, m.Queued(pos=len(self._queue), mid=question.mid))
        self._crowd.tell(m.QueueLength(n=len(self._queue)))

    def stop(self, by: str) -> None:
        """The asker, the model host and the creator may stop; a held or waiting answer is given up at once."""
        now = self._now
        if now is None or by not in {now.question.asker, self._crowd.me, self._crowd.creator}:
            return
        now.stopping = True
        if now.generation is not None:
            now.generation.stopping = True
        chain = self._dealing.chain
        if chain is not None and chain.laps.held:
            chain.laps.fail_all(LapFailed("Stopped.", repairable=False))
        self._wake(LapFailed("Stopped.", repairable=False))

    def continue_last(self, by: str) -> None:
        if self._may_redo(by) and self.past.can_continue and self.past.last is not None:
            self._begin(self.past.last, self.past.going_on())

    def regenerate(self, by: str) -> None:
        """Asks the last question again, in its asker's name and the room's style."""
        if not self._may_redo(by) or self.past.last is None:
            return
        mid, seed = _new_exchange()
        question = replace(self.past.last, mid=mid, seed=seed, style=None)
        self._crowd.tell(m.Regenerated())
        self._begin(question, self.past.without_last().asked(question))

    def _may_redo(self, by: str) -> bool:
        last = self.past.last
        asked = last is not None and by in {last.asker, self._crowd.me, self._crowd.creator}
        return asked and self._now is None and self._dealing.stage is Stage.ONLINE

    def new_chat(self, id: str, by: str) -> None:
        if self._now is not None:
            tell_one(self._crowd, id, m.Busy(why="An answer is being written. Stop it first."))
            return
        self._now_past(Past(model=self.past.model))
        self._crowd.tell(m.ChatReset(by=by))

    def _now_past(self, past: Past) -> None:
        self.past = past
        self.on_past(past)

    def member_left(self, id: str) -> None:
        if any(question.asker == id for question in self._queue.waiting):
            self._now_waiting(self._queue.without(id))
            self._crowd.tell(m.QueueLength(n=len(self._queue)))

    def greet(self, member: Member, *, back: bool) -> None:
        """A newcomer reads what was said, where everybody may. Of those that come back only our own kind
        is told again: it knows an exchange by its id, others would show it twice."""
        if self._reads(member.id, asker="") and (not back or member.meta.native == OURS):
            self._tell_past(member.id)
        if len(self._queue):
            self._crowd.send(member.id, m.QueueLength(n=len(self._queue)))

    def _tell_past(self, id: str) -> None:
        if self.past.history:
            self._crowd.send(id, m.History(items=self.past.history[-m.HISTORY_SENT :]))
        now = self._now
        if now is not None:
            self._crowd.send(id, self._opening(now.question, continued=False))
            for piece in _pieces(self.past.earlier_text + now.text):
                self._crowd.send(id, piece)

    # -- one answer -------------------------------------------------------------------------------------

    def _begin(self, question: Question, past: Past) -> None:
        self._now = Answering(question, question.style or self._settings().style)
        self._pace = Pace()
        self._now_past(past)
        self._tell_exchange(self._opening(question, past.continued))
        self._write(self._now)

    def _begin_again(self, question: Question) -> None:
        """The answer another model host did not end is written here from its beginning."""
        self._now = Answering(question, question.style or self._settings().style)
        self._pace = Pace()
        self._tell_exchange(self._opening(question, continued=False))
        for piece in _pieces(self.past.earlier_text):
            self._tell_exchange(piece)
        self._write(self._now)

    def _write(self, now: Answering) -> None:
        self._tasks.start(self._answer(now), "answer", lambda error: self._broke(now, error))

    def _broke(self, now: Answering, error: BaseException) -> None:
        """No screen waits for an answer that met a fault of our own."""
        self._close_exchange(now, f"Something went wrong: {error}", failed=True)
        self._next()

    def _opening(self, question: Question, continued: bool) -> m.AnswerStart:
        return m.AnswerStart(
            name=question.name, text=question.text, asker=question.asker, cont=continued, mid=question.mid
        )

    def _reads(self, reader: str, asker: str) -> bool:
        return may_read(self._settings().visibility, reader=reader, owner=self._crowd.creator, asker=asker)

    def _tell_exchange(self, message: m.AnswerStart | m.Token | m.AnswerDone) -> None:
        """Text to those who may read it; to the others only that there is an answer."""
        now = self._now
        asker = now.question.asker if now else ""
        hidden = _hidden(message)
        for member in self._crowd.members:
            told = message if self._reads(member.id, asker) else hidden
            if told is not None:
                tell_one(self._crowd, member.id, told)

    async def _answer(self, now: Answering) -> None:
        try:
            ending = await self._until_done(now)
            await self._save()
            self._ended(now, ending)
        except PooledError as error:
            self._failed(now, error)
        finally:
            self._now = None
        self._next()

    async def _save(self) -> None:
        """Before the answer counts as over: what is asked next must find the devices free."""
        if self._dealing.chain is not None:
            self._held = await self._saves.keep(self._dealing.chain, self._held, Keep.ANSWER)

    async def _until_done(self, now: Answering) -> Ending:
        """Tries again after a loss, from the last word shown; nothing is shown twice."""
        tries = 0
        while True:
            if now.stopping:
                return Ending.STOPPED
            try:
                await self._wait_whole()
                return await self._attempt(now)
            except LapFailed as error:
                if now.stopping:
                    return Ending.STOPPED
                tries += 1
                if not error.repairable or tries >= MOST_TRIES:
                    raise
            except DeviceLost as error:
                tries += 1
                if tries >= MOST_TRIES:
                    raise
                self._dealing.rebuild(str(error))

    async def _attempt(self, now: Answering) -> Ending:
        chain, language, context = self._running()
        render = self._renderer(language, now.style)
        fitted = fit_turns(self.past.with_words(now.ids, open=True), render, context)
        now.dropped = fitted.dropped
        if not self._record.ids:
            self._record = self.past.computed(fitted.ids)
        most = now.style.most_tokens - len(now.ids)
        if most <= 0:
            return Ending.CAPPED
        held, start = await self._saves.resume(chain, self._held, fitted.ids)
        request = Request(
            ids=fitted.ids,
            most=most,
            sampling=replace(now.style.sampling, seed=now.question.seed),
            context=context,
            stop_ids=language.tokenizer.stop_ids,
            marks=self._marks(chain, render, fitted, start),
        )
        return await self._run(now, self._generation(now, chain, language, request, held, start))

    def _marks(self, chain: Chain, render: Render, fitted: Fitted, start: int) -> tuple[Mark, ...]:
        if not chain.hybrid or len(fitted.ids) - start <= WORTH_SAVING:
            return ()
        return self._saves.marks(chain, prompt_marks(render, fitted.turns, fitted.ids), fitted.ids, start)

    def _generation(
        self, now: Answering, chain: Chain, language: Language, request: Request, held: Held, start: int
    ) -> Generation:
        return Generation(
            chain=chain,
            request=request,
            held=held,
            record=self._record,
            start=start,
            choose=self._choose,
            emit=lambda token, source: self._emit(now, language, token, source),
            clock=self._clock,
            drafter=chain.drafter(request.ids, start, held.before(start)),
            keep=lambda held, mark: self._saves.keep(chain, held, mark.keep),
            stopping=now.stopping,
        )

    async def _run(self, now: Answering, generation: Generation) -> Ending:
        """The caches are exact after a success; after a failure only the classes are remembered."""
        now.generation = generation
        try:
            ending = await generation.run()
        except PooledError:
            self._held = Held()
            self._record = _longer(self._record, generation.held.fed)
            await self._distrust(generation.chain)
            raise
        finally:
            self.drafts = now.drafts = now.acceptance
            now.generation = None
        self._held, self._record = generation.held, generation.held.fed
        now.reused = max(now.reused, generation.start)
        now.prompt_seconds += generation.prompt_seconds
        read = len(generation.request.ids) - generation.start
        self._crowd.happened(PromptRead(generation.start, read, generation.prompt_seconds))
        return ending

    async def _distrust(self, chain: Chain) -> None:
        """Saved states stay good when a device is gone; after any other failure nobody can know."""
        if chain.whole and self._dealing.chain is chain:
            await self._saves.clear(chain)

    def _running(self) -> tuple[Chain, Language, int]:
        dealing = self._dealing
        if dealing.chain is None or dealing.language is None or dealing.planned is None:
            raise LapFailed("No model runs in this room.", repairable=False)
        planned = dealing.planned
        return dealing.chain, dealing.language, planned.context.positions

    def _renderer(self, language: Language, style: Style) -> Render:
        return lambda turns: language.chat.render(turns, style.system, thinking=style.thinking)

    def _emit(self, now: Answering, language: Language, token: int, source: Source) -> None:
        now.ids.append(token)
        self._pace.word(self._clock.now())
        text = now.stream.add(language.piece(token))
        now.text += text
        if text:
            self._tell_exchange(m.Token(text=text, d=int(source)))

    def _ended(self, now: Answering, ending: Ending) -> None:
        self._close_exchange(now, self._stats(now, ending), capped=ending is Ending.CAPPED)
        if self._dealing.chain is not None:
            self._dealing.learn_speed(self._dealing.chain.stats.own * 1000)

    def _failed(self, now: Answering, error: PooledError) -> None:
        self._close_exchange(now, str(error), failed=True)

    def _close_exchange(self, now: Answering, stats: str, *, failed: bool = False, capped: bool = False) -> None:
        context = self._dealing.planned.context.positions if self._dealing.planned else 0
        use = m.ContextUse(used=len(self._record.ids), max=context)
        answered = self.past.answered(now.ids, now.text, stats, capped=capped)
        self._now_past(replace(answered, segments=self._record.segments))
        self._tell_map(live=False)
        self._tell_exchange(m.AnswerDone(stats=m.line(stats), ctx=use, failed=failed, capped=capped))

    def _stats(self, now: Answering, ending: Ending) -> str:
        devices = 1 + len(self._dealing.chain.hops if self._dealing.chain else ())
        pace, drafts = self._pace.per_second, now.acceptance
        return answer_line(AnswerFigures(len(now.ids), pace, devices, now.reused, drafts, ending.value, now.dropped))

    def _next(self) -> None:
        if self._dealing.stage is not Stage.ONLINE or not len(self._queue):
            return
        question, waiting = self._queue.pop()
        self._now_waiting(waiting)
        self._crowd.tell(m.QueueLength(n=len(self._queue)))
        for place, waiting in enumerate(self._queue.waiting, start=1):
            tell_one(self._crowd, waiting.asker, m.Queued(pos=place, mid=waiting.mid))
        if question is not None:
            self._begin(question, self.past.asked(question))

    # -- losses and returns -----------------------------------------------------------------------------

    async def _wait_whole(self) -> None:
        if self._dealing.stage is Stage.ONLINE:
            return
        self._waiting_since = self._clock.now()
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self, error: LapFailed | None = None) -> None:
        if self._waiter is None or self._waiter.done():
            return
        if error is None:
            self._waiter.set_result(None)
        else:
            self._waiter.set_exception(error)

    def _online(self) -> None:
        """Every cache starts empty after a deal or a return."""
        self._held = Held()
        if self._dealing.chain is not None:
            self._saves.online(self._dealing.chain)
        planned, language = self._dealing.planned, self._dealing.language
        if planned is not None and language is not None and planned.record.key != self.past.model:
            self._record = Fed()
            self._now_past(self.past.in_words_of(planned.record.key, language))
        self._wake()
        if self._now is None and self.past.unanswered and self.past.last is not None:
            self._begin_again(self.past.last)
        elif self._now is None:
            self._next()

    def _lost(self, error: LapFailed) -> None:
        self._held = Held()
        if not error.repairable:
            self._wake(error)

    def _stopped(self, why: str) -> None:
        error = LapFailed(why, repairable=False)
        self._held = Held()
        self._now_waiting(AskQueue())
        if self._dealing.chain is not None:
            self._dealing.chain.laps.fail_all(error)
        self._wake(error)

    # -- time -------------------------------------------------------------------------------------------

    def tick(self) -> None:
        now = self._clock.now()
        if self._waiter is not None and now - self._waiting_since > LONGEST_RECOVERY:
            self._wake(LapFailed("The room did not become whole again.", "Ask again.", repairable=False))
        if self._now is not None and now - self._told_map_at >= MAP_PERIOD:
            self._tell_map(live=True)

    def _tell_map(self, *, live: bool) -> None:
        self._told_map_at = self._clock.now()
        planned, chain = self._dealing.planned, self._dealing.chain
        if planned is None or chain is None:
            return
        words_per_second = self._pace.recent(self._told_map_at)
        accepted = self._now.acceptance.share if self._now is not None else None
        self._crowd.tell(room_map(planned, chain, words_per_second, self._pace.words, accepted=accepted, live=live))

    async def close(self) -> None:
        await self._tasks.close()
        await self._saves.close()


def _hidden(message: m.AnswerStart | m.Token | m.AnswerDone) -> m.Message | None:
    match message:
        case m.AnswerStart():
            return m.AnswerStart(name=message.name, asker=message.asker, mid=message.mid, hidden=True)
        case m.AnswerDone():
            return m.AnswerDone(
                stats=message.stats,
                ctx=message.ctx,
                failed=message.failed,
                capped=message.capped,
                hidden=True,
            )
        case m.Token():
            return None


def _new_exchange() -> tuple[str, int]:
    """A name for an exchange, and the seed its words are drawn with."""
    return secrets.token_hex(6), secrets.randbits(31)


def _pieces(text: str) -> Iterator[m.Token]:
    return (m.Token(text=text[start : start + PIECE]) for start in range(0, len(text), PIECE))


def _longer(record: Fed, computed: Fed) -> Fed:
    """The record keeps classes past a failed attempt's end when that attempt was repeating it."""
    return record if record.common(computed.ids) == len(computed.ids) else computed
