"""A program's answer while it is written: its prompt, its form, and what is heard of it (spec: rooms §18)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from app.engine.types import Sampling
from app.prompt.answer_stream import AnswerStream
from app.prompt.ask import Ask
from app.prompt.ask_prompt import AskPrompt
from app.prompt.pieces import Piece
from app.prompt.stops import StopFilter
from app.room.answering import Answering, Draft, Running
from app.room.api.prepared import Prepared, Voice, prepare
from app.room.checkpoints import SHORTEST_PIN, Keep, Mark
from app.room.drafter import Source


@dataclass
class AskAnswer(Answering):
    """``asker`` is the peer that is answered, ``behalf`` the one whose ask it is, ``rid`` its name for it; ``sampling``
    what holds where the ask leaves it open.

    ``on_begun`` hears how many tokens the prompt has, ``on_pieces`` what became whole.
    """

    ask: Ask = field(default_factory=lambda: Ask(()))
    asker: str = ""
    behalf: str = ""
    rid: str = ""
    mid: str = ""
    sampling: Sampling = field(default_factory=Sampling)
    on_begun: Callable[[int], None] = lambda _tokens: None
    on_pieces: Callable[[tuple[Piece, ...], Source], None] = lambda _pieces, _source: None
    ready: Prepared | None = None
    waited: bool = False
    """Answers that were given meanwhile may be part of its conversation."""
    stream: AnswerStream | None = None
    stops: StopFilter = field(default_factory=lambda: StopFilter(()))

    @property
    def prompt(self) -> AskPrompt:
        return self.ready.prompt if self.ready is not None else AskPrompt((), opened=False)

    async def first(self, voice: Voice, running: Running) -> None:
        """Everything that is made once, before the first attempt."""
        if self.ready is None or self.waited or self.ready.voice is not voice:
            self.ready = await asyncio.to_thread(prepare, voice, self.ask, running.context)
        held, tools = self.ready.steering.holds, self.ask.tools
        self.stream = AnswerStream(voice.language, tools, opened=self.prompt.opened, constrained=held)
        self.stops = StopFilter(self.ask.stops)
        self.on_begun(len(self.prompt.ids))

    def task(self) -> Draft:
        """What is still to be said, after the words that were."""
        assert self.ready is not None
        return Draft(
            ids=(*self.prompt.ids, *self.ids),
            most=self.ask.most_tokens - len(self.ids),
            sampling=self.sampling,
            marks=self._marks,
            steering=self.ready.steering,
            shared=self.prompt.fixed,
        )

    def _marks(self) -> list[Mark]:
        """Where other asks will part from this prompt, and the next of this conversation if its reasoning goes."""
        fixed, turn, asked = self.prompt.fixed, self.prompt.turn, self.prompt.asked
        marks = [Mark(fixed, Keep.PIN)] if fixed >= SHORTEST_PIN else []
        marks += [Mark(turn, Keep.TURN)] if turn > fixed or not marks else []
        parts = self.ask.thinking.on and turn < asked < len(self.prompt.ids)
        return [*marks, Mark(asked, Keep.ASKED)] if parts else marks

    def said(self, token: int, source: Source) -> bool:
        """True where a stop sequence ends the answer."""
        assert self.stream is not None
        self._hear(self.stream.add(token), source)
        return bool(self.stops.hit)

    def flush(self) -> None:
        """What was held back until the end."""
        if self.stream is not None:
            self._hear(self.stream.end(), Source.SAMPLED)
            self._show(self.stops.end(), Source.SAMPLED)

    def _hear(self, pieces: tuple[Piece, ...], source: Source) -> None:
        self._show(self.stops.add(pieces), source)

    def _show(self, pieces: tuple[Piece, ...], source: Source) -> None:
        if pieces:
            self.on_pieces(pieces, source)
