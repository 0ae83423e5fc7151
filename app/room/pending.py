"""What the chain is still to be told about its state; it rides on the next frame (spec: rooms §5.7, §15.1)."""

from __future__ import annotations

from collections.abc import Iterable

from app.room.frame import DROP_ALL, Control

DROPS_A_FRAME = 2


class PendingControl:
    """A device applies what a frame carries in the order rollback, save, drop, reset, load.

    ``unheard``: there is no chain to tell anything.
    """

    def __init__(self, *, unheard: bool = False) -> None:
        self._unheard = unheard
        self._rollback: int | None = None
        self._load = 0
        self._save = 0
        self._drops: list[int] = []

    @property
    def saving(self) -> int:
        """The slot that waits to be saved, 0 for none."""
        return self._save

    @property
    def dropping_all(self) -> bool:
        return DROP_ALL in self._drops

    def rejected_after(self, column: int) -> None:
        """Columns of the last verify past ``column`` were wrong. What else is pending stays."""
        self._rollback = column

    def save(self, slot: int) -> None:
        if not self._unheard:
            self._save = slot

    def load(self, slot: int) -> None:
        self._load = slot

    def drop(self, slots: Iterable[int]) -> None:
        """A slot that was to be saved is then just not saved."""
        for slot in slots:
            if slot == self._save:
                self._save = 0
            elif not self.dropping_all and not self._unheard:
                self._drops.append(slot)

    def drop_all(self) -> None:
        """Nothing that was pending matters any more."""
        self._rollback, self._load, self._save = None, 0, 0
        self._drops = [] if self._unheard else [DROP_ALL]

    def take(self, *, reset: bool) -> Control:
        """The words of the next frame; a reset takes the place of a load. Drops past two wait for another frame."""
        now, self._drops = self._drops[:DROPS_A_FRAME], self._drops[DROPS_A_FRAME:]
        taken = Control(reset, self._rollback, self._save, 0 if reset else self._load, tuple(now))
        self._rollback, self._load, self._save = None, 0, 0
        return taken
