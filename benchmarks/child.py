"""The processes of a stage, two so that what its input took to make is not in the memory of the stage.

`python -m benchmarks.child make STAGE REPORTS ITEMS DIRECTORY` writes the input; `run STAGE REPORTS DIRECTORY OUT`
measures on it, writes to another directory, and prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.stages import STAGES


def main() -> None:
    step, name, reports, *rest = sys.argv[1:]
    if step == "make":
        items, directory = rest
        STAGES[name].make(Path(directory), int(reports), int(items))
        return
    directory, out = rest
    run = STAGES[name].run(Path(directory), Path(out), int(reports))
    sys.stdout.write(json.dumps(asdict(run)) + "\n")


if __name__ == "__main__":
    main()
