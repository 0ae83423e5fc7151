"""Kernels through naga, the compiler that turns WGSL into what Metal and Direct3D run (spec: wgpu §5).

``python -m tests.engine.translation`` takes every kernel that can be generated, which lasts a minute or two.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from app.engine.device import Caps
from app.engine.program import Kernel
from tests.engine.kernels import of_all_models, of_all_types

FOLDER = Path(__file__).parent / "translate"
FXC, DXC = "5_1", "6_0"
_OVERRIDE = re.compile(r"\boverride\s+(\w+)\s*(:\s*\w+)?\s*(=[^;]*)?;")


@dataclass(frozen=True)
class Shader:
    """A kernel with its constants written in, for a Direct3D shader model."""

    source: str
    model: str
    label: str = ""

    @classmethod
    def of(cls, kernel: Kernel, caps: Caps) -> Shader:
        """Subgroups are for the newer compiler; whatever is portable must suit the old one."""
        return cls(settled(kernel), DXC if caps.subgroup else FXC, kernel.label)

    @property
    def structure(self) -> tuple[str, str]:
        """Alike for shaders that differ in sizes only."""
        return re.sub(r"\d+", "0", self.source), self.model


@dataclass(frozen=True)
class Translated:
    """What naga said, and how many letters the two translations have."""

    errors: tuple[str, ...]
    msl: int
    hlsl: int


def available() -> bool:
    return shutil.which("node") is not None and (FOLDER / "node_modules" / "naga-wasm" / "dist").exists()


def translate(shaders: Iterable[Shader]) -> tuple[str, list[Translated]]:
    """naga's version, and what became of each."""
    given = json.dumps([(shader.source, shader.model) for shader in shaders])
    command = [shutil.which("node") or "node", "translate.mjs"]
    said = subprocess.run(command, cwd=FOLDER, input=given, capture_output=True, text=True, check=True)
    version, found = said.stdout.splitlines()
    return version, [Translated(tuple(errors), msl, hlsl) for errors, msl, hlsl in json.loads(found)]


def settled(kernel: Kernel) -> str:
    """The source with its constants as a pipeline sets them; one that nobody sets may not be used."""
    given = dict(kernel.constants)

    def constant(match: re.Match[str]) -> str:
        name, kind, usual = match[1], match[2] or "", match[3]
        value = f"= {_literal(given[name], kind)}" if name in given else usual
        return f"const {name}{kind} {value};" if value else ""

    return _OVERRIDE.sub(constant, kernel.source)


def _literal(value: float, kind: str) -> str:
    letters = {"u32": f"{int(value)}u", "i32": f"{int(value)}i", "f32": f"{float(value)!r}f"}
    return letters.get(kind.strip(": "), str(value))


def main() -> int:
    """How many there are, and what is wrong with them."""
    shaders = {Shader.of(*pair) for kernels in (of_all_models, of_all_types) for pair in kernels()}
    version, found = translate(shaders)
    wrong = sorted({f"{s.label}: {error}" for s, t in zip(shaders, found, strict=True) for error in t.errors})
    print(f"naga {version}: {len(shaders)} shaders, {len(wrong)} kinds of errors", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
