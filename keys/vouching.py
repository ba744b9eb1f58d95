"""Sign campaign files, as the operator or as a publisher to whom it delegates."""

from __future__ import annotations

from collections.abc import Sequence

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import CampaignSignature, Delegation, DelegationTerms
from hushcount.campaigns.public_keys import EvaluatorKeyPart, VerifyKeyPart
from hushcount.formats.reading import validated
from keys.store import KeyReference


def delegate(
    operator: KeyReference,
    campaign: Campaign,
    publisher: VerifyKeyPart,
    last_epoch: int,
    evaluator_keys: Sequence[EvaluatorKeyPart] = (),
) -> Delegation:
    """Let a publisher sign further epochs of a campaign under the same terms, up to one, with an evaluator's keys.

    Raises:
        UsageError: there are more keys than a delegation may list.
    """
    data = {
        "campaign": campaign.id,
        "terms": campaign.terms.hex(),
        "publisher": publisher,
        "last_epoch": last_epoch,
        "evaluator_keys": tuple(key.key for key in evaluator_keys),
    }
    terms = validated(DelegationTerms, data, f"the delegation of campaign {campaign.id}")
    return Delegation(**dict(terms), signature=operator.sign(terms.signed(), "delegation"))


def sign_campaign(signer: KeyReference, campaign: Campaign, delegation: Delegation | None = None) -> CampaignSignature:
    """Sign a campaign file: the operator without a delegation, its publisher with one.

    Raises:
        SignatureError: the delegation does not hold for this campaign or this key, so that clients would refuse it.
    """
    if delegation is not None:
        delegation.require(campaign, signer.id)
    signature = signer.sign(campaign.fingerprint, "campaign")
    return CampaignSignature(**dict(signature), delegation=delegation)
