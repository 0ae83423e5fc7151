"""The shape of the project: who knows Qt, and how long a file may get."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 500

IMPORT_ALL_BUT_THE_WINDOW = """
import importlib, pkgutil, sys
sys.modules["PySide6"] = sys.modules["qasync"] = None
import app
names = [m.name for m in pkgutil.walk_packages(app.__path__, "app.") if not m.name.startswith("app.ui")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


def test_everything_but_the_window_works_without_qt() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL_BUT_THE_WINDOW], capture_output=True, text=True, timeout=120, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


def test_files_stay_small() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in (ROOT / "app").rglob("*.py")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST
    }
    assert not long
