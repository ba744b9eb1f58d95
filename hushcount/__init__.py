"""Hushcount: what people use and how often, without learning who."""

from hushcount.campaign import Campaign
from hushcount.client import Client
from hushcount.dictionary import Dictionary
from hushcount.errors import HushcountError, NotYet, UsageError

__version__ = "0.1.0"
__all__ = ["Campaign", "Client", "Dictionary", "HushcountError", "NotYet", "UsageError", "__version__"]
