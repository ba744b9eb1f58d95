"""The addresses of `hushcount campaign new`: what clients take of a URL, and the dictionary in the same spelling."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

from hushcount.campaigns.dictionary import Dictionary
from hushcount.campaigns.parts import UrlPart
from hushcount.errors import UsageError
from hushcount.formats.reading import validated

FORMS = "site, site:private, host or path:N"
_LIST = "public_suffix_list.dat"
_PRIVATE = "===BEGIN PRIVATE DOMAINS==="


def url_part(form: str | None) -> UrlPart | None:
    """Return the section that `--url` asks for; None if values are no addresses.

    Args:
        form: one of FORMS. A site is the domain that somebody registered. With `site:private` it is also a name under a
            suffix of the private section, as alice.github.io, which is often one person's page.

    Raises:
        UsageError: the form is another, or the number of segments is out of range.
    """
    if form is None:
        return None
    take, _, more = form.partition(":")
    data: dict[str, object] = {"take": take}
    if take == "path" and more.isdecimal():
        data["segments"] = int(more[:9])
    elif take == "site" and more in ("", "private"):
        data["suffixes"] = sorted(set(_rules(more == "private")))
    elif form != "host":
        raise UsageError(f"--url is {form!a}, must be {FORMS}")
    return validated(UrlPart, data, f"--url {form}")


def addresses(listed: Dictionary, part: UrlPart, most: int) -> Dictionary:
    """Return a dictionary's lines in the spelling of clients, each once; a line may leave out https://.

    Args:
        most: the most bytes of an item.

    Raises:
        UsageError: a line is no public address.
    """
    found: dict[str, None] = {}
    for place, line in enumerate(listed.items, 1):
        item = part.item_of(line if "://" in line else f"https://{line}", most, None)
        if not item:
            raise UsageError(f"item {place} of the dictionary is {line!a}, must be an address, as www.example.com/news")
        found[item] = None
    return Dictionary(tuple(found))


def _rules(private: bool) -> Iterator[str]:
    """Yield the rules of the public suffix list that the installed package has, without or with the private section."""
    text = files("publicsuffixlist").joinpath(_LIST).read_text(encoding="utf-8")
    for line in (text if private else text.partition(_PRIVATE)[0]).splitlines():
        if line and not line.startswith("//"):
            yield ".".join(map(_ascii, line.split()[0].split(".")))


def _ascii(label: str) -> str:
    return label if label.isascii() else f"xn--{label.encode('punycode').decode()}"
