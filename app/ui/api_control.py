"""Owns the API's server: turns it on and off as a person wishes, and tells the window how it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import msgspec

from app.core.errors import PooledError
from app.core.secrets import Secrets
from app.core.settings import ServeSettings, load_settings, save_settings
from app.room.api.events import Answers
from app.room.tasks import Tasks
from app.serve.config import ServeConfig
from app.serve.server import ApiServer
from app.serve.status import ServeStatus
from app.ui.api_view import ApiView, ApiWish

API_KEY = "API key"
"""The name of the key among the secrets."""


class ApiControl:
    """``show`` gets every change; set it before ``begin``. All calls are made on the event loop's thread."""

    def __init__(self, answers: Answers, secrets: Secrets) -> None:
        self.show: Callable[[ApiView], None] = lambda _view: None
        kept = load_settings().serve
        self.view = ApiView(ApiWish(kept.on, kept.port, secrets.get(API_KEY)))
        self._answers = answers
        self._secrets = secrets
        self._server: ApiServer | None = None
        self._turning = asyncio.Lock()
        self._tasks = Tasks()

    def begin(self) -> None:
        """As it was when the program ended."""
        self._publish(self.view)
        self._tasks.start(self._turn(), "turn the API")

    def wish(self, wish: ApiWish) -> None:
        if wish == self.view.wish:
            return
        self._keep(wish)
        self._publish(replace(self.view, wish=wish))
        self._tasks.start(self._turn(), "turn the API")

    def follow(self) -> None:
        """To be called with every state of the room: another model may run."""
        if self._answers.model != self.view.model:
            self._publish(replace(self.view, model=self._answers.model))

    async def close(self) -> None:
        await self._tasks.close()
        await self._stop()

    def _keep(self, wish: ApiWish) -> None:
        self._secrets.put(API_KEY, wish.key)
        save_settings(msgspec.structs.replace(load_settings(), serve=ServeSettings(wish.on, wish.port)))

    async def _turn(self) -> None:
        """The last wish wins: each turn does what is wished when its turn comes."""
        async with self._turning:
            await self._stop()
            wish = self.view.wish
            self._publish(replace(self.view, listening=0, status=ServeStatus(), trouble="", remedy=""))
            if not wish.on:
                return
            try:
                await self._start(wish)
            except PooledError as error:
                self._publish(replace(self.view, trouble=error.what, remedy=error.remedy))

    async def _start(self, wish: ApiWish) -> None:
        server = ApiServer(self._answers, ServeConfig(port=wish.port, token=wish.key), on_change=self._heard)
        await server.start()
        self._server = server
        self._publish(replace(self.view, listening=server.port, status=server.status))

    async def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop()

    def _heard(self, status: ServeStatus) -> None:
        if self._server is not None:
            self._publish(replace(self.view, status=status))

    def _publish(self, view: ApiView) -> None:
        self.view = view
        self.show(view)
