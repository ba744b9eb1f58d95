//! Addresses: a client replaces a URL by its site, its host, or its host and the begin of its path.

mod hosts;
mod punycode;
mod segments;

use std::collections::HashSet;

use serde_json::Value;

use self::hosts::host_of;
use self::segments::segments_of;
use crate::errors::{Error, Result};
use crate::formats::fields::{Fields, Form};

const MOST_CHARACTERS: usize = 8192;
const MOST_SEGMENTS: u64 = 8;
const MOST_SUFFIXES: usize = 20_000;
const MOST_SUFFIX_LABELS: usize = 6;
const MOST_LABEL_BYTES: usize = 63;
const TAKE: Form = Form::new("site|host|path", |text| matches!(text, "site" | "host" | "path"));

/// The section of a campaign file on addresses.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    /// `site`, `host` or `path`.
    pub(crate) take: String,
    /// The number of segments of a path that are told; 0 without a path.
    pub(crate) segments: u64,
    /// The rules of public suffixes, in rising order; none unless sites are told.
    suffixes: Option<Vec<String>>,
    /// The most bytes of an item.
    most: usize,
}

impl Addresses {
    /// Check the section; `most` is `max_value_bytes` of discovery, or 4,096 without discovery.
    ///
    /// # Errors
    /// `Format`: the section has another form. The caller checks it together with other sections.
    pub(crate) fn parse(data: &Value, most: usize) -> Result<Self> {
        let fields = Fields::of(data, "url", &["take"], &["segments", "suffixes"])?;
        let take = fields.text("take", &TAKE)?.to_owned();
        let has = |field, wanted| fields.get(field).is_some() == (take == wanted);
        if !has("segments", "path") || !has("suffixes", "site") {
            return Err(Error::format(
                "url must take site, host or path, with suffixes for a site and segments for a path",
            ));
        }
        let segments = if take == "path" { fields.whole("segments", 1, MOST_SEGMENTS)? } else { 0 };
        let suffixes = if take == "site" { Some(suffixes_of(&fields)?) } else { None };
        Ok(Self { take, segments, suffixes, most })
    }

    /// Return the text that stands for a URL; none if it is no public address, or of none of these hosts.
    pub(crate) fn item_of(&self, url: &str, hosts: Option<&HashSet<String>>) -> Option<String> {
        let (host, path) = address_of(url)?;
        if hosts.is_some_and(|hosts| !hosts.contains(&host)) {
            return None;
        }
        // Whatever is taken, a path that hides a separator makes the URL no address.
        let mut segments = segments_of(&path, self.segments as usize)?;
        if self.take != "path" {
            let text = self.suffixes.as_ref().map_or(Some(&host[..]), |rules| site_of(&host, rules));
            return text.filter(|text| text.len() <= self.most).map(str::to_owned);
        }
        loop {
            let item = format!("{host}/{}", segments.join("/"));
            if item.len() <= self.most {
                return Some(item);
            }
            segments.pop()?;
        }
    }
}

fn suffixes_of(fields: &Fields<'_>) -> Result<Vec<String>> {
    let texts = fields.list("suffixes", MOST_SUFFIXES)?.iter().map(|rule| rule.as_str().filter(|rule| is_rule(rule)));
    let rules: Option<Vec<String>> = texts.map(|rule| rule.map(str::to_owned)).collect();
    let rules = rules.filter(|rules| !rules.is_empty() && rules.is_sorted_by(|one, next| one < next));
    rules.ok_or_else(|| fields.wrong("suffixes", "rules of the public suffix list, in rising order"))
}

/// Return whether a text has the form of a rule of the public suffix list.
fn is_rule(text: &str) -> bool {
    let name = text.strip_prefix('!').or_else(|| text.strip_prefix("*.")).unwrap_or(text);
    let mut labels = name.split('.');
    labels.clone().count() <= MOST_SUFFIX_LABELS && labels.all(|label| is_label(label) && !label.contains('_'))
}

/// Return whether a text is 1 to 63 of a-z, 0-9, _ and -.
fn is_label(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=MOST_LABEL_BYTES).contains(&text.len()) && text.bytes().all(fits)
}

/// Return the domain that somebody registered: the public suffix and one more label; none without such a label.
///
/// Reference: publicsuffix.org/list, "Algorithm".
fn site_of<'a>(host: &'a str, rules: &[String]) -> Option<&'a str> {
    let has = |rule: &str| rules.binary_search_by(|other| other.as_str().cmp(rule)).is_ok();
    let mut longer = None;
    // The ends of the host, the longest first.
    for end in std::iter::successors(Some(host), |end| Some(end.split_once('.')?.1)) {
        if has(&format!("!{end}")) {
            return Some(end);
        }
        let above = end.split_once('.').map(|(_, above)| above);
        // Without a rule, the last label is the public suffix.
        if has(end) || above.is_none_or(|above| has(&format!("*.{above}"))) {
            return longer;
        }
        longer = Some(end);
    }
    None
}

/// Return the host and the path of a URL as browsers read it (WHATWG); none if it is no public address of the web.
fn address_of(url: &str) -> Option<(String, String)> {
    if url.len() > 4 * MOST_CHARACTERS || url.chars().count() > MOST_CHARACTERS {
        return None;
    }
    let text = url.trim_matches(|character| character <= ' ').replace(['\t', '\n', '\r'], "");
    let (scheme, rest) = text.split_once(':')?;
    let usual_port = if scheme.eq_ignore_ascii_case("https") { "443" } else { "80" };
    if usual_port == "80" && !scheme.eq_ignore_ascii_case("http") {
        return None;
    }
    let rest = rest.trim_start_matches(['/', '\\']);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find(['/', '\\']).unwrap_or(rest.len()));
    Some((host_of(authority, usual_port)?, path.to_owned()))
}

/// Return a text without percent-encoding; none if its bytes are not UTF-8. An incomplete escape stays as it is.
fn decoded(text: &str) -> Option<String> {
    let mut made = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = escaped_byte(rest);
        made.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8(made).ok()
}

/// Return the byte of an escape, as in `%2f`, at the beginning of a text; none if there is no escape.
fn escaped_byte(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let half = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(16 * half(*high)? + half(*low)?).ok()
}
