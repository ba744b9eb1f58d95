"""The way of a value to a sealed report."""

from __future__ import annotations

from typing import Any

from tests.vectors.stranger import boxes, counted_numbers, delivery, noise, strata, trust, urls, values
from tests.vectors.stranger.basics import Refused, hashed, require
from tests.vectors.stranger.numbers import Words

Content = dict[str, Any]


def report(file: Content, given: Content) -> bytes:
    """Return the report of a value, with given words and secret."""
    listed, items = file.get("dictionary"), given.get("items")
    same = listed is None or (len(items or ()), values.digest(items or [])) == (listed["items"], listed["digest"])
    require(same, "another_dictionary")
    require("discovery" not in file or "hash_key" in file["discovery"], "no_hash_key")
    stream, value = given["stream"], given["value"]
    carries = "discovery" in file if stream == "discovery" else "mechanism" in file or "noise" in file
    require(carries, "no_such_stream")
    for key in file["keys"]["analyzer"] + file["keys"]["aux_server"]:
        valid = trust.moment(key["not_before"]) <= trust.moment(given["at"]) < trust.moment(key["not_after"])
        require(valid, "no_valid_key")
    analyzer = bytes.fromhex(file["keys"]["analyzer"][0]["key"])
    binding = hashed(trust.fingerprint(file), stream, 16)
    is_mean = "number" in file and file["number"]["mean"]
    if "number" in file and not is_mean:
        value = _bin(file["number"], value)
    if "url" in file and value is not None:
        value = _address(file, value)
    value = None if value is None else values.normal(value)
    if stream == "discovery":
        return _discovery(file, given, value if _is_new(value, items or []) else None, binding, analyzer)
    if "noise" in file:
        return _in_layers(file, given, _item(value or "", items, pooled=False), binding, analyzer)
    mechanism, words = trust.mechanism_of(file), Words([int(word, 16) for word in given["words"]])
    if is_mean:
        position = counted_numbers.point_of(file["number"]["edges"], mechanism.m, value or "", words.one())
    else:
        position = _item(value or "", items, pooled="seed" in mechanism.parameters)
    if "axes" in file:
        position = strata.cell(file["axes"], len(items or []), position, given.get("by", {}))
    answer = mechanism.report(position, words)
    require(words.left == [], "words_left")
    box = boxes.seal(analyzer, bytes.fromhex(given["ephemeral_secret"]), binding + answer)
    if "axes" not in file or not any(axis["public"] for axis in file["axes"]["listed"]):
        return box
    return strata.stratum(file["axes"], given.get("by", {})).to_bytes(2, "little") + box


def _in_layers(file: Content, given: Content, position: int, binding: bytes, analyzer: bytes) -> bytes:
    if "axes" in file:
        position = strata.cell(file["axes"], len(given["items"]), position, given.get("by", {}))
    require(given["words"] == [], "words_left")
    answer = position.to_bytes(noise.answer_bytes(trust.cells(file)), "little")
    box = boxes.seal(analyzer, bytes.fromhex(given["ephemeral_secret"]), binding + answer)
    moment = {**file, **file["noise"], "moment": int(trust.moment(given["at"]).timestamp())}
    window = delivery.window(moment)["begins"].to_bytes(8, "little")
    aux_server = bytes.fromhex(file["keys"]["aux_server"][0]["key"])
    return window + boxes.seal(aux_server, bytes.fromhex(given["layer_secret"]), binding + window + box)


def _bin(part: Content, text: str) -> str:
    try:
        return counted_numbers.bin_of(part["edges"], part["unit"], text)
    except Refused:
        return ""


def _address(file: Content, text: str) -> str:
    most = file["discovery"]["max_value_bytes"] if "discovery" in file else 4096
    try:
        return urls.item(file["url"], text, most, None)
    except Refused:
        return ""


def _item(value: str, items: list[str] | None, pooled: bool) -> int:
    if items is not None and not pooled:
        return items.index(value) if value in items else len(items)
    if items is not None:
        return values.fingerprint(value) if value in items else values.OTHER
    return values.fingerprint(value) if _fit(value) else values.OTHER


def _fit(value: str) -> bool:
    try:
        values.require_item(value)
    except Refused:
        return False
    return True


def _is_new(value: str | None, items: list[str]) -> bool:
    if value is None or value in items:
        return False
    try:
        values.require_item(value)
    except Refused as refused:
        # Of a text that is too long only the length is wrong in the vectors.
        return refused.reason == "too_long"
    return True


def _discovery(file: Content, given: Content, value: str | None, binding: bytes, analyzer: bytes) -> bytes:
    part = file["discovery"]
    boxes.pad(value, part["max_value_bytes"])
    fresh = b"".join(int(word, 16).to_bytes(8, "little") for word in given["words"])
    entry = {
        "binding": binding.hex(),
        "hash_key": part["hash_key"],
        "max_value_bytes": part["max_value_bytes"],
        "value": value,
        "fresh": fresh.hex(),
        "analyzer": analyzer.hex(),
        "aux_server": file["keys"]["aux_server"][0]["key"],
        "ephemeral_secret": given["ephemeral_secret"],
    }
    return boxes.discovery(entry)[3]
