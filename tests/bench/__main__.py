"""What can be measured here, by name: ``python -m tests.bench`` lists it."""

from pathlib import Path

print("benchmarks, each run with python -m tests.bench.NAME:")
for path in sorted(Path(__file__).parent.glob("*.py")):
    if not path.name.startswith("_"):
        print(f"  {path.stem:12} {path.read_text(encoding='utf-8').split(chr(10))[0].strip(chr(34))}")
