"""Write the vectors: `make vectors`. A second run changes nothing.

Every file has what must be accepted, with the result, and what must be refused, with a reason by name. schema.json says
its shape, docs/wire-format.md what its bytes mean.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.vectors.subjects import (
    answers,
    budgets,
    campaigns,
    canonical,
    clients,
    dictionaries,
    discovery,
    encoders,
    items,
    logs,
    numbers,
    oblivious,
    packing,
    passes,
    policies,
    reports,
    samples,
    sealing,
    signatures,
    strata,
    thresholds,
    tokens,
    urls,
    windows,
)

FOLDER = Path(__file__).parents[2] / "vectors" / "v1"
SUBJECTS = {
    "answers": answers.data,
    "budgets": budgets.data,
    "campaigns": campaigns.data,
    "canonical_json": canonical.data,
    "clients": clients.data,
    "dictionaries": dictionaries.data,
    "discovery": discovery.data,
    "encoders": encoders.data,
    "items": items.data,
    "logs": logs.data,
    "numbers": numbers.data,
    "oblivious": oblivious.data,
    "packing": packing.data,
    "passes": passes.data,
    "policies": policies.data,
    "reports": reports.data,
    "samples": samples.data,
    "sealing": sealing.data,
    "signatures": signatures.data,
    "strata": strata.data,
    "thresholds": thresholds.data,
    "tokens": tokens.data,
    "urls": urls.data,
    "windows": windows.data,
}
"""File to what makes its content."""


def text(content: dict[str, Any]) -> str:
    """Return a file's text in ASCII: one entry of a list a line."""
    parts = []
    for key, value in content.items():
        if isinstance(value, list):
            lines = ",\n".join(f"  {json.dumps(entry)}" for entry in value)
            parts.append(f" {json.dumps(key)}: [\n{lines}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    """Write every file anew."""
    for name, data in SUBJECTS.items():
        (FOLDER / f"{name}.json").write_text(text(data()), encoding="ascii")


if __name__ == "__main__":
    main()
