"""Addresses: from a URL to the text that stands for it."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import Any

import idna

from tests.vectors.stranger import values
from tests.vectors.stranger.basics import Refused, require

_RULE = re.compile(r"(?:!|\*\.)?[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,5}")
_NAME = re.compile(r"[a-z0-9_-]{1,63}")
_RIGHT = ((0x590, 0x8FF), (0xFB1D, 0xFDFF), (0xFE70, 0xFEFC), (0x10800, 0x10FFF), (0x1E800, 0x1EFFF))
_PLAIN = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,:")
_LOCAL = (
    "alt", "arpa", "corp", "home", "i2p", "internal", "intranet", "invalid", "lan", "local", "localdomain", "localhost",
    "onion", "private", "test",
)  # fmt: skip
_HEX = "0123456789abcdefABCDEF"


def check(part: Any, file: dict[str, Any]) -> None:
    """Refuse a section `url` of a campaign file."""
    require(isinstance(part, dict) and part.get("take") in ("site", "host", "path"), "url")
    needed = {"site": {"take", "suffixes"}, "host": {"take"}, "path": {"take", "segments"}}[part["take"]]
    require(set(part) == needed and "number" not in file, "url")
    if "segments" in part:
        segments, found = part["segments"], file.get("discovery", {"hash": "oblivious"})
        require(type(segments) is int and 1 <= segments <= 8 and found["hash"] == "oblivious", "url")
    rules = part.get("suffixes", ["any"])
    require(isinstance(rules, list) and 1 <= len(rules) <= 20_000, "url")
    require(all(isinstance(rule, str) and _RULE.fullmatch(rule) for rule in rules), "url")
    require(all(one < other for one, other in pairwise(rules)), "url")


def item(part: dict[str, Any], text: str, most: int, hosts: list[str] | None) -> str:
    """Return the text that stands for a URL; Refused: it counts as "other"."""
    host, path = _split(text)
    segments = [] if path is None else path
    require(path is not None and (hosts is None or part["take"] != "path" or host in hosts), "other")
    if part["take"] != "path":
        made = host if part["take"] == "host" else _site(host, part["suffixes"])
        require(0 < len(made) <= most, "other")
        return made
    told = segments[: part["segments"]]
    while told and len(f"{host}/{'/'.join(told)}") > most:
        told = told[:-1]
    require(len(f"{host}/{'/'.join(told)}") <= most, "other")
    return f"{host}/{'/'.join(told)}"


def _split(text: str) -> tuple[str, list[str] | None]:
    require(len(text) <= 8192 and not any(0xD800 <= ord(letter) < 0xE000 for letter in text), "other")
    while text and ord(text[0]) <= 32:
        text = text[1:]
    while text and ord(text[-1]) <= 32:
        text = text[:-1]
    text = "".join(letter for letter in text if letter not in "\t\n\r")
    scheme, colon, rest = text.partition(":")
    require(colon == ":" and scheme in _spelled("http") | _spelled("https"), "other")
    rest = rest.lstrip("/\\")
    end = min([place for place, letter in enumerate(rest) if letter in "/\\?#"], default=len(rest))
    path = rest[end:].split("?")[0].split("#")[0].replace("\\", "/")
    return _host(rest[:end], 80 if len(scheme) == 4 else 443), _segments(path)


def _spelled(word: str) -> set[str]:
    made = {""}
    for letter in word:
        made = {begin + one for begin in made for one in (letter, letter.upper())}
    return made


def _host(authority: str, port: int) -> str:
    require("@" not in authority, "other")
    begin, colon, digits = authority.rpartition(":")
    if colon and all("0" <= digit <= "9" for digit in digits):
        require(digits == "" or digits.lstrip("0") == str(port), "other")
        authority = begin
    name = _decoded(authority)
    require(name is not None, "other")
    labels = re.split("[.\u3002\uff0e\uff61]", name or "")
    labels = labels[:-1] if labels[-1] == "" else labels
    made = [_label(label) for label in labels]
    require(len(made) >= 2 and len(".".join(made)) <= 253, "other")
    last = made[-1]
    require(last not in _LOCAL and not last.isdecimal(), "other")
    require(not (last.startswith("0x") and set(last[2:]) <= set(_HEX)), "other")
    return ".".join(made)


def _label(label: str) -> str:
    if all(ord(letter) < 128 for letter in label):
        made = label.lower()
    else:
        require(len(label) <= 253 and "\u1e9e" not in label, "other")
        require(all(values.is_assigned(letter) for letter in label), "other")
        text = values.normal("".join(letter.lower() for letter in label))
        shape = unicodedata.normalize("NFKC", text)
        require(_fits(text) and not shape.lower().startswith("xn--"), "other")
        for letter in text + shape:
            plain = ord(letter) > 127 or letter in "abcdefghijklmnopqrstuvwxyz0123456789-"
            require(plain and letter not in "\u1806\u180e\u200c\u200d", "other")
        right = [any(low <= ord(letter) <= high for low, high in _RIGHT) for letter in shape]
        kinds = [unicodedata.category(letter)[0] for letter in shape]
        require(not any(right) or (all(right) and kinds[0] == "L" and set(kinds) <= {"L", "M"}), "other")
        made = _to_ascii(text)
    require(_NAME.fullmatch(made) is not None, "other")
    return made


def _fits(text: str) -> bool:
    try:
        values.require_item(text)
    except Refused:
        return False
    return True


def _to_ascii(text: str) -> str:
    try:
        mapped = idna.uts46_remap(text, std3_rules=False, transitional=False)
    except idna.IDNAError:
        raise Refused("other") from None
    require(unicodedata.category(mapped[0])[0] != "M", "other")
    return mapped if mapped.isascii() else "xn--" + mapped.encode("punycode").decode()


def _segments(path: str) -> list[str] | None:
    lowered = path.lower()
    if any(hidden in lowered for hidden in ("%2f", "%3f", "%23", "%5c")):
        return None
    kept: list[str] = []
    for segment in path.split("/")[1:]:
        dots = segment.replace("%2e", ".").replace("%2E", ".")
        if dots == "..":
            kept = kept[:-1]
        elif dots != ".":
            kept.append(segment)
    return [made for made in map(_segment, kept) if made]


def _segment(segment: str) -> str:
    text = _decoded(segment)
    if text is None:
        return ":id"
    text = text.split(";")[0]
    if _is_id(text):
        return ":id"
    if text in (".", ".."):
        return ""
    octets = ((chr(octet), f"%{octet:02X}") for octet in text.encode())
    return "".join(letter if letter in _PLAIN else escape for letter, escape in octets)


def _is_id(text: str) -> bool:
    if any(not values.is_assigned(letter) for letter in text) or set("@=") & set(unicodedata.normalize("NFKC", text)):
        return True
    runs = [re.findall(r"[A-Za-z0-9+]+", text), re.findall(r"[A-Za-z0-9+_-]+", text)]
    tokens = [run for run in re.findall(r"[A-Za-z0-9]+", text) if len(run) >= 8]
    kinds = (["L" if letter.isalpha() else "N" for letter in token] for token in tokens)
    if any(sum(a != b for a, b in pairwise(token)) >= 3 for token in kinds):
        return True
    words, mixed = ([run for run in of if len(run) >= 16] for of in runs)
    return (
        re.search(r"%[0-9a-fA-F]{2}|[0-9a-fA-F]{16}", text) is not None
        or re.search("-".join(f"[0-9a-fA-F]{{{n}}}" for n in (8, 4, 4, 4, 12)), text) is not None
        or sum(unicodedata.category(letter) == "Nd" for letter in text) >= 8
        or not all((word.isalpha() and word[1:].islower()) or (word.isalpha() and word.isupper()) for word in words)
        or any(
            re.search("[a-z]", run) and re.search("[A-Z]", run) and re.search("[0-9]", run) for run in tokens + mixed
        )
    )


def _decoded(text: str) -> str | None:
    octets, place = bytearray(), 0
    raw = text.encode()
    while place < len(raw):
        pair = raw[place + 1 : place + 3].decode("latin-1")
        if raw[place] == ord("%") and len(pair) == 2 and set(pair) <= set(_HEX):
            octets.append(int(pair, 16))
            place += 3
        else:
            octets.append(raw[place])
            place += 1
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return None


def _site(host: str, rules: list[str]) -> str:
    labels = host.split(".")
    suffix = 1
    for number in range(len(labels), 0, -1):
        end = ".".join(labels[-number:])
        if f"!{end}" in rules:
            suffix = number - 1
            break
        if end in rules or "*" + end[len(labels[-number]) :] in rules:
            suffix = number
            break
    return ".".join(labels[-suffix - 1 :]) if suffix < len(labels) else ""
