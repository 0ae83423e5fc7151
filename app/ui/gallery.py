"""Made-up states: every screen of the window, for pictures and tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from app.room.kinds import Kind
from app.room.near import NearbyRoom
from app.room.planner import LeftOut
from app.room.state import (
    Device,
    Exchange,
    Invite,
    LoadState,
    ModelRow,
    Notice,
    NoticeKind,
    Offer,
    Phase,
    RoomState,
    Speed,
    WaitingRequest,
)
from app.ui import gallery_texts as texts
from app.ui.sheets.relay import Kind as RelayKind
from app.ui.sheets.relay import RelaySection
from app.ui.this_device import ThisDevice
from app.ui.widgets.thinking import ThinkingFold
from app.ui.window import MainWindow

HERE = ThisDevice(True, "RTX 4090", 24, 18, 64, starter_bytes=98_362_432, starter_ready=True)
NO_GPU = ThisDevice(
    True,
    problem="No GPU with Vulkan, Metal or Direct3D 12 was found.",
    remedy="Update the graphics driver and start Pooled again.",
)
CODE = "4TKG9P"
LINK = "pooled://r/4TKG9P#k=wYx7P0aVbT9d2Zk1LrQe5A"


@dataclass(frozen=True)
class Scene:
    """One picture. ``act`` opens a sheet or types something; ``main``: also drawn at other widths."""

    state: RoomState
    act: Callable[[MainWindow], None] = field(default=lambda _window: None)
    device: ThisDevice = HERE
    main: bool = False


OTTER = Device("pooled-room-4TKG9P", "otter", gb=18, gpu="RTX 4090", colour=0, me=True, creator=True, model_host=True)
HERON = Device("heron", "heron", gb=10, gpu="RTX 3080", colour=1, rtt_ms=4.2, path="direct", ours=True)
FINCH = Device("finch", "finch", Kind.IPHONE, holds_layers=False, path="direct")
TRIO = (OTTER, HERON, FINCH)
CONTEXTS = (8192, 16384, 32768, 65536, 131072)
INVITE = Invite(CODE, LINK, has_key=True)


def model(key: str, label: str, need: float, size: float, *, alone: bool = False, short: float = 0) -> ModelRow:
    sentence = f"{short:g} GB more needed" if short else ("fits on otter alone" if alone else "fits, 2 devices")
    return ModelRow(
        key,
        label,
        need,
        28,
        fits=not short,
        sentence=sentence,
        short_gb=short,
        helpers=("heron",) if short else (),
        context=32768 if "35B" in label else 16384,
        contexts=CONTEXTS[:4] if "27B" in label else CONTEXTS if "MoE" in label else (8192, 16384),
        download_bytes=int(size * 1e9),
    )


STARTER = ModelRow(
    "smollm2-135m-q4_1",
    "SmolLM2 135M",
    0.6,
    28,
    fits=True,
    sentence="fits on otter alone",
    context=2048,
    contexts=(2048,),
    download_bytes=98_362_432,
    on_disk=True,
    starter=True,
)
ROWS = (
    STARTER,
    model("qwen3-1.7b", "Qwen3 1.7B · Q8", 5.6, 1.8, alone=True),
    model("qwen3.6-35b-moe", "Qwen3.6 35B MoE · Q4", 22.5, 20.8),
    model("qwen3.8-27b", "Qwen3.8 27B · Q4", 17, 16.1),
    model("qwen3.5-122b-moe", "Qwen3.5 122B MoE · Q4", 72, 72.5, short=44),
)
ROOM = RoomState(
    Phase.ROOM,
    me=OTTER.id,
    creator=OTTER.id,
    code=CODE,
    invite=INVITE,
    devices=TRIO,
    rows=ROWS,
    chosen="qwen3.6-35b-moe",
)
HOLDING = (
    replace(OTTER, layers=(1, 26), held_gb=13.6, ready=True, ms=14.9, wire_ms=2.4),
    replace(HERON, layers=(27, 40), held_gb=7.4, ready=True, ms=4.3, wire_ms=2.4),
    FINCH,
)
HISTORY = (
    9.0,
    10,
    14,
    20,
    25,
    28,
    29,
    29,
    30,
    31,
    33,
    34,
    34,
    33,
    34,
    35,
    37,
    38,
    37,
    36,
    37,
    38,
    40,
    41,
    40,
    40,
    41.8,
)
SPEED = Speed(41.8, 24, 4.8, 312, 5900, 32768, 5480, 1420, 0.64, HISTORY, 43.1)
ONLINE = replace(
    ROOM,
    phase=Phase.ONLINE,
    devices=HOLDING,
    model="qwen3.6-35b-moe",
    label="Qwen3.6 35B MoE",
    layers=40,
    speed=SPEED,
)


def said(question: str, answer: str = "", *, id: str = "1", by: Device = OTTER, stats: str = "") -> Exchange:
    return Exchange(id, by.id, by.name, question, answer, answer, live=not stats, stats=stats)


SPLIT = said("How does a room split a model over two computers?", texts.SPLIT, stats="312 tokens · 41.8 tok/s")
EMPTY = replace(ONLINE, speed=Speed(context_max=32768))
DONE = replace(ONLINE, transcript=(SPLIT,))
ANSWERING = replace(ONLINE, phase=Phase.ANSWERING, transcript=(replace(SPLIT, live=True, stats=""),))
SILENT = (HOLDING[0], replace(HOLDING[1], silent=True), FINCH)


def many(count: int) -> tuple[Device, ...]:
    names = [
        "otter",
        "heron",
        "finch",
        "badger",
        "lynx",
        "marten",
        "stoat",
        "weasel",
        "beaver",
        "hedgehog",
        "dormouse",
        "squirrel",
    ]
    made = [Device(f"d{i}", names[i], gb=4 + 2 * i, gpu=f"RTX 30{i}0", colour=i) for i in range(1, count)]
    return (replace(OTTER, gb=12), *made)


def dealt(devices: tuple[Device, ...], layers: int) -> tuple[Device, ...]:
    each = layers / len(devices)
    bounds = [(round(i * each) + 1, round((i + 1) * each)) for i in range(len(devices))]
    return tuple(
        replace(d, layers=b, held_gb=3.2, ready=True, ms=3.5 + b[0] % 4, wire_ms=1.2)
        for d, b in zip(devices, bounds, strict=True)
    )


LONG = "the-very-long-name-of-a-workstation-here"
LONG_NAMES = (replace(OTTER, name=LONG), replace(HERON, name=LONG.replace("work", "play"), gpu="RTX 6000 Ada Laptop"))
KNOCKING = (
    WaitingRequest("w1", "heron", Kind.COMPUTER, 10, digits="482907"),
    WaitingRequest("w2", "finch", Kind.IPHONE, chat_only=True, digits="114208"),
    WaitingRequest("w3", "badger", Kind.MAC, 32, digits="907113"),
)


def loading(devices: tuple[Device, ...], load: LoadState) -> RoomState:
    return replace(ONLINE, phase=Phase.STARTING, devices=devices, load=load, speed=Speed())


LOAD = LoadState("qwen3.6-35b-moe", "Qwen3.6 35B MoE", "otter", "downloading", 5_240_000_000, 13_600_000_000, 190)
HALF = (
    replace(HOLDING[0], progress=0.38, ready=False),
    replace(HOLDING[1], progress=1.0, ready=True),
    FINCH,
)
SETTLED = (replace(HOLDING[0], progress=1.0), replace(HOLDING[1], progress=1.0), FINCH)
PAUSED = (
    replace(OTTER, paused=True, holds_layers=False, gb=0),
    replace(HERON, paused=True, holds_layers=False, gb=0),
    FINCH,
)
QUICK = tuple(replace(m, speed="about 12 tok/s on 2 devices; 3 would be slower" if m.fits else "") for m in ROWS)
RAN = tuple(replace(m, speed="41.8 tok/s in the last answer" if m.fits else "") for m in ROWS)
WREN = Device("wren", "wren", gb=6, gpu="Radeon 780M", colour=2, out=LeftOut.UNNEEDED)
WITHOUT_WREN = (*HALF[:2], WREN, FINCH, replace(PAUSED[1], id="lynx", name="lynx"))
ELSEWHERE = (replace(HOLDING[0], model_host=False), replace(HOLDING[1], model_host=True), FINCH)
HOSTLESS = replace(
    DONE,
    phase=Phase.DEGRADED,
    model_host=HERON.id,
    trouble="heron, which runs the model, is gone.",
    devices=(ELSEWHERE[0], replace(ELSEWHERE[1], away=True, ready=False), FINCH),
)
NOTICES = (
    Notice(1, "heron joined."),
    Notice(2, "The link is copied.", kind=NoticeKind.GOOD),
    Notice(3, "heron could not load its layers.", "Start again; what is already there is kept.", NoticeKind.BAD),
)


def _type(code: str) -> Callable[[MainWindow], None]:
    return lambda window: window.desk.start.code.set_text(code)


def _open(name: str) -> Callable[[MainWindow], None]:
    return lambda window: window.sheets.open(name)


def _write(text: str) -> Callable[[MainWindow], None]:
    return lambda window: window.desk.chat.composer.box.setPlainText(text)


def _unfold(window: MainWindow) -> None:
    for fold in window.findChildren(ThinkingFold):
        fold.turn()


NEARBY = (
    NearbyRoom("heron", "pooled://near/1", reachable=True),
    NearbyRoom("Grandmother's workshop computer number 2", "pooled://near/2", reachable=True),
    NearbyRoom("finch", "pooled://near/3", reachable=False),
)


def _nearby(rooms: tuple[NearbyRoom, ...]) -> Callable[[MainWindow], None]:
    return lambda window: window.offer_nearby(rooms)


def _start_scenes() -> dict[str, Scene]:
    failed = RoomState(
        Phase.ERROR,
        code=CODE,
        trouble="No room answers to 4TK-G9P.",
        remedy="Check the code, and that the owner's window is open.",
    )
    connecting = RoomState(Phase.CONNECTING, code=CODE)
    return {
        "start": Scene(RoomState(), main=True),
        "start-code": Scene(RoomState(), _type("4TK"), main=True),
        "start-link": Scene(RoomState(), _type(LINK)),
        "start-bad-code": Scene(RoomState(), _type("https://example.org/page")),
        "start-again": Scene(RoomState(offer=Offer(CODE, owner=True)), main=True),
        "start-back": Scene(RoomState(offer=Offer(CODE, owner=False)), _nearby(NEARBY), main=True),
        "start-nearby": Scene(RoomState(), _nearby(NEARBY[:1]), main=True),
        "start-nearby-many": Scene(RoomState(), _nearby(NEARBY), main=True),
        "start-no-gpu": Scene(RoomState(), device=NO_GPU),
        "start-looking": Scene(RoomState(), device=ThisDevice()),
        "connecting": Scene(replace(connecting, status_line="Reaching the room server")),
        "connecting-6s": Scene(replace(connecting, status_line="Still trying to reach the room")),
        "connecting-20s": Scene(replace(connecting, status_line="Room found, looking for a path to it")),
        "lobby": Scene(RoomState(Phase.LOBBY, code=CODE, digits="482907"), main=True),
        "refused": Scene(replace(failed, trouble="The room's owner did not let this device in.", remedy="Ask them.")),
        "error": Scene(failed),
        "over": Scene(replace(DONE, phase=Phase.OVER, trouble="The owner closed the room.")),
        "over-empty": Scene(replace(ROOM, phase=Phase.OVER, trouble="The owner closed the room.")),
    }


def _relay(window: MainWindow) -> None:
    window.sheets.open("settings")
    section = window.desk.findChild(RelaySection)
    assert isinstance(section, RelaySection)
    section.choose(RelayKind.USER)


def _room_scenes() -> dict[str, Scene]:
    short = replace(ROOM, chosen="qwen3.5-122b-moe", chosen_by_hand=True)
    raised = tuple(replace(m, own_raise_gb=62.0) if not m.fits else m for m in ROWS)
    alone = replace(ROOM, devices=(OTTER,), chosen="qwen3-1.7b")
    crowd = many(12)
    member = replace(ROOM, me="heron", devices=(replace(OTTER, me=False), replace(HERON, me=True), FINCH))
    return {
        "model": Scene(ROOM, main=True),
        "model-alone": Scene(alone),
        "model-short": Scene(short, main=True),
        "model-raise": Scene(replace(short, rows=raised)),
        "model-long-names": Scene(replace(ROOM, devices=LONG_NAMES), main=True),
        "model-many": Scene(replace(ROOM, devices=crowd), main=True),
        "model-no-gpu": Scene(replace(ROOM, devices=(replace(FINCH, me=True),), rows=(), chosen="")),
        "model-member": Scene(replace(member, invite=Invite(CODE, LINK.split("#")[0]))),
        "allow": Scene(replace(ANSWERING, waiting=KNOCKING[:1]), main=True),
        "allow-three": Scene(replace(ROOM, waiting=KNOCKING)),
        "invite": Scene(ROOM, _open("invite"), main=True),
        "settings": Scene(ROOM, _open("settings"), main=True),
        "settings-relay": Scene(member, _relay, main=True),
        "settings-member": Scene(member, _open("settings")),
        "leave": Scene(ROOM, _open("leave")),
        "heir": Scene(replace(member, heir_wanted=True), main=True),
        "device-card": Scene(DONE, lambda window: window.sheets.open_device(OTTER.id)),
        "device-card-other": Scene(DONE, lambda window: window.sheets.open_device(HERON.id)),
        "device-card-paused": Scene(replace(ROOM, devices=PAUSED), lambda window: window.sheets.open_device(OTTER.id)),
        "device-card-other-paused": Scene(
            replace(ROOM, devices=PAUSED), lambda window: window.sheets.open_device(HERON.id)
        ),
        "model-paused": Scene(replace(ROOM, devices=PAUSED, rows=(), chosen=""), main=True),
        "model-speed": Scene(replace(ROOM, rows=QUICK), main=True),
        "model-measured": Scene(replace(ROOM, rows=RAN)),
        "devices": Scene(replace(ROOM, devices=crowd), _open("devices")),
        "toasts": Scene(replace(ROOM, notices=NOTICES), main=True),
        "loading": Scene(loading(HALF, LOAD), main=True),
        "loading-expected": Scene(loading(WITHOUT_WREN, replace(LOAD, predicted=12.3)), main=True),
        "loading-dealing": Scene(loading(TRIO, replace(LOAD, step="", bytes_total=0, seconds_left=None))),
        "loading-starting": Scene(loading(SETTLED, replace(LOAD, step="preparing", bytes_total=0, seconds_left=None))),
        "loading-failed": Scene(replace(ROOM, notices=NOTICES[2:])),
    }


def _chat_scenes() -> dict[str, Scene]:
    thinking = replace(
        SPLIT, id="2", question="Which is heavier?", answer=texts.HEAVIER, thinking=texts.THOUGHTS, stats="88 tokens"
    )
    waiting = replace(ANSWERING, queue_length=2, my_position=2, typing="heron")
    late = replace(HOLDING[1], out=LeftOut.LATE, layers=None, ms=None)
    knocking = replace(DONE, phase=Phase.RECONNECTING, me="heron")
    crowd = dealt(many(12), 48)
    long = said("Show me everything Markdown can do.", texts.EVERYTHING, stats="820 tokens · 39.9 tok/s")
    foreign = said(texts.FOREIGN_QUESTION, texts.FOREIGN, id="7", by=HERON, stats="64 tokens")
    hidden = replace(said("", id="8", by=HERON, stats="40 tokens"), hidden=True)
    tool = replace(said("Write a test for parse_date.", texts.HEAVIER, id="9", stats="61 tokens"), client="opencode")
    capped = replace(SPLIT, capped=True, stats="400 tokens · at its length limit")
    return {
        "chat-empty": Scene(EMPTY, main=True),
        "chat-answering": Scene(ANSWERING, main=True),
        "chat-reading": Scene(replace(ANSWERING, transcript=(said("How does a room split a model?"),))),
        "chat-done": Scene(DONE, main=True),
        "chat-capped": Scene(replace(DONE, transcript=(capped,))),
        "chat-long": Scene(replace(DONE, transcript=(long,)), main=True),
        "chat-queue": Scene(waiting, _write("And what happens when one of them sleeps?"), main=True),
        "chat-thinking": Scene(replace(DONE, transcript=(thinking,)), _unfold),
        "chat-thinking-now": Scene(
            replace(ANSWERING, transcript=(replace(thinking, live=True, answer="", thinking_open=True, stats=""),))
        ),
        "chat-foreign": Scene(replace(DONE, transcript=(foreign, hidden, tool))),
        "chat-failed": Scene(replace(DONE, transcript=(replace(SPLIT, failed=True, stats=""),))),
        "chat-late": Scene(
            replace(DONE, devices=(HOLDING[0], late, FINCH), redeal_reason="heron came after the start.")
        ),
        "chat-many": Scene(replace(DONE, devices=crowd, layers=48), main=True),
        "chat-tight": Scene(replace(DONE, speed=replace(SPEED, context_used=29_900))),
        "held": Scene(replace(ANSWERING, phase=Phase.HELD, held_by="heron", devices=SILENT), main=True),
        "degraded": Scene(replace(DONE, phase=Phase.DEGRADED, trouble="heron left with layers 27–40", devices=SILENT)),
        "degraded-host": Scene(HOSTLESS, main=True),
        "chat-host-elsewhere": Scene(replace(DONE, devices=ELSEWHERE)),
        "device-card-host": Scene(replace(DONE, devices=ELSEWHERE), lambda window: window.sheets.open_device(HERON.id)),
        "waits": Scene(
            replace(
                HOSTLESS,
                devices=(replace(OTTER, model_host=False),),
                model="",
                label="",
                trouble=f"The room is back and waits for {LONG}.",
            )
        ),
        "redealing": Scene(replace(DONE, phase=Phase.REDEALING, devices=HALF)),
        "reconnecting": Scene(knocking),
        "reconnecting-early": Scene(replace(ROOM, phase=Phase.RECONNECTING, me="heron")),
        "speed": Scene(DONE, _open("speed")),
        "menu": Scene(DONE, _open("menu")),
    }


def scenes() -> dict[str, Scene]:
    """All pictures by name."""
    from app.ui.gallery_pages import page_scenes

    return {**_start_scenes(), **_room_scenes(), **_chat_scenes(), **page_scenes()}
