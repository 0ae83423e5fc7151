"""How coming, waiting, going and notices change the screen."""

from __future__ import annotations

from dataclasses import replace

from app.room.events import (
    Connecting,
    CreatorFound,
    CreatorLost,
    Entered,
    Failed,
    HeirWanted,
    InLobby,
    InviteMade,
    LeftRoom,
    NoticeClosed,
    Noticed,
    Offered,
    RoomEnded,
    SettingsChanged,
    WaitingAdded,
    WaitingGone,
)
from app.room.reductions import reduces
from app.room.state import Notice, NoticeKind, Phase, RoomState

MOST_NOTICES = 4


@reduces(Offered)
def _offered(state: RoomState, event: Offered) -> RoomState:
    return replace(state, offer=event.offer)


@reduces(Connecting)
def _connecting(state: RoomState, event: Connecting) -> RoomState:
    return replace(state, phase=Phase.CONNECTING, code=event.code, status_line=event.line, trouble="", remedy="")


@reduces(InLobby)
def _in_lobby(state: RoomState, event: InLobby) -> RoomState:
    return replace(state, phase=Phase.LOBBY, digits=event.digits, status_line="")


@reduces(Entered)
def _entered(state: RoomState, event: Entered) -> RoomState:
    return RoomState(phase=Phase.ROOM, me=event.me, creator=event.creator, code=event.code, notices=state.notices)


@reduces(InviteMade)
def _invite(state: RoomState, event: InviteMade) -> RoomState:
    return replace(state, invite=event.invite, code=event.invite.code)


@reduces(Failed)
def _failed(state: RoomState, event: Failed) -> RoomState:
    return RoomState(
        phase=Phase.ERROR,
        code=state.code,
        trouble=event.what,
        remedy=event.remedy,
        notices=state.notices,
    )


@reduces(LeftRoom)
def _left(state: RoomState, event: LeftRoom) -> RoomState:
    return RoomState(notices=state.notices)


@reduces(RoomEnded)
def _ended(state: RoomState, event: RoomEnded) -> RoomState:
    """What was said stays readable."""
    return replace(
        state,
        phase=Phase.OVER,
        trouble=event.why,
        remedy=event.remedy,
        waiting=(),
        load=None,
        held_by="",
        queue_length=0,
        my_position=0,
        transcript=tuple(replace(item, live=False) for item in state.transcript),
    )


@reduces(CreatorLost)
def _creator_lost(state: RoomState, event: CreatorLost) -> RoomState:
    return replace(state, phase=Phase.RECONNECTING)


@reduces(CreatorFound)
def _creator_found(state: RoomState, event: CreatorFound) -> RoomState:
    """What runs is told anew by the model host right after."""
    return replace(state, phase=Phase.ROOM, held_by="", trouble="", remedy="", load=None)


@reduces(HeirWanted)
def _heir_wanted(state: RoomState, event: HeirWanted) -> RoomState:
    return replace(state, heir_wanted=event.wanted)


@reduces(WaitingAdded)
def _waiting_added(state: RoomState, event: WaitingAdded) -> RoomState:
    others = tuple(request for request in state.waiting if request.id != event.request.id)
    return replace(state, waiting=(*others, event.request))


@reduces(WaitingGone)
def _waiting_gone(state: RoomState, event: WaitingGone) -> RoomState:
    return replace(state, waiting=tuple(r for r in state.waiting if r.id != event.id))


@reduces(SettingsChanged)
def _settings(state: RoomState, event: SettingsChanged) -> RoomState:
    return replace(state, settings=event.settings)


@reduces(Noticed)
def _noticed(state: RoomState, event: Noticed) -> RoomState:
    newest = max((notice.id for notice in state.notices), default=0) + 1
    return with_notice(state, Notice(newest, event.text, event.remedy, event.kind, event.seconds))


def with_notice(state: RoomState, notice: Notice) -> RoomState:
    """The oldest notices make room for new ones."""
    return replace(state, notices=(*state.notices, notice)[-MOST_NOTICES:])


def noticed(state: RoomState, text: str, kind: NoticeKind = NoticeKind.INFO) -> RoomState:
    return _noticed(state, Noticed(text, kind=kind))


@reduces(NoticeClosed)
def _notice_closed(state: RoomState, event: NoticeClosed) -> RoomState:
    return replace(state, notices=tuple(n for n in state.notices if n.id != event.id))
