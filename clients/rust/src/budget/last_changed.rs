//! Counts by window or day; only the counts that changed last are kept.
//!
//! The clock may be wrong, so counts of several windows are kept, not only the count of the newest window. So a clock
//! that was ahead blocks no reports, and a clock that jumps between windows does not renew the caps of these windows.

/// The number of counts that are kept.
pub(crate) const MOST_KEPT: usize = 16;

/// Counts by key; the one that changed last comes last.
pub(crate) type Counts<Key, Count> = Vec<(Key, Count)>;

/// Return the count of a key, if it has one.
pub(crate) fn count_of<Key: PartialEq, Count: Copy>(counts: &[(Key, Count)], key: &Key) -> Option<Count> {
    counts.iter().find(|(other, _)| other == key).map(|(_, count)| *count)
}

/// Change one count, and keep the 16 counts that changed last.
pub(crate) fn change_count<Key: PartialEq, Count>(counts: &mut Counts<Key, Count>, key: Key, count: Count) {
    counts.retain(|(other, _)| *other != key);
    counts.push((key, count));
    counts.drain(..counts.len().saturating_sub(MOST_KEPT));
}
