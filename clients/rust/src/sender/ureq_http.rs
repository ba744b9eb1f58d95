//! The default way to send requests.

use std::io::Read;

use ureq::config::{AutoHeaderValue, Config};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, RustlsConnector, TcpConnector};
use ureq::{Agent, Body, Error};

use super::http::{Failure, Http, Request, Response};
use super::ureq_transport::Answering;

/// Most bytes in the head of an answer.
const MOST_HEAD_BYTES: usize = 1 << 16;

/// Sends requests by `ureq` and `rustls`, with the certificates of Mozilla's list, and without a proxy.
///
/// Each exchange is a connection and a TLS session of its own, so no connection links the requests of two windows.
#[derive(Clone, Copy, Debug, Default)]
pub struct UreqHttp;

impl Http for UreqHttp {
    fn exchange(&self, request: &Request<'_>) -> Result<Response, Failure> {
        // An agent keeps TLS sessions, so each exchange has one of its own.
        let connector = TcpConnector::default().chain(Answering).chain(RustlsConnector::default());
        let agent = Agent::with_parts(config(request), connector, DefaultResolver::default());
        let answered = match request.body {
            None => with_headers(agent.get(&request.url), request).call(),
            Some(body) => with_headers(agent.post(&request.url), request).send(body),
        };
        let (head, body) = answered.map_err(|error| failure_of(&error))?.into_parts();
        let status = head.status.as_u16();
        let headers = head.headers.iter().filter_map(|(name, value)| {
            // A value with other bytes than printable ASCII is none that a collector sends.
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        });
        let headers = headers.collect();
        match read(body, request.most_bytes) {
            Ok(body) => Ok(Response { status, headers, body }),
            Err(failure) if status == 200 => Err(failure),
            Err(_) => Ok(Response { status, headers, body: Vec::new() }),
        }
    }
}

fn config(request: &Request<'_>) -> Config {
    Agent::config_builder()
        .timeout_global(Some(request.timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .user_agent(AutoHeaderValue::None)
        .accept(AutoHeaderValue::None)
        .accept_encoding("identity")
        .max_response_header_size(MOST_HEAD_BYTES)
        .max_idle_connections(0)
        .build()
}

fn with_headers<Kind>(mut builder: ureq::RequestBuilder<Kind>, request: &Request<'_>) -> ureq::RequestBuilder<Kind> {
    for (name, value) in &request.headers {
        builder = builder.header(*name, value);
    }
    builder.header("Connection", "close")
}

/// Read a body of at most so many bytes.
fn read(body: Body, most: usize) -> Result<Vec<u8>, Failure> {
    // If Content-Length says that the body is too long, the body is not fetched.
    if body.content_length().is_some_and(|length| length > most as u64) {
        return Err(Failure::TooLong);
    }
    let mut found = Vec::new();
    let mut reader = body.into_reader().take(most as u64 + 1);
    reader.read_to_end(&mut found).map_err(|error| failure_of(&Error::from(error)))?;
    if found.len() > most { Err(Failure::TooLong) } else { Ok(found) }
}

fn failure_of(error: &Error) -> Failure {
    match error {
        Error::Timeout(_) => Failure::TooSlow,
        // The handshake's error is within others, and its type is that of another crate.
        Error::Rustls(_) | Error::Io(_) if error.to_string().contains("invalid peer certificate") => {
            Failure::BadCertificate
        }
        Error::Protocol(_) | Error::Http(_) | Error::LargeResponseHeader(..) => Failure::Malformed,
        _ => Failure::Unreachable,
    }
}
