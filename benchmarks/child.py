"""The processes of a stage, two so that what its input took to make is not in the memory of the stage.

`python -m benchmarks.child make STAGE REPORTS ITEMS DIRECTORY` writes the input; `run STAGE REPORTS DIRECTORY OUT`
measures on it, writes to another directory, and prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.measure import since_start
from benchmarks.stages import STAGES

_ENGINE = "HUSHCOUNT_OPENING"


def main() -> None:
    step, name, reports, *rest = sys.argv[1:]
    if step == "make":
        items, directory = rest
        STAGES[name].make(Path(directory), int(reports), int(items))
        return
    directory, out = rest
    start = since_start()
    os.environ.pop(_ENGINE, None)
    if STAGES[name].engine:
        os.environ[_ENGINE] = STAGES[name].engine
    run = replace(STAGES[name].run(Path(directory), Path(out), int(reports)), start=start)
    sys.stdout.write(json.dumps(asdict(run)) + "\n")


if __name__ == "__main__":
    main()
