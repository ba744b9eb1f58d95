//! Canonical JSON (RFC 8785): each value has one text, the same in every programming language.

use serde_json::{Map, Value};

/// Return the canonical bytes: keys sorted by their UTF-16 units, numbers as ECMAScript writes them, no spaces.
pub(crate) fn canonical_json(data: &Value) -> Vec<u8> {
    let mut text = String::new();
    write_value(data, &mut text);
    text.into_bytes()
}

/// Return a double as ECMAScript writes it, as in `1`, `0.1`, `1e+21`.
pub(crate) fn number_text(number: f64) -> String {
    ryu_js::Buffer::new().format(number).to_owned()
}

fn write_value(data: &Value, to: &mut String) {
    match data {
        // The numbers of a file that was read are finite, and their integers are exact as doubles.
        Value::Number(number) => to.push_str(&number_text(number.as_f64().unwrap_or_default())),
        Value::Array(values) => {
            to.push('[');
            for (place, value) in values.iter().enumerate() {
                to.push_str(if place > 0 { "," } else { "" });
                write_value(value, to);
            }
            to.push(']');
        }
        Value::Object(fields) => write_object(fields, to),
        // A text is written with the shortest escapes, as RFC 8785 asks.
        _ => to.push_str(&data.to_string()),
    }
}

fn write_object(fields: &Map<String, Value>, to: &mut String) {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
    to.push('{');
    for (place, (key, value)) in sorted.into_iter().enumerate() {
        to.push_str(if place > 0 { "," } else { "" });
        to.push_str(&Value::from(key.as_str()).to_string());
        to.push(':');
        write_value(value, to);
    }
    to.push('}');
}
