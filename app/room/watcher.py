"""Pings to the other devices, and who has gone silent (spec: rooms §16.1, §16.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from app.core.clock import Clock
from app.room import messages as m
from app.room.liveness import CHAIN_PING, PING, Role, Subject, Verdict, Watch, judge
from app.room.ports import Link

OLDEST_PONG = 600.0


@dataclass
class _Peer:
    link: Link
    pinged: float = float("-inf")
    rtt: float = 0.0
    silent_since: float | None = None


@dataclass(frozen=True)
class Watching:
    """How links are judged right now."""

    role: Callable[[str], Role]
    loading: Callable[[str], bool]
    answering: bool = False


class Watcher:
    """Tells who went silent, who is back after a full round trip, and whose link is to be dropped."""

    def __init__(self, clock: Clock) -> None:
        self.on_silent: Callable[[str], None] = lambda _id: None
        self.on_back: Callable[[str], None] = lambda _id: None
        self.on_gone: Callable[[str], None] = lambda _id: None
        self.on_rtt: Callable[[str, float], None] = lambda _id, _seconds: None
        self._clock = clock
        self._peers: dict[str, _Peer] = {}
        self._watch = Watch(clock.now())

    def add(self, link: Link) -> None:
        self._peers[link.peer_id] = _Peer(link)

    def remove(self, id: str) -> None:
        self._peers.pop(id, None)

    def silence(self, id: str) -> float:
        """Seconds since the last byte."""
        peer = self._peers.get(id)
        return self._clock.now() - peer.link.last_heard if peer else 0.0

    def ping(self, id: str) -> None:
        peer = self._peers.get(id)
        if peer is not None:
            self._ping(peer)

    def _ping(self, peer: _Peer) -> None:
        peer.pinged = self._clock.now()
        peer.link.send(m.encode(m.Ping(ts=peer.pinged * 1000)))

    def pong(self, id: str, pong: m.Pong) -> None:
        """Only an answer to a ping sent after the silence began ends it."""
        peer, sent, now = self._peers.get(id), pong.ts / 1000, self._clock.now()
        if peer is None or not now - OLDEST_PONG < sent <= now:
            return
        peer.rtt = now - sent
        self.on_rtt(id, peer.rtt)
        if peer.silent_since is not None and sent > peer.silent_since:
            peer.silent_since = None
            self.on_back(id)

    def tick(self, watching: Watching) -> None:
        now = self._clock.now()
        before = self._answer_noted(watching.answering, now)
        for id, peer in list(self._peers.items()):
            fast = watching.answering and watching.role(id) is Role.CHAIN
            if now - peer.pinged >= (CHAIN_PING if fast else PING):
                self._ping(peer)
            subject = Subject(watching.role(id), peer.link.last_heard, peer.rtt, watching.loading(id))
            self._judged(id, peer, judge(subject, before, now))
        self._watch = before.ticked(now)

    def _answer_noted(self, answering: bool, now: float) -> Watch:
        since = self._watch.answering_since
        started = (now if since is None else since) if answering else None
        return replace(self._watch, answering_since=started)

    def _judged(self, id: str, peer: _Peer, verdict: Verdict) -> None:
        if verdict is Verdict.GONE:
            self.remove(id)
            self.on_gone(id)
        elif verdict is Verdict.SILENT and peer.silent_since is None:
            peer.silent_since = peer.link.last_heard
            self.on_silent(id)
