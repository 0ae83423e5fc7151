"""One device in one room: takes a person's intents, publishes what the screen shows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from app.core.errors import PooledError
from app.room import events as ev
from app.room import intents as it
from app.room import messages as m
from app.room.api.answers import RoomAnswers
from app.room.creator_seat import CreatorSeat
from app.room.intents import Intent
from app.room.member_seat import MemberSeat
from app.room.outside import RoomPorts
from app.room.pick import model_host_of
from app.room.picker import Screen, Wish, model_rows, seen
from app.room.reducer import reduce
from app.room.saved_room import SavedJoin, SavedRoom
from app.room.seat import Seat, SeatPorts
from app.room.settings import RoomSettings
from app.room.state import Offer, Phase, RoomState
from app.room.tasks import Tasks

log = logging.getLogger(__name__)

TICK = 0.1
TYPING_SHOWN = 3.5
TYPING_PERIOD = 2.0
ALIVE_PERIOD = 5.0
MOVED, MOVED_MS = 0.25, 2.0
AFFECT_ROWS = (ev.RosterChanged, ev.ModelChosen, ev.ContextChosen, ev.SettingsChanged, ev.StartFailed)

Subscriber = Callable[[RoomState], None]


class Room:
    """The facade for window, terminal and API (``answers``). All calls are made on the event loop's thread.

    ``start`` runs the room's clock; a test calls ``tick`` itself instead.
    """

    def __init__(self, ports: RoomPorts, settings: RoomSettings | None = None) -> None:
        self._settings = settings or RoomSettings()
        self.state = RoomState(settings=self._settings)
        self._ports = ports
        self._subscribers: list[Subscriber] = []
        self._tasks = Tasks()
        self._seat: Seat | None = None
        self.answers = RoomAnswers(lambda: self._seat.side if self._seat else None, lambda: self.state.code)
        self._members: tuple[ev.Member, ...] = ()
        self._notices_until: dict[int, float] = {}
        self._entering: asyncio.Task[None] | None = None
        self._typing_until = 0.0
        self._typed_at = float("-inf")
        self._alive_at = float("-inf")
        self._offer()

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Called with every new state; returns the function that ends it."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def start(self) -> None:
        """The clock goes on after a fault of our own in one of its ticks, which was logged."""
        self._tasks.start(self._beat(), "room clock", lambda _error: self.start())

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self.tick()

    def tick(self) -> None:
        if self._seat is not None:
            self._seat.tick()
        now = self._ports.clock.now()
        self._say_alive(now)
        for id, until in list(self._notices_until.items()):
            if until <= now:
                self.emit(ev.NoticeClosed(id))
        if self.state.typing and self._typing_until <= now:
            self.emit(ev.SomebodyTypes(""))

    def _say_alive(self, now: float) -> None:
        if self.state.phase.in_room and now - self._alive_at >= ALIVE_PERIOD:
            self._alive_at = now
            self._ports.memory.alive()

    def _offer(self) -> None:
        """Shows the last room while it can be gone back to."""
        last = self._ports.memory.last()
        if last is not None and last.offered:
            owner = isinstance(last.saved, SavedRoom)
            self.emit(ev.Offered(Offer(last.saved.code, owner, last.straight_back)))

    def emit(self, event: ev.Event) -> None:
        """Shows what happened."""
        if isinstance(event, ev.RosterChanged):
            self._members = event.members
        if isinstance(event, ev.SomebodyTypes):
            self._typing_until = self._ports.clock.now() + TYPING_SHOWN
        changed = reduce(self.state, event)
        if isinstance(event, AFFECT_ROWS) or _moved(self.state, event):
            changed = reduce(changed, ev.RowsChanged(self._rows(changed)))
        if changed != self.state:
            self._publish(changed)

    def _publish(self, state: RoomState) -> None:
        now = self._ports.clock.now()
        known = self._notices_until
        self._notices_until = {n.id: known.get(n.id, now + n.seconds) for n in state.notices}
        self.state = state
        for subscriber in list(self._subscribers):
            subscriber(state)

    def models_changed(self) -> None:
        """Other models are known, or on this computer, than before."""
        self._publish(reduce(self.state, ev.RowsChanged(self._rows(self.state))))

    def _rows(self, state: RoomState) -> tuple[ev.ModelRow, ...]:
        screen = Screen(state.me, self._ports.on_disk(), state.chosen, state.context, state.tried)
        known = seen(state, self._ports.table)
        wish = Wish(split=state.settings.split, kv=state.settings.kv, known=known)
        host = model_host_of(self._members, state.creator)
        return model_rows(self._ports.table, self._members, host, wish, screen)

    def handle(self, intent: Intent) -> None:
        """Never raises: what goes wrong becomes part of the state."""
        match intent:
            case it.OpenRoom() | it.JoinRoom() | it.Reopen():
                self._stop_entering()
                self._entering = self._tasks.start(self._enter(intent), "enter room")
            case it.ForgetRoom():
                self._ports.memory.forget()
                self.emit(ev.Offered(None))
            case it.Leave() | it.BackToStart():
                self._stop_entering()
                self._tasks.start(self._leave(), "leave room")
            case it.DismissNotice():
                self.emit(ev.NoticeClosed(intent.id))
            case it.ChooseModel():
                self.emit(ev.ModelChosen(intent.key))
            case it.ChooseContext():
                self.emit(ev.ContextChosen(intent.positions))
            case _:
                self._hand_on(intent)

    def _hand_on(self, intent: Intent) -> None:
        """What the place in the room decides about."""
        if isinstance(intent, it.ChangeSettings):
            self._settings = intent.settings
        if isinstance(intent, it.Typing) and not self._may_tell_typing():
            return
        if self._seat is not None:
            self._seat.handle(intent, self.state)
        elif isinstance(intent, it.ChangeSettings):
            self.emit(ev.SettingsChanged(intent.settings))

    def _may_tell_typing(self) -> bool:
        now = self._ports.clock.now()
        if now - self._typed_at < TYPING_PERIOD:
            return False
        self._typed_at = now
        return True

    def _stop_entering(self) -> None:
        if self._entering is not None:
            self._entering.cancel()
            self._entering = None

    async def _enter(self, intent: it.OpenRoom | it.JoinRoom | it.Reopen) -> None:
        seat = self._new_seat(intent)
        if seat is None:
            self.emit(ev.Offered(None))
            return
        await self._sit(seat, final=True)

    async def _sit(self, seat: Seat, *, final: bool) -> None:
        """From one seat to another; ``final``: the one before was left on purpose."""
        await self._leave_seat(final=final)
        self._seat = seat
        try:
            await seat.enter()
        except PooledError as error:
            await self._leave_seat(final=False)
            self.emit(ev.Failed(error.what, error.remedy))
            self._offer()

    def _new_seat(self, intent: it.OpenRoom | it.JoinRoom | it.Reopen) -> Seat | None:
        """None where there is no room to go back to."""
        ports = self._seat_ports()
        last = self._ports.memory.last() if isinstance(intent, it.Reopen) else None
        match intent, last.saved if last else None:
            case it.OpenRoom(), _:
                return CreatorSeat(ports, intent)
            case it.JoinRoom(), _:
                return MemberSeat(ports, intent)
            case _, SavedRoom() as saved:
                return CreatorSeat(ports, it.OpenRoom(saved.name, saved.gb), saved)
            case _, SavedJoin() as saved:
                died = m.Died(during="loading", ago=last.age, loading=True) if last and saved.loading else None
                return MemberSeat(ports, it.JoinRoom(saved.where or saved.code, saved.name, saved.gb), died)
            case _:
                return None

    def _seat_ports(self) -> SeatPorts:
        return SeatPorts(
            self._ports, self.emit, self._settings, leave=lambda: self.handle(it.Leave()), take_over=self._take_over
        )

    def _take_over(self, saved: SavedRoom) -> None:
        """The seat of a member becomes the creator's."""
        self._stop_entering()
        self._entering = self._tasks.start(self._open_taken(saved), "take the room over")

    async def _open_taken(self, saved: SavedRoom) -> None:
        await self._sit(CreatorSeat(self._seat_ports(), it.OpenRoom(saved.name, saved.gb), saved), final=False)

    async def _leave(self) -> None:
        forgotten = self._seat is not None
        await self._leave_seat(final=True)
        self.emit(ev.LeftRoom())
        if not forgotten:
            self._offer()

    async def _leave_seat(self, *, final: bool) -> None:
        """``final``: left on purpose; else the program only ends, and the room can be gone back to."""
        seat, self._seat = self._seat, None
        if seat is not None:
            self._members = ()
            await seat.close(final=final)

    async def close(self) -> None:
        """Ends everything. A room opened here can be gone back to for a while."""
        self._stop_entering()
        await self._leave_seat(final=False)
        await self._tasks.close()


def _moved(before: RoomState, event: ev.Event) -> bool:
    """Whether a device is so much nearer or farther than was known that forecasts change."""
    if not isinstance(event, ev.LinkMeasured) or before.phase is not Phase.ROOM:
        return False
    known = next((device.rtt_ms for device in before.devices if device.id == event.id), None)
    return known is None or abs(event.rtt_ms - known) > max(MOVED_MS, MOVED * known)
