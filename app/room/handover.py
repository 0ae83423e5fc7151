"""A room that its creator leaves to another device (docs/adr/011)."""

from __future__ import annotations

from app.room import messages as m
from app.room.creator import Creator
from app.room.events import Member
from app.room.gate import Gate, Pass
from app.room.proofs import is_digest
from app.room.saved_room import SavedRoom, SavedWish, saved_gate
from app.room.styles import rules


def estate(creator: Creator, gate: Gate, heir: Member) -> m.Estate:
    """All that the next creator needs. Not the invite key, the mesh key or the certificate: it makes its own."""
    wish, side = creator.starts.wish, creator.side
    elsewhere = side.host_id not in {creator.me, heir.id}
    host = (side.host_id, creator.name_of(side.host_id)) if elsewhere else ("", "")
    return m.Estate(
        passes=tuple((known.digest, known.name) for known in gate.passes),
        ask=gate.ask,
        api=gate.api_clients,
        rules=rules(creator.settings),
        past=side.past.message(),
        model=wish.model if wish else "",
        ctx=wish.context if wish else 0,
        by=wish.by if wish else "",
        holders=tuple(name for name in side.holders if name != creator.own.name),
        host=host,
    )


def inherited(left: m.Estate, code: str, name: str, gb: float, identity: str) -> SavedRoom:
    """The room as the heir opens it: with fresh keys, and the passes of those who are in it."""
    passes = tuple(Pass(digest, whose) for digest, whose in left.passes if is_digest(digest))
    gate = Gate(passes=passes, ask=left.ask, api_clients=left.api)
    return SavedRoom(
        code=code,
        name=name,
        gb=gb,
        gate=saved_gate(gate),
        identity=identity,
        rules=left.rules,
        past=left.past,
        wish=SavedWish(left.model, left.ctx, left.by) if left.model else None,
        host=left.host,
        holders=left.holders,
    )
