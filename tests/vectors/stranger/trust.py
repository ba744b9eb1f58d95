"""Campaign files, signatures, logs, policies."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from datetime import datetime
from typing import Any

from nacl.bindings import crypto_sign_open
from nacl.exceptions import BadSignatureError

from tests.vectors.stranger import counted_numbers, delivery, noise, strata, urls
from tests.vectors.stranger.basics import LARGEST, Refused, ascending, canonical, hashed, require
from tests.vectors.stranger.mechanisms import Mechanism

Content = dict[str, Any]
_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_FILE = re.compile(r"[^/\\:.\x00-\x1f][^/\\:\x00-\x1f]{0,127}")


def _hex(value: Any, length: int, reason: str = "not_hex") -> None:
    require(isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{2 * length}}}", value) is not None, reason)


def _whole(value: Any, least: int, most: int) -> None:
    require(isinstance(value, int | float) and not isinstance(value, bool), "wrong_type")
    require(value == int(value) and least <= value <= most, "out_of_range")


def _real(value: Any, least: float, most: float, ends: bool = True) -> None:
    require(isinstance(value, int | float) and not isinstance(value, bool), "wrong_type")
    require(least <= value <= most if ends else least < value < most, "out_of_range")


def _table(value: Any, must: str, may: str = "") -> Content:
    require(isinstance(value, dict), "wrong_type")
    require(set(value) <= {*must.split(), *may.split()}, "unknown_field")
    require(set(must.split()) <= set(value), "missing_field")
    return dict(value)


def moment(text: Any, reason: str = "key_time") -> datetime:
    """Return the time that a text names."""
    try:
        time = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        raise Refused(reason) from None
    require(time.tzinfo is not None, reason)
    return time


def check_key(key: Any, person: str = "") -> None:
    """Refuse a malformed public key."""
    _table(key, "id key not_before not_after")
    _hex(key["key"], 32)
    require(moment(key["not_before"]) < moment(key["not_after"]), "key_time")
    require(key["id"] == hashed(bytes.fromhex(key["key"]), person, 8).hex(), "key_id")


def check_campaign(file: Any) -> None:
    """Refuse a file that is no campaign."""
    require(isinstance(file, dict), "wrong_type")
    for value in (
        file.get("mechanism", {}).get("parameters", {}).values()
        if isinstance(file.get("mechanism"), dict) and isinstance(file["mechanism"].get("parameters"), dict)
        else ()
    ):
        require(not isinstance(value, int) or abs(value) <= LARGEST, "integer_too_large")
    _table(
        file,
        "format id epoch memory memory_values shuffle collectors keys unicode",
        "previous mechanism dictionary discovery sample number windows passes url axes noise",
    )
    require(file["format"] == 2, "wrong_format")
    require(isinstance(file["id"], str), "wrong_type")
    require(_ID.fullmatch(file["id"]) is not None, "wrong_id")
    _whole(file["epoch"], 1, (1 << 31) - 1)
    require(isinstance(file["memory"], bool), "wrong_type")
    _whole(file["memory_values"], 1, 1000)
    require(file["unicode"] == "13.0", "unknown_name")
    if "previous" in file:
        _hex(file["previous"], 32)
    shuffle = _table(file["shuffle"], "cap minimum_batch delta")
    _whole(shuffle["cap"], 1, 1000)
    _whole(shuffle["minimum_batch"], 1, 10**12)
    _real(shuffle["delta"], 0, 1, ends=False)
    _check_keys(_table(file["keys"], "analyzer aux_server evaluator"), file.get("discovery"))
    require(bool({"mechanism", "discovery", "noise"} & set(file)), "no_stream")
    useful = ("mechanism" in file or not file["memory"]) and (file["memory"] or file["memory_values"] == 1)
    require(useful, "of_no_use")
    if "dictionary" in file:
        _check_dictionary(_table(file["dictionary"], "path items digest"))
    named = file["collectors"]
    require(isinstance(named, list) and 1 <= len(named) <= 16, "collectors")
    require(all(isinstance(name, str) and _ID.fullmatch(name) is not None for name in named), "collectors")
    require(len(set(named)) == len(named), "collectors")
    if "sample" in file:
        _check_sample(_table(file["sample"], "layer buckets"))
    if "windows" in file:
        delivery.check_windows(file["windows"])
        require("passes" not in file, "windows")
    if "number" in file:
        counted_numbers.check(file["number"], file)
    if "url" in file:
        urls.check(file["url"], file)
    if "axes" in file:
        strata.check(file["axes"])
        name = file["mechanism"]["name"] if "mechanism" in file else "grr" if "noise" in file else "hcms"
        sketch = name in ("rappor", "apple-cms", "hcms", "gcms", "gcms-target")
        require("dictionary" in file and not sketch, "axes")
        require(name != "line" or all(axis["public"] for axis in file["axes"]["listed"]), "axes")
        require((file["dictionary"]["items"] + 1) * strata.strata(file["axes"]) <= 1 << 24, "axes")
    if "discovery" in file:
        must, may = "epsilon delta relation rule max_value_bytes hash counts", "hash_key hash_key_commitment"
        _check_discovery(_table(file["discovery"], must, may))
    if "noise" in file:
        public = strata.strata(file["axes"], True) if "axes" in file else 1
        noise.check(file["noise"], file, cells(file) if "dictionary" in file else None, public)
    if "mechanism" in file:
        require("number" in file or _table(file["mechanism"], "name epsilon parameters")["name"] != "line", "number")
        _check_mechanism(_table(file["mechanism"], "name epsilon parameters"), file)


def cells(file: Content) -> int:
    """Return the number of items that a mechanism counts, "other" included."""
    return (file["dictionary"]["items"] + 1) * (strata.strata(file["axes"], False) if "axes" in file else 1)


def _check_keys(keys: Content, found: Any) -> None:
    asks = isinstance(found, dict) and found.get("hash") != "keyed"
    for role in ("analyzer", "aux_server", "evaluator"):
        require(isinstance(keys[role], list), "wrong_type")
        least = {"analyzer": 1, "aux_server": int(found is not None), "evaluator": int(asks)}[role]
        most = int(asks) if role == "evaluator" else 1
        require(least <= len(keys[role]) <= most, "one_key_a_role")
        for key in keys[role]:
            check_key(key, "evaluator key" if role == "evaluator" else "")
    ids = [key["id"] for role in ("analyzer", "aux_server") for key in keys[role]]
    require(len(set(ids)) == len(ids), "one_key_for_two_roles")


def _check_dictionary(part: Content) -> None:
    require(_FILE.fullmatch(part["path"]) is not None, "file_name")
    _whole(part["items"], 1, 1 << 24)
    _hex(part["digest"], 32)


def _check_sample(part: Content) -> None:
    layer, spans = part["layer"], part["buckets"]
    require(isinstance(layer, str) and _ID.fullmatch(layer) is not None, "sample")
    require(isinstance(spans, list) and 1 <= len(spans) <= 100, "sample")
    require(all(isinstance(span, list) and len(span) == 2 for span in spans), "sample")
    ends = [end for span in spans for end in span]
    require(all(type(end) is int and 0 <= end <= 10_000 for end in ends), "sample")
    require(ends == sorted(set(ends)), "sample")


def _check_discovery(part: Content) -> None:
    _real(part["epsilon"], 1e-4, 40)
    _real(part["delta"], 0, 1, ends=False)
    _whole(part["max_value_bytes"], 1, 4096)
    names = {"relation": ("replace-one", "add-remove"), "rule": ("optimal", "laplace"), "hash": ("keyed", "oblivious")}
    require(all(part[field] in known for field, known in names.items()), "unknown_name")
    require(isinstance(part["counts"], bool), "wrong_type")
    require(part["rule"] == "optimal" or not part["counts"], "unknown_name")
    for name in ("hash_key", "hash_key_commitment"):
        if name in part:
            _hex(part[name], 32)
    given = ("hash_key" in part) + ("hash_key_commitment" in part)
    require(given == (1 if part["hash"] == "keyed" else 0), "hash_key")


def _check_mechanism(part: Content, file: Content) -> None:
    require(isinstance(part["parameters"], dict), "wrong_type")
    _real(part["epsilon"], 1e-4, 40)
    try:
        mechanism_of(file).check()
    except Refused as refused:
        raise Refused("unknown_name" if refused.reason == "unknown_mechanism" else "mechanism") from None


def mechanism_of(file: Content) -> Mechanism:
    """Return a campaign's mechanism."""
    part = file["mechanism"]
    domain = cells(file) if "dictionary" in file else None
    return Mechanism(part["name"], part["epsilon"], domain, part["parameters"])


def _fixed(file: Content) -> Content:
    made = dict(file)
    if "dictionary" in file:
        made["dictionary"] = {key: value for key, value in file["dictionary"].items() if key != "path"}
    if "discovery" in file:
        made["discovery"] = {key: value for key, value in file["discovery"].items() if key != "hash_key"}
        if "hash_key" in file["discovery"]:
            key = bytes.fromhex(file["discovery"]["hash_key"])
            made["discovery"]["hash_key_commitment"] = hashed(key, "hash key").hex()
    return made


def fingerprint(file: Content) -> bytes:
    """Return a campaign's fingerprint."""
    return hashed(canonical(_fixed(file)).encode())


def terms(file: Content) -> bytes:
    """Return what a publisher may not change."""
    made = {key: value for key, value in _fixed(file).items() if key not in ("epoch", "previous")}
    if "dictionary" in made:
        made["dictionary"] = {}
    for part, name in (
        ("mechanism", "parameters"),
        ("discovery", "hash_key_commitment"),
        ("windows", "starts"),
        ("keys", "evaluator"),
    ):
        if part in made:
            made[part] = {key: value for key, value in made[part].items() if key != name}
    return hashed(canonical(made).encode(), "campaign terms")


def head(previous: str | None, print_: bytes) -> str:
    """Return the head of a log after an epoch."""
    return hashed(bytes.fromhex(previous or "0" * 64) + print_, "campaign log").hex()


def sealed_bytes(file: Content) -> dict[str, int]:
    """Return the length of each stream's reports."""
    told = 2 if "axes" in file and any(axis["public"] for axis in file["axes"]["listed"]) else 0
    made = {"reports": told + 64 + mechanism_of(file).layout.octets} if "mechanism" in file else {}
    if "noise" in file:
        made = {"reports": 144 + noise.answer_bytes(cells(file))}
    return made | ({"discovery": 162 + file["discovery"]["max_value_bytes"]} if "discovery" in file else {})


def signed_bytes(purpose: str, payload: bytes) -> bytes:
    """Return what is signed."""
    return b"hushcount signature 1\0" + purpose.encode() + b"\0" + payload


def verify(keys: list[Content], purpose: str, payload: bytes, signature: Any) -> Content:
    """Return the key that signed."""
    try:
        _table(signature, "key_id signature", "delegation restart")
        _hex(signature["key_id"], 8)
        _hex(signature["signature"], 64)
    except Refused:
        raise Refused("malformed") from None
    key = next((key for key in keys if key["id"] == signature["key_id"]), None)
    if key is None:
        raise Refused("unknown_key")
    try:
        message = bytes.fromhex(signature["signature"]) + signed_bytes(purpose, payload)
        crypto_sign_open(message, bytes.fromhex(key["key"]))
    except BadSignatureError:
        raise Refused("wrong_signature") from None
    return key


def _check_statement(said: Any, name: str) -> None:
    fields = {"delegation": "terms publisher last_epoch evaluator_keys", "restart": "epoch head"}[name]
    try:
        _table(said, f"format campaign serial signature {fields}")
        require(said["format"] == 1, "malformed")
        for number in {"serial", "last_epoch", "epoch"} & set(said):
            _whole(said[number], 1, (1 << 31) - 1)
        for digest in {"terms", "head"} & set(said):
            _hex(said[digest], 32)
    except Refused:
        raise Refused("malformed") from None


def statement_signed(said: Content) -> str:
    """Return what the operator signs of a delegation or a restart."""
    return canonical({key: value for key, value in said.items() if key != "signature"})


def verify_campaign(keys: list[Content], file: Content, signature: Content, at: str) -> list[str]:
    """Return the ids of the keys that vouch."""
    for name in {"delegation", "restart"} & set(signature):
        _check_statement(signature[name], name)
    delegation, restart, vouching = signature.get("delegation"), signature.get("restart"), []
    operators = keys
    if delegation is not None:
        vouching = [verify(keys, "delegation", statement_signed(delegation).encode(), delegation["signature"])]
        require(restart is None or delegation["serial"] >= restart["serial"], "ended_delegation")
        same = (delegation["campaign"], delegation["terms"]) == (file["id"], terms(file).hex())
        require(same, "other_terms")
        require(file["epoch"] <= delegation["last_epoch"], "after_last_epoch")
        named = {key["key"] for key in file["keys"]["evaluator"]}
        require(named <= set(delegation["evaluator_keys"]), "other_evaluator_key")
        keys = [delegation["publisher"]]
    if restart is not None:
        vouching.append(verify(operators, "restart", statement_signed(restart).encode(), restart["signature"]))
        require(restart["campaign"] == file["id"], "other_restart")
    vouching = [verify(keys, "campaign", fingerprint(file), signature), *vouching]
    for key in vouching:
        require(moment(key["not_before"]) <= moment(at) < moment(key["not_after"]), "key_not_valid")
    return [key["id"] for key in vouching]


def heads(log: Any) -> list[str]:
    """Return the head after each entry of a log."""
    try:
        _table(log, "format campaign entries")
        require(log["format"] == 1 and _ID.fullmatch(log["campaign"]) is not None, "malformed")
        require(isinstance(log["entries"], list) and len(log["entries"]) <= 4096, "malformed")
        for entry in log["entries"]:
            _table(entry, "epoch fingerprint", "signature")
            _whole(entry["epoch"], 1, (1 << 31) - 1)
            _hex(entry["fingerprint"], 32)
            if "signature" in entry:
                _table(entry["signature"], "key_id signature", "delegation restart")
    except Refused:
        raise Refused("malformed") from None
    require(ascending([entry["epoch"] for entry in log["entries"]]), "not_ascending")
    made: list[str] = []
    for entry in log["entries"]:
        made.append(head(made[-1] if made else None, bytes.fromhex(entry["fingerprint"])))
    return made


def go_on(kept: Content | None, offered: Content, log: Content | None, said: Content) -> tuple[str, int]:
    """Return the head and the serial to keep of an offered campaign, whose signature says more or nothing."""
    new = head(offered.get("previous"), bytes.fromhex(offered["fingerprint"]))
    delegation, restart = said.get("delegation"), said.get("restart")
    serials = [one["serial"] for one in (delegation, restart) if one is not None]
    if kept is None:
        return new, max(serials, default=0)
    if restart is not None and restart["serial"] > kept["serial"]:
        kept = restart
    if delegation is not None:
        require(delegation["serial"] >= kept["serial"], "replaced_publisher")
        require(offered["epoch"] - kept["epoch"] <= 4096, "jump")
    serial = max([*serials, kept["serial"]])
    require(offered["epoch"] >= kept["epoch"], "older_epoch")
    if offered["epoch"] == kept["epoch"]:
        require(new == kept["head"], "another_file")
        return new, serial
    chain = [] if log is None else heads(log)
    reached = chain[chain.index(kept["head"]) :] if kept["head"] in chain else [kept["head"]]
    require(offered.get("previous") in reached, "another_history")
    return new, serial


_HOST = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){1,9}")
_LIMITS = {
    "max_discovery_epsilon": 0.0,
    "max_noise_epsilon": 0.0,
    "oblivious": False,
    "max_delta": 1e-6,
    "min_batch": 1000,
    "layers": [],
    "least_share": 0.01,
    "take": "text",
    "hosts": [],
    "axes": [],
    "public_axes": [],
    "public_strata": 64,
    "max_report_bytes": 16384,
    "max_dictionary_bytes": 1 << 25,
}


def report_to(policy: Any, file: Content, signature: Content | None, at: str) -> None:
    """Refuse a campaign that breaks the policy."""
    try:
        _table(policy, "format campaign_id operator_keys max_epsilon", " ".join(_LIMITS))
        limits = _LIMITS | policy
        require(policy["format"] == 1 and _ID.fullmatch(policy["campaign_id"]) is not None, "malformed")
        require(len(policy["operator_keys"]) > 0, "malformed")
        for key in policy["operator_keys"]:
            check_key(key, "verify key")
        _real(limits["max_epsilon"], 0, math.inf)
        _real(limits["max_discovery_epsilon"], 0, math.inf)
        _real(limits["max_noise_epsilon"], 0, math.inf)
        require(isinstance(limits["oblivious"], bool), "malformed")
        _real(limits["max_delta"], 0, math.nextafter(1, 0))
        _whole(limits["min_batch"], 1, 10**12)
        require(isinstance(limits["layers"], list) and len(limits["layers"]) <= 3, "malformed")
        require(all(_ID.fullmatch(layer) is not None for layer in limits["layers"]), "malformed")
        require(limits["take"] in ("site", "host", "path", "text"), "malformed")
        require(isinstance(limits["hosts"], list) and len(limits["hosts"]) <= 1000, "malformed")
        require(all(isinstance(host, str) and _HOST.fullmatch(host) for host in limits["hosts"]), "malformed")
        for field in ("axes", "public_axes"):
            require(isinstance(limits[field], list) and len(limits[field]) <= 8, "malformed")
            require(all(isinstance(axis, str) and _ID.fullmatch(axis) for axis in limits[field]), "malformed")
        _whole(limits["public_strata"], 1, 4096)
        _real(limits["least_share"], 0.01, 1)
        _whole(limits["max_report_bytes"], 1, 1 << 30)
        _whole(limits["max_dictionary_bytes"], 1, 1 << 28)
    except Refused:
        raise Refused("malformed") from None
    require(file["id"] == limits["campaign_id"], "another_campaign")
    if signature is None:
        raise Refused("unsigned")
    verify_campaign(limits["operator_keys"], file, signature, at)
    found, times = file.get("discovery"), file["memory_values"] if file["memory"] else file["shuffle"]["cap"]
    twice = 2 if found and found["relation"] == "add-remove" else 1
    require(times * file.get("mechanism", {"epsilon": 0})["epsilon"] <= limits["max_epsilon"], "epsilon")
    mixed = file.get("noise", {"epsilon": 0, "delta": 0})
    require(mixed["epsilon"] <= limits["max_noise_epsilon"], "noise_epsilon")
    require(mixed["delta"] <= limits["max_delta"], "delta")
    if found:
        require(twice * found["epsilon"] <= limits["max_discovery_epsilon"], "discovery_epsilon")
        require(twice * found["delta"] <= limits["max_delta"], "delta")
        require(found["hash"] == "oblivious" or not limits["oblivious"], "keyed")
    require(file["shuffle"]["delta"] <= limits["max_delta"], "delta")
    require(file["shuffle"]["minimum_batch"] >= limits["min_batch"], "min_batch")
    if "sample" in file:
        require(file["sample"]["layer"] in limits["layers"], "layer")
        asked = sum(end - first for first, end in file["sample"]["buckets"])
        require(asked >= 10_000 * limits["least_share"], "least_share")
    order = ["site", "host", "path", "text"]
    taken = file["url"]["take"] if "url" in file else "site" if "number" in file else "text"
    require(order.index(taken) <= order.index(limits["take"]), "take")
    require(file.get("url", {}).get("segments", 1) < 2 or len(limits["hosts"]) > 0, "hosts")
    axes = file.get("axes", {"listed": []})
    for axis in axes["listed"]:
        require(axis["name"] in limits["public_axes" if axis["public"] else "axes"], "axes")
    require(strata.strata(axes, True) <= limits["public_strata"], "public_strata")
    require(max(sealed_bytes(file).values()) <= limits["max_report_bytes"], "report_bytes")


def token(entry: Content) -> str:
    """Return a client token; Refused unless the site's name is that of one of the collectors."""
    named, name = entry["collectors"], entry["site"]
    if entry["role"] == "evaluator":
        name = "evaluator"
    else:
        name = named[0] if name is None and len(named) == 1 else name
        require(name in named, "collector_name")
    message = b"".join(
        len(text).to_bytes(2, "big") + text.encode() for text in (entry["role"], entry["campaign"], name)
    )
    message += (entry["window"] % (1 << 64)).to_bytes(8, "big")
    key = bytes.fromhex(entry["secret"])
    whole = hashlib.blake2b(message, digest_size=32, key=key, person=b"window token").digest()
    return base64.b64encode(whole, b"-_").decode().rstrip("=")


def bucket(layer: str, id_: str) -> int:
    """Return MurmurHash3 x86 32 of a layer and an id, seed 0, modulo 10,000."""
    text, hash_ = f"{layer}:{id_}".encode(), 0
    whole = len(text) - len(text) % 4
    for at in range(0, whole, 4):
        hash_ = (_turned(hash_ ^ _mixed(int.from_bytes(text[at : at + 4], "little")), 13) * 5 + 0xE6546B64) % (1 << 32)
    hash_ ^= _mixed(int.from_bytes(text[whole:], "little")) ^ len(text)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hash_ = (hash_ ^ hash_ >> shift) * factor % (1 << 32)
    return (hash_ ^ hash_ >> 16) % 10_000


def _mixed(block: int) -> int:
    return _turned(block * 0xCC9E2D51 % (1 << 32), 15) * 0x1B873593 % (1 << 32)


def _turned(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) % (1 << 32)
