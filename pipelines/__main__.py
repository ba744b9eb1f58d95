"""`python -m pipelines` is the `hushcount` command."""

from __future__ import annotations

from pipelines.entry import main

if __name__ == "__main__":
    main()
