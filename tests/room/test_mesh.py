"""Links between devices: believed only with the room's mesh key, bound to this connection."""

from __future__ import annotations

import pytest

from app.core.clock import VirtualClock
from app.room.mesh import PROOF_WAIT_S, MeshHandshake
from app.room.proofs import new_mesh_key
from tests.room.fakes import BOUND, FakeLine, carry

HELLO = {"name": "otter", "meta": {}}
KEY = new_mesh_key()


class Ends:
    """Two devices on one connection."""

    def __init__(
        self,
        keys: tuple[str, str] = (KEY, KEY),
        bindings: tuple[str, str] = (BOUND, BOUND),
        stripe: bool = False,
    ):
        self.clock = VirtualClock()
        self.lines = (FakeLine("bob", True, bindings[0]), FakeLine("ann", False, bindings[1]))
        hello = None if stripe else HELLO
        self.shakes = [
            MeshHandshake(line, me, key, hello, self.clock)
            for line, me, key in zip(self.lines, ("ann", "bob"), keys, strict=True)
        ]
        self.proved: list[int] = []
        self.failed: list[int] = []
        for number, shake in enumerate(self.shakes):
            shake.on_proved = lambda _hello, _kept, number=number: self.proved.append(number)
            shake.on_failed = lambda _reason, number=number: self.failed.append(number)

    def run(self) -> Ends:
        for shake in self.shakes:
            shake.start()
        carry(self.lines)
        return self


@pytest.mark.parametrize("stripe", [False, True])
def test_same_key_is_believed(stripe: bool) -> None:
    assert sorted(Ends(stripe=stripe).run().proved) == [0, 1]


def test_other_key_is_closed() -> None:
    ends = Ends(keys=(KEY, new_mesh_key())).run()
    assert sorted(ends.failed) == [0, 1]
    assert not ends.lines[0].open


def test_other_connection_is_closed() -> None:
    ends = Ends(bindings=(BOUND, BOUND.replace("00:01", "77:01"))).run()
    assert not ends.proved


def test_no_fingerprints_no_trust() -> None:
    assert not Ends(bindings=("", "")).run().proved


def test_reflected_proof_is_refused() -> None:
    ends = Ends()
    ends.shakes[0].start()
    ends.lines[0].hear({"t": "hello", "v": 4})
    ends.lines[0].hear(ends.lines[0].said("mesh"))
    assert ends.failed == [0]


def test_silence_ends_it() -> None:
    ends = Ends()
    ends.shakes[0].start()
    ends.clock.advance(PROOF_WAIT_S - 0.1)
    ends.shakes[0].tick()
    assert not ends.failed
    ends.clock.advance(0.2)
    ends.shakes[0].tick()
    assert ends.failed == [0]


def test_room_without_a_mesh_key_believes() -> None:
    assert sorted(Ends(keys=("", "")).run().proved) == [0, 1]
