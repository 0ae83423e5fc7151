"""The models on this computer as the window shows them: lists, fetches, removes and takes files, off the window's
thread where it takes time."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from app.core.errors import PooledError
from app.core.paths import models_dir
from app.core.secrets import Secrets
from app.models.client import HUB_TOKEN
from app.models.describe import describe
from app.models.inventory import ModelHolding, State, inventory, needed_gb
from app.models.removal import remove
from app.models.table import ModelRecord
from app.models.transfer import Tell, Transfer
from app.room.tasks import Tasks
from app.ui import words
from app.ui.models_view import (
    AddFile,
    DropFile,
    Fetch,
    FileLook,
    KeepToken,
    LookAgain,
    LookAt,
    ModelLine,
    ModelsView,
    ModelWish,
    Remove,
    StopFetch,
)

WAITING = Transfer(0, 0, 0.0, None)


class Provides(Protocol):
    """Fetches a model, or finds it here."""

    def provide(self, key: str, tell: Tell) -> Awaitable[Path]: ...


@dataclass(frozen=True)
class KeeperPorts:
    """``find`` looks into the stores of other programs, ``take`` makes a file a row, ``changed`` tells the room."""

    shelf: Provides
    find: Callable[[], Awaitable[None]]
    take: Callable[[Path, Tell], Awaitable[ModelRecord]]
    changed: Callable[[], None]
    secrets: Secrets


class ModelKeeper:
    """``show`` gets every change; set it before the first wish. All calls are made on the event loop's thread."""

    def __init__(self, ports: KeeperPorts) -> None:
        self.show: Callable[[ModelsView], None] = lambda _view: None
        self.view = ModelsView(looking=True, token_kept=bool(ports.secrets.get(HUB_TOKEN)))
        self._ports = ports
        self._holdings: Mapping[str, ModelHolding] = {}
        self._jobs: dict[str, Transfer] = {}
        self._troubles: dict[str, str] = {}
        self._fetching: dict[str, asyncio.Task[None]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._tasks = Tasks()
        self._closed = False

    def begin(self) -> None:
        self.wish(LookAgain())

    def wish(self, wish: ModelWish) -> None:
        match wish:
            case LookAgain():
                self._look_again()
            case Fetch():
                self._fetch(wish.key)
            case StopFetch():
                self._stop_fetch(wish.key)
            case Remove():
                self._tasks.start(self._remove(wish.key), "remove a model")
            case LookAt():
                self._publish(file=FileLook(wish.path))
                self._tasks.start(self._look_at(wish.path), "look at a file")
            case AddFile():
                if self.view.file is not None:
                    self._tasks.start(self._add(self.view.file), "add a file")
            case DropFile():
                self._publish(file=None)
            case KeepToken():
                self._ports.secrets.put(HUB_TOKEN, wish.text)
                self._publish(token_kept=bool(wish.text))

    async def close(self) -> None:
        """What has come of a download stays."""
        self._closed = True
        await self._tasks.close()

    # -- the list ------------------------------------------------------------------------------------------------

    def _look_again(self) -> None:
        if self._looking is None or self._looking.done():
            self._publish(looking=True, said="", trouble="", remedy="")
            self._looking = self._tasks.start(self._look(), "look for models")

    async def _look(self) -> None:
        """What is known is shown before the search."""
        try:
            await self._list()
            await self._ports.find()
            await self._list()
        except PooledError as error:
            self._publish(trouble=error.what, remedy=error.remedy)
        finally:
            self._publish(looking=False)

    async def _list(self) -> None:
        holdings, free = await asyncio.to_thread(_read)
        self._holdings = {holding.record.key: holding for holding in holdings}
        self._publish(free=free)

    # -- one model -----------------------------------------------------------------------------------------------

    def _fetch(self, key: str) -> None:
        if key not in self._fetching:
            self._troubles.pop(key, None)
            self._job(key, WAITING)
            self._fetching[key] = self._tasks.start(self._fetched(key), f"fetch {key}")

    def _stop_fetch(self, key: str) -> None:
        task = self._fetching.get(key)
        if task is not None:
            task.cancel()

    async def _fetched(self, key: str) -> None:
        try:
            await self._ports.shelf.provide(key, lambda transfer: self._job(key, transfer))
        except PooledError as error:
            self._troubles[key] = str(error)
        finally:
            self._fetching.pop(key, None)
            self._jobs.pop(key, None)
            self._publish()
            if not self._closed:
                self._tasks.start(self._settle(), "list the models")

    async def _settle(self) -> None:
        await self._list()
        self._ports.changed()

    def _job(self, key: str, transfer: Transfer) -> None:
        self._jobs[key] = transfer
        self._publish()

    async def _remove(self, key: str) -> None:
        holding = self._holdings.get(key)
        if holding is None:
            return
        self._troubles.pop(key, None)
        try:
            freed = await asyncio.to_thread(remove, holding.record)
            await self._ports.find()
            await self._settle()
            self._publish(said=_removed(holding.record.label, freed))
        except PooledError as error:
            self._troubles[key] = str(error)
            self._publish()

    # -- a file --------------------------------------------------------------------------------------------------

    async def _look_at(self, path: Path) -> None:
        try:
            look = await asyncio.to_thread(_look_of, path)
        except PooledError as error:
            look = FileLook(path, trouble=error.what, remedy=error.remedy)
        if self.view.file is not None and self.view.file.path == path:
            self._publish(file=look)

    async def _add(self, look: FileLook) -> None:
        def tell(transfer: Transfer) -> None:
            self._publish(file=replace(look, adding=transfer))

        tell(WAITING)
        try:
            record = await self._ports.take(look.path, tell)
            await self._list()
            self._publish(file=replace(look, key=record.key, label=record.label))
        except PooledError as error:
            self._publish(file=replace(look, trouble=error.what, remedy=error.remedy))

    def _publish(self, **changes: object) -> None:
        lines = tuple(self._line(holding) for holding in self._holdings.values())
        self.view = replace(self.view, lines=lines, **changes)  # pyright: ignore[reportArgumentType]
        self.show(self.view)

    def _line(self, holding: ModelHolding) -> ModelLine:
        record = holding.record
        return ModelLine(
            key=record.key,
            label=record.label,
            total=holding.total,
            here=holding.total if holding.state is State.WHOLE else min(holding.here, holding.total - 1),
            need_gb=holding.need_gb,
            licence=holding.licence,
            origin=holding.origin,
            path=holding.path,
            own=record.own,
            job=self._jobs.get(record.key),
            trouble=self._troubles.get(record.key, ""),
        )


def _read() -> tuple[tuple[ModelHolding, ...], int]:
    """Holdings, and the bytes left on their disk."""
    try:
        free = shutil.disk_usage(models_dir()).free
    except OSError:
        free = -1
    return inventory(), free


def _look_of(path: Path) -> FileLook:
    described = describe(path)
    record = described.record
    return FileLook(
        path=path,
        label=record.label,
        bytes=record.download_bytes,
        need_gb=needed_gb(record),
        context=record.trained_context,
        layers=record.layers,
        licence=described.licence,
        template=described.template,
    )


def _removed(label: str, freed: int) -> str:
    return f"{label} is deleted; {words.size(freed)} are free again." if freed else f"{label} is off the list."
