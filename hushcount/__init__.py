"""Hushcount: what people use and how often, without learning who."""

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary
from hushcount.client import Client
from hushcount.errors import HushcountError, NotYet, UsageError

__version__ = "0.1.0"
__all__ = ["Campaign", "Client", "Dictionary", "HushcountError", "NotYet", "UsageError", "__version__"]
