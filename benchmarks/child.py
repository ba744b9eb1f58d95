"""The process that a stage is measured in: `python -m benchmarks.child STAGE REPORTS ITEMS` prints one line of JSON."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.stages import STAGES


def main() -> None:
    name, reports, items = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="hushcount-bench-") as scratch:
        run = STAGES[name].run(Path(scratch), int(reports), int(items))
    sys.stdout.write(json.dumps(asdict(run)) + "\n")


if __name__ == "__main__":
    main()
