//! Hexadecimal digits, and the hash of the wire format.

use blake2b_simd::Params;

/// Return lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.filter_map(|half| char::from_digit(half.into(), 16)).collect()
}

/// Return the bytes of hexadecimal digits, or none if a digit is wrong or half a byte is missing.
pub(crate) fn unhex(digits: &str) -> Option<Vec<u8>> {
    let halves: Option<Vec<u8>> = digits.chars().map(|digit| digit.to_digit(16).map(|half| half as u8)).collect();
    let halves = halves.filter(|halves| halves.len() % 2 == 0)?;
    Some(halves.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// Return the bytes of so many lower-case hexadecimal digits, or none if the text is no such digits.
pub(crate) fn unhex_exact<const LENGTH: usize>(digits: &str) -> Option<[u8; LENGTH]> {
    let lower = Some(digits).filter(|digits| !digits.bytes().any(|digit| digit.is_ascii_uppercase()));
    lower.and_then(unhex)?.try_into().ok()
}

/// What a `BLAKE2b` hash is for: its person, key and salt; each may be empty.
#[derive(Clone, Copy, Default)]
pub(crate) struct Purpose<'a> {
    pub(crate) person: &'a str,
    pub(crate) key: &'a [u8],
    pub(crate) salt: &'a [u8],
}

/// Return `BLAKE2b` of so many bytes, 1 to 64, of the parts joined, for a person of at most 16 bytes.
pub(crate) fn hash<const LENGTH: usize>(parts: &[&[u8]], person: &str) -> [u8; LENGTH] {
    hash_for(parts, Purpose { person, ..Purpose::default() })
}

/// Return `BLAKE2b` as `hash`, with a key of at most 64 bytes and a salt of at most 16.
pub(crate) fn hash_for<const LENGTH: usize>(parts: &[&[u8]], purpose: Purpose<'_>) -> [u8; LENGTH] {
    let mut params = Params::new();
    params.hash_length(LENGTH).personal(purpose.person.as_bytes()).key(purpose.key).salt(purpose.salt);
    let mut state = params.to_state();
    for part in parts {
        state.update(part);
    }
    let mut made = [0; LENGTH];
    made.copy_from_slice(state.finalize().as_bytes());
    made
}
