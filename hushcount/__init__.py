"""Hushcount: what people use and how often, without learning who."""

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary
from hushcount.client import Client
from hushcount.errors import HushcountError, NotYet, UsageError
from hushcount.newest import Newest, Untrusted
from hushcount.policy import Policy

__version__ = "0.1.0"
__all__ = [
    "Campaign",
    "Client",
    "Dictionary",
    "HushcountError",
    "Newest",
    "NotYet",
    "Policy",
    "Untrusted",
    "UsageError",
    "__version__",
]
