"""How the API is started."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ServeConfig:
    """``port`` 0: any free one. ``token`` "" takes any key. ``origins``: web pages that may ask, none by default."""

    port: int = 8080
    token: str = field(default="", repr=False)
    max_queue: int = 8
    origins: tuple[str, ...] = ()
