"""Models by a part of their name."""

from __future__ import annotations

from app.cli.text import safe
from app.core.errors import ModelError
from app.models.table import ModelRecord, Models, builtin_table

MOST_NAMED = 6


def model_called(name: str, table: Models) -> ModelRecord:
    """ModelError, with what it could be, for a part that several have or none."""
    wanted = name.strip().lower()
    exact = [record for record in table.models if wanted in (record.key.lower(), record.label.lower())]
    found = exact or [
        record for record in table.models if wanted in record.key.lower() or wanted in record.label.lower()
    ]
    if len(found) == 1 and wanted:
        return found[0]
    if not found:
        announced = [model.key for model in builtin_table().announced if wanted and wanted in model.key.lower()]
        if announced:
            builtin_table().get(announced[0])  # says that its files are not there yet
        raise ModelError(f"There is no model {name[:40]!r}.", "pooled list shows them.")
    names = " or ".join(safe(record.key) for record in found[:MOST_NAMED])
    raise ModelError(f"{name[:40]!r} could be {names}.", "Say more of its name.")
