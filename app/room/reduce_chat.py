"""How questions, answers and the queue change the screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from app.room.conversation import split_thinking
from app.room.events import (
    AnswerBegan,
    AnswerEnded,
    AnswerText,
    ChatCleared,
    HistoryCame,
    LastReplaced,
    OwnPlace,
    QueueChanged,
    SomebodyTypes,
)
from app.room.reduce_entry import noticed
from app.room.reductions import reduces
from app.room.state import Exchange, Phase, RoomState

MOST_EXCHANGES = 500
BUSY = frozenset({Phase.ANSWERING, Phase.HELD})


@reduces(AnswerBegan)
def _began(state: RoomState, event: AnswerBegan) -> RoomState:
    phase = Phase.ANSWERING if state.phase in {Phase.ONLINE, Phase.ANSWERING} else state.phase
    mine = event.asker_id == state.me
    speed = state.speed if event.continued else replace(state.speed, tokens=0, reused=0)
    begun = replace(state, phase=phase, speed=speed, my_position=0 if mine else state.my_position)
    others = tuple(item for item in state.transcript if item.id != event.id)
    known = next((item for item in state.transcript if item.id == event.id), _last_of_people(state))
    if event.continued and known is not None and not event.hidden:
        others = tuple(item for item in others if item is not known)
        return replace(begun, transcript=(*others, replace(known, live=True, capped=False, stats="")))
    return replace(begun, transcript=(*others, _exchange(event))[-MOST_EXCHANGES:])


def _last_of_people(state: RoomState) -> Exchange | None:
    """Programs may have been answered since."""
    return next((item for item in reversed(state.transcript) if not item.client), None)


def _exchange(event: AnswerBegan) -> Exchange:
    return Exchange(
        id=event.id,
        asker_id=event.asker_id,
        asker=event.asker,
        question=event.question,
        live=True,
        hidden=event.hidden,
        client=event.client,
    )


def _with_last(state: RoomState, change: Callable[[Exchange], Exchange]) -> RoomState:
    if not state.transcript:
        return state
    return replace(state, transcript=(*state.transcript[:-1], change(state.transcript[-1])))


@reduces(AnswerText)
def _text(state: RoomState, event: AnswerText) -> RoomState:
    """Reasoning is taken out as it streams; the exchange keeps both parts."""
    return _with_last(state, lambda item: _grown(item, event.text) if item.live else item)


def _grown(item: Exchange, text: str) -> Exchange:
    raw = item.raw + text
    thought = split_thinking(raw)
    answer, thinking = thought.answer, thought.thinking
    return replace(item, raw=raw, answer=answer, thinking=thinking, thinking_open=thought.open)


@reduces(AnswerEnded)
def _ended(state: RoomState, event: AnswerEnded) -> RoomState:
    phase = Phase.ONLINE if state.phase in BUSY else state.phase
    speed = replace(state.speed, context_used=event.used, context_max=event.maximum or state.speed.context_max)
    ended = replace(state, phase=phase, held_by="", speed=speed)
    if state.live is None:
        return ended
    return _with_last(
        ended,
        lambda item: replace(
            item,
            live=False,
            thinking_open=False,
            stats=event.stats,
            failed=event.failed,
            capped=event.capped,
        ),
    )


@reduces(LastReplaced)
def _replaced(state: RoomState, event: LastReplaced) -> RoomState:
    last = _last_of_people(state)
    changed = (replace(item, replaced=True, live=False) if item is last else item for item in state.transcript)
    return replace(state, transcript=tuple(changed))


@reduces(QueueChanged)
def _queue(state: RoomState, event: QueueChanged) -> RoomState:
    position = min(state.my_position, event.length)
    return replace(state, queue_length=event.length, my_position=position)


@reduces(OwnPlace)
def _own_place(state: RoomState, event: OwnPlace) -> RoomState:
    return replace(state, my_position=event.position)


@reduces(HistoryCame)
def _history(state: RoomState, event: HistoryCame) -> RoomState:
    """Exchanges known here by their id are completed, those missed are added, a live one stays last."""
    told = {item.id for item in event.items}
    mine = {item.id: item for item in state.transcript}
    older = [item for item in state.transcript if item.id not in told and not item.live]
    live = [item for item in state.transcript if item.id not in told and item.live]
    phase = Phase.ONLINE if state.phase in BUSY and not live else state.phase
    return replace(
        state, phase=phase, transcript=(*older, *(_completed(mine.get(i.id), i) for i in event.items), *live)
    )


def _completed(known: Exchange | None, told: Exchange) -> Exchange:
    return told if known is None else replace(told, asker_id=known.asker_id, replaced=known.replaced)


@reduces(ChatCleared)
def _cleared(state: RoomState, event: ChatCleared) -> RoomState:
    speed = replace(state.speed, context_used=0, tokens=0, reused=0)
    cleared = replace(state, transcript=(), queue_length=0, my_position=0, speed=speed)
    return noticed(cleared, f"{event.by} started a new chat." if event.by else "A new chat began.")


@reduces(SomebodyTypes)
def _types(state: RoomState, event: SomebodyTypes) -> RoomState:
    return replace(state, typing=event.name)
