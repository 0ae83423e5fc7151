"""What a model host's message means on a screen, the model host's own screen included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.room import events as ev
from app.room import messages as m
from app.room.conversation import split_thinking
from app.room.names import clean_line, clean_name
from app.room.planner import LeftOut
from app.room.settings import RoomSettings
from app.room.state import Exchange, NoticeKind
from app.room.styles import read_rules, with_told


@dataclass(frozen=True)
class View:
    """Whose screen it is, and what it already knows."""

    model_host: str
    settings: RoomSettings
    label: Callable[[str], str]
    """A model's label by key."""


def to_events(message: m.Message, view: View) -> tuple[ev.Event, ...]:
    """The events of one message; none for a message that changes no screen."""
    match message:
        case m.StartRequest():
            return (_begun(message, message.boss or view.model_host, view),)
        case m.Redeal():
            return (_begun(message, view.model_host, view),)
        case m.Layers():
            return (_dealt(message),)
        case m.HostProgress():
            return _progress(message.all)
        case m.ReadyAll():
            label = clean_line(message.label) or view.label(message.model)
            return (ev.WentOnline(message.model, label, message.ctx, message.ctxWant, view.model_host),)
        case m.StartFailed():
            return (ev.StartFailed(clean_line(message.why)),)
        case m.Degraded():
            return (ev.Degraded(clean_line(message.why)),)
        case m.Silent():
            return (ev.WentSilent(message.id, message.hold) if message.silent else ev.CameBack(message.id),)
        case m.RoomMap():
            return (_measured(message),)
        case _:
            return _chat_events(message, view)


def _chat_events(message: m.Message, view: View) -> tuple[ev.Event, ...]:
    match message:
        case m.AnswerStart():
            return (_answer_began(message),)
        case m.Token():
            return (ev.AnswerText(message.text),)
        case m.AnswerDone():
            use = message.ctx
            return (ev.AnswerEnded(clean_line(message.stats), use.used, use.max, message.failed, message.capped),)
        case m.QueueLength():
            return (ev.QueueChanged(message.n),)
        case m.Queued():
            return (ev.OwnPlace(message.pos),)
        case m.Busy() | m.StartRefused() | m.Share():
            return (ev.Noticed(clean_line(message.why), kind=NoticeKind.BAD),)
        case m.Regenerated():
            return (ev.LastReplaced(),)
        case m.ChatReset():
            return (ev.ChatCleared(clean_name(message.by, "")),)
        case m.History():
            return (ev.HistoryCame(tuple(_exchange(i, item) for i, item in enumerate(message.items))),)
        case m.Typing():
            return (ev.SomebodyTypes(clean_name(message.name, "")),)
        case m.VisibilityIs() | m.StyleIs():
            return (ev.SettingsChanged(with_told(view.settings, message)),)
        case m.RulesAre():
            return (ev.SettingsChanged(read_rules(message, view.settings)),)
        case _:
            return ()


def _begun(message: m.StartRequest | m.Redeal, model_host: str, view: View) -> ev.StartBegan:
    again = isinstance(message, m.Redeal)
    return ev.StartBegan(message.model, view.label(message.model), clean_name(message.by, ""), model_host, again)


def _progress(percents: dict[str, float]) -> tuple[ev.Event, ...]:
    done = (ev.DeviceReady(name) for name, percent in percents.items() if percent >= 100)
    return (ev.LoadProgress({name: percent / 100 for name, percent in percents.items()}), *done)


def _dealt(message: m.Layers) -> ev.Dealt:
    read = {name: m.read_layer_words(words) for name, words in message.by.items()}
    ranges = {name: (bounds[0] + 1, bounds[1]) for name, bounds in read.items() if bounds}
    return ev.Dealt(ranges, message.held, _out(message.out), message.tps)


def _out(out: dict[str, str]) -> dict[str, LeftOut]:
    known = {reason.value: reason for reason in LeftOut}
    return {name: known[reason] for name, reason in out.items() if reason in known}


def _answer_began(message: m.AnswerStart) -> ev.AnswerBegan:
    asker = clean_name(message.name, message.asker)
    return ev.AnswerBegan(message.mid, message.asker, asker, message.text, message.cont, message.hidden, message.client)


def _exchange(i: int, item: m.HistoryItem) -> Exchange:
    name = clean_name(item.name, "someone")
    thought = split_thinking(item.reply)
    return Exchange(
        id=item.mid or f"history-{i}",
        asker_id="",
        asker=name,
        question=item.text,
        answer=thought.answer,
        thinking=thought.thinking,
        raw=item.reply,
        stats=clean_line(item.stats),
    )


def _measured(message: m.RoomMap) -> ev.Measured:
    st = message.st
    ms = {node.name: node.ms for node in message.nodes if node.ms > 0}
    hop = st.net / len(message.nodes) if len(message.nodes) > 1 else 0.0
    hops = {node.name: hop for node in message.nodes} if hop else {}
    return ev.Measured(st.tps, st.lap, st.net, st.n, ms, hops, st.acc)
