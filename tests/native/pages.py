"""Write the programs that stand in the pages of the native client: `python -m tests.native.pages --into FOLDER`.

`make test-bindings` compiles them.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

RUST = Path(__file__).parents[2] / "clients" / "rust"
PAGES = {"c": RUST / "c" / "README.md", "go": RUST / "c" / "README.md", "kt": RUST / "bindings" / "README.md"}
"""The ending of each file, and the page that has its program."""
LANGUAGES = {"kt": "kotlin"}
"""Of blocks, where it is not the ending."""


def main() -> None:
    """Write the first block of each language."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True)
    into: Path = parser.parse_args().into
    into.mkdir(parents=True, exist_ok=True)
    for ending, page in PAGES.items():
        kind = LANGUAGES.get(ending, ending)
        (block, *_) = re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        (into / f"page.{ending}").write_text(block, "utf-8")


if __name__ == "__main__":
    main()
