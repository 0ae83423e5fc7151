"""An answer of the Responses API: numbered events of a stream, or one object (spec: product A-053 to A-058)."""

from __future__ import annotations

from collections.abc import Callable

from app.prompt.ask import Json
from app.room.api.events import Ended, Spoken, Started
from app.serve.blocks import Block, Blocks, Change, Closed, Grown, Kind, Opened
from app.serve.errors import Api, ApiError
from app.serve.responses_object import INCOMPLETE, custom_input, item_of, part_of, response_of, with_ids
from app.serve.responses_request import ResponsesRequest
from app.serve.sse import event
from app.serve.store import Stored
from app.serve.writing import Naming

_PREFIX = {Kind.REASONING: "rs", Kind.TEXT: "msg"}


class ResponsesWriter:
    """Every block of the answer is an output item. ``keep`` hears of a whole answer before the client does."""

    def __init__(self, request: ResponsesRequest, naming: Naming, keep: Callable[[Stored], None]) -> None:
        self._request = request
        self._naming = naming
        self._keep = keep
        self._id = f"resp_{naming.id()}"
        self._created = naming.seconds()
        self._blocks = Blocks(hold_space=True)
        self._calls: dict[int, str] = {}
        self._number = -1
        self._final: dict[str, object] = {}

    def open(self, started: Started | None) -> bytes:
        if self._number >= 0:
            return b""
        begun = self._response("in_progress")
        return self._event("response.created", response=begun) + self._event("response.in_progress", response=begun)

    def say(self, spoken: Spoken) -> bytes:
        return b"".join(self._write(self._blocks.add(piece)) for piece in spoken.pieces)

    def close(self, ended: Ended) -> bytes:
        cut = ended.reason in INCOMPLETE
        last = self._blocks.end()
        for change in last:
            change.block.whole = change.block.whole and not cut
        rest = self._write(last)
        status = "incomplete" if cut else "completed"
        self._final = self._response(status, ended)
        if self._request.store:
            self._keep(self._stored())
        return rest + self._event(f"response.{status}", response=self._final)

    def fail(self, error: ApiError) -> bytes:
        code = error.code or error.problem.type(Api.OPENAI)
        failed = {**self._response("failed"), "error": {"code": code, "message": str(error)}}
        return self._event("response.failed", response=failed)

    def alive(self, ahead: int) -> bytes:
        """An event and no comment: some programs count only those as a sign of life."""
        return self._event("response.in_progress", response=self._response("in_progress"))

    def body(self) -> dict[str, object]:
        return self._final

    def _stored(self) -> Stored:
        output = self._items()
        return Stored(self._id, self._final, with_ids(self._request.items, self._naming), tuple(output))

    def _response(self, status: str, ended: Ended | None = None) -> dict[str, object]:
        head: dict[str, object] = {
            "id": self._id,
            "created_at": self._created,
            "model": self._naming.model,
            "status": status,
        }
        output = [] if status == "in_progress" else self._items()
        return response_of(self._request, head, output, ended)

    def _items(self) -> list[Json]:
        return [self._item(block) for block in self._blocks.all]

    def _item(self, block: Block) -> dict[str, object]:
        status = "completed" if block.whole else "incomplete"
        return item_of(block, status, self._calls.get(block.place, ""), self._request)

    def _event(self, kind: str, **values: object) -> bytes:
        self._number += 1
        return event(kind, {"type": kind, "sequence_number": self._number, **values})

    def _write(self, changes: list[Change]) -> bytes:
        return b"".join(self._change(change) for change in changes)

    def _change(self, change: Change) -> bytes:
        if isinstance(change, Opened):
            return self._begin(change.block)
        if isinstance(change, Grown):
            return self._grow(change.block, change.text)
        return self._end(change)

    def _begin(self, block: Block) -> bytes:
        if block.kind is Kind.CALL:
            self._calls[block.place] = f"call_{self._naming.id()}"
        prefix = _PREFIX.get(block.kind, "ctc" if block.name in self._request.custom else "fc")
        block.id = f"{prefix}_{self._naming.id()}"
        item = item_of(block, "in_progress", self._calls.get(block.place, ""), self._request)
        added = self._event("response.output_item.added", output_index=block.place, item=item)
        if block.kind is Kind.CALL:
            return added
        return added + self._part("response.content_part.added", block, part=part_of(block, ""))

    def _grow(self, block: Block, text: str) -> bytes:
        if block.kind is Kind.TEXT:
            return self._part("response.output_text.delta", block, delta=text, logprobs=[])
        if block.kind is Kind.REASONING:
            return self._part("response.reasoning_text.delta", block, delta=text)
        if block.name in self._request.custom:
            return b""
        return self._of("response.function_call_arguments.delta", block, delta=text)

    def _end(self, change: Closed) -> bytes:
        block = change.block
        done = self._call_done(block) if block.kind is Kind.CALL else self._text_done(block)
        return done + self._event("response.output_item.done", output_index=block.place, item=self._item(block))

    def _text_done(self, block: Block) -> bytes:
        if block.kind is Kind.TEXT:
            said = self._part("response.output_text.done", block, text=block.text, logprobs=[])
        else:
            said = self._part("response.reasoning_text.done", block, text=block.text)
        return said + self._part("response.content_part.done", block, part=part_of(block, block.text))

    def _call_done(self, block: Block) -> bytes:
        """A call that was cut has no whole arguments to tell."""
        if not block.whole:
            return b""
        if block.name not in self._request.custom:
            return self._of("response.function_call_arguments.done", block, name=block.name, arguments=block.text)
        text = custom_input(block)
        delta = self._of("response.custom_tool_call_input.delta", block, delta=text)
        return delta + self._of("response.custom_tool_call_input.done", block, input=text)

    def _part(self, kind: str, block: Block, **values: object) -> bytes:
        return self._of(kind, block, content_index=0, **values)

    def _of(self, kind: str, block: Block, **values: object) -> bytes:
        return self._event(kind, item_id=block.id, output_index=block.place, **values)
