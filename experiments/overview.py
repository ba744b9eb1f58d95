"""The overview of the results, made from the figures' records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.catalogue import FIGURES
from experiments.figure_files import Folder
from experiments.judging import FAILURE, TOLERANCE

_HEAD = f"""# The papers' experiments

Made by `make reproduce`; do not edit. Each figure has a table (.csv), a plot (.png) and a verdict (.json).
`make reproduce DATA=directory` makes the figures that are missing; all of them take about an hour on two cores.

*Reproduced*: every measured value agrees with the prediction, corrected where the paper is wrong. It may differ by its
statistical range or by {TOLERANCE:.0%}, whichever is wider. If all predictions of a figure are right, a value leaves
its statistical range with probability {FAILURE:g} at most. The checkable sentences of the paper must hold too, except
known errors. *As printed*: the same, with all formulas and sentences exactly as the paper prints them. In the plots,
solid curves are predictions, marks are measurements, dashed curves are printed formulas, and dotted curves are bounds.

[J]: Jiang et al., *When Focus Enhances Utility*; [P25], [P26]: M. Pan; titles in docs/mathematics.md.
"""


def overview(folder: Folder, lacking: Mapping[str, str]) -> str:
    """Return the page: a table of verdicts, then each figure's sentence and plot.

    Args:
        folder: of the records.
        lacking: why figures were not run, by the figure's name.
    """
    records = {name: record for name in FIGURES if (record := folder.record(name)) is not None}
    place = "" if folder.files == folder.readme.parent else f"{folder.files.name}/"
    lines = [_HEAD, "| figure | what | reproduced | as printed | runs |", "|---|---|---|---|---|"]
    for name in FIGURES:
        if name in records:
            lines.append(_line(records[name]))
        elif name in lacking:
            lines.append(f"| {name} | {FIGURES[name].title} | not run: data missing | | |")
    for name, record in records.items():
        lines += [
            "",
            f"## {record['title']}",
            "",
            record["sentence"],
            *_refuted(record),
            "",
            f"![{name}]({place}{name}.png)",
        ]
    notes = [f"- {name}: {reason}" for name, reason in lacking.items() if name not in records]
    return "\n".join([*lines, *(["", "## Not run", "", *notes] if notes else [])]) + "\n"


def _line(record: Mapping[str, Any]) -> str:
    answers = " | ".join("yes" if record[key] else "no" for key in ("reproduced", "as_printed"))
    runs = f"{record['runs']:,}" if record["runs"] else "none needed"
    return f"| [{record['figure']}](#{_anchor(record['title'])}) | {record['title']} | {answers} | {runs} |"


def _anchor(title: str) -> str:
    return "".join(letter for letter in title.lower().replace(" ", "-") if letter.isalnum() or letter in "-_")


def _refuted(record: Mapping[str, Any]) -> list[str]:
    refuted = [claim["text"] for claim in record["claims"] if not claim["holds"]]
    return ["", "Statements of the paper that do not hold:", "", *(f"- {text}" for text in refuted)] if refuted else []
