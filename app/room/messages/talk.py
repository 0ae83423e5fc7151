"""Questions, answers and what screens show of them (spec: rooms §6.4)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from app.room.messages.base import (
    HISTORY_SENT,
    LONGEST_ASK,
    Count,
    Line,
    LongText,
    Message,
    Ms,
    Name,
    PeerId,
    Real,
    Whole,
)
from app.room.messages.start import StyleWords

Rid = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{0,32}$")]
"""Names a program's ask, as its device chose it; "" for what people ask."""
JsonText = Annotated[str, msgspec.Meta(max_length=4 * 2**20)]


class Ask(Message, frozen=True, tag="ai-ask"):
    """A person's question (``text``), or with ``rid`` a program's (spec: rooms §18), read by ``room.api.wire``.

    Ours: ``style`` is the asker's, so that it holds on any model host; ``mid`` names the exchange, so that
    a question told twice is asked once. ``body`` is a program's ask as JSON text: the members after it cannot carry
    every number and null of a schema. ``count``: only the prompt's tokens are wanted.
    """

    text: LongText = ""
    style: StyleWords | None = None
    mid: Line = ""
    api: Count = 0
    rid: Rid = ""
    body: JsonText = ""
    count: bool = False
    asker: PeerId = ""
    name: Name = ""
    """Whose ask it is, where the creator hands on an API client's."""
    system: Any = None
    messages: Any = None
    tools: Any = None
    params: Any = None


class Queued(Message, frozen=True, tag="ai-queued"):
    """``mid`` is ours: which question."""

    pos: Count = 0
    mid: Line = ""
    rid: Rid = ""


class QueueLength(Message, frozen=True, tag="ai-queue"):
    n: Count = 0


class Busy(Message, frozen=True, tag="ai-busy"):
    """A program hears ``code`` too: queue, ctx (with ``n`` tokens of ``max``), bad, off, degraded, loading, gone."""

    why: Line = ""
    mid: Line = ""
    rid: Rid = ""
    code: Name = ""
    n: Count = 0
    max: Count = 0


class AnswerStart(Message, frozen=True, tag="ai-genstart"):
    """With ``rid`` for the program that asked. ``api`` says to screens that a program did, ``client`` which."""

    name: Name = ""
    text: LongText = ""
    asker: PeerId = ""
    cont: bool = False
    mid: Line = ""
    hidden: bool = False
    api: Count = 0
    client: Name = ""
    rid: Rid = ""
    promptTokens: Count = 0
    model: Name = ""
    style: Name = ""
    ctx: Count = 0


class Token(Message, frozen=True, tag="ai-token"):
    """``d``: 0 sampled, 1 from a draft block, 2 from prompt lookup. ``th``: reasoning, for the program that asked."""

    text: Line = ""
    d: Whole = 0
    rid: Rid = ""
    th: bool = False


class CallPart(Message, frozen=True, tag="ai-call"):
    """Of call ``i``: its name, a fragment ``a`` of its arguments, or its end."""

    rid: Rid = ""
    i: Count = 0
    name: Name = ""
    a: LongText = ""
    end: bool = False


class ContextUse(msgspec.Struct, frozen=True):
    used: Count = 0
    max: Count = 0


class TokenUse(msgspec.Struct, frozen=True, rename={"prompt": "in"}):
    """Tokens of the prompt, of the answer, and of its reasoning."""

    prompt: Count = 0
    out: Count = 0
    think: Count = 0


class AnswerDone(Message, frozen=True, tag="ai-gendone"):
    """A program hears ``reason`` (stop, stop_seq, max, ctx, abort, error; ours: count) and how much it used."""

    stats: Line = ""
    ctx: ContextUse = ContextUse()
    failed: bool = False
    capped: bool = False
    hidden: bool = False
    api: Count = 0
    rid: Rid = ""
    reason: Name = ""
    stopSeq: Name = ""
    usage: TokenUse = TokenUse()
    reused: Count = 0
    err: Line = ""


class HistoryItem(msgspec.Struct, frozen=True):
    name: Name = ""
    text: LongText = ""
    reply: LongText = ""
    stats: Line = ""
    mid: Line = ""


class History(Message, frozen=True, tag="ai-history"):
    items: Annotated[tuple[HistoryItem, ...], msgspec.Meta(max_length=HISTORY_SENT)] = ()


class TurnItem(msgspec.Struct, frozen=True):
    """A question (``text``, ``name``), or an answer as ``ids``."""

    text: LongText = ""
    name: Name = ""
    ids: Annotated[tuple[Count, ...], msgspec.Meta(max_length=LONGEST_ASK)] = ()
    open: bool = False


class AskedItem(msgspec.Struct, frozen=True):
    """The last question, which Regenerate asks again."""

    asker: PeerId = ""
    name: Name = ""
    text: LongText = ""
    mid: Line = ""
    seed: Count = 0
    style: StyleWords | None = None


class PastIs(Message, frozen=True, tag="ai-past"):
    """Ours: the conversation as a model host keeps it, for the creator and for the next model host.

    ``model`` is whose ids the turns hold. ``unanswered``: the last question's answer was not over yet;
    ``continued``: it was going on with the answer before. ``classes`` are stretches [start, end) of positions and
    how they were computed.
    """

    model: Name = ""
    turns: Annotated[tuple[TurnItem, ...], msgspec.Meta(max_length=4_096)] = ()
    items: Annotated[tuple[HistoryItem, ...], msgspec.Meta(max_length=64)] = ()
    last: AskedItem | None = None
    unanswered: bool = False
    continued: bool = False
    waiting: Annotated[tuple[AskedItem, ...], msgspec.Meta(max_length=16)] = ()
    classes: Annotated[tuple[tuple[Count, Count, Name], ...], msgspec.Meta(max_length=8_192)] = ()


class Wake(Message, frozen=True, tag="ai-wake"):
    """A word is on its way: a hint for phones, whose GPU sleeps between two."""

    pos: Count = 0


class StopAnswer(Message, frozen=True, tag="ai-stop"):
    """With ``rid`` only that ask of a program's, with ``mid`` only the answer that screens show under that name."""

    rid: Rid = ""
    mid: Line = ""


class Command(Message, frozen=True, tag="ai-cmd"):
    """``cmd`` "continue" or "regen"; ours also "new" (new chat), "redeal" and, the creator's, "down"."""

    cmd: Name = ""


class Regenerated(Message, frozen=True, tag="ai-regen"):
    pass


class ChatReset(Message, frozen=True, tag="ai-reset"):
    by: Name = ""


class VisibilityIs(Message, frozen=True, tag="ai-visibility"):
    mode: Name = "all"


class StyleIs(Message, frozen=True, tag="ai-style"):
    persona: Name = "default"
    sampling: Name = "focused"
    thinking: bool = False
    length: Name = "normal"

    @property
    def words(self) -> StyleWords:
        return StyleWords(self.persona, self.sampling, self.thinking, self.length)


class Typing(Message, frozen=True, tag="ai-typing"):
    name: Name = ""


class Timings(msgspec.Struct, frozen=True):
    """Averages in ms: a verify frame, a single column, a prefill batch."""

    spec: Ms = 0.0
    one: Ms = 0.0
    pre: Ms = 0.0


class Telemetry(Message, frozen=True, tag="ai-tele"):
    k: Timings = Timings()
    amax: Real = 0.0


class MapNode(msgspec.Struct, frozen=True):
    name: Name = ""
    layers: Name = ""
    ms: Ms = 0.0
    host: bool = False


class MapStats(msgspec.Struct, frozen=True):
    """Words a second, share of drafts accepted; a lap, its compute and its wire in ms; ``n`` words so far."""

    tps: Real = 0.0
    acc: Real | None = None
    lap: Real = 0.0
    gpu: Real = 0.0
    net: Real = 0.0
    n: Count = 0


class RoomMap(Message, frozen=True, tag="ai-map"):
    nodes: Annotated[tuple[MapNode, ...], msgspec.Meta(max_length=256)] = ()
    st: MapStats = MapStats()
    live: bool = False
