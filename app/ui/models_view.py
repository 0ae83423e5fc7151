"""What the window shows of the models on this computer, and what a person wishes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from app.models.places import Origin
from app.models.transfer import Transfer

ELSEWHERE = frozenset({Origin.OLLAMA, Origin.LM_STUDIO, Origin.HUGGING_FACE})


@dataclass(frozen=True)
class ModelLine:
    """One model. ``here`` of ``total`` bytes are on this computer; ``origin`` and ``path`` None while nothing is.

    ``own``: only this computer knows it. ``job`` is its download, with a total of 0 while it waits for its turn.
    """

    key: str
    label: str
    total: int
    here: int = 0
    need_gb: float = 0.0
    licence: str = ""
    origin: Origin | None = None
    path: Path | None = None
    own: bool = False
    job: Transfer | None = None
    trouble: str = ""

    @property
    def whole(self) -> bool:
        return self.here >= self.total

    @property
    def foreign(self) -> bool:
        """Another program keeps it; it is never deleted from here."""
        return self.origin in ELSEWHERE

    @property
    def share(self) -> float:
        return min(self.here / self.total, 1.0) if self.total else 0.0


@dataclass(frozen=True)
class FileLook:
    """A file somebody brought, before it is added. ``label`` is "" while it is read; ``key`` once it is added."""

    path: Path
    label: str = ""
    bytes: int = 0
    need_gb: float = 0.0
    context: int = 0
    layers: int = 0
    licence: str = ""
    template: str = ""
    adding: Transfer | None = None
    key: str = ""
    trouble: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class ModelsView:
    """``looking``: the stores of other programs are searched. ``free``: bytes left on the models' disk, -1 unknown.

    ``token_kept``: a token for the hub is among the secrets. ``said``: what came of the last action.
    """

    looking: bool = False
    lines: tuple[ModelLine, ...] = ()
    free: int = -1
    file: FileLook | None = None
    token_kept: bool = False
    said: str = ""
    trouble: str = ""
    remedy: str = ""

    @property
    def taken(self) -> int:
        """Bytes that could be freed from here."""
        return sum(line.here for line in self.lines if line.origin in (Origin.FETCHED, Origin.ROOM))


@dataclass(frozen=True)
class LookAgain:
    """Look what is on this computer now."""


@dataclass(frozen=True)
class Fetch:
    key: str


@dataclass(frozen=True)
class StopFetch:
    """What has come stays."""

    key: str


@dataclass(frozen=True)
class Remove:
    """Delete what Pooled fetched, or take an own file from the list."""

    key: str


@dataclass(frozen=True)
class LookAt:
    """Read what a file says of itself."""

    path: Path


@dataclass(frozen=True)
class AddFile:
    """The file that was looked at becomes a model of the list."""


@dataclass(frozen=True)
class DropFile:
    """The file that was looked at is not wanted."""


@dataclass(frozen=True)
class KeepToken:
    """The person's token for the hub; "" forgets it."""

    text: str = field(repr=False)


ModelWish = LookAgain | Fetch | StopFetch | Remove | LookAt | AddFile | DropFile | KeepToken
