//! Texts and bytes that cross the border.

use std::ffi::{CStr, CString, c_char};
use std::{ptr, slice};

use hushcount::Value;

use crate::errors::hushcount_error;

/// Bytes that a call reads; `data` is NULL if there are none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hushcount_bytes {
    /// The first byte.
    pub data: *const u8,
    /// The number of bytes.
    pub length: usize,
}

impl hushcount_bytes {
    pub(crate) const NONE: Self = Self { data: ptr::null(), length: 0 };

    /// Return a copy, if there are bytes.
    pub(crate) unsafe fn copied(self) -> Option<Vec<u8>> {
        (!self.data.is_null()).then(|| unsafe { slice::from_raw_parts(self.data, self.length) }.to_vec())
    }
}

/// The person's coordinate on an axis of the campaign, such as "version" and "2.1".
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hushcount_coordinate {
    /// The axis.
    pub axis: *const c_char,
    /// The coordinate on it.
    pub value: *const c_char,
}

/// Return a text of options; NULL is none.
pub(crate) unsafe fn option<'a>(name: &str, text: *const c_char) -> Result<Option<&'a str>, hushcount_error> {
    if text.is_null() {
        return Ok(None);
    }
    let read = unsafe { CStr::from_ptr(text) }.to_str();
    read.map(Some).map_err(|_| hushcount_error::usage(&format!("{name} must be UTF-8")))
}

/// Return a value as an app reports it. What is no UTF-8 can be no item: it counts as "other", as an empty text does.
pub(crate) unsafe fn value<'a>(text: *const c_char) -> Value<'a> {
    let read = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().unwrap_or_default());
    Value::Text(read.unwrap_or_default())
}

/// Return coordinates; `by` may be NULL if there are none.
pub(crate) unsafe fn coordinates<'a>(by: *const hushcount_coordinate, axes: usize) -> Vec<(&'a str, Value<'a>)> {
    if by.is_null() {
        return Vec::new();
    }
    let given = unsafe { slice::from_raw_parts(by, axes) };
    let read = |one: &hushcount_coordinate| unsafe { (option("axis", one.axis).ok()??, value(one.value)).into() };
    given.iter().filter_map(read).collect()
}

/// Return a text that the caller frees.
pub(crate) fn owned(text: &str) -> *mut c_char {
    // No text of this library has a NUL.
    CString::new(text).unwrap_or_default().into_raw()
}

/// Free a text that this library returned; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_text_free(text: *mut c_char) {
    if !text.is_null() {
        drop(unsafe { CString::from_raw(text) });
    }
}
