"""All decoders by name."""

from __future__ import annotations

from tests.fuzzing import door, files, wire
from tests.fuzzing.guard import Target

TARGETS: dict[str, Target] = {target.name: target for target in (*wire.TARGETS, *door.TARGETS, *files.TARGETS)}
