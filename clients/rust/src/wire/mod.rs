//! Reports as bytes: packed answers, and sealed boxes.

pub(crate) mod packing;
pub(crate) mod sealing;
pub(crate) mod subsets;
