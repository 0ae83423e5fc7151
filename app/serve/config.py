"""How the API is started."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.core.ports import API_PORT

ADDRESS = "127.0.0.1"
"""No other computer reaches the API."""


@dataclass(frozen=True)
class ServeConfig:
    """``port`` 0: any free one. ``token`` "" takes any key. ``origins``: web pages that may ask, none by default."""

    port: int = API_PORT
    token: str = field(default="", repr=False)
    max_queue: int = 8
    origins: tuple[str, ...] = ()


def root_url(port: int) -> str:
    """The base URL of Anthropic's API; OpenAI's has ``/v1`` behind it."""
    return f"http://{ADDRESS}:{port}"
