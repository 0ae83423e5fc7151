"""What the models page says about a model."""

from __future__ import annotations

from app.models.places import Origin
from app.models.transfer import Stage, Transfer
from app.room.state import ModelRow
from app.ui import words
from app.ui.models_view import ModelLine

FROM = {
    Origin.FETCHED: "downloaded",
    Origin.ROOM: "copied from the room",
    Origin.OWN: "own file",
    Origin.OLLAMA: "in Ollama's store",
    Origin.LM_STUDIO: "in LM Studio's store",
    Origin.HUGGING_FACE: "in Hugging Face's store",
}
STAGES = {Stage.FETCH: "Downloading", Stage.CHECK: "Checking"}


def presence(line: ModelLine) -> str:
    """How much is here of a model that is neither whole nor missing; "" for those, which have their own headings."""
    return f"{words.percent(line.share)} here" if 0 < line.here < line.total else ""


def facts(line: ModelLine, row: ModelRow | None = None) -> str:
    """ "1.8 GB · needs 5.6 GB · fits on otter alone · downloaded · Apache-2.0"."""
    parts = [
        words.size(line.total),
        f"needs {words.gb(line.need_gb)}" if line.need_gb else "",
        row.sentence if row is not None else "",
        FROM[line.origin] if line.origin is not None else "",
        "runs on this device only" if line.own else "",
        line.licence,
    ]
    return " · ".join(part for part in parts if part)


def progress(job: Transfer) -> str:
    """ "Downloading, 5.2 GB of 13.6 GB, 24 MB a second, about 6 min left"."""
    if not job.total:
        return "Waiting for the other download"
    parts = [STAGES[job.stage], f"{words.size(job.done)} of {words.size(job.total)}"]
    if job.speed > 0:
        parts.append(f"{words.size(job.speed)} a second")
    if job.left is not None:
        parts.append(words.duration(job.left))
    return ", ".join(parts)


def disk(taken: int, free: int) -> str:
    """What models take of the disk, and what is left on it."""
    left = f" {words.size(free)} are free." if free >= 0 else ""
    return f"Models take {words.size(taken)} of this disk.{left}" if taken else left.strip()
