"""The endpoints: each reads a request, asks the room, and answers in its API's shape (spec: product §3.3)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from aiohttp import web

from app.prompt.ask import Ask
from app.room.api.events import Answers, AskRefused, ServedModel
from app.serve.chat_events import ChatWriter
from app.serve.chat_request import chat_request
from app.serve.clients import client_name
from app.serve.config import ServeConfig
from app.serve.errors import ApiError, Problem, bad, error_of_refusal, not_ready
from app.serve.exchange import Exchange
from app.serve.fields import Fields, parse
from app.serve.guard import api_of, knows_token
from app.serve.line import Line
from app.serve.messages_events import MessagesWriter
from app.serve.messages_request import count_request, messages_request
from app.serve.pages import banner, health_page, model_page, models_page
from app.serve.parameters import Facts
from app.serve.responses_events import ResponsesWriter
from app.serve.responses_request import responses_request
from app.serve.status import Tally
from app.serve.store import Store
from app.serve.streaming import Streaming, Timing
from app.serve.writing import Naming, Writer, model_id

log = logging.getLogger(__name__)

BODY_S = 60.0
MOST_NOTED = 256
Make = Callable[[str], Naming]
Read = TypeVar("Read")


class Asked(Protocol):
    """What every kind of request has."""

    @property
    def ask(self) -> Ask | None: ...
    @property
    def stream(self) -> bool: ...
    @property
    def notes(self) -> tuple[str, ...]: ...


class Service:
    """Handlers over one room; ``port`` is told once it is known."""

    def __init__(self, answers: Answers, config: ServeConfig, tally: Tally, timing: Timing, naming: Make) -> None:
        self.port = config.port
        self.line = Line(config.max_queue, on_begun=tally.changed)
        tally.waiting = lambda: self.line.waiting
        self._answers = answers
        self._config = config
        self._tally = tally
        self._timing = timing
        self._naming = naming
        self._store = Store(timing)
        self._noted: set[tuple[str, str]] = set()

    async def chat(self, request: web.Request) -> web.StreamResponse:
        asked, facts = await self._read(request, chat_request)
        return await self._answer(request, asked, ChatWriter(asked, self._named(facts)))

    async def messages(self, request: web.Request) -> web.StreamResponse:
        asked, facts = await self._read(request, messages_request)
        return await self._answer(request, asked, MessagesWriter(asked, self._named(facts)))

    async def responses(self, request: web.Request) -> web.StreamResponse:
        asked, facts = await self._read(request, partial(responses_request, store=self._store))
        writer = ResponsesWriter(asked, self._named(facts), self._store.put)
        return await self._answer(request, asked, writer)

    async def count(self, request: web.Request) -> web.Response:
        ask, _ = await self._read(request, count_request)
        try:
            return _json({"input_tokens": await self._answers.count(ask)})
        except AskRefused as error:
            raise error_of_refusal(error.refused) from error

    async def stored(self, request: web.Request) -> web.Response:
        if request.query.get("stream") == "true":
            raise bad("A stored response cannot be streamed.", "Leave 'stream' out.", "stream")
        return _json(self._store.get(request.match_info["id"]).response)

    async def forget(self, request: web.Request) -> web.Response:
        self._store.delete(request.match_info["id"])
        return _json({"id": request.match_info["id"], "object": "response", "deleted": True})

    async def input_items(self, request: web.Request) -> web.Response:
        return _json(self._store.input_page(request.match_info["id"], request.query))

    async def models(self, request: web.Request) -> web.Response:
        return _json(models_page(self._answers.model, api_of(request)))

    async def model(self, request: web.Request) -> web.Response:
        return _json(model_page(self._answers.model, request.match_info["id"], api_of(request)))

    async def health(self, request: web.Request) -> web.Response:
        if not knows_token(request, self._config):
            return _json({"ok": True})
        return _json(health_page(self._answers, self.line.waiting, self._tally.served))

    async def banner(self, _request: web.Request) -> web.Response:
        return web.Response(text=banner(self._answers.model, self.port))

    async def _read(self, request: web.Request, reader: Callable[[Fields, Facts], Read]) -> tuple[Read, Facts]:
        """What ``reader`` makes of the body, and the facts it was read against. Raises ApiError.

        Always on a thread: a small body may refer to large items that are kept, and the window shares this loop.
        """
        try:
            async with asyncio.timeout(BODY_S):
                body = await request.read()
        except TimeoutError as error:
            raise bad("The body did not come in time.") from error
        fields = await asyncio.to_thread(parse, body)
        facts = Facts(self._model(), _client(request))
        return await asyncio.to_thread(reader, fields, facts), facts

    def _model(self) -> ServedModel:
        model = self._answers.model
        if model is None:
            raise not_ready()
        return model

    def _named(self, facts: Facts) -> Naming:
        return self._naming(model_id(facts.model.key))

    async def _answer(self, request: web.Request, asked: Asked, writer: Writer) -> web.StreamResponse:
        client, answered = _client(request), False
        self._note(client, asked.notes)
        exchange = Exchange(self._answers, self.line, asked.ask)
        try:
            self._tally.began(client)
            if asked.stream:
                response = await Streaming(request, exchange, writer, self._timing).run()
            else:
                response = await _whole(exchange, writer)
            answered = exchange.answered
            return response
        finally:
            exchange.leave()
            self._tally.ended(client, answered=answered)

    def _note(self, client: str, notes: tuple[str, ...]) -> None:
        """Logs each note once for each client."""
        for note in notes:
            if (client, note) not in self._noted and len(self._noted) < MOST_NOTED:
                self._noted.add((client, note))
                log.warning("%s: %s", client, note)


def add_routes(application: web.Application, service: Service) -> None:
    router = application.router
    router.add_post("/v1/chat/completions", service.chat)
    router.add_post("/v1/messages", service.messages)
    router.add_post("/v1/messages/count_tokens", service.count)
    router.add_post("/v1/responses", service.responses)
    for name in ("completions", "embeddings", "responses/input_tokens", "responses/compact"):
        router.add_route("*", f"/v1/{name}", _not_served)
    router.add_get("/v1/responses/{id}", service.stored)
    router.add_delete("/v1/responses/{id}", service.forget)
    router.add_get("/v1/responses/{id}/input_items", service.input_items)
    router.add_get("/v1/models", service.models)
    router.add_get("/v1/models/{id:.+}", service.model)
    router.add_get("/health", service.health)
    router.add_get("/", service.banner)


async def _not_served(request: web.Request) -> web.Response:
    remedy = "Use /v1/chat/completions, /v1/responses or /v1/messages."
    raise ApiError(Problem.UNKNOWN, f"{request.path} is not served here.", remedy)


async def _whole(exchange: Exchange, writer: Writer) -> web.Response:
    async for _ in exchange.bytes(writer):
        pass
    return _json(writer.body())


def _client(request: web.Request) -> str:
    return client_name(request.headers.get("User-Agent", ""))


def _json(value: dict[str, object]) -> web.Response:
    return web.json_response(value)
