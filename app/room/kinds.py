"""What kind of thing a device is, as a person would say it."""

from __future__ import annotations

from enum import Enum

from app.room.meta import Meta


class Kind(Enum):
    """The value is the word shown."""

    COMPUTER = "computer"
    MAC = "Mac"
    IPHONE = "iPhone"
    IPAD = "iPad"
    ANDROID = "Android phone"
    TABLET = "Android tablet"
    API = "API client"


KINDS = {
    "iPhone": Kind.IPHONE,
    "iPad": Kind.IPAD,
    "Android": Kind.ANDROID,
    "Android tablet": Kind.TABLET,
    "Mac": Kind.MAC,
    "API": Kind.API,
}


def kind_of(meta: Meta) -> Kind:
    return Kind.API if meta.is_api else KINDS.get(meta.ua, Kind.COMPUTER)
