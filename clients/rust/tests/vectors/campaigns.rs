//! A campaign file to its hashes, lengths and facts; files that must be refused.

use serde_json::{Map, Value, json};

use super::support::{array, campaign, entries, require_refused, text};
use crate::campaigns::campaign::{Campaign, Stream};
use crate::errors::Result;
use crate::formats::bytes::hex;
use crate::values::strata::Strata;

const SAID: &[(&str, &[&str])] = &[
    ("wrong_format", &["format must be 2"]),
    ("missing_field", &[" is missing: it must be given"]),
    ("unknown_field", &["has a field that is not one of "]),
    ("wrong_id", &[": id must be text"]),
    ("out_of_range", &["must be a number in", "must be a whole number in"]),
    ("wrong_type", &["must be an object", "must be text", "must be a", "must be true or false"]),
    ("unknown_name", &["must be text of the form", "must be one of"]),
    ("not_hex", &["must be text of the form"]),
    ("file_name", &["path must be text"]),
    ("key_id", &["but the key has id"]),
    ("key_time", &["not_before must", "not_after must"]),
    ("one_key_a_role", &["must have one key", "must be a list of at most 1"]),
    ("one_key_for_two_roles", &["one key is of both roles"]),
    ("no_stream", &["mechanism, noise or discovery is missing"]),
    ("of_no_use", &["memory"]),
    ("hash_key", &["one of hash_key and hash_key_commitment must be there"]),
    ("integer_too_large", &["has an integer above 2**53 - 1"]),
    ("sample", &[": sample: "]),
    ("number", &["number must have", "number needs", "needs number"]),
    ("windows", &["windows"]),
    ("url", &["url"]),
    ("axes", &["axes"]),
    ("noise", &["noise"]),
    ("collectors", &[": collectors must be"]),
    ("mechanism", &[": mechanism: "]),
];

fn read(file: &Value) -> Result<Campaign> {
    Campaign::parse(&serde_json::to_vec(file).unwrap(), &[])
}

/// Return the same entries for a file and what is asked of it; hashes in hexadecimal digits, absent sections as null.
fn facts(campaign: &Campaign) -> Value {
    let passes = campaign.passes.as_ref().map(|passes| {
        let days: Vec<_> = passes.days.iter().map(|day| hex(day)).collect();
        json!({"seconds": passes.seconds, "first": passes.first, "days": days})
    });
    let sample = campaign.sample.as_ref();
    let discovery = campaign.discovery.as_ref().map(|terms| {
        let relation = if terms.sides == 2 { "add-remove" } else { "replace-one" };
        let hash = if terms.is_oblivious { "oblivious" } else { "keyed" };
        json!({"epsilon": terms.epsilon, "delta": terms.delta, "relation": relation, "hash": hash,
            "max_value_bytes": terms.max_value_bytes, "hash_key": terms.hash_key.map(|key| hex(&key))})
    });
    json!({
        "id": campaign.id, "epoch": campaign.epoch, "previous": campaign.previous.map(|head| hex(&head)),
        "epsilon": campaign.epsilon, "memory": campaign.memory, "memory_values": campaign.memory_values,
        "discovery": discovery, "cap": campaign.shuffle.cap, "minimum_batch": campaign.shuffle.minimum_batch,
        "shuffle_delta": campaign.shuffle.delta, "collectors": campaign.collectors, "passes": passes,
        "analyzer": hex(&campaign.keys.analyzer.key),
        "aux_server": campaign.keys.aux_server.as_ref().map(|key| hex(&key.key)),
        "evaluator": campaign.keys.evaluator.as_ref().map(|key| hex(&key.key)),
        "items": campaign.dictionary.as_ref().map(|listed| listed.items),
        "digest": campaign.dictionary.as_ref().map(|listed| hex(&listed.digest)),
        "windows": campaign.windows.as_ref().map(|listed| json!(listed.starts)),
        "noise": campaign.noise.as_ref().map(|noise| json!([noise.epsilon, noise.delta, noise.seconds])),
        "sample": sample.map(|sample| json!({"layer": sample.layer, "buckets": sample.buckets})),
        "url": campaign.url.as_ref().map(|url| json!([url.take, url.segments])),
        "takes_numbers": campaign.number.is_some(),
        "axes": campaign.strata.as_ref().map(Strata::axes),
        "public_strata": campaign.strata.as_ref().map_or(1, Strata::public_strata),
    })
}

/// Return what the file says of the same entries.
fn stated(file: &Value) -> Value {
    let (shuffle, listed, keys) = (&file["shuffle"], &file["dictionary"], &file["keys"]);
    let discovery = file.get("discovery").map(|terms| {
        json!({"epsilon": terms["epsilon"], "delta": terms["delta"], "relation": terms["relation"],
            "hash": terms["hash"], "max_value_bytes": terms["max_value_bytes"], "hash_key": terms["hash_key"]})
    });
    let url = file.get("url").map(|url| json!([url["take"], url["segments"].as_u64().unwrap_or(0)]));
    let axes = file.get("axes").map(|axes| axes["listed"].as_array().unwrap().clone());
    let public = axes.iter().flatten().filter(|axis| axis["public"] == true);
    let public: usize = public.map(|axis| axis["values"].as_array().unwrap().len() + 1).product();
    json!({
        "id": file["id"], "epoch": file["epoch"], "previous": file["previous"],
        "epsilon": file["mechanism"]["epsilon"].as_f64().unwrap_or(0.0),
        "memory": file["memory"], "memory_values": file["memory_values"],
        "discovery": discovery, "cap": shuffle["cap"], "minimum_batch": shuffle["minimum_batch"],
        "shuffle_delta": shuffle["delta"], "collectors": file["collectors"], "passes": file["passes"],
        "analyzer": keys["analyzer"][0]["key"], "aux_server": keys["aux_server"][0]["key"],
        "evaluator": keys["evaluator"][0]["key"],
        "items": listed["items"], "digest": listed["digest"],
        "windows": file["windows"]["starts"],
        "noise": file.get("noise").map(|noise| json!([noise["epsilon"], noise["delta"], noise["seconds"]])),
        "sample": file["sample"], "url": url, "takes_numbers": file.get("number").is_some(),
        "axes": axes.map(|axes| axes.iter().map(|axis| json!([axis["name"], axis["public"]])).collect::<Vec<_>>()),
        "public_strata": public,
    })
}

#[test]
fn accepted_files_have_these_hashes_lengths_and_facts() {
    for entry in entries("campaigns", "accept") {
        let campaign = campaign(text(&entry, "name"));
        assert_eq!(facts(&campaign), stated(&entry["file"]));
        assert_eq!(campaign.fingerprint, array(&entry, "fingerprint"), "{entry}");
        assert_eq!(campaign.terms, array(&entry, "terms"), "{entry}");
        assert_eq!(campaign.head, array(&entry, "head"), "{entry}");
        let streams = campaign.streams();
        let of_streams = |made: &dyn Fn(Stream) -> Value| -> Value {
            streams.iter().map(|&stream| (stream.name().to_owned(), made(stream))).collect::<Map<_, _>>().into()
        };
        assert_eq!(of_streams(&|stream| campaign.sealed_bytes(stream).into()), entry["sealed_bytes"], "{entry}");
        assert_eq!(of_streams(&|stream| hex(&campaign.binding(stream)).into()), entry["bindings"], "{entry}");
    }
}

#[test]
fn refused_files_name_their_reason() {
    let accepted = entries("campaigns", "accept");
    for entry in entries("campaigns", "refuse") {
        let mut file = accepted.iter().find(|each| each["name"] == entry["name"]).unwrap()["file"].clone();
        patch(&mut file, &entry["patch"]);
        require_refused(read(&file), &entry, SAID);
    }
}

/// Apply a merge patch (RFC 7396).
fn patch(old: &mut Value, patch_of: &Value) {
    let Value::Object(changes) = patch_of else {
        *old = patch_of.clone();
        return;
    };
    if !old.is_object() {
        *old = json!({});
    }
    let fields = old.as_object_mut().unwrap();
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
        } else {
            patch(fields.entry(name.as_str()).or_insert(Value::Null), change);
        }
    }
}

#[test]
fn a_time_in_another_form_than_python_writes_is_refused() {
    let file = &entries("campaigns", "accept")[0]["file"];
    let with_time = |time: &str| {
        let mut file = file.clone();
        file["keys"]["analyzer"][0]["not_before"] = time.into();
        read(&file)
    };
    for time in ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00.500000Z", "2020-01-01T00:00:00+02:00"] {
        assert!(with_time(time).is_ok(), "{time}");
    }
    for time in [
        "2020-01-01T00:00:00+00:00",
        "2020-01-01T00:00:00.000000Z",
        "2020-01-01T00:00:00.5Z",
        "2020-01-01",
        "2020-01-é",
    ] {
        let error = with_time(time).err().unwrap();
        assert!(error.to_string().contains("not_before must"), "{time}: {error}");
    }
}

#[test]
fn a_section_on_passes_has_its_form() {
    let day = "ab".repeat(32);
    let good = json!({"seconds": 86400, "first": "2026-11-28", "days": [day]});
    let refused = [
        json!({"seconds": 3599}),
        json!({"seconds": 3601}),
        json!({"seconds": 172_800}),
        json!({"seconds": "86400"}),
        json!({"seconds": null}),
        json!({"first": "2026-11-31"}),
        json!({"first": "0000-01-01"}),
        json!({"first": "2026-11-28T"}),
        json!({"first": 20_261_128}),
        json!({"days": []}),
        json!({"days": vec![day.as_str(); 101]}),
        json!({"days": ["AB".repeat(32)]}),
        json!({"days": [1]}),
        json!({"more": 1}),
    ];
    let mut file = entries("campaigns", "accept")[0]["file"].clone();
    for (seconds, name, is_good) in [(3600, "grr", true), (3600, "oblivious", false), (7200, "oblivious", true)] {
        let mut file =
            entries("campaigns", "accept").into_iter().find(|each| each["name"] == name).unwrap()["file"].take();
        file["passes"] = good.clone();
        file["passes"]["seconds"] = seconds.into();
        assert_eq!(read(&file).is_ok(), is_good, "{seconds} {name}");
    }
    for change in refused {
        file["passes"] = good.clone();
        patch(&mut file["passes"], &change);
        let error = read(&file).err().unwrap_or_else(|| panic!("{change}"));
        assert!(error.to_string().contains("passes"), "{change}: {error}");
    }
}

#[test]
fn a_broken_file_is_refused_or_read_but_never_ends_the_app() {
    let mut state = 1u64;
    let mut drawn = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    for entry in entries("campaigns", "accept") {
        let file = serde_json::to_vec(&entry["file"]).unwrap();
        for _ in 0..100 {
            let mut broken = file.clone();
            for _ in 0..=drawn(3) {
                let (at, byte) = (drawn(broken.len()), br#""\{}[]:,-.0123456789eE"#[drawn(21)]);
                match drawn(3) {
                    0 => broken[at] = byte,
                    1 => broken.insert(at, byte),
                    _ => broken.truncate(at + 1),
                }
            }
            let _ = Campaign::parse(&broken, &[]);
        }
    }
}
