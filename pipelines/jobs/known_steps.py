"""The steps of each hop that are known before there is a batch, of what a deployment runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from hushcount.campaigns.campaign import Campaign
from hushcount.senders import Senders
from pipelines.deployment.settings import Deployment
from pipelines.jobs.together import Steps


def _shuffle(_: Deployment, campaign: Campaign) -> Iterator[Steps]:
    from pipelines.jobs.shuffle import ShuffleSteps

    yield ShuffleSteps(campaign=campaign)


def _release(deployment: Deployment, campaign: Campaign) -> Iterator[Steps]:
    # The shuffler has no package of keys.
    from keys.directories import campaign_key
    from pipelines.jobs.discover import release_steps

    key = campaign_key(deployment.keys, "aux_server", campaign.keys.aux_server)
    for senders in _senders(deployment):
        yield release_steps(campaign, key, senders)


def _discover(deployment: Deployment, campaign: Campaign) -> Iterator[Steps]:
    from keys.directories import campaign_key
    from pipelines.jobs.reveal import reveal_steps

    key = campaign_key(deployment.keys, "analyzer", campaign.keys.analyzer)
    for senders in _senders(deployment):
        yield reveal_steps(campaign, key, senders)


def _analyze(deployment: Deployment, campaign: Campaign) -> Iterator[Steps]:
    from keys.directories import campaign_key
    from pipelines.jobs.analyze import analyze_steps
    from pipelines.jobs.results import grouped_items

    key = campaign_key(deployment.keys, "analyzer", campaign.keys.analyzer)
    yield analyze_steps(campaign, key, grouped=grouped_items(deployment, campaign))


def _senders(deployment: Deployment) -> Iterator[Senders]:
    """Yield the senders of a batch whose segments all came in time: of others, rule and noise may be others."""
    for allotments in sorted({1, len(deployment.file.collectors) or 1}):
        yield Senders("client-token", allotments, allotments)


KNOWN_STEPS: Mapping[str, Callable[[Deployment, Campaign], Iterator[Steps]]] = {
    "shuffle": _shuffle,
    "release": _release,
    "discover": _discover,
    "analyze": _analyze,
}
"""By hop. They raise HushcountError if a key is not here, or the steps follow from what is found in a batch."""
