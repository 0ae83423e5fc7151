"""What the command line can ask for: one value a verb (spec: product §4.1)."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.serve.config import ServeConfig


@dataclass(frozen=True, kw_only=True)
class Entering:
    """Of every verb that enters a room. ``json_log``: one JSON object a line instead of sentences."""

    name: str = ""
    signal: tuple[str, ...] = ()
    quiet: bool = False
    json_log: bool = False


@dataclass(frozen=True, kw_only=True)
class Lending(Entering):
    """Of every verb that lends memory. ``gb`` None: what the memory rule gives; ``most``: all that can be spared.

    ``serve``: other programs may ask the room through this device.
    """

    gb: float | None = None
    most: bool = False
    fetch: bool = True
    verbose: bool = False
    serve: ServeConfig | None = None


@dataclass(frozen=True, kw_only=True)
class HostOptions(Lending):
    """``wait``: how many devices must be in the room before ``start`` starts the model. ``again``: the last room.

    ``yes`` asks nothing. ``model`` is part of a name; "list" lists them. ``ctx`` in tokens, 0 leaves it to the room.
    ``split`` "" is as set.
    """

    model: str = ""
    start: bool = False
    yes: bool = False
    wait: int = 1
    auto_allow: bool = False
    deny_unknown: bool = False
    again: bool = False
    split: str = ""
    ctx: int = 0
    chat: bool = False


@dataclass(frozen=True, kw_only=True)
class JoinOptions(Lending):
    """``wait``: minutes to look for a room whose owner was lost. ``where`` "" is asked for."""

    where: str
    wait: float = 10


@dataclass(frozen=True, kw_only=True)
class ChatOptions(Entering):
    """``prompt`` "" talks in turns. ``wait``: seconds until there must be a model."""

    where: str
    prompt: str = ""
    system: str = ""
    think: bool = False
    most_tokens: int = 8192
    temperature: float | None = None
    wait: float = 120
    colour: bool = True


@dataclass(frozen=True, kw_only=True)
class ServeOptions(Entering):
    where: str
    serving: ServeConfig = field(default_factory=ServeConfig)


@dataclass(frozen=True)
class PullOptions:
    models: tuple[str, ...]


@dataclass(frozen=True)
class ListOptions:
    json: bool = False


@dataclass(frozen=True)
class RemoveOptions:
    model: str
    yes: bool = False


@dataclass(frozen=True)
class ShowWindow:
    """No verb was given. ``link``: an invite that was opened with this program."""

    link: str = ""


Options = HostOptions | JoinOptions | ChatOptions | ServeOptions | PullOptions | ListOptions | RemoveOptions
Wish = Options | ShowWindow
