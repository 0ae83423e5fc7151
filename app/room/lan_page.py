"""The page behind an invite link: what somebody sees who opens it in a browser. Nothing on it comes from outside."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

from app.core.errors import FileError
from app.core.paths import resources_dir
from app.room.codes import format_code, parse_code

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # The link's fragment holds the key; no browser sends it, and this keeps the rest here too.
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_PARTS = {"room.css": "text/css", "room.js": "text/javascript"}


def add_page(application: web.Application, folder: Path | None = None) -> None:
    """Adds ``GET /r/{code}`` and the page's two parts. Raises FileError when the installation lacks them."""
    page = _Page(folder or resources_dir() / "web")
    application.router.add_get("/r/{code}", page.room)
    application.router.add_get("/page/{part}", page.part)
    application.on_response_prepare.append(_strict)


class _Page:
    def __init__(self, folder: Path) -> None:
        try:
            self._html = (folder / "room.html").read_text("utf-8")
            self._parts = {name: (folder / name).read_text("utf-8") for name in _PARTS}
        except OSError as error:
            raise FileError(f"The page for invite links is missing: {error.strerror}.", "Reinstall Pooled.") from error

    async def room(self, request: web.Request) -> web.Response:
        """The same page for every code, so that it tells nobody which rooms are open."""
        code = parse_code(request.match_info["code"])
        if not code:
            raise web.HTTPNotFound
        # Only letters of the code's alphabet come this far, so nothing needs escaping.
        html = self._html.replace("{{CODE}}", code).replace("{{SHOWN_CODE}}", format_code(code))
        return web.Response(text=html, content_type="text/html")

    async def part(self, request: web.Request) -> web.Response:
        name = request.match_info["part"]
        if name not in self._parts:
            raise web.HTTPNotFound
        return web.Response(text=self._parts[name], content_type=_PARTS[name])


async def _strict(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
