"""Frames as ordinary control messages, for peers without an open wire channel (spec: rooms §5.2)."""

from __future__ import annotations

from app.room.frame import DROP_ALL, Control, Frame, FrameKind
from app.room.ports import Message
from app.room.slices import MAX_COLUMNS, MAX_ROLLBACK

NAMES = ("ai-hidden", "ai-hidden-b", "ai-hiddenret", "ai-hiddenret-b")
HALF, FULL = "f16", "f32"
_MAX_POSITION = 2**32 - 1
_MAX_SLOT = 2**16 - 1


def frame_message(frame: Frame) -> dict[str, object]:
    """The control message that carries ``frame``."""
    message: dict[str, object] = {
        "t": NAMES[frame.kind],
        "basePos" if frame.kind.is_batch else "pos": frame.position,
        "n": frame.columns,
        "data": frame.payload,
        "enc": FULL if frame.full else HALF,
    }
    control = frame.control
    words = {"spec": int(frame.spec), "reset": int(control.reset), "sv": control.save, "ld": control.load}
    message |= {name: word for name, word in words.items() if word}
    if control.rollback is not None:
        message["rb"] = control.rollback
    if control.drop:
        message["dp"] = list(control.drop)
    return message


def read_frame_message(message: Message) -> Frame | None:
    """The frame in a control message, or None when it carries none or says anything out of range."""
    name, payload = message.get("t"), message.get("data")
    encoding = message.get("enc", HALF)
    if name not in NAMES or not isinstance(payload, bytes) or encoding not in (HALF, FULL):
        return None
    kind = FrameKind(NAMES.index(name))
    position = _whole(message.get("basePos" if kind.is_batch else "pos"), 0, _MAX_POSITION)
    columns = _whole(message.get("n", 1), 1, MAX_COLUMNS)
    control = _control(message)
    if position is None or columns is None or control is None:
        return None
    return Frame(kind, position, columns, payload, bool(message.get("spec")), control, encoding == FULL)


def _control(message: Message) -> Control | None:
    save, load = (_whole(message.get(name, 0), 0, _MAX_SLOT) for name in ("sv", "ld"))
    rollback = _whole(message.get("rb"), 0, MAX_ROLLBACK) if "rb" in message else None
    dropped = message.get("dp", [])
    listed: list[object] = [*dropped] if isinstance(dropped, list) else [dropped]
    drop = [slot for each in listed if (slot := _whole(each, 1, DROP_ALL)) is not None]
    if save is None or load is None or len(drop) != len(listed) or ("rb" in message and rollback is None):
        return None
    return Control(bool(message.get("reset")), rollback, save, load, tuple(drop))


def _whole(value: object, low: int, high: int) -> int | None:
    return value if type(value) is int and low <= value <= high else None
