"""Manifests: numbers of evaluations and refusals for one campaign file in one window, without any element.

    STORE/evaluations/CAMPAIGN/EPOCH-FINGERPRINT/WINDOW/NAME-ID.json

The id is random for each window of an evaluator's directory, so no evaluator overwrites another's manifest.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from hushcount.campaigns.campaign import GREATEST_EPOCH
from hushcount.campaigns.parts import Identifier
from hushcount.campaigns.public_keys import KeyId
from hushcount.collection.manifests import CollectorName, Count, Refused, WindowName, WindowSeconds
from hushcount.collection.windows import window_start
from hushcount.formats.models import Hex32, Part
from hushcount.formats.reading import parse_model
from hushcount.senders import Authentication

Asker = Literal["clients", "verifier"]
ASKERS: tuple[Asker, ...] = ("clients", "verifier")


class Asked(Part):
    """The evaluations and refusals of one kind of asker."""

    evaluations: Count = Field(default=0, description="elements answered")
    refused: Refused = Field(default_factory=dict, description="requests refused, by reason")


class EvaluationManifest(Part):
    """The evaluations and refusals of one evaluator in one window, for one campaign file."""

    format: Literal[1] = 1
    evaluator: CollectorName
    campaign: Identifier
    epoch: int = Field(ge=1, le=GREATEST_EPOCH)
    fingerprint: Hex32
    key: KeyId | None = Field(description="id of the evaluator's key in the campaign file; null: it has none")
    window: WindowName
    seconds: WindowSeconds = Field(description="length of the window")
    authentication: Authentication = Field(description="the weakest authentication of clients in the window")
    clients: Asked = Field(default_factory=Asked)
    verifier: Asked = Field(default_factory=Asked)

    @model_validator(mode="after")
    def _check(self) -> EvaluationManifest:
        window_start(self.window)
        return self


def read_evaluation_manifest(data: bytes, name: str) -> EvaluationManifest:
    """Read a manifest of this version, or raise FormatError, which names the file."""
    return parse_model(EvaluationManifest, data, name, "is not an evaluator's manifest")
