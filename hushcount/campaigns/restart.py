"""What the operator says of a campaign by number, and the statement that sets its clients back to a history.

Whoever once accepted a forged history refuses every other one. Only the operator's own key may set it right.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from hushcount.campaigns.campaign import GREATEST_EPOCH, Campaign
from hushcount.campaigns.parts import Identifier
from hushcount.campaigns.signatures import SIGNATURE_BYTES, Signature, SignatureError
from hushcount.formats.canonical_json import canonical_json
from hushcount.formats.models import Hex32, Part
from hushcount.formats.reading import parse_model, read_file


class Numbered(Part):
    """What the operator signs about a campaign. Restarts and delegations share one row of serials."""

    format: Literal[1] = 1
    campaign: Identifier
    serial: int = Field(ge=1, le=GREATEST_EPOCH, description="clients heed nothing of a smaller one than they saw")

    def signed(self) -> bytes:
        """Return the bytes that the operator signs: canonical JSON without the signature."""
        return canonical_json(self.model_dump(mode="json", exclude={"signature"}))


class RestartTerms(Numbered):
    """What the operator signs for the purpose "restart": where clients go on, whatever they accepted before."""

    epoch: int = Field(ge=1, le=GREATEST_EPOCH)
    head: Hex32 = Field(description="Campaign.head of that epoch")


class Restart(RestartTerms):
    """The statement with the operator's signature. It also ends every delegation of a smaller serial."""

    signature: Signature

    def require(self, campaign: Campaign) -> None:
        """Check that the statement is about this campaign; SignatureError if it is not."""
        if self.campaign != campaign.id:
            raise SignatureError(
                f"the restart is of campaign {self.campaign}, must be of {campaign.id}: ask the operator"
            )


def read_restart(path: Path) -> Restart:
    """Read a restart file; UsageError if it is missing or unreadable, FormatError if it is no restart."""
    return parse_model(Restart, read_file(path, "restart", SIGNATURE_BYTES), f"restart {path}")
