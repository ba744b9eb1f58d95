"""A URL to the text that stands for it, by the section of a campaign file; what counts as "other"; wrong sections."""

from __future__ import annotations

from typing import Any

from hushcount.campaigns.parts import UrlPart
from hushcount.errors import FormatError
from hushcount.formats.reading import validated
from hushcount.items import MOST_ITEM_BYTES
from hushcount.urls import MOST_URL_CHARACTERS
from tests.vectors.subjects.script import require_refused

_MOST = 64
_HOST: dict[str, Any] = {"take": "host"}
_PATH: dict[str, Any] = {"take": "path", "segments": 8}
_TWO: dict[str, Any] = {"take": "path", "segments": 2}
_SITE: dict[str, Any] = {
    "take": "site",
    "suffixes": ["!www.ck", "*.ck", "co.uk", "com", "github.io", "io", "uk", "xn--p1ai"],
}
_HOSTS = (
    "https://www.example.com/a?b#c", " HTTP:\\\\WWW.Example.COM.\\\t", "http:example.com", "https:////example.com",
    "http://example.com:80/", "https://example.com:00443", "https://example.com:?x", "https://ex%61mple.com",
    "https://fa\xdf.de", "https://FA\xdf.de", "https://\u65e5\u672c\u3002jp\uff0e", "https://\uff45x.com",
    "https://\u039f\u0394\u039f\u03a3.gr", "https://\u05e9\u05dc\u05d5\u05dd.com", "https://a_b.c-d.e", "https://1.2.3.x4",
    "https://xn--a.com", "https://xn--ls8h.la", "https://\U0001f4a9.la", "https://e\u0301.com", "https://%C3%BC.de",
    "https://" + "a" * 60 + ".de",
)  # fmt: skip
_NO_HOSTS = (
    "", "example.com", "//example.com", "ftp://example.com", "https://", "https:///", "https://localhost/", "https://a",
    "https://.a.b", "https://a..b", "https://a.b..", "https://user@a.b", "https://@a.b", "https://a:b@c.d", "https://a.b:8",
    "http://a.b:443", "https://a.b:80", "https://a.b:0", "https://a.b:x", "https://1.2.3.4", "https://0x7f.1",
    "https://a.0x7f", "https://a.7", "https://[::1]",
    "https://a.local", "https://a.lan", "https://a.b.corp", "https://a.test", "https://FA\u1e9e.de",
    "https://a.onion", "https://a.b.INTERNAL",
    "https://1.in-addr.arpa", "https://a b.c", "https://a%20b.c", "https://a%40b.c", "https://a%2fb.c", "https://a%zz.b",
    "https://a%ff.b", "https://a\xad.b", "https://a\u200c\u0628.b", "https://a\u05d0.b", "https://\u05d01.b",
    "https://\u0661.b",
    "https://\u05d0\u060c.b", "https://\u0628\u06f1.b",
    "https://\U0001d417n--a.b", "https://\U0001d417n--ls8h.b",
    "https://a\u2135.b", "https://\u0378.b", "https://\ua7cb.b", "https://a\u1806b.c", "https://xn--\xfc.b",
    "https://\uff58n--a.b",
    "https://\u2488.b", "https://\uff05\uff14\uff11.b", "https://\u0300.b", "https://\ufffd.b", "https://a!.b", "https://*.a.b",
    "https://" + "a" * 64 + ".de", "https://" + "a" * 62 + ".de", "https://" + "a." * 126 + "de",
    "https://a.b/" + "c" * MOST_URL_CHARACTERS, "https://a.b/\ud800", "https\u017f://a.b", "mailto:a@b.c", "view https://a.b",
)  # fmt: skip
_PATHS = (
    "https://a.b", "https://a.b/", "https://a.b//c///d/", "https://a.b/c/../d/./e", "https://a.b/../../c",
    "https://a.b/c/%2e%2E/d/%2e/.%2e/e", "https://a.b/c//../d", "https://a.b/C/%63/%7Ed/~e", "https://a.b\\c\\d",
    "https://a.b/c;v=1/d;e;f/;g", "https://a.b/c%3bd", "https://a.b/..;/c", "https://a.b/.%3b/c",
    "https://a.b/c d/\xe9/%C3%A9",
    "https://a.b/%/%4/%zz", "https://a.b/%25", "https://a.b/%2541", "https://a.b/%ff/%ED%A0%80", "https://a.b/%00",
    "https://a.b/!$&'()*+,:~-._", "https://a.b/<>\"^`{|}[]", "https://a.b/:id/:ID", "https://a.b/me@c.d",
    "https://a.b/%40c",
    "https://a.b/\uff20c",
    "https://a.b/550e8400-e29b-41d4-a716-446655440000", "https://a.b/aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa",
    "https://a.b/1234567/12345678", "https://a.b/2026-11-29", "https://a.b/2026-11",
    "https://a.b/\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668",
    "https://a.b/deadbeefdeadbeef", "https://a.b/deadbeefdeadbee", "https://a.b/internationalization/Internationalization",
    "https://a.b/InternationalSpaceStation", "https://a.b/abcdefghijklmno1", "https://a.b/abcdefghijklmn1",
    "https://a.b/abcDE1f/abcDE12f", "https://a.b/a1b2c3d/a1b2c3de/ab12cd3e/abc12def", "https://a.b/3d4kwide/iPhone15Pro",
    "https://a.b/ABCDEFGHIJKLMNOPQR", "https://a.b/top-10-things-to-do", "https://a.b/Top_10_things_to_do",
    "https://a.b/ab-CD-ef-12-gh-34",
    "https://a.b/aaaaaaaaaaaaaaa+",
    "https://a.b/a=b/c%3dd/e\uff1df", "https://a.b/\u0378", "https://a.b/a\nb\tc", "https://a.b/c?d=e/f", "https://a.b/c#/d",
    "https://a.b/" + "/".join("cdefghijkl"), "https://a.b/" + "/".join(["word"] * 8), "https://a.b/" + "wordy/" * 12,
    "https://a.b/" + "x-" * 40,
)  # fmt: skip
_NO_PATHS = ("https://a.b/c%2fd", "https://a.b/%2F", "https://a.b/c%3F", "https://a.b/%23c", "https://a.b/%5c/..")
_SITES = (
    "https://www.example.com", "https://example.com", "https://a.b.example.co.uk", "https://alice.github.io", "https://a.b.ck",
    "https://x.a.b.ck", "https://www.ck", "https://x.www.ck", "https://a.b.unlisted", "https://\u043f\u0440\u0438.\u0440\u0444",
)  # fmt: skip
_NO_SITES = ("https://co.uk", "https://github.io", "https://b.ck")
_WRONG: tuple[object, ...] = (
    {}, {"take": "url"}, {"take": "path"}, {"take": "site"}, {"take": None}, [], "host", None, 1,
    *({"take": "path", "segments": given} for given in (0, 9, 1.5, "1", True, None)),
    {"take": "host", "segments": 1}, {**_SITE, "segments": 1}, {"take": "host", "suffixes": ["com"]},
    {**_HOST, "more": 1},
    *({"take": "site", "suffixes": given} for given in (
        [], ["com", "com"], ["de", "com"], ["Com"], [""], ["."], ["a..b"], ["*"], ["a.*"], ["!"], ["!*.a"], ["\xfc"],
        [1], "com", None, {"0": "com"}, ["a" * 64], [".".join("abcdefg")], ["a."],
    )),
)  # fmt: skip


def data() -> dict[str, Any]:
    """Return the file's content."""
    told = [(_HOST, _HOSTS, _MOST), (_PATH, _PATHS, _MOST), (_SITE, _SITES, _MOST)]
    other = [(_HOST, _NO_HOSTS, _MOST), (_PATH, _NO_PATHS, MOST_ITEM_BYTES), (_SITE, _NO_SITES, _MOST)]
    accept = [_case(part, text, most) for part, texts, most in told for text in texts]
    accept += [_case(_TWO, "https://a.b/c/d/e", 4096, ["a.b"]), _case(_TWO, "https://a.b/" + "c" * 70, _MOST, ["a.b"])]
    refuse = [_case(part, text, most) for part, texts, most in other for text in texts]
    refuse += [_case(_TWO, text, _MOST, ["a.b"]) for text in ("https://b.b/c", "https://x.a.b/", "https://b")]
    refuse += [_case({"take": "path", "segments": 1}, "https://b.b/c", _MOST, ["a.b"])]
    for wrong in _WRONG:
        require_refused(FormatError, validated, UrlPart, wrong, "it")
    return {
        "subject": "urls",
        "about": "The section of a campaign file on addresses, the most bytes of an item, the hosts of a policy, and a "
        'value: the text that stands for it. Reason "other": it counts as "other"',
        "accept": [{**given, "item": item} for given, item in accept if item],
        "refuse": [
            *({**given, "reason": "other"} for given, item in refuse if not item),
            *({"url": wrong, "reason": "url"} for wrong in _WRONG),
        ],
    }


def _case(part: dict[str, Any], text: str, most: int, hosts: list[str] | None = None) -> tuple[dict[str, Any], str]:
    item = UrlPart.model_validate(part).item_of(text, most, hosts)
    return {"url": part, "most": most, "text": text, **({} if hosts is None else {"hosts": hosts})}, item
