"""What a weight file is called in a room: by the address of its source, which here is a name and never asked."""

from __future__ import annotations

from app.models.table import ModelFile, ModelRecord, Models

_HUB = "https://huggingface.co/{}/resolve/main/{}"


def url_of(file: ModelFile) -> str:
    """The name of a file; one without a hub source is called by its hash, "" when it has none (spec: rooms §11.1)."""
    hub = next((source for source in file.sources if source.hub), None)
    if hub is not None:
        return _HUB.format(hub.hub, hub.file)
    return f"sha256:{file.sha256}" if file.sha256 else ""


def find(table: Models, url: str) -> tuple[ModelRecord, ModelFile] | None:
    """The file of that name. Only files of the table have one, so no name leads to anything else on the disk."""
    named = ((record, file) for record in table.models for file in record.files)
    return next((pair for pair in named if url and url_of(pair[1]) == url), None)
