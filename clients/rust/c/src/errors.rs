//! Errors that cross the border, and panics that do not.

use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use hushcount::{Error, Kind};

/// Why a call failed. Free it with `hushcount_error_free`.
pub struct hushcount_error {
    kind: hushcount_kind,
    message: CString,
}

/// What kind of error stopped a call.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum hushcount_kind {
    /// An argument or an option cannot be used.
    Usage,
    /// A file of another party, or of this device, is malformed.
    Format,
    /// No key of the campaign file is valid now.
    NoValidKey,
    /// The bytes differ from the signed bytes, or no trusted key signed them.
    Signature,
    /// The policy does not allow the campaign: no report may be made for it.
    Untrusted,
    /// The store or the system's random generator failed.
    Store,
    /// A server cannot be reached, or its answer cannot be used.
    Delivery,
    /// The campaign's sample does not contain this installation.
    NotAsked,
    /// The budget is too small for a report, and the app chose that no report is made in this case.
    BudgetSpent,
    /// The person opted out.
    OptedOut,
    /// The client has made as many reports in this window as the campaign's cap allows.
    OverCap,
    /// Another error; its message says which.
    Other,
}

impl hushcount_error {
    pub(crate) fn usage(message: &str) -> Self {
        Self::new(hushcount_kind::Usage, message)
    }

    fn new(kind: hushcount_kind, message: &str) -> Self {
        Self { kind, message: CString::new(message.replace('\0', "")).unwrap_or_default() }
    }
}

impl From<Error> for hushcount_error {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            Kind::Usage => hushcount_kind::Usage,
            Kind::Format => hushcount_kind::Format,
            Kind::NoValidKey => hushcount_kind::NoValidKey,
            Kind::Signature => hushcount_kind::Signature,
            Kind::Untrusted => hushcount_kind::Untrusted,
            Kind::Store => hushcount_kind::Store,
            Kind::Delivery => hushcount_kind::Delivery,
            Kind::NotAsked => hushcount_kind::NotAsked,
            Kind::BudgetSpent => hushcount_kind::BudgetSpent,
            Kind::OptedOut => hushcount_kind::OptedOut,
            Kind::OverCap => hushcount_kind::OverCap,
            _ => hushcount_kind::Other,
        };
        Self::new(kind, &error.to_string())
    }
}

/// Do the work of a call; return NULL, or what stopped it. A panic must not unwind into C.
pub(crate) fn attempt(work: impl FnOnce() -> Result<(), hushcount_error>) -> *mut hushcount_error {
    let fault = || hushcount_error::new(hushcount_kind::Other, "a fault of this library stopped the call: report it");
    match catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(fault())) {
        Ok(()) => ptr::null_mut(),
        Err(error) => Box::into_raw(Box::new(error)),
    }
}

/// Do the work of a call that makes something for the caller. The place of it has NULL if the call fails.
pub(crate) unsafe fn make<T>(
    name: &str,
    place: *mut *mut T,
    work: impl FnOnce() -> Result<*mut T, hushcount_error>,
) -> *mut hushcount_error {
    attempt(|| {
        let place = unsafe { self::place(name, place) }?;
        *place = ptr::null_mut();
        *place = work()?;
        Ok(())
    })
}

/// Free what a call made; NULL is fine.
pub(crate) unsafe fn free<T>(made: *mut T) {
    if !made.is_null() {
        drop(unsafe { Box::from_raw(made) });
    }
}

/// Return what a pointer points to.
pub(crate) unsafe fn given<'a, T>(name: &str, pointer: *const T) -> Result<&'a T, hushcount_error> {
    unsafe { pointer.as_ref() }.ok_or_else(|| hushcount_error::usage(&format!("{name} must not be NULL")))
}

/// Return where a result goes.
pub(crate) unsafe fn place<'a, T>(name: &str, pointer: *mut T) -> Result<&'a mut T, hushcount_error> {
    unsafe { pointer.as_mut() }.ok_or_else(|| hushcount_error::usage(&format!("{name} must not be NULL")))
}

/// Return what kind of error it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_error_kind(error: *const hushcount_error) -> hushcount_kind {
    unsafe { error.as_ref() }.map_or(hushcount_kind::Other, |error| error.kind)
}

/// Return the sentence to show, which lives as long as the error; it has no secret.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_error_message(error: *const hushcount_error) -> *const c_char {
    unsafe { error.as_ref() }.map_or(c"no error".as_ptr(), |error| error.message.as_ptr())
}

/// Free an error; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_error_free(error: *mut hushcount_error) {
    unsafe { free(error) };
}
