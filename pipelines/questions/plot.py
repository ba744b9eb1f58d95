"""Draw the shares of items over windows, each item with a band that shows the intervals."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hushcount.arrays import FloatArray
from hushcount.collection.windows import is_window, window_start
from hushcount.errors import UsageError
from hushcount.formats.whole_files import write_once
from pipelines.questions.findings import share_of

_ENDINGS = (".png", ".svg")
_FILE_MODE = 0o600
_LONGEST = 60
"""The most letters of an item in the legend; a longer item is cut."""


def write_plot(path: Path, table: pa.Table, items: Sequence[str], ends: Mapping[str, datetime]) -> None:
    """Draw the shares of items over windows with their intervals into a new file; a missing window is a gap.

    Args:
        ends: when each window ends, by name.

    Raises:
        UsageError: the file's name ends in neither .png nor .svg, or the file exists, or a row is of a result folder,
            which has no time.
    """
    if path.suffix not in _ENDINGS:
        raise UsageError(f"plot is {path}, must end in {' or '.join(_ENDINGS)}")
    rows = table.to_pylist()
    strange = next((row["window"] for row in rows if not is_window(row["window"])), None)
    if strange is not None:
        raise UsageError(f"--plot draws windows, but the result folder {strange} has none: use --config instead")
    # Do not use pyplot, because it looks for a screen and keeps figures in memory.
    from matplotlib.figure import Figure

    sheet = Figure(figsize=(9.6, 5.4), layout="constrained")
    axes = sheet.add_subplot()
    for item in items:
        line = sorted((row for row in rows if row["item"] == item), key=lambda row: (row["window"], row["epoch"]))
        when, (shares, low, high) = _curve(line, ends)
        (drawn,) = axes.plot(when, shares, marker="o", markersize=3, label=_label(item))
        axes.fill_between(when, low, high, color=drawn.get_color(), alpha=0.15, linewidth=0)
    axes.set_ylabel("share of reports, with its interval")
    axes.grid(alpha=0.3)
    # Draw no name as a formula, because strangers may have chosen the names. `_label` adds a space, because a name that
    # begins with _ would be left out of the legend.
    for text in axes.legend(fontsize=8).get_texts():
        text.set_parse_math(False)
    sheet.autofmt_xdate()
    buffer = io.BytesIO()
    metadata = {"Software": None} if path.suffix == ".png" else {"Date": None}
    sheet.savefig(buffer, format=path.suffix[1:], dpi=110, metadata=metadata)
    write_once(path, "plot", buffer.getvalue(), _FILE_MODE)


def _curve(
    line: Sequence[Mapping[str, Any]], ends: Mapping[str, datetime]
) -> tuple[npt.NDArray[np.datetime64], FloatArray]:
    """Return when windows begin, and float64[3, times], the shares and their limits; NaN breaks a curve at a gap."""
    when, shares = [], []
    for before, row in zip((None, *line), line, strict=False):
        start = window_start(row["window"])
        if before is not None and ends[before["window"]] < start:
            when.append(start)
            shares.append([np.nan] * 3)
        when.append(start)
        shares.append([share_of(row[name], row["reports"]) for name in ("count", "low", "high")])
    return np.array([one.replace(tzinfo=None) for one in when], "datetime64[s]"), np.transpose(shares)


def _label(item: str) -> str:
    return f" {item}" if len(item) <= _LONGEST else f" {item[:_LONGEST]}\u2026"
