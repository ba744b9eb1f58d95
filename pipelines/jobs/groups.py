"""The items of groups that a deployment names, which an open domain without a sketch counts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import UsageError
from hushcount.items import canonical
from hushcount.questions.selecting import Choice
from pipelines.deployment.settings import Deployment
from pipelines.jobs.results import read_names


def items_in_groups(choices: Mapping[str, Choice], base: Path) -> tuple[str, ...]:
    """Return the items of groups, each once. A glob or a prefix names none: it chooses from a dictionary.

    Args:
        base: the directory that their files are relative to.

    Raises:
        UsageError: the file of a group, which the error names, cannot be read or is no list of items.
    """
    named: list[str] = []
    for name, choice in choices.items():
        try:
            named += choice.items or (() if choice.file is None else read_names(base / choice.file))
        except UsageError as error:
            raise UsageError(f"group {name}: {error}") from None
    return tuple(dict.fromkeys(map(canonical, named)))


def grouped_items(deployment: Deployment, campaign: Campaign) -> tuple[str, ...]:
    """Return the items of the deployment's groups if the campaign has an open domain without a sketch, else none."""
    encoder = campaign.require_frequency().encoder
    if encoder.domain is not None or not encoder.by_item:
        return ()
    return items_in_groups(deployment.file.analyzer.groups, deployment.base)
