"""Ranges of a model file from several places: this computer, then other devices, then the source."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Protocol

from app.core.errors import FileError, LinkError
from app.models.partial import Filling, PartialFile
from app.models.ranges import RangeSet, Span, pieces
from app.models.table import ModelFile

Came = Callable[[int], None]
"""Told on the event loop how many bytes more are there."""
Put = Callable[[bytes | memoryview], None]
"""Takes the next bytes of a range, blocking until they are written; call it off the event loop, from any thread."""

AT_ONCE = 4
LARGEST_PIECE = 64 << 20
SMALLEST_PIECE = 16 << 20
"""From four times so many bytes on, as many ranges are asked for at once as may be (spec: product D-003)."""
TRIES = 2
MOST_FAULTS = 3
"""Ranges that a source may fail to give before it is left."""
MOST_BEGINNINGS = 3
"""How often a file is begun again that was changed at its source meanwhile."""


class RangeSource(Protocol):
    """One place that has ranges of a file.

    ``merges``: neighbouring ranges may be asked for as one, or a piece of one. ``lent``: the bytes come from
    another device, which nobody has compared with the source.
    """

    @property
    def merges(self) -> bool: ...

    @property
    def lent(self) -> bool: ...

    async def held(self, file: ModelFile) -> RangeSet:
        """What can be had here; LinkError when nobody answers."""
        ...

    async def fetch(self, file: ModelFile, span: Span, put: Put) -> None:
        """Gives the whole span to ``put`` in order, or raises LinkError; ``put`` is not called after the end."""
        ...


class Lenders(Protocol):
    """The devices of a room that may have ranges of a file."""

    async def sources(self, file: ModelFile) -> Sequence[RangeSource]:
        """Best first; empty when nobody has anything."""
        ...

    def close(self) -> None:
        """Ends what connections the sources opened."""
        ...


class Gathering:
    """Fills one partial file."""

    def __init__(self, file: ModelFile, partial: PartialFile, sources: Sequence[RangeSource]) -> None:
        self.file = file
        self.partial = partial
        self._sources = list(sources)

    async def fill(self, units: Sequence[Span], came: Came) -> None:
        """Every unit, each a range that exact sources know. A source that fails is not asked again.

        Raises LinkError with the last source's fault when none gives what is missing, FileError for the disk.
        """
        fault = LinkError(f"{self.file.name} has no source.", "Put the file there by hand.")
        for source in tuple(self._sources):
            if not self.missing(units):
                return
            try:
                await self.fill_from(source, units, came)
            except LinkError as error:
                fault = error
                self._sources.remove(source)
        if self.missing(units):
            raise LinkError(
                f"{self.file.name} could not be fetched. {fault.what}", fault.remedy or "Check the network."
            )

    async def fill_from_source(self, units: Sequence[Span], came: Came) -> None:
        """As ``fill``, without other devices."""
        unlent = [source for source in self._sources if not source.lent]
        await Gathering(self.file, self.partial, unlent).fill(units, came)

    def missing(self, units: Sequence[Span]) -> list[Span]:
        return [unit for unit in units if not self.partial.good.covers(unit)]

    def gaps(self, units: Sequence[Span]) -> RangeSet:
        """The bytes that are missing."""
        return RangeSet.of(units) - self.partial.good

    async def fill_from(self, source: RangeSource, units: Sequence[Span], came: Came) -> None:
        """What one source has of what is missing; its LinkError as it came, FileError for the disk."""
        for _ in range(MOST_BEGINNINGS):
            beginnings = self.partial.beginnings
            await self._round(source, units, came)
            if not self.missing(units) or beginnings == self.partial.beginnings:
                return
        raise LinkError(f"{self.file.name} keeps changing at its source.", "Try again later.")

    async def _round(self, source: RangeSource, units: Sequence[Span], came: Came) -> None:
        held = await source.held(self.file)
        if source.merges:
            wanted = pieces_of(self.gaps(units) & held)
        else:
            wanted = [unit for unit in self.missing(units) if held.covers(unit)]
        await _Round(self, source, deque(wanted), came).run()


def pieces_of(ranges: RangeSet) -> list[Span]:
    """Ranges to ask a server for: from 64 MB on at least as many as are asked for at once."""
    share = max(-(-ranges.total // AT_ONCE), SMALLEST_PIECE)
    return pieces(ranges.spans, min(share, LARGEST_PIECE))


class _Round:
    """One source asked for all it has of what is missing, several ranges at once."""

    def __init__(self, gathering: Gathering, source: RangeSource, queue: deque[Span], came: Came) -> None:
        self._file, self._partial = gathering.file, gathering.partial
        self._source = source
        self._queue = queue
        self._came = came
        self._faults: list[LinkError] = []

    async def run(self) -> None:
        """Raises the last LinkError when a range was not given, FileError at once."""
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(min(AT_ONCE, len(self._queue))):
                    group.create_task(self._work(), name=f"weights {number}")
        except* FileError as errors:
            raise _first(errors) from None
        if self._faults:
            raise self._faults[-1]

    async def _work(self) -> None:
        while self._queue and len(self._faults) < MOST_FAULTS:
            try:
                await self._tried(self._queue.popleft())
            except LinkError as error:
                self._faults.append(error)

    async def _tried(self, span: Span) -> None:
        """A range that broke off is asked for once more: from there, where the source allows that."""
        for again in reversed(range(TRIES)):
            try:
                for gap in self._partial.good.gaps(span) if self._source.merges else [span]:
                    await self._fetch(gap)
                return
            except LinkError:
                if not again:
                    raise

    async def _fetch(self, span: Span) -> None:
        loop = asyncio.get_running_loop()
        filling = await asyncio.to_thread(Filling, self._partial, span, lent=self._source.lent)

        def put(data: bytes | memoryview) -> None:
            filling.put(data)
            loop.call_soon_threadsafe(self._came, len(data))

        try:
            await self._source.fetch(self._file, span, put)
            if not filling.complete:
                raise LinkError(f"A part of {self._file.name} came short.", "Try again.")
        finally:
            await _to_the_end(asyncio.to_thread(filling.close))


async def _to_the_end(work: Coroutine[object, object, None]) -> None:
    """Waits for work that must have happened before this task ends, even where the task is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _first(group: BaseExceptionGroup[FileError]) -> FileError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
