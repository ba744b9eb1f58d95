"""Run the papers' experiments: `python -m experiments p26-fig1 j-fig8 --out reproduced --quick` in a checkout.

It keeps finished figures, and a second run resumes a killed one. `make reproduce` writes into this directory. The exit
status is 1 if a figure is not reproduced, and 2 if data are missing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments.run import Options, reproduce
from hushcount.errors import HushcountError


def main(arguments: list[str]) -> int:
    """Run figures, print a line for each, and return the exit status.

    Raises:
        UsageError: as `reproduce`.
    """
    parser = argparse.ArgumentParser(prog="python -m experiments", allow_abbrev=False)
    parser.add_argument("figures", nargs="*", help="names of figures, default: all; a wrong name lists all names")
    parser.add_argument("--out", type=Path, required=True, help="directory for tables, plots, verdicts and README.md")
    parser.add_argument("--quick", action="store_true", help="few runs and points, for a first look")
    parser.add_argument("--data", type=Path, help="directory of data files that are not shipped")
    parser.add_argument("--runs", type=int, help="simulated collections of each point; default: as in the papers")
    parser.add_argument("--seed", type=int, default=1, help="seed of data and simulations (1)")
    parser.add_argument("--overwrite", action="store_true", help="run finished figures again")
    asked = parser.parse_args(arguments)
    options = Options(asked.out, asked.data, asked.runs, asked.seed, asked.quick, asked.overwrite)
    status = 0
    for outcome in reproduce(asked.figures, options, _track):
        if (record := outcome.record) is None:
            status = 2
            print(f"{outcome.figure}: not run, data missing: {outcome.reason}")
        else:
            status = max(status, int(not record["reproduced"]))
            answers = ["yes" if record[key] else "no" for key in ("reproduced", "as_printed")]
            print(f"{outcome.figure}: reproduced {answers[0]}, as printed {answers[1]}. {record['sentence']}")
    return status


def _track(name: str, done: int, total: int) -> None:
    print(f"{name}: {done} of {total} points", file=sys.stderr)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except HushcountError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
