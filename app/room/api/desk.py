"""Where programs ask the model host: each ask is checked, waits its turn, and is answered to its asker alone,
while screens see that it is (spec: rooms §18)."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, replace

from app.core.errors import PooledError, ProtocolError, RoomError
from app.engine.types import Sampling
from app.prompt.ask import Ask, UserMessage
from app.prompt.pieces import CallArguments, CallBegun, Piece, Words
from app.room import messages as m
from app.room.answer_ports import AnswerPorts
from app.room.answering import Draft, Running
from app.room.api.answer import AskAnswer
from app.room.api.events import Reason, Refusal
from app.room.api.prepared import Prepared, TooLong, Voice, new_voice, prepare
from app.room.api.wire import API_LEVEL, COUNTED, piece_messages, read_ask
from app.room.crowd import tell_one
from app.room.dealing import Stage
from app.room.drafter import Source
from app.room.events import Member
from app.room.generate import Ending
from app.room.names import clean_name
from app.room.tasks import Tasks
from app.room.turns import Turn

SHOWN_QUESTION = 2_000
MOST_CHECKED = 4
"""Asks of one device that are read and compiled at a time, before they may wait."""
REFUSALS = {
    Stage.IDLE: (Refusal.GONE, "No model runs in this room. Start one there."),
    Stage.STARTING: (Refusal.LOADING, "The model is still being loaded. Ask again in a moment."),
    Stage.DEGRADED: (Refusal.DEGRADED, "A device left; the room waits for it or deals its layers again."),
}
REASONS = {
    Ending.FINISHED: Reason.STOP,
    Ending.CAPPED: Reason.MOST_TOKENS,
    Ending.FULL: Reason.CONTEXT,
    Ending.STOPPED: Reason.ABORTED,
}
BROKE = "Something went wrong on the device that runs the model; its log says what."
STOPPED = "Somebody in the room stopped this answer."


@dataclass(frozen=True, eq=False)
class _Waiting:
    """An ask in the queue, and as a ``Writer`` sees it."""

    now: AskAnswer
    name: str
    desk: AskDesk
    person: bool = False

    @property
    def asker(self) -> str:
        return self.now.behalf

    def begin(self) -> None:
        self.desk.answer(self)

    def waits(self, place: int) -> None:
        self.now.waited = True
        self.desk.tell(self.now, m.Queued(pos=place, rid=self.now.rid))

    async def draft(self, running: Running) -> Draft:
        return await self.desk.draft(self.now, running)

    def say(self, token: int, source: Source) -> bool:
        return self.now.said(token, source)


class AskDesk:
    """Of one model host."""

    def __init__(self, ports: AnswerPorts) -> None:
        self._ports = ports
        self._tasks = Tasks()
        self._voice: tuple[str, Voice] | None = None
        self._running: tuple[_Waiting, ...] = ()
        self._early: set[tuple[str, str]] = set()

    @property
    def now(self) -> AskAnswer | None:
        """The answer to a program that is being written, of several the one that is shown."""
        running = [waiting.now for waiting in self._running]
        return next((now for now in running if self._ports.screens.shows(now.shown)), running[0] if running else None)

    def tell(self, now: AskAnswer, message: m.Message) -> None:
        tell_one(self._ports.crowd, now.asker, message)

    # -- asking -------------------------------------------------------------------------------------------------

    def asked(self, member: Member, message: m.Ask) -> None:
        """What is wrong with an ask is answered before anything is computed."""
        stage, rid = self._ports.dealing.stage, message.rid
        if not self._ports.settings().api_clients:
            self._refuse(member.id, rid, Refusal.OFF, "This room's owner does not let programs ask.")
        elif stage is not Stage.ONLINE:
            self._refuse(member.id, rid, *REFUSALS[stage])
        elif sum(id == member.id for id, _ in self._early) >= MOST_CHECKED:
            self._refuse(member.id, rid, Refusal.QUEUE, "Too many requests of this device are being checked already.")
        else:
            self._early.add((member.id, rid))
            self._tasks.start(self._take(member, message), "take an ask", lambda _error: self._fault(member, rid))

    def _refuse(self, id: str, rid: str, code: Refusal, why: str, tokens: int = 0, most: int = 0) -> None:
        busy = m.Busy(why=m.line(why), rid=rid, code=code.value, n=tokens, max=most)
        tell_one(self._ports.crowd, id, busy)

    def _fault(self, member: Member, rid: str) -> None:
        """Nobody waits for what met a fault of our own."""
        self._refuse(member.id, rid, Refusal.FAILED, BROKE)

    async def _take(self, member: Member, message: m.Ask) -> None:
        rid = message.rid
        try:
            ask = await asyncio.to_thread(read_ask, message)
            ready = await self._checked(ask)
            if message.count:
                self._counted(member.id, rid, len(ready.prompt.ids))
            elif (member.id, rid) in self._early:
                self._ports.turns.ask(self._waiting(member, ask, message, ready))
        except TooLong as error:
            self._refuse(member.id, rid, Refusal.CONTEXT, str(error), error.tokens, error.most)
        except RoomError as error:
            self._refuse(member.id, rid, Refusal.QUEUE, str(error))
        except PooledError as error:
            self._refuse(member.id, rid, Refusal.BAD, str(error))
        finally:
            self._early.discard((member.id, rid))

    async def _checked(self, ask: Ask) -> Prepared:
        """Raises PromptError for what no answer can come of."""
        voice, planned = await self._the_voice(), self._ports.dealing.planned
        context = planned.context.positions if planned is not None else 0
        return await asyncio.to_thread(prepare, voice, ask, context)

    async def _the_voice(self) -> Voice:
        """Made once for every model that is loaded."""
        dealing = self._ports.dealing
        planned, language = dealing.planned, dealing.language
        if planned is None or language is None:
            raise ProtocolError("No model runs in this room.", "Start one.")
        key = planned.record.key
        if self._voice is None or self._voice[0] != key:
            self._voice = key, await asyncio.to_thread(new_voice, language, planned.record.vocab)
        return self._voice[1]

    def _counted(self, id: str, rid: str, tokens: int) -> None:
        done = m.AnswerDone(rid=rid, api=API_LEVEL, reason=COUNTED, usage=m.TokenUse(prompt=tokens))
        tell_one(self._ports.crowd, id, done)

    def _waiting(self, member: Member, ask: Ask, message: m.Ask, ready: Prepared) -> _Waiting:
        """What the creator hands on is its API client's, and waits in that one's share of the queue."""
        handed_on = bool(message.asker) and member.id == self._ports.crowd.creator
        ask = replace(ask, client=ask.client or member.meta.client or "a program")
        name = f"{clean_name(message.name, message.asker) if handed_on else member.name} · {ask.client} (API)"
        mid, sampling = secrets.token_hex(6), self._sampling(ask)
        behalf = message.asker if handed_on else member.id
        now = AskAnswer(
            ask=ask, asker=member.id, behalf=behalf, rid=message.rid, mid=mid, sampling=sampling, ready=ready
        )
        now.on_begun = lambda tokens: self._begun(now, name, tokens)
        now.on_pieces = lambda pieces, source: self._said(now, pieces, source)
        return _Waiting(now, name, self)

    def _sampling(self, ask: Ask) -> Sampling:
        usual = self._ports.settings().style.sampling
        seed = secrets.randbits(31) if ask.seed is None else ask.seed
        return replace(ask.sampling or usual, seed=seed)

    # -- answering ----------------------------------------------------------------------------------------------

    def answer(self, waiting: _Waiting) -> None:
        self._running = (*self._running, waiting)
        self._tasks.start(self._answer(waiting), "answer a program", lambda _error: self._broke(waiting))

    async def _answer(self, waiting: _Waiting) -> None:
        now, ports = waiting.now, self._ports
        try:
            ending = await ports.writer.write(waiting)
            now.flush()
            self._remember(now, ending)
            self._ended(now, ending)
        except TooLong as error:
            self._refuse(now.asker, now.rid, Refusal.CONTEXT, str(error), error.tokens, error.most)
        except PooledError as error:
            self._failed(now, str(error))
        finally:
            self._running = tuple(other for other in self._running if other is not waiting)
        ports.turns.over(waiting)

    def _broke(self, waiting: _Waiting) -> None:
        """Nobody waits for an answer that met a fault of our own."""
        self._failed(waiting.now, BROKE)
        self._ports.turns.over(waiting)

    async def draft(self, now: AskAnswer, running: Running) -> Draft:
        """The prompt of the first attempt stays that of all."""
        if now.stream is None:
            await now.first(await self._the_voice(), running)
        return now.task()

    # -- telling ------------------------------------------------------------------------------------------------

    def _begun(self, now: AskAnswer, name: str, tokens: int) -> None:
        planned = self._ports.dealing.planned
        if planned is None:
            return
        style = self._voice[1].language.profile.style.value if self._voice is not None else ""
        told = m.AnswerStart(
            name=name[:200], asker=now.asker, mid=now.mid, api=API_LEVEL, client=now.ask.client, rid=now.rid,
            promptTokens=tokens, model=planned.record.key, style=style, ctx=planned.context.positions,
        )  # fmt: skip
        self.tell(now, told)
        shown = m.AnswerStart(
            name=name[:200], text=_question(now.ask), asker=now.asker, mid=now.mid, api=1, client=now.ask.client
        )
        now.shown = self._ports.screens.begin(shown, now.asker)

    def _said(self, now: AskAnswer, pieces: tuple[Piece, ...], source: Source) -> None:
        for piece in pieces:
            for message in piece_messages(piece, now.rid):
                self.tell(now, message)
        if now.shown is not None:
            now.shown.say("".join(map(_shown, pieces)), int(source))

    def _ended(self, now: AskAnswer, ending: Ending) -> None:
        reason = Reason.STOP_SEQUENCE if now.stops.hit else REASONS[ending]
        why = STOPPED if reason is Reason.ABORTED else ""
        self._close(now, reason, self._ports.figures.line(now, ending), why)

    def _failed(self, now: AskAnswer, why: str) -> None:
        self._close(now, Reason.FAILED, why, why)

    def _close(self, now: AskAnswer, reason: Reason, stats: str, why: str) -> None:
        thought = now.stream.reasoning_tokens if now.stream is not None else 0
        context = self._ports.dealing.planned.context.positions if self._ports.dealing.planned else 0
        done = m.AnswerDone(
            stats=m.line(stats),
            ctx=m.ContextUse(used=len(now.prompt.ids) + len(now.ids), max=context),
            failed=reason is Reason.FAILED,
            api=API_LEVEL,
            rid=now.rid,
            reason=reason.value,
            stopSeq=now.stops.hit or "",
            usage=m.TokenUse(len(now.prompt.ids), len(now.ids), thought),
            reused=min(now.reused, len(now.prompt.ids)),
            err=m.line(why),
        )
        if now.shown is not None:
            if self._ports.screens.shows(now.shown):
                self._ports.figures.tell(now, live=False)
            now.shown.end(m.AnswerDone(stats=done.stats, ctx=done.ctx, failed=done.failed, api=1))
        self.tell(now, done)

    def _remember(self, now: AskAnswer, ending: Ending) -> None:
        """So that the program's next ask goes on from exactly what the caches hold."""
        answer = now.stream.answer if now.stream is not None else None
        if self._voice is not None and answer is not None and ending is not Ending.STOPPED:
            voice = self._voice[1]
            voice.language.remember(now.ask, now.prompt, now.ids, answer, voice.known)

    # -- ending -------------------------------------------------------------------------------------------------

    def stop(self, by: str, rid: str = "", mid: str = "") -> None:
        """An asker may stop its ask of a name, begun or not; without one the asker, the model host and the creator may
        stop the answer that screens show."""
        for running in self._running:
            if self._named(running, by, rid) if rid else self._seen(running, by, mid):
                self._ports.writer.stop(running)
        if rid:
            checked = {(by, rid)} & self._early
            self._early -= checked
            if checked or self._ports.turns.drop(lambda turn: self._named(turn, by, rid)):
                self._refuse(by, rid, Refusal.GONE, "The request was taken back.")

    def _named(self, turn: Turn, by: str, rid: str) -> bool:
        return isinstance(turn, _Waiting) and (turn.now.asker, turn.now.rid) == (by, rid)

    def _seen(self, running: _Waiting, by: str, mid: str) -> bool:
        """With ``mid`` only under that name: the answer somebody saw may have made room for another meanwhile."""
        crowd, shown = self._ports.crowd, running.now.shown
        meant = shown is not None and mid in {"", shown.start.mid} and self._ports.screens.shows(shown)
        return meant and by in {running.now.asker, crowd.me, crowd.creator}

    def member_left(self, id: str) -> None:
        """Nobody is there to hear the answers."""
        self._ports.turns.drop(lambda turn: isinstance(turn, _Waiting) and turn.now.asker == id)
        self._early = {(asker, rid) for asker, rid in self._early if asker != id}
        for running in self._running:
            if running.now.asker == id:
                self._ports.writer.stop(running)

    def ended(self, why: str) -> None:
        """The model does not run any more."""
        self._voice = None
        for turn in self._ports.turns.drop(lambda turn: isinstance(turn, _Waiting)):
            if isinstance(turn, _Waiting):
                self._refuse(turn.now.asker, turn.now.rid, Refusal.GONE, why)

    async def close(self) -> None:
        await self._tasks.close()


def _question(ask: Ask) -> str:
    """What a person would know the ask by: its last real question."""
    said = [turn.text for turn in ask.messages if isinstance(turn, UserMessage) and not turn.aside]
    return said[-1][:SHOWN_QUESTION] if said else ""


def _shown(piece: Piece) -> str:
    """On a screen a call is one line of text, and reasoning is left out."""
    match piece:
        case Words() | CallArguments():
            return piece.text
        case CallBegun():
            return f"\n→ {piece.name} "
        case _:
            return ""
