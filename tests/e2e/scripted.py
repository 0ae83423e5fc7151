"""A model host whose model is a script: everything else of the room is real.

The one seam is the engine: ``ScriptedCompute`` stands in its place, so that ``generate`` replays token ids whatever the
prompt says, as long as any mask it is given allows them. Tests with clients use it whose prompts are longer than the
context of the small models that run here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.core.errors import GpuError
from app.engine.types import Candidates, ColumnClass, Floats, Shaping, Step, Stepped
from app.prompt.language import Language
from app.room.ports import LoadRequest, Progress, State

HIDDEN = 64
Script = Callable[[str], str]
"""The answer to a prompt, both as text; special tokens are written as the template writes them."""


class OffScript(GpuError):
    """The mask forbids what the script says."""


@dataclass
class _Answer:
    """Its ids, of which the first follows position ``start``."""

    start: int
    ids: list[int]

    def goes_on(self, position: int, token: int) -> bool:
        at = position - self.start
        return 0 < at <= len(self.ids) and self.ids[at - 1] == token


@dataclass
class ScriptedCompute:
    """``ports.Compute`` without a model: states are zeros, candidates come from the script."""

    script: Script
    language: Language
    fed: dict[int, int] = field(default_factory=dict[int, int])
    prompts: list[str] = field(default_factory=list[str])
    read: int = 0
    """Columns of prompts it was given."""
    signature: str = "script"
    prompt_chunk: int = 2048
    drafts: bool = False
    draft_model: bool = False
    sequences: int = 1
    _answer: _Answer | None = None
    _prompted: bool = True
    _position: int = 0
    _columns: int = 0

    async def load(self, request: LoadRequest, progress: Progress) -> None:
        progress(1.0)

    async def unload(self) -> None:
        """There is nothing to free."""

    async def tokens(self, ids: Sequence[int], position: int, kind: ColumnClass, sequence: int = 0) -> Floats:
        self.fed |= {position + i: token for i, token in enumerate(ids)}
        self._position, self._columns = position, len(ids)
        if kind is ColumnClass.STEP:
            self._follow(position, ids[0])
        else:
            self.read += len(ids)
            self._prompted = True
        return np.zeros((len(ids), HIDDEN), np.float32)

    async def hidden(self, states: Floats, position: int, kind: ColumnClass, sequence: int = 0) -> Floats:
        return states

    def _follow(self, position: int, token: int) -> None:
        """The step after a prompt's columns is that prompt's last token, as is one that does not go on as scripted."""
        if not self._prompted and self._answer is not None and self._answer.goes_on(position, token):
            return
        prompt = self._text(position)
        self.prompts.append(prompt)
        self._answer, self._prompted = _Answer(position, self._ids(self.script(prompt))), False

    def _text(self, end: int) -> str:
        tokens = (self.fed[position] for position in range(end + 1))
        return b"".join(map(self.language.piece, tokens)).decode(errors="replace")

    def _ids(self, text: str) -> list[int]:
        """Special tokens stand in their tags, and the answer ends with a stop id."""
        ids: list[int] = []
        for part in _split(text):
            special = self.language.tokenizer.special(part)
            ids += [special] if special is not None else self.language.tokenizer.encode(part)
        return [*ids, min(self.language.tokenizer.stop_ids)]

    async def candidates(self, states: Floats, shaping: Shaping | None = None) -> list[Candidates]:
        assert self._answer is not None
        first = self._position - self._answer.start
        return [self._candidates(first + i, i, shaping) for i in range(len(states))]

    def _candidates(self, at: int, column: int, shaping: Shaping | None) -> Candidates:
        assert self._answer is not None
        token = self._answer.ids[min(at, len(self._answer.ids) - 1)]
        masks = shaping.masks if shaping is not None else None
        if masks is not None and not masks[column][token // 32] >> np.uint32(token % 32) & 1:
            said = self.language.piece(token)
            raise OffScript(f"The answer may not say {said!r} here.", "Change the script, or mend the grammar.")
        return Candidates(np.array([token], np.int32), np.zeros(1, np.float32), 0.0, 0)

    async def step(self, steps: Sequence[Step]) -> list[Stepped]:
        (step,) = steps
        states = await self.tokens(step.ids, step.position, ColumnClass.STEP)
        return [Stepped(await self.candidates(states), None)]

    async def greedy(self, token: int, position: int, stops: Sequence[int], count: int, sequence: int = 0) -> list[int]:
        words: list[int] = []
        while len(words) < count and not (words and words[-1] in stops):
            (stepped,) = await self.step([Step([words[-1] if words else token], position + len(words))])
            words.append(stepped.candidates[0].best)
        return words

    async def guesses(self, ids: Sequence[int], count: int, sequence: int = 0) -> list[int]:
        """There is no draft model."""
        return []

    async def learn(
        self, ids: Sequence[int], before: Floats, position: int, kind: ColumnClass, sequence: int = 0
    ) -> None:
        """There is no draft block."""

    async def draft(self, token: int, before: Floats, position: int, count: int, sequence: int = 0) -> list[int]:
        return []

    async def save(self, name: str, end: int, sequence: int = 0) -> None:
        """A script goes on from anywhere."""

    async def restore(self, name: str, sequence: int = 0) -> int:
        raise AssertionError("nothing is kept")

    async def drop(self, name: str) -> None:
        """Nothing is kept."""

    async def saved(self) -> list[str]:
        return []

    async def export(self, sequence: int = 0) -> State:
        raise AssertionError("nothing is kept")

    async def adopt(self, name: str, state: State, sequence: int = 0) -> None:
        raise AssertionError("nothing is kept")


TAGS = ("<tool_call>", "</tool_call>", "<think>", "</think>")


def _split(text: str) -> list[str]:
    """At the tags that are tokens of their own."""
    parts = [text]
    for tag in TAGS:
        parts = [piece for part in parts for piece in _around(part, tag)]
    return [part for part in parts if part]


def _around(text: str, tag: str) -> list[str]:
    if text == tag:
        return [text]
    first, *rest = text.split(tag)
    return [first, *(piece for after in rest for piece in (tag, after))]
