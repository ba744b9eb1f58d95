"""What the parts of a campaign file have in common: strict, frozen, and errors in one sentence."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

Hex32 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""32 bytes in lower-case hexadecimal digits."""
_LONGEST_REPEATED = 60


class Part(BaseModel):
    """A section: unknown fields are errors, numbers are finite, nothing changes after validation."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=False, allow_inf_nan=False)


def explain(error: ValidationError) -> str:
    """Return every error of a validation, each with its field, in one sentence."""
    parts = []
    for item in error.errors():
        field = ".".join(str(step) for step in item["loc"])
        message = item["msg"].removeprefix("Value error, ")
        given = repr(item["input"])
        # What is missing or a whole section has no value worth repeating.
        known = item["type"] not in ("missing", "value_error") and len(given) <= _LONGEST_REPEATED
        parts.append(
            f"{field} is {given}: {message}" if field and known else f"{field}: {message}" if field else message
        )
    return "; ".join(parts)
