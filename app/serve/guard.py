"""Who may ask: only programs on this computer, no web page, and with a token only who knows it (spec: product §3.2)."""

from __future__ import annotations

import hashlib
import hmac

from aiohttp import web

from app.serve.config import ADDRESS, ServeConfig, root_url
from app.serve.errors import Api, ApiError, Problem

_OPEN_PATH = "/health"


def check_host(request: web.Request, port: int) -> None:
    """A page on another name that points to this computer must not get in. Raises ApiError."""
    if request.headers.getall("Host", []) not in ([f"{ADDRESS}:{port}"], [f"localhost:{port}"]):
        remedy = f"Use {root_url(port)} as the address."
        raise ApiError(Problem.FORBIDDEN, "This host name is not served here.", remedy)


def check_origin(request: web.Request, config: ServeConfig) -> None:
    """Web pages are turned away, all but those whose origin was allowed by name. Raises ApiError."""
    origins = request.headers.getall("Origin", [])
    if any(origin not in config.origins for origin in origins):
        raise ApiError(Problem.FORBIDDEN, "Web pages may not ask here.", "Ask from a program on this computer.")


def check_token(request: web.Request, config: ServeConfig) -> None:
    """Raises ApiError where a token is needed and none or another one is given."""
    if request.path != _OPEN_PATH and not knows_token(request, config):
        remedy = "Set your program's API key to the token this API was started with."
        raise ApiError(Problem.KEY, "The API key is missing or wrong.", remedy, code="invalid_api_key")


def knows_token(request: web.Request, config: ServeConfig) -> bool:
    """Digests are compared, in a time that says nothing about where they differ."""
    if not config.token:
        return True
    scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
    given = (bearer.strip() if scheme.lower() == "bearer" else "", request.headers.get("x-api-key", ""))
    matches = [hmac.compare_digest(_digest(each), _digest(config.token)) for each in given]
    return any(matches)


def api_of(request: web.Request) -> Api:
    """Whose shapes the client expects."""
    if request.path.startswith("/v1/messages"):
        return Api.ANTHROPIC
    keyed = "x-api-key" in request.headers and "Authorization" not in request.headers
    models = request.path == "/v1/models" or request.path.startswith("/v1/models/")
    return Api.ANTHROPIC if models and ("anthropic-version" in request.headers or keyed) else Api.OPENAI


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
