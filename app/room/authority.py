"""Whose word counts for what (spec: rooms §6.7). Everything else is dropped without an answer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from app.room import messages as m

HOST_ONLY: frozenset[type[m.Message]] = frozenset(
    {
        m.Layers,
        m.ReadyAll,
        m.ChatReset,
        m.Redeal,
        m.Degraded,
        m.RoomMap,
        m.AnswerStart,
        m.Token,
        m.CallPart,
        m.AnswerDone,
        m.History,
        m.QueueLength,
        m.Queued,
        m.Regenerated,
        m.HostProgress,
        m.Next,
        m.VisibilityIs,
        m.StyleIs,
        m.Busy,
        m.Load,
        m.Share,
        m.Wake,
        m.CheckpointSave,
        m.CheckpointLoad,
    }
)
CREATOR_ONLY: frozenset[type[m.Message]] = frozenset(
    {m.Roster, m.ModelHostIs, m.RulesAre, m.RelayLease, m.HeirAsked, m.Estate, m.HandedOver}
)
EITHER: frozenset[type[m.Message]] = frozenset({m.StartFailed, m.Silent})
"""The creator's word counts as much as the model host's: it may outlive a model host."""
BETWEEN: frozenset[type[m.Message]] = frozenset({m.StartRefused, m.PastIs})
"""From the creator to the others, and from the model host to the creator."""
CHAIN_ONLY: frozenset[type[m.Message]] = frozenset(
    {m.Ready, m.Linked, m.LinkLost, m.LoadShare, m.Telemetry, m.CheckpointsLoaded}
)
FROM_API: frozenset[type[m.Message]] = frozenset({m.Ask, m.StopAnswer, m.Leaving, m.Bye})
"""All that an API client may do: it asks, and rules nothing in the room."""
TO_API: frozenset[type[m.Message]] = frozenset(
    {m.Roster, m.ReadyAll, m.StartFailed, m.Degraded, m.RoomMap, m.Bye, m.Leaving, m.HandedOver}
)
"""What an API client hears beside the answers to its own asks; to it the creator runs the model. The map of a running
answer is its sign of life while a prompt is read."""


@dataclass(frozen=True)
class Viewpoint:
    """Who this device is and whom it follows. ``followed`` "" means the creator."""

    me: str
    creator: str
    followed: str = ""
    chain: Collection[str] = ()

    @property
    def host(self) -> str:
        return self.followed or self.creator

    @property
    def hosts(self) -> bool:
        return self.host == self.me


def counts(message: m.Message, sender: str, view: Viewpoint) -> bool:
    """Whether a message of this kind from this peer is listened to."""
    kind, owner = type(message), view.me == view.creator
    if kind in CREATOR_ONLY:
        return sender == view.creator and not owner
    if kind in HOST_ONLY:
        return not view.hosts and sender == view.host
    if kind in EITHER:
        return (sender == view.creator and not owner) or (not view.hosts and sender == view.host)
    if kind in BETWEEN:
        return sender == (view.host if owner else view.creator)
    if kind in CHAIN_ONLY:
        return view.hosts and sender in view.chain
    if kind is m.HeirAnswer:
        return owner
    if kind is m.Typing:
        return view.hosts or sender == view.host
    if kind is m.StartRequest:
        return view.me == view.creator or sender == view.creator
    return True
