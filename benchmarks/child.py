"""The two processes of a stage: the first one makes the input, so that its memory does not count as the stage's.

`python -m benchmarks.child make STAGE REPORTS ITEMS DIRECTORY` writes the input; `run STAGE REPORTS DIRECTORY OUT`
measures with this input, writes to another directory, and prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.machine import has_ifma
from benchmarks.measure import since_start
from benchmarks.stages import STAGES
from hushcount.errors import HushcountError
from keys.opening_engines import ENOUGH, VARIABLE, lanes_are_off
from pipelines.outputs.staging import SUMMARY


def main() -> None:
    step, name, reports, *rest = sys.argv[1:]
    if step == "make":
        items, directory = rest
        STAGES[name].make(Path(directory), int(reports), int(items))
        return
    directory, out = rest
    start = since_start()
    os.environ[VARIABLE] = STAGES[name].engine
    run = replace(STAGES[name].run(Path(directory), Path(out), int(reports)), start=start)
    require_engine(Path(out))
    sys.stdout.write(json.dumps(asdict(run)) + "\n")


def require_engine(out: Path) -> None:
    """Raise HushcountError if another engine than the page states opened the boxes of the hops in a directory."""
    for path in out.rglob(SUMMARY):
        opening = json.loads(path.read_text()).get("opening")
        if opening is None:
            continue
        wanted = has_ifma() and not lanes_are_off() and sum(opening.values()) >= ENOUGH
        if (opening["lanes"] > 0) != wanted or opening["rescued"]:
            raise HushcountError(f"all boxes must be opened {'in lanes' if wanted else 'by libsodium'}: {opening}")


if __name__ == "__main__":
    main()
