"""The screens as values: a session's events turn into what a person sees."""

from __future__ import annotations

import typing

import pytest

from app.room import events as ev
from app.room.kinds import Kind
from app.room.meta import Meta
from app.room.planner import LeftOut
from app.room.reducer import reduce
from app.room.reductions import REDUCTIONS
from app.room.state import DeviceStatus, Exchange, Invite, ModelRow, Phase, RoomState, WaitingRequest

OTTER = ev.Member("pooled-room-4TKG9P", "otter", Meta(ua="Mac", webgpu=True, contrib_gb=24))
HERON = ev.Member("b-heron", "heron", Meta(ua="Device", webgpu=True, contrib_gb=10))
FINCH = ev.Member("c-finch", "finch", Meta(ua="iPhone"))


def after(*events: ev.Event, state: RoomState | None = None) -> RoomState:
    current = state or RoomState()
    for event in events:
        current = reduce(current, event)
    return current


@pytest.fixture
def room() -> RoomState:
    return after(
        ev.Connecting("4TKG9P", "Opening the room"),
        ev.Entered(OTTER.id, OTTER.id, "4TKG9P"),
        ev.RosterChanged((OTTER, HERON, FINCH)),
    )


@pytest.fixture
def online(room: RoomState) -> RoomState:
    return after(
        ev.StartBegan("m", "Model", "heron", OTTER.id),
        ev.Dealt({"otter": (1, 20), "heron": (21, 30)}, {"otter": 3.0}, {"finch": LeftOut.UNNEEDED}),
        ev.WentOnline("m", "Model", 2048),
        state=room,
    )


def device(state: RoomState, name: str) -> typing.Any:
    return next(device for device in state.devices if device.name == name)


def test_every_event_has_a_reduction() -> None:
    assert set(typing.get_args(ev.Event)) == set(REDUCTIONS)


def test_room_lists_devices_in_order_with_colours(room: RoomState) -> None:
    assert [d.name for d in room.devices] == ["otter", "heron", "finch"]
    assert [d.colour for d in room.devices] == [0, 1, None]
    assert device(room, "finch").status is DeviceStatus.CHAT_ONLY
    assert device(room, "otter").me
    assert device(room, "otter").creator
    assert room.pooled_gb == 34
    assert room.notices == ()


def test_a_colour_is_never_given_twice(room: RoomState) -> None:
    swift = ev.Member("d-swift", "swift", Meta(ua="Device", webgpu=True, contrib_gb=4))
    changed = after(ev.RosterChanged((OTTER, FINCH, swift, HERON)), state=room)
    assert device(changed, "heron").colour == 1
    assert device(changed, "swift").colour == 2
    assert [notice.text for notice in changed.notices] == ["swift joined."]


def test_returning_device_keeps_its_colour_and_layers(online: RoomState) -> None:
    back = ev.Member("z-new-id", "heron", HERON.meta)
    changed = after(ev.RosterChanged((OTTER, FINCH, back)), state=online)
    assert device(changed, "heron").layers == (21, 30)
    assert device(changed, "heron").colour == 1


def test_lobby_shows_digits_and_refusal_shows_the_remedy() -> None:
    waiting = after(ev.Connecting("4TKG9P", "Knocking"), ev.InLobby("123456"))
    assert (waiting.phase, waiting.digits) == (Phase.LOBBY, "123456")
    refused = after(ev.Failed("The room turned this device away.", "Ask its owner."), state=waiting)
    assert (refused.phase, refused.remedy) == (Phase.ERROR, "Ask its owner.")


def test_waiting_requests_come_and_go(room: RoomState) -> None:
    request = WaitingRequest("x", "wren", Kind.COMPUTER, 8, digits="482913")
    asked = after(ev.WaitingAdded(request), ev.WaitingAdded(request), state=room)
    assert asked.waiting == (request,)
    assert after(ev.WaitingGone("x"), state=asked).waiting == ()


def test_choice_follows_the_largest_fit_until_a_person_chooses(room: RoomState) -> None:
    rows = (
        ModelRow("small", "Small", 1, 34, True, ""),
        ModelRow("mid", "Mid", 20, 34, True, ""),
        ModelRow("big", "Big", 72, 34, False, ""),
    )
    shown = after(ev.RowsChanged(rows), state=room)
    assert shown.chosen == "mid"
    assert shown.can_start
    by_hand = after(ev.ModelChosen("big"), ev.RowsChanged(rows), state=shown)
    assert by_hand.chosen == "big"
    assert not by_hand.can_start


def test_loading_shows_each_device(room: RoomState) -> None:
    loading = after(
        ev.StartBegan("m", "Model", "heron", OTTER.id),
        ev.Dealt({"otter": (1, 20), "heron": (21, 30)}, {}, {"finch": LeftOut.UNNEEDED}),
        ev.LoadProgress({"otter": 0.5, "finch": 0.9}),
        ev.DeviceReady("heron"),
        state=room,
    )
    assert loading.phase is Phase.STARTING
    assert loading.layers == 30
    assert device(loading, "otter").status is DeviceStatus.LOADING
    assert device(loading, "otter").progress == 0.5
    assert device(loading, "heron").status is DeviceStatus.READY
    assert device(loading, "finch").out is LeftOut.UNNEEDED
    assert device(loading, "finch").progress is None


def test_failed_start_returns_to_the_picker_and_says_why(room: RoomState) -> None:
    failed = after(
        ev.StartBegan("m", "Model", "heron", OTTER.id),
        ev.Dealt({"otter": (1, 30)}),
        ev.StartFailed("heron could not load its layers.", "Start again."),
        state=room,
    )
    assert failed.phase is Phase.ROOM
    assert device(failed, "otter").layers is None
    assert failed.notices[-1].text == "heron could not load its layers. Start again."


def asked(state: RoomState, asker: ev.Member = HERON, **more: typing.Any) -> RoomState:
    return after(ev.AnswerBegan("q1", asker.id, asker.name, "Why?", **more), state=state)


def test_answer_streams_and_ends(online: RoomState) -> None:
    live = after(ev.AnswerText("Be"), ev.AnswerText("cause."), state=asked(online))
    assert live.phase is Phase.ANSWERING
    assert live.can_stop
    assert live.live is not None
    assert live.live.answer == "Because."
    ended = after(ev.AnswerEnded("2 tok", 40, 2048, capped=True), state=live)
    assert ended.phase is Phase.ONLINE
    assert ended.transcript[-1].capped
    assert ended.speed.context_share == 40 / 2048


def test_reasoning_is_kept_apart_while_it_streams(online: RoomState) -> None:
    pieces = ["<thi", "nk>\nfirst ", "second", "</think>\n\nYes", " it is"]
    live = after(*(ev.AnswerText(piece) for piece in pieces), state=asked(online))
    assert live.live is not None
    assert (live.live.thinking, live.live.answer) == ("first second", "Yes it is")
    assert not live.live.thinking_open


def test_continue_goes_on_in_the_same_exchange(online: RoomState) -> None:
    capped = after(ev.AnswerText("One"), ev.AnswerEnded("", 1, 9, capped=True), state=asked(online))
    more = after(ev.AnswerText(" two"), state=asked(capped, continued=True))
    assert len(more.transcript) == 1
    assert more.transcript[0].answer == "One two"


def test_regenerate_marks_the_old_pair(online: RoomState) -> None:
    ended = after(ev.AnswerText("No"), ev.AnswerEnded("", 1, 9), state=asked(online))
    again = after(ev.LastReplaced(), ev.AnswerBegan("q2", HERON.id, "heron", "Why?"), ev.AnswerText("Yes"), state=ended)
    assert [item.replaced for item in again.transcript] == [True, False]


def test_continue_and_regenerate_are_the_peoples_though_a_program_was_answered_since(online: RoomState) -> None:
    capped = after(ev.AnswerText("One,"), ev.AnswerEnded("1 tok", 9, 99, capped=True), state=asked(online))
    program = ev.AnswerBegan("p1", HERON.id, "heron", "Ask", client="a tool")
    since = after(program, ev.AnswerText("A tool's."), ev.AnswerEnded("2 tok", 9, 99), state=capped)
    on = after(ev.AnswerText(" two"), state=asked(since, continued=True))
    assert [(item.id, item.answer, item.live) for item in on.transcript] == [
        ("p1", "A tool's.", False),
        ("q1", "One, two", True),
    ]
    again = after(ev.LastReplaced(), state=since)
    assert [(item.id, item.replaced) for item in again.transcript] == [("q1", True), ("p1", False)]


def test_held_answer_names_the_device_and_goes_on(online: RoomState) -> None:
    held = after(ev.WentSilent(HERON.id, holds_answer=True), state=asked(online))
    assert (held.phase, held.held_by) == (Phase.HELD, "heron")
    assert device(held, "heron").status is DeviceStatus.SILENT
    assert held.can_stop
    back = after(ev.CameBack(HERON.id), state=held)
    assert (back.phase, back.held_by) == (Phase.ANSWERING, "")


def test_idle_silence_is_shown_but_holds_nothing(online: RoomState) -> None:
    silent = after(ev.WentSilent(HERON.id), state=online)
    assert silent.phase is Phase.ONLINE
    assert device(silent, "heron").status is DeviceStatus.SILENT


def test_lost_device_and_redeal_keep_the_conversation(online: RoomState) -> None:
    lost = after(
        ev.AnswerText("So"),
        ev.RosterChanged((OTTER, FINCH)),
        ev.Degraded("heron left (layers 21-30)."),
        state=asked(online),
    )
    assert (lost.phase, lost.can_ask) == (Phase.DEGRADED, False)
    assert device(lost, "heron").status is DeviceStatus.AWAY
    again = after(
        ev.StartBegan("m", "Model", "", OTTER.id, again=True),
        ev.Dealt({"otter": (1, 30)}),
        ev.WentOnline("m", "Model", 2048),
        ev.AnswerText(" it goes"),
        state=lost,
    )
    assert again.phase is Phase.ANSWERING
    assert again.transcript[-1].answer == "So it goes"


def test_ended_room_keeps_what_was_said(online: RoomState) -> None:
    ended = after(ev.AnswerText("Hm"), ev.RoomEnded("otter closed the room."), state=asked(online))
    assert (ended.phase, ended.trouble) == (Phase.OVER, "otter closed the room.")
    assert ended.transcript[-1].answer == "Hm"
    assert ended.live is None


def test_hidden_exchange_locks_without_text(online: RoomState) -> None:
    hidden = after(ev.AnswerBegan("q", "x", "wren", "", hidden=True), ev.AnswerEnded("3 tok", 9, 99), state=online)
    assert hidden.transcript[-1].hidden
    assert hidden.phase is Phase.ONLINE


def test_history_completes_what_was_missed_and_shows_nothing_twice(online: RoomState) -> None:
    before = after(ev.AnswerText("Hm"), ev.AnswerEnded("", 1, 9), state=asked(online))
    live = after(ev.AnswerBegan("q3", OTTER.id, "otter", "Third?"), ev.AnswerText("T"), state=before)
    told = (
        Exchange("q1", "", "heron", "Why?", answer="Hm, yes."),
        Exchange("q2", "", "heron", "Second?", answer="S"),
    )
    merged = after(ev.HistoryCame(told), state=live)
    assert [(item.id, item.answer, item.live) for item in merged.transcript] == [
        ("q1", "Hm, yes.", False),
        ("q2", "S", False),
        ("q3", "T", True),
    ]
    assert merged.transcript[0].asker_id == HERON.id


def test_an_answer_told_again_from_its_beginning_replaces_the_half_one(online: RoomState) -> None:
    half = after(ev.AnswerText("Be"), state=asked(online))
    again = after(ev.AnswerText("Because."), state=asked(half))
    assert [item.answer for item in again.transcript] == ["Because."]


def test_a_lost_device_stays_visible_until_layers_are_dealt_again(online: RoomState) -> None:
    lost = after(ev.RosterChanged((OTTER, FINCH)), ev.Degraded("heron left."), state=online)
    assert device(lost, "heron").status is DeviceStatus.AWAY
    assert lost.pooled_gb == 24
    again = after(ev.StartBegan("m", "Model", "", OTTER.id, again=True), state=lost)
    assert [d.name for d in again.devices] == ["otter", "finch"]


def test_speed_panel_gets_times_by_device(online: RoomState) -> None:
    measured = after(ev.Measured(41.8, 24.0, 4.8, 312, {"otter": 14.9, "heron": 4.3}, {"otter": 2.4}), state=online)
    assert measured.speed.tokens == 312
    assert device(measured, "otter").ms == 14.9
    assert device(measured, "otter").wire_ms == 2.4
    assert measured.speed.history == (41.8,)


def test_notices_are_few_and_can_be_closed() -> None:
    many = after(*(ev.Noticed(str(i)) for i in range(9)))
    assert [notice.text for notice in many.notices] == ["5", "6", "7", "8"]
    assert len({notice.id for notice in many.notices}) == 4
    assert after(ev.NoticeClosed(many.notices[0].id), state=many).notices == many.notices[1:]


def test_invite_and_new_chat(online: RoomState) -> None:
    invited = after(ev.InviteMade(Invite("4TKG9P", "http://x/r/4TKG9P#k=1", True)), state=online)
    assert invited.invite is not None
    cleared = after(ev.ChatCleared("heron"), state=asked(invited))
    assert cleared.transcript == ()
    assert cleared.notices[-1].text == "heron started a new chat."
