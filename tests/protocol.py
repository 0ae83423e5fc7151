"""``python -m tests.protocol FILE.json ...`` runs recorded protocol cases and prints those that fail.

A file of another name than the recorded ones says which it is like: ``frames=FILE.json``.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from tests.protocol_ops import SUITES, find_check, load, load_cases, title


def failures(suite: str, path: Path) -> list[str]:
    """One line a case of ``path`` that fails or whose operation is unknown."""
    load(suite)
    failed: list[str] = []
    for index, case in enumerate(load_cases(path)):
        check = find_check(suite, case)
        if check is None:
            failed.append(f"{title(case, index)}: unknown operation")
            continue
        try:
            check(case)
        except Exception as error:  # noqa: BLE001 - one broken case must not hide the others
            place = traceback.extract_tb(error.__traceback__)[-1]
            failed.append(f"{title(case, index)}: {type(error).__name__} {error} ({place.name}:{place.lineno})")
    return failed


def _suite_and_path(argument: str) -> tuple[str, Path]:
    suite, named, name = argument.partition("=")
    if named and suite in SUITES:
        return suite, Path(name)
    path = Path(argument)
    return next((known for known in SUITES if known in path.stem), path.stem), path


def main(arguments: list[str]) -> int:
    bad = 0
    for argument in arguments:
        suite, path = _suite_and_path(argument)
        failed = failures(suite, path)
        count = len(load_cases(path))
        bad += len(failed)
        print(f"{path.name}: {count - len(failed)} of {count} cases hold")
        for line in failed:
            print(f"  {line}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
