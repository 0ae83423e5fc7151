"""The creator between API clients and a model host that is another device: they have no link to each other.

To an API client the creator runs the model, as in the published protocol; to the model host the creator asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from app.room import messages as m
from app.room.api.events import Refusal
from app.room.events import Member

MOST_ASKS = 256
GONE = "No device of this room runs a model."
Answer = m.Queued | m.Busy | m.AnswerStart | m.Token | m.CallPart | m.AnswerDone


@dataclass
class AskRelay:
    """``send`` reaches one member, ``host`` is the id of a model host that is not the creator, "" for none."""

    send: Callable[[str, m.Message], None]
    host: Callable[[], str]
    _asked: dict[str, str] = field(default_factory=dict[str, str])
    """Who asked, by the ask's name."""

    def ask(self, member: Member, message: m.Ask | m.StopAnswer) -> None:
        """An API client's word, handed on."""
        host, rid = self.host(), message.rid
        if isinstance(message, m.StopAnswer):
            if self._asked.get(rid) == member.id:
                del self._asked[rid]
                self.send(host, message)
        elif not host:
            self._refuse(member.id, rid, Refusal.GONE, GONE)
        elif len(self._asked) >= MOST_ASKS:
            self._refuse(member.id, rid, Refusal.QUEUE, "Too many requests are under way in this room.")
        elif rid in self._asked:
            self._refuse(member.id, rid, Refusal.BAD, "A request of that name is under way already.")
        else:
            self._asked[rid] = member.id
            self.send(host, msgspec.structs.replace(message, asker=member.id, name=member.name))

    def _refuse(self, id: str, rid: str, code: Refusal, why: str) -> None:
        self.send(id, m.Busy(why=why, rid=rid, code=code.value))

    def answered(self, message: m.Message) -> bool:
        """The model host's word about an ask that was handed on; False for any other."""
        if not isinstance(message, Answer) or not message.rid:
            return False
        asker = self._asked.get(message.rid)
        if asker is None:
            return False
        self.send(asker, message)
        if isinstance(message, m.Busy | m.AnswerDone):
            del self._asked[message.rid]
        return True

    def client_left(self, id: str) -> None:
        """Nobody is there to hear the answers."""
        for rid in [rid for rid, asker in self._asked.items() if asker == id]:
            del self._asked[rid]
            self.send(self.host(), m.StopAnswer(rid=rid))

    def host_gone(self) -> None:
        for rid, asker in self._asked.items():
            self._refuse(asker, rid, Refusal.GONE, "The device that ran the model is gone.")
        self._asked.clear()
