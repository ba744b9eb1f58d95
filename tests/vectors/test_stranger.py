"""Code that was written from docs/wire-format.md alone makes the bytes of the vectors, and refuses with their reasons.

Its evaluations are written from RFC 9497, as the twin in tests/evaluator is.
"""

from __future__ import annotations

import ast
import copy
import json
import struct
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.evaluator import rfc9497 as twin
from tests.vectors.make import SUBJECTS
from tests.vectors.stranger import (
    boxes,
    client,
    counted_numbers,
    delivery,
    mechanisms,
    numbers,
    passes,
    spending,
    strata,
    trust,
    urls,
    values,
)
from tests.vectors.stranger.basics import Refused, canonical, number, read_json, require
from tests.vectors.stranger.mechanisms import Mechanism
from tests.vectors.stranger.numbers import Layout, Words
from tests.vectors.test_made import FOLDER, content

Entry = dict[str, Any]
STRANGER = Path(__file__).parent / "stranger"


def hexed(entry: Entry, name: str) -> bytes:
    return bytes.fromhex(entry[name]) * entry.get("times", 1)


def answer(entry: Entry) -> Entry:
    axes = ("status", "body", "retry_after", "reports", "date")
    said = {delivery.fate(*one) for one in product(*(entry[name] for name in axes))}
    ((fate, reason, wait),) = said
    if fate == "sent":
        return {"fate": fate, "wait": wait}
    assert (fate, wait) == (entry["fate"], entry["wait"]), entry
    raise Refused(reason)


def budget(entry: Entry) -> Entry:
    if entry["rule"] == "cost":
        epsilon, delta, lasting = spending.cost(CAMPAIGNS[entry["campaign"]], entry["stream"])
        return {"epsilon": str(epsilon), "delta": str(delta), "lasting": lasting}
    if entry["rule"] == "limit":
        return {"billionths": str(spending.limit(entry["value"]))}
    kept = spending.Budget(spending.limit(entry["per_day"]), spending.limit(entry["lifetime"]))
    charges = []
    for one in entry["charges"]:
        silent = "reason" in entry and one is entry["charges"][-1]
        telling = kept.charge(CAMPAIGNS[one["campaign"]], one["stream"], one["number"], one["at"], silent)
        charges.append({**one, "telling": telling})
    return {"charges": charges, "today": str(kept.today), "epsilon": str(kept.epsilon), "delta": str(kept.delta)}


def canonical_json(entry: Entry) -> str:
    if "double" in entry:
        return number(struct.unpack(">d", hexed(entry, "double"))[0])
    return canonical(read_json(hexed(entry, "bytes")))


def campaign(entry: Entry) -> Entry:
    file = copy.deepcopy(entry["file"]) if "file" in entry else _patched(CAMPAIGNS[entry["name"]], entry["patch"])
    trust.check_campaign(file)
    fingerprint = trust.fingerprint(file)
    bindings = {stream: trust.hashed(fingerprint, stream, 16).hex() for stream in trust.sealed_bytes(file)}
    return {
        "fingerprint": fingerprint.hex(),
        "terms": trust.terms(file).hex(),
        "head": trust.head(file.get("previous"), fingerprint),
        "bindings": bindings,
        "sealed_bytes": trust.sealed_bytes(file),
    }


def _patched(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    made = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        made[key] = _patched(made.get(key), value)
    return {key: value for key, value in made.items() if value is not None}


def dictionary(entry: Entry) -> Entry:
    items = values.read_dictionary(hexed(entry, "file"))
    spelled = [(one["value"], values.normal(one["value"])) for one in entry.get("values", ())]
    listed = [
        {
            "value": value,
            "position": items.index(spelling) if spelling in items else len(items),
            "pool_item": str(values.fingerprint(spelling) if spelling in items else values.OTHER),
        }
        for value, spelling in spelled
    ]
    return {"items": items, "digest": values.digest(items), "values": listed}


def discovery(entry: Entry) -> Entry:
    if "value" not in entry:
        boxes.unpad(hexed(entry, "padded"), entry["max_value_bytes"])
    if entry.get("reason") == "value_too_long":
        boxes.pad(entry["value"], entry["max_value_bytes"])
    made = zip(("hash", "padded", "inner", "report"), boxes.discovery(entry), strict=True)
    return {name: octets.hex() for name, octets in made if name in entry}


def encoder(entry: Entry) -> Entry:
    if "mechanism" in entry:
        made = entry["mechanism"]
        Mechanism(made["name"], made["epsilon"], entry["domain"], made["parameters"]).check()
        return {}
    if entry["encoder"] == "prime":
        return {"prime": str(mechanisms.prime_at_least(entry["domain"]))}
    item = int(entry["item"])
    if entry["encoder"] == "pool":
        given = (entry["seed"], entry["k"], entry["m"], entry["row"])
        table = mechanisms.coefficients(given[0], given[1], given[3])
        return {"coefficients": [str(one) for one in table], "cell": str(mechanisms.pool_cell(*given, item))}
    if entry["encoder"] == "affine":
        of = Mechanism("olh", 1.0, entry["domain"], {"B": int(entry["buckets"])})
        function = [int(entry[name]) for name in ("slope", "shift") if name in entry]
        assert len(function) == len(of.functions)
        return {"prime": str(of.prime), "cell": str(of.cell(item, function))}
    blocks = entry["blocks"]
    order = 1 << (-(-entry["domain"] // blocks) - 1).bit_length()
    return {"order": order, "cell": str(mechanisms.hadamard_cell(item, blocks, entry["column"]))}


def item(entry: Entry) -> Entry:
    text = entry["text"] * entry.get("times", 1)
    values.require_item(text)
    return {"fingerprint": str(values.fingerprint(text))}


def log(entry: Entry) -> Entry:
    if entry["rule"] == "heads":
        return {"heads": trust.heads(entry["log"])}
    head, serial = trust.go_on(entry["kept"], entry["offered"], entry.get("log"), entry.get("signature", {}))
    return {"head": head, "serial": serial}


def binned(entry: Entry) -> Entry:
    if entry["rule"] == "text":
        return {"text": counted_numbers.text_of(struct.unpack(">d", hexed(entry, "double"))[0])}
    if entry["rule"] == "names":
        return {"names": counted_numbers.names(entry["edges"], entry["unit"])}
    if entry["rule"] == "point":
        return {
            "item": counted_numbers.point_of(entry["edges"], entry["points"], entry["text"], int(entry["word"], 16))
        }
    return {"bin": counted_numbers.bin_of(entry["edges"], entry["unit"], entry["text"])}


def oblivious(entry: Entry) -> Entry:
    if entry["rule"] == "report":
        named = boxes.name(hexed(entry, "output"))
        inner, report = boxes.named(entry, *named)
        parts = zip(("hash", "box_key", "inner", "report"), (*named, inner, report), strict=True)
        return {name: octets.hex() for name, octets in parts}
    if entry["rule"] == "evaluate":
        return {"blinded": b"".join(_elements(hexed(entry, "blinded"))).hex()}
    inputs, blinds = ([bytes.fromhex(one) for one in entry[name]] for name in ("inputs", "blinds"))
    scalars = [int.from_bytes(blind, "little") for blind in blinds]
    blinded = [twin.blind(*parts) for parts in zip(inputs, scalars, strict=True)]
    answer, end = hexed(entry, "answer"), 32 * len(inputs)
    require(len(answer) == end + 64, "wrong_length")
    _decoded(hexed(entry, "public_key"), "not_a_key")
    evaluated = _elements(answer[:end])
    require(twin.verify(hexed(entry, "public_key"), blinded, evaluated, answer[end:]), "wrong_proof")
    outputs = [twin.finalize(*parts).hex() for parts in zip(inputs, scalars, evaluated, strict=True)]
    made: Entry = {"blinded": b"".join(blinded).hex(), "outputs": outputs}
    if "seed" not in entry:
        return made
    key = twin.derive_key(hexed(entry, "seed"), b"")
    elements, proof = twin.evaluate(key, blinded, int.from_bytes(hexed(entry, "proof_scalar"), "little"))
    return {**made, "public_key": (twin.BASE * key).encode().hex(), "answer": (b"".join(elements) + proof).hex()}


def _elements(octets: bytes) -> list[bytes]:
    require(len(octets) > 0 and len(octets) % 32 == 0, "wrong_length")
    elements = [octets[start : start + 32] for start in range(0, len(octets), 32)]
    for element in elements:
        _decoded(element, "not_an_element")
    return elements


def _decoded(element: bytes, reason: str) -> None:
    try:
        twin.decode(element)
    except ValueError:
        raise Refused(reason) from None


def packing(entry: Entry) -> Entry:
    described = next(one for one in content("packing")["layouts"] if one["name"] == entry["layout"])
    fields = described["fields"]
    several = [(int(one["bound"]), one["least"]) for one in fields if one["kind"] == "number"]
    subset = next(((int(one["bound"]), one["count"]) for one in fields if one["kind"] == "subset"), None)
    bits = next((one["count"] for one in fields if one["kind"] == "bits"), 0)
    layout = Layout(several, subset, bits)
    assert (f"{layout.answers:x}", layout.octets) == (described["integers_below"], described["report_bytes"])
    assert subset is None or layout.form == fields[-1]["form"]
    found, big = layout.unpack(hexed(entry, "packed"))
    shown = [str(one) for one in found]
    if bits:
        shown.append(big.to_bytes(-(-bits // 8), "little").hex())
    return {"values": [*shown, big] if subset else shown, "packed": layout.pack(found, big).hex()}


def policy(entry: Entry) -> Entry:
    trust.report_to(entry["policy"], CAMPAIGNS[entry["campaign"]], entry.get("signature"), entry["at"])
    return {}


def report(entry: Entry) -> Entry:
    described = next(one for one in REPORTS["mechanisms"] if one["name"] == entry["mechanism"])
    made = described["mechanism"]
    mechanism = Mechanism(made["name"], made["epsilon"], described["domain"], made["parameters"])
    assert mechanism.layout.octets == described["report_bytes"]
    if "reason" in entry:
        mechanism.layout.unpack(hexed(entry, "report"))
    mechanism.check()
    words = Words([int(word, 16) for word in entry["words"]])
    answer = mechanism.report(int(entry["item"]), words)
    assert words.left == [], "every word is taken"
    mechanism.layout.unpack(answer)
    return {"report": answer.hex()}


def sealing(entry: Entry) -> Entry:
    if entry["rule"] == "open":
        boxes.open_box(hexed(entry, "private_key"), hexed(entry, "sealed"))
    plain = hexed(entry, "plain")
    if entry["rule"] == "seal_alike":
        box = boxes.seal_alike(hexed(entry, "public_key"), hexed(entry, "key"), plain)
    else:
        box = boxes.seal(hexed(entry, "public_key"), hexed(entry, "ephemeral_secret"), plain)
    if hexed(entry, "public_key")[31] < 0x80:
        assert boxes.open_box(hexed(entry, "private_key"), box) == plain
    return {"sealed": box.hex()}


def sample(entry: Entry) -> Entry:
    bucket = trust.bucket(entry["layer"], entry["id"])
    require(any(first <= bucket < end for first, end in entry["buckets"]), "not_asked")
    return {"bucket": bucket}


def token(entry: Entry) -> Entry:
    return {"token": trust.token(entry)}


def signature(entry: Entry) -> Entry:
    if entry["rule"] == "bytes":
        trust.verify(entry["keys"], entry["purpose"], hexed(entry, "payload"), entry["signature"])
        return {"signed_bytes": trust.signed_bytes(entry["purpose"], hexed(entry, "payload")).hex()}
    vouching = trust.verify_campaign(entry["keys"], CAMPAIGNS[entry["campaign"]], entry["signature"], entry["at"])
    said = {name: entry["signature"][name] for name in ("delegation", "restart") if name in entry["signature"]}
    return {"vouching": vouching} | {f"{name}_signed": trust.statement_signed(one) for name, one in said.items()}


def threshold(entry: Entry) -> Entry:
    if entry["rule"] == "spending":
        made = numbers.spending(entry["epsilon"], int(entry["width"]), int(entry["size"]))
    elif entry["rule"] == "symmetric":
        made = numbers.symmetric(entry["epsilon"])
    elif entry["rule"] == "flip":
        made = numbers.flip(entry["epsilon"], int(entry["keep"]))
    else:
        made = numbers.probability(entry["probability"])
    return {"threshold": str(made)}


def whole(entry: Entry) -> Entry:
    return {"report": client.report(CAMPAIGNS[entry["campaign"]], entry).hex()}


def windows(entry: Entry) -> Entry:
    if "moment" not in entry:
        delivery.check_windows(entry["windows"])
    return delivery.window(entry)


def cell(entry: Entry) -> Entry:
    strata.check(entry["axes"])
    axes, by = entry["axes"], entry["by"]
    return {"cell": strata.cell(axes, entry["items"], entry["item"], by), "stratum": strata.stratum(axes, by)}


def address(entry: Entry) -> Entry:
    if "text" not in entry:
        urls.check(entry["url"], {})
    return {"item": urls.item(entry["url"], entry["text"], entry["most"], entry.get("hosts"))}


READERS: dict[str, Callable[[Entry], Any]] = {
    "answers": answer,
    "budgets": budget,
    "campaigns": campaign,
    "canonical_json": lambda entry: {"canonical": canonical_json(entry)},
    "clients": whole,
    "dictionaries": dictionary,
    "discovery": discovery,
    "encoders": encoder,
    "items": item,
    "logs": log,
    "numbers": binned,
    "oblivious": oblivious,
    "packing": packing,
    "passes": passes.passed,
    "policies": policy,
    "reports": report,
    "samples": sample,
    "sealing": sealing,
    "signatures": signature,
    "thresholds": threshold,
    "tokens": token,
    "strata": cell,
    "urls": address,
    "windows": windows,
}
CAMPAIGNS = {entry["name"]: entry["file"] for entry in content("campaigns")["accept"]}
REPORTS = content("reports")


def test_a_stranger_makes_what_must_be_accepted(subtests: pytest.Subtests) -> None:
    for subject in SUBJECTS:
        with subtests.test(subject=subject):
            for entry in content(subject)["accept"]:
                made = READERS[subject](entry)
                assert made == {name: entry[name] for name in made}, entry


def test_a_stranger_refuses_the_rest_for_the_same_reasons(subtests: pytest.Subtests) -> None:
    for subject in SUBJECTS:
        with subtests.test(subject=subject):
            for entry in content(subject)["refuse"]:
                with pytest.raises(Refused) as refused:
                    READERS[subject](entry)
                assert refused.value.reason == entry["reason"], entry


def test_a_stranger_finds_the_normal_forms() -> None:
    forms = json.loads((FOLDER / "normal_form.json").read_text(encoding="ascii"))
    for value, form in (*forms["drawn"], *((one["value"], one["canonical"]) for one in forms["values"])):
        assert values.normal(value) == form


def test_the_stranger_imports_nothing_of_this_project() -> None:
    for path in STRANGER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert all(name.split(".")[0] != "hushcount" for name in names)
            assert all(not name.startswith("tests") or name.startswith("tests.vectors.stranger") for name in names)
