"""Sign campaign files, as the operator or as a publisher to whom it delegates."""

from __future__ import annotations

from collections.abc import Sequence

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import CampaignSignature, Delegation, DelegationTerms, Restart, RestartTerms
from hushcount.campaigns.log import MOST_EPOCHS
from hushcount.campaigns.public_keys import EvaluatorKeyPart, VerifyKeyPart
from hushcount.errors import UsageError
from hushcount.formats.reading import validated
from keys.directories import KeyReference


def delegate(
    operator: KeyReference,
    campaign: Campaign,
    publisher: VerifyKeyPart,
    last_epoch: int,
    serial: int,
    evaluator_keys: Sequence[EvaluatorKeyPart] = (),
) -> Delegation:
    """Let a publisher sign a campaign's later epochs, up to `last_epoch`, with the same terms and these evaluator keys.

    Raises:
        UsageError: there are more evaluator keys than a delegation may list, or `last_epoch` is more than MOST_EPOCHS
            after the campaign's epoch.
    """
    if last_epoch - campaign.epoch > MOST_EPOCHS:
        # Whoever steals the publisher's key could sign all epochs up to `last_epoch`, and no epoch can follow the
        # greatest possible number.
        raise UsageError(
            f"last_epoch is {last_epoch}, must be at most {campaign.epoch + MOST_EPOCHS}, {MOST_EPOCHS} after the "
            f"campaign's epoch {campaign.epoch}: delegate anew when the publisher comes near it"
        )
    data = {
        "campaign": campaign.id,
        "serial": serial,
        "terms": campaign.terms.hex(),
        "publisher": publisher,
        "last_epoch": last_epoch,
        "evaluator_keys": tuple(key.key for key in evaluator_keys),
    }
    terms = validated(DelegationTerms, data, f"the delegation of campaign {campaign.id}")
    return Delegation(**dict(terms), signature=operator.sign(terms.signed(), "delegation"))


def restart(operator: KeyReference, campaign: Campaign, serial: int) -> Restart:
    """Let clients accept this campaign file, whatever they accepted before; end delegations with a smaller serial."""
    data = {"campaign": campaign.id, "serial": serial, "epoch": campaign.epoch, "head": campaign.head.hex()}
    terms = validated(RestartTerms, data, f"the restart of campaign {campaign.id}")
    return Restart(**dict(terms), signature=operator.sign(terms.signed(), "restart"))


def sign_campaign(
    signer: KeyReference, campaign: Campaign, delegation: Delegation | None = None, restart: Restart | None = None
) -> CampaignSignature:
    """Sign a campaign file, as a publisher if there is a delegation, and else as the operator.

    The restart, if any, becomes part of the signature.

    Raises:
        SignatureError: the delegation is not for this campaign and key, or the restart is for another campaign. Clients
            would refuse a signature with a wrong delegation or restart.
    """
    if restart is not None:
        restart.require(campaign)
    if delegation is not None:
        delegation.require(campaign, signer.id, restart)
    signature = signer.sign(campaign.fingerprint, "campaign")
    return CampaignSignature(**dict(signature), delegation=delegation, restart=restart)
