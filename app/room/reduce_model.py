"""How choosing, starting, loading and running a model change the screen."""

from __future__ import annotations

from dataclasses import replace

from app.room.events import (
    ContextChosen,
    Dealt,
    DeviceReady,
    LoadProgress,
    Measured,
    ModelChosen,
    OwnLoad,
    PromptRead,
    RedealOffered,
    RowsChanged,
    StartBegan,
    StartFailed,
    WentOnline,
)
from app.room.reduce_devices import with_devices, without_missed
from app.room.reduce_entry import noticed
from app.room.reductions import reduces
from app.room.state import Device, LoadState, ModelRow, NoticeKind, Phase, RoomState, Speed, Tried

HISTORY = 60


@reduces(RowsChanged)
def _rows(state: RoomState, event: RowsChanged) -> RoomState:
    """Until a person chooses, the choice follows the largest model that fits."""
    known = {row.key for row in event.rows}
    chosen = state.chosen if state.chosen_by_hand and state.chosen in known else _largest(event.rows)
    return replace(state, rows=event.rows, chosen=chosen)


def _largest(rows: tuple[ModelRow, ...]) -> str:
    fitting = [row for row in rows if row.fits]
    return max(fitting or list(rows), key=lambda row: row.need_gb if row.fits else -row.need_gb).key if rows else ""


@reduces(ModelChosen)
def _chosen(state: RoomState, event: ModelChosen) -> RoomState:
    return replace(state, chosen=event.key, chosen_by_hand=event.by_hand, context=0)


@reduces(ContextChosen)
def _context(state: RoomState, event: ContextChosen) -> RoomState:
    return replace(state, context=event.positions)


@reduces(StartBegan)
def _start_began(state: RoomState, event: StartBegan) -> RoomState:
    here = without_missed(state)
    cleared = with_devices(here, lambda d: _undealt(replace(d, model_host=d.id == event.model_host)))
    return replace(
        cleared,
        phase=Phase.REDEALING if event.again else Phase.STARTING,
        model=event.model,
        label=event.label,
        model_host=event.model_host,
        load=LoadState(event.model, event.label, event.by, again=event.again),
        trouble="",
        held_by="",
        redeal_reason="",
    )


def _undealt(device: Device) -> Device:
    return replace(device, layers=None, held_gb=0.0, progress=None, ready=False, out=None, ms=None, wire_ms=None)


@reduces(Dealt)
def _dealt(state: RoomState, event: Dealt) -> RoomState:
    def share(device: Device) -> Device:
        layers = event.ranges.get(device.name)
        held = event.held.get(device.name, 0.0) if layers else 0.0
        progress = (device.progress or 0.0) if layers and state.load else None
        out = event.out.get(device.name)
        return replace(device, layers=layers, held_gb=held, progress=progress, out=out)

    layers = max((last for _, last in event.ranges.values()), default=0)
    load = replace(state.load, predicted=event.predicted) if state.load else None
    return replace(with_devices(state, share), layers=layers, load=load)


@reduces(LoadProgress)
def _progress(state: RoomState, event: LoadProgress) -> RoomState:
    def told(device: Device) -> Device:
        share = event.shares.get(device.name)
        return device if share is None or device.layers is None else replace(device, progress=share)

    return with_devices(state, told)


@reduces(OwnLoad)
def _own_load(state: RoomState, event: OwnLoad) -> RoomState:
    if state.load is None:
        return state
    return replace(
        state,
        load=replace(
            state.load,
            step=event.step,
            bytes_done=event.bytes_done,
            bytes_total=event.bytes_total,
            seconds_left=event.seconds_left,
        ),
    )


@reduces(DeviceReady)
def _ready(state: RoomState, event: DeviceReady) -> RoomState:
    return with_devices(state, lambda d: replace(d, ready=True, progress=1.0) if d.name == event.name else d)


@reduces(WentOnline)
def _online(state: RoomState, event: WentOnline) -> RoomState:
    def whole(device: Device) -> Device:
        runs = device.id == host
        return replace(device, ready=device.layers is not None, progress=None, away=False, model_host=runs)

    host = event.model_host or state.model_host
    return replace(
        with_devices(state, whole),
        model_host=host,
        phase=Phase.ANSWERING if state.live else Phase.ONLINE,
        model=event.model,
        label=event.label,
        context_wanted=event.wanted,
        load=None,
        trouble="",
        speed=replace(state.speed, context_max=event.context),
    )


@reduces(StartFailed)
def _start_failed(state: RoomState, event: StartFailed) -> RoomState:
    back = replace(
        with_devices(without_missed(state), _undealt),
        phase=Phase.ROOM,
        load=None,
        model="",
        label="",
        layers=0,
        speed=Speed(),
        transcript=tuple(replace(item, live=False) for item in state.transcript),
    )
    return noticed(back, event.why if not event.remedy else f"{event.why} {event.remedy}", NoticeKind.BAD)


@reduces(Measured)
def _measured(state: RoomState, event: Measured) -> RoomState:
    speed = replace(
        state.speed,
        tokens_per_second=event.tokens_per_second,
        ms_per_word=event.ms_per_word,
        wire_ms=event.wire_ms,
        tokens=event.tokens or state.speed.tokens,
        drafts_accepted=event.drafts_accepted,
        history=(*state.speed.history, event.tokens_per_second)[-HISTORY:],
        best=max(state.speed.best, event.tokens_per_second),
    )

    def timed(device: Device) -> Device:
        ms = event.ms.get(device.name, device.ms)
        return replace(device, ms=ms, wire_ms=event.hops.get(device.name, device.wire_ms))

    measured = replace(with_devices(state, timed), speed=speed)
    return replace(measured, tried=_tried(measured))


def _tried(state: RoomState) -> tuple[Tried, ...]:
    """With the model that runs now at its present speed."""
    rate = state.speed.tokens_per_second
    holders = [(device.name, device.layers, device.ms or 0.0) for device in state.devices]
    shares = tuple((name, layers[1] - layers[0] + 1, ms) for name, layers, ms in holders if layers)
    if not rate or not shares:
        return state.tried
    others = (each for each in state.tried if each.model != state.model)
    return (*others, Tried(state.model, rate, shares))


@reduces(PromptRead)
def _prompt_read(state: RoomState, event: PromptRead) -> RoomState:
    rate = event.read / event.seconds if event.seconds > 0 else state.speed.prefill_per_second
    return replace(state, speed=replace(state.speed, reused=event.reused, prefill_per_second=rate))


@reduces(RedealOffered)
def _redeal_offered(state: RoomState, event: RedealOffered) -> RoomState:
    return replace(state, redeal_reason=event.reason)
