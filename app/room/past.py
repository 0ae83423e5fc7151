"""What was said in the room: the turns of the next prompt, and the history newcomers read (spec: rooms §14.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.engine.types import ColumnClass
from app.prompt.chat import AssistantTurn, Turn, UserTurn
from app.prompt.language import Language
from app.room import messages as m
from app.room.asks import Question
from app.room.segments import Fed, Segment
from app.room.styles import read_style, style_words

HISTORY_KEPT = 50
LARGEST = 600_000
"""Letters that are handed on, an id counting as two: of any script and with any ids they fit one message."""
MOST_TURNS = 4_000


@dataclass(frozen=True)
class Past:
    """``model`` is whose ids the turns hold, ``last`` the question that Regenerate asks again.

    ``unanswered``: its answer is not over; ``continued``: that answer goes on with the one before.
    ``waiting`` are questions not begun yet. ``segments`` say as which class the positions of the last answer's
    prompt and words were computed, so that computing them again elsewhere gives the same bits.
    """

    turns: tuple[Turn, ...] = ()
    history: tuple[m.HistoryItem, ...] = ()
    last: Question | None = None
    model: str = ""
    unanswered: bool = False
    continued: bool = False
    waiting: tuple[Question, ...] = ()
    segments: tuple[Segment, ...] = ()

    @property
    def can_continue(self) -> bool:
        last = self.turns[-1] if self.turns else None
        return isinstance(last, AssistantTurn) and last.open and self.last is not None

    def knows(self, mid: str) -> bool:
        """Whether the exchange was asked already."""
        asked = [question for question in (self.last, *self.waiting) if question is not None]
        return any(item.mid == mid for item in (*self.history, *asked))

    @property
    def earlier(self) -> tuple[int, ...]:
        """Ids of the answer that is being continued."""
        last = self.turns[-1] if self.turns else None
        return last.ids if self.continued and isinstance(last, AssistantTurn) else ()

    @property
    def earlier_text(self) -> str:
        return self.history[-1].reply if self.continued and self.history else ""

    def asked(self, question: Question) -> Past:
        """An answer at its limit can no longer be continued once something else is asked."""
        closed = (replace(turn, open=False) if isinstance(turn, AssistantTurn) else turn for turn in self.turns)
        turns = (*closed, UserTurn(question.text, question.name))
        return replace(self, turns=turns, last=question, unanswered=True, continued=False)

    def going_on(self) -> Past:
        """The last answer is being continued."""
        return replace(self, unanswered=True, continued=True)

    def with_words(self, ids: Sequence[int], *, open: bool) -> tuple[Turn, ...]:
        """The turns with ``ids`` of the running answer as their last one, if there are any."""
        whole = (*self.earlier, *ids)
        before = self.turns[:-1] if self.continued else self.turns
        return (*before, AssistantTurn(whole, open=open)) if whole else before

    def computed(self, ids: Sequence[int]) -> Fed:
        """The record of ``ids``, a prompt in the words of this past, as far as it was computed before."""
        end = min(self.segments[-1].end, len(ids)) if self.segments else 0
        return Fed(tuple(ids), self.segments).cut(end)

    def answered(self, ids: Sequence[int], text: str, stats: str, *, capped: bool) -> Past:
        """What was written stays; a question without any answer leaves no turn behind, only its history."""
        turns = self.with_words(ids, open=capped)
        if not ids and not self.earlier:
            turns = _without_last_exchange(self.turns)
        history = self._remembered(text, stats)
        return replace(self, turns=turns, history=history, unanswered=False, continued=False)

    def _remembered(self, text: str, stats: str) -> tuple[m.HistoryItem, ...]:
        question, stats = self.last, m.line(stats)
        if question is None:
            return self.history
        if self.continued and self.history:
            last = self.history[-1]
            return (*self.history[:-1], m.HistoryItem(last.name, last.text, last.reply + text, stats, last.mid))
        item = m.HistoryItem(question.name, question.text, text, stats, question.mid)
        return (*self.history, item)[-HISTORY_KEPT:]

    def without_last(self) -> Past:
        """The last question is going to be asked again. Without an answer it has left no turn behind."""
        asked = next((turn.text for turn in reversed(self.turns) if isinstance(turn, UserTurn)), None)
        stands = self.last is not None and asked == self.last.text
        turns = _without_last_exchange(self.turns) if stands else self.turns
        return replace(self, turns=turns, history=self.history[:-1])

    def in_words_of(self, model: str, language: Language) -> Past:
        """Ids mean nothing to another model; what was said is put into its own."""
        if self.model == model:
            return self
        encode = language.tokenizer.encode
        said = [item for item in self.history if item.reply]
        pairs = ((UserTurn(i.text, i.name), AssistantTurn(tuple(encode(i.reply)))) for i in said)
        turns = tuple(turn for pair in pairs for turn in pair)
        asked = self.last is not None and self.unanswered and not self.continued
        again = (UserTurn(self.last.text, self.last.name),) if self.last is not None and asked else ()
        return replace(self, model=model, turns=(*turns, *again), unanswered=asked, continued=False, segments=())

    # -- handed on ------------------------------------------------------------------------------------------

    def message(self) -> m.PastIs:
        """For another device or the disk; the oldest is left out of a conversation that is too long."""
        kept = self._shortened()
        turns = tuple(_turn_item(turn) for turn in kept.turns)
        last = _asked_item(self.last) if self.last else None
        waiting = tuple(_asked_item(question) for question in self.waiting)
        classes = tuple((s.start, s.end, s.kind.value) for s in self.segments) if kept.turns == self.turns else ()
        return m.PastIs(self.model, turns, kept.history, last, self.unanswered, self.continued, waiting, classes)

    def _shortened(self) -> Past:
        turns, history = self.turns, self.history
        turns = turns[-MOST_TURNS:]
        while _size(turns, history) > LARGEST and (len(turns) > 2 or len(history) > 1):
            turns, history = turns[2:] if len(turns) > 2 else turns, history[1:]
        return replace(self, turns=turns, history=history)


def read_past(message: m.PastIs) -> Past:
    """The value a message carries."""
    turns = tuple(_read_turn(item) for item in message.turns)
    last = _read_asked(message.last) if message.last else None
    unanswered = message.unanswered and last is not None
    waiting = tuple(_read_asked(item) for item in message.waiting)
    return Past(
        turns=turns,
        history=message.items[-HISTORY_KEPT:],
        last=last,
        model=message.model,
        unanswered=unanswered,
        continued=message.continued,
        waiting=waiting,
        segments=_read_segments(message.classes),
    )


def _read_segments(classes: Sequence[tuple[int, int, str]]) -> tuple[Segment, ...]:
    """None at all where they do not follow each other, or name a class that is none."""
    known = {kind.value: kind for kind in ColumnClass}
    ends = [0, *(end for _, end, _ in classes)]
    follow = all(start == before < end for before, (start, end, _) in zip(ends, classes, strict=False))
    if not follow or any(kind not in known for _, _, kind in classes):
        return ()
    return tuple(Segment(start, end, known[kind]) for start, end, kind in classes)


def _size(turns: Sequence[Turn], history: Sequence[m.HistoryItem]) -> int:
    of_turns = sum(len(t.text) if isinstance(t, UserTurn) else 2 * len(t.ids) for t in turns)
    return of_turns + sum(len(item.text) + len(item.reply) for item in history)


def _turn_item(turn: Turn) -> m.TurnItem:
    if isinstance(turn, UserTurn):
        return m.TurnItem(text=turn.text, name=turn.name)
    return m.TurnItem(ids=turn.ids, open=turn.open)


def _read_turn(item: m.TurnItem) -> Turn:
    return AssistantTurn(item.ids, item.open) if item.ids else UserTurn(item.text, item.name)


def _asked_item(question: Question) -> m.AskedItem:
    style = style_words(question.style) if question.style else None
    return m.AskedItem(question.asker, question.name, question.text, question.mid, question.seed, style)


def _read_asked(item: m.AskedItem) -> Question:
    style = read_style(item.style) if item.style else None
    return Question(item.asker, item.name, item.text, item.mid, item.seed, style)


def _without_last_exchange(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    questions = [i for i, turn in enumerate(turns) if isinstance(turn, UserTurn)]
    return turns[: questions[-1]] if questions else ()
