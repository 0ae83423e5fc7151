"""The HTTP server other programs on this computer ask (spec: product §3)."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler

from app.core.errors import PooledError
from app.room.api.events import Answers
from app.serve.clients import client_name
from app.serve.config import ADDRESS, ServeConfig
from app.serve.connections import HEADERS_S, MOST_CONNECTIONS, Connections
from app.serve.errors import ApiError, Problem, inside
from app.serve.guard import api_of, check_host, check_origin, check_token
from app.serve.service import Make, Service, add_routes
from app.serve.status import ServeStatus, Tally
from app.serve.streaming import SystemTiming, Timing
from app.serve.writing import Naming

log = logging.getLogger(__name__)

LARGEST_BODY = 4 << 20
BACKLOG = 128


class ApiServer:
    """``start`` listens on this computer only; ``on_change`` hears of clients and answers."""

    def __init__(
        self,
        answers: Answers,
        config: ServeConfig | None = None,
        *,
        on_change: Callable[[ServeStatus], None] = lambda _status: None,
        timing: Timing | None = None,
        naming: Make = Naming,
        most_connections: int = MOST_CONNECTIONS,
        headers_s: float = HEADERS_S,
    ) -> None:
        self._config = config or ServeConfig()
        self._tally = Tally(on_change)
        self._service = Service(answers, self._config, self._tally, timing or SystemTiming(), naming)
        self._limits = (most_connections, headers_s)
        self._runner: web.AppRunner | None = None
        self._connections: Connections | None = None
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """0 while stopped."""
        return self._listener.getsockname()[1] if self._listener else 0

    @property
    def status(self) -> ServeStatus:
        return self._tally.status

    async def start(self) -> None:
        """Raises PooledError when the port is taken."""
        if self._runner is not None:
            return
        listener = _listening(self._config.port)
        runner = web.AppRunner(
            self._application(), access_log=None, handle_signals=False, handler_cancellation=True, shutdown_timeout=0.1
        )
        await runner.setup()
        assert runner.server is not None
        self._connections = Connections(runner.server, *self._limits)
        self._runner, self._listener = runner, listener
        self._service.port = self.port
        loop = asyncio.get_running_loop()
        self._accepting = await loop.create_server(self._connections.protocol, sock=listener, backlog=BACKLOG)
        self._tally.turn(on=True)

    async def stop(self) -> None:
        """Answers under way are broken off."""
        runner, self._runner, self._listener = self._runner, None, None
        if runner is None:
            return
        if self._accepting is not None and self._connections is not None:
            self._accepting.close()
            self._connections.close()
        await runner.cleanup()
        self._tally.turn(on=False)

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=LARGEST_BODY, middlewares=[self._border])
        add_routes(application, self._service)
        application.on_response_prepare.append(self._allow_origin)
        return application

    @web.middleware
    async def _border(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Whatever goes wrong becomes an answer in the client's API."""
        assert self._connections is not None
        self._connections.busy(request.protocol)
        try:
            return await self._guarded(request, handler)
        except ApiError as error:
            return _error_response(request, error)
        except web.HTTPException as error:
            return _error_response(request, _of_http(error), error.headers.get("Allow", ""))
        except Exception as error:
            log.exception("a request failed")
            return _error_response(request, inside(error))
        finally:
            if self._runner is not None:
                self._connections.idle(request.protocol)

    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        check_host(request, self._service.port)
        check_origin(request, self._config)
        if request.method == "OPTIONS" and "Origin" in request.headers:
            return web.Response(status=204)
        check_token(request, self._config)
        if request.path.startswith("/v1/"):
            self._tally.heard(client_name(request.headers.get("User-Agent", "")))
        return await handler(request)

    async def _allow_origin(self, request: web.Request, response: web.StreamResponse) -> None:
        origin = request.headers.get("Origin", "")
        if origin and origin in self._config.origins:
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Allow-Methods"] = "GET, POST, DELETE"
            response.headers["Access-Control-Allow-Headers"] = request.headers.get(
                "Access-Control-Request-Headers", "Authorization, Content-Type"
            )
            response.headers["Vary"] = "Origin"


def _listening(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            # Windows would let two programs share the port; elsewhere this only skips the wait after a close.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((ADDRESS, port))
        made.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        made.close()
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        what = f"Port {port} is used by another program." if taken else f"Port {port} cannot be used: {error}."
        raise PooledError(what, "Choose another port, or 0 for any that is free.") from error
    return made


_HTTP = {401: Problem.KEY, 403: Problem.FORBIDDEN, 404: Problem.UNKNOWN, 405: Problem.METHOD, 413: Problem.TOO_LARGE}
_HTTP_WORDS = {
    404: ("This path is not served here.", "Use /v1/chat/completions, /v1/responses or /v1/messages."),
    405: ("This path takes another method.", ""),
    413: (f"The body is larger than {LARGEST_BODY >> 20} MiB.", "Shorten the conversation."),
}


def _of_http(error: web.HTTPException) -> ApiError:
    what, remedy = _HTTP_WORDS.get(error.status, (error.reason, ""))
    return ApiError(_HTTP.get(error.status, Problem.BAD), what, remedy)


def _error_response(request: web.Request, error: ApiError, allow: str = "") -> web.Response:
    api = api_of(request)
    headers = {"Allow": allow} if allow else {}
    if error.retry_s:
        headers["Retry-After"] = str(error.retry_s)
    return web.json_response(error.body(api), status=error.problem.status(api), headers=headers)
