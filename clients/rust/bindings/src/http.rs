//! An app's own way to send requests.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use hushcount::{Failure, Request, Response};

/// Sends requests, for an app that has an HTTP client of its own. It is called in the thread that delivers.
///
/// It must follow no redirect, keep no cookie, add no header that names the client, and end within the request's
/// timeout. It must not call the sender, which waits for the answer. Each exchange should be a connection and a TLS
/// session of its own, so that no connection links the requests of two windows.
#[uniffi::export(with_foreign)]
pub trait Http: Send + Sync {
    /// Send a request and return its answer, whatever its status is.
    ///
    /// Throw why no whole answer came. If the body of an answer is incomplete or too long, only status 200 is a
    /// failure: for any other status, return an empty body.
    ///
    /// # Errors
    /// No whole answer came.
    fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, HttpError>;
}

/// A request: a post if it has a body, else a get. Its text has no headers, because these have secrets.
#[derive(uniffi::Record)]
#[uniffi::export(Debug)]
pub struct HttpRequest {
    /// The whole address, with path and query.
    pub url: String,
    /// All headers that HTTP itself does not need. Do not log them.
    pub headers: HashMap<String, String>,
    /// The body of a post.
    pub body: Option<Vec<u8>>,
    /// Most bytes of the answer's body.
    pub most_bytes: u64,
    /// How long the exchange may take, from the connection to the last byte received.
    pub timeout_millis: u64,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "HttpRequest({})", self.url)
    }
}

/// An answer.
#[derive(uniffi::Record)]
pub struct HttpResponse {
    /// The status, as in 202.
    pub status: u16,
    /// The headers; their names may have any case.
    pub headers: HashMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

/// Why no whole answer came. The sender sends the same bytes again later.
#[derive(Debug, uniffi::Error)]
pub enum HttpError {
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

impl fmt::Display for HttpError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, to)
    }
}

/// An app's function threw something else.
impl From<uniffi::UnexpectedUniFFICallbackError> for HttpError {
    fn from(_: uniffi::UnexpectedUniFFICallbackError) -> Self {
        Self::Unreachable
    }
}

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Unreachable => Self::Unreachable,
            HttpError::BadCertificate => Self::BadCertificate,
            HttpError::TooSlow => Self::TooSlow,
            HttpError::TooLong => Self::TooLong,
            HttpError::Malformed => Self::Malformed,
        }
    }
}

/// An app's `Http`, as the crate calls it.
pub(crate) struct OfApp(pub(crate) Arc<dyn Http>);

impl hushcount::Http for OfApp {
    fn exchange(&self, request: &Request<'_>) -> Result<Response, Failure> {
        let answer = self.0.exchange(HttpRequest {
            url: request.url.clone(),
            headers: request.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            body: request.body.map(<[u8]>::to_vec),
            most_bytes: request.most_bytes as u64,
            timeout_millis: u64::try_from(request.timeout.as_millis()).unwrap_or(u64::MAX),
        })?;
        Ok(Response { status: answer.status, headers: answer.headers.into_iter().collect(), body: answer.body })
    }
}
