//! One HTTP request and its answer, with limits on bytes and time that hold whatever the other side does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::site::Site;
use super::verdict::Answer;
use crate::errors::{Error, Kind};

/// Most bytes in the body of an answer to a post.
const MOST_ANSWER_BYTES: usize = 1 << 16;

/// Sends requests. An app may bring its own, for instance with certificates of its own.
///
/// It must follow no redirect, keep no cookie, add no header that names the client, and end within the request's
/// timeout. It must not call the sender, which waits for the answer. Each exchange should be a connection and a TLS
/// session of its own, so that no connection links the requests of two windows.
///
/// ```
/// # #[cfg(feature = "http")]
/// # mod own {
/// use hushcount::{Failure, Http, Request, Response, UreqHttp};
///
/// /// Waits until the device has a network that costs nothing.
/// struct Patient(fn() -> bool);
///
/// impl Http for Patient {
///     fn exchange(&self, request: &Request<'_>) -> Result<Response, Failure> {
///         if (self.0)() { UreqHttp.exchange(request) } else { Err(Failure::Unreachable) }
///     }
/// }
/// # }
/// ```
pub trait Http: Send + Sync {
    /// Send a request and return its answer, whatever its status is.
    ///
    /// # Errors
    /// Why no whole answer came. If the body of an answer is incomplete or too long, only status 200 is a failure: for
    /// any other status the body is empty, because then the status is enough.
    fn exchange(&self, request: &Request<'_>) -> Result<Response, Failure>;
}

/// A request: a post if it has a body, else a get. Its headers have secrets, so it has no `Debug`.
#[derive(Clone)]
pub struct Request<'a> {
    /// The whole address, with path and query.
    pub url: String,
    /// All headers that HTTP itself does not need.
    pub headers: Vec<(&'a str, String)>,
    /// The body of a post.
    pub body: Option<&'a [u8]>,
    /// Most bytes of the answer's body.
    pub most_bytes: usize,
    /// How long the exchange may take, from the connection to the last byte received.
    pub timeout: Duration,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status, as in 202.
    pub status: u16,
    /// The headers; their names may have any case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// Return the first header of a name.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone())
    }

    /// Return what decides about a batch.
    pub(crate) fn answer(self) -> Answer {
        let [content_type, retry_after, date, age] =
            ["content-type", "retry-after", "date", "age"].map(|name| self.header(name));
        Answer { status: self.status, content_type, retry_after, date, age, body: self.body }
    }
}

/// Why no whole answer came. The request may or may not have arrived, so the sender sends the same bytes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// No connection was made, or it broke.
    Unreachable,
    /// The certificate is not trusted.
    BadCertificate,
    /// The timeout was over.
    TooSlow,
    /// The answer has more bytes than it may have.
    TooLong,
    /// The answer is not whole HTTP.
    Malformed,
}

impl Failure {
    /// The name of the failure in events.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::BadCertificate => "bad_certificate",
            Self::TooSlow => "too_slow",
            Self::TooLong => "too_long",
            Self::Malformed => "malformed",
        }
    }

    /// Return the error of a site that gave no answer.
    pub(crate) fn at(self, site: &Site) -> Error {
        let said = match self {
            Self::Unreachable => "it cannot be reached",
            Self::BadCertificate => "its certificate is not trusted",
            Self::TooSlow => "it did not answer in time",
            Self::TooLong => "its answer is too long",
            Self::Malformed => "its answer is not whole HTTP",
        };
        Error::new(Kind::Delivery, format!("no answer of {}: {said}", site.address))
    }
}

/// Fetch a document of at most `most_bytes` from a path that begins with a slash. The request shows no token.
pub(crate) fn get(http: &dyn Http, site: &Site, path: &str, most_bytes: usize) -> Result<Response, Failure> {
    let url = format!("{}{path}", site.address);
    exchange(http, &Request { url, headers: Vec::new(), body: None, most_bytes, timeout: site.timeout })
}

/// Post bytes to a path, with a header that shows who posts, and with the app's token if the site has one.
pub(crate) fn post(
    http: &dyn Http,
    site: &Site,
    path: &str,
    body: &[u8],
    shown: (&'static str, String),
) -> Result<Response, Failure> {
    let mut headers = vec![("Content-Type", "application/octet-stream".to_owned())];
    // A pass is shown in the app token's place.
    if let Some(token) = site.app_token.as_ref().filter(|_| shown.0 != "Authorization") {
        headers.push(("Authorization", format!("Bearer {token}")));
    }
    headers.push(shown);
    let url = format!("{}{path}", site.address);
    exchange(http, &Request { url, headers, body: Some(body), most_bytes: MOST_ANSWER_BYTES, timeout: site.timeout })
}

/// Exchange, and hold an app's own `Http` to the limit on bytes; one that panics reached nobody.
fn exchange(http: &dyn Http, request: &Request<'_>) -> Result<Response, Failure> {
    let exchanged = catch_unwind(AssertUnwindSafe(|| http.exchange(request)));
    let mut response = exchanged.unwrap_or(Err(Failure::Unreachable))?;
    if response.body.len() > request.most_bytes {
        if response.status == 200 {
            return Err(Failure::TooLong);
        }
        response.body = Vec::new();
    }
    Ok(response)
}
