//! The address of a collector, an evaluator or an issuer, and how to reach it.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use crate::errors::{Error, Result};

const LONGEST: Duration = Duration::from_secs(600);
/// The longest address: a host has at most 253 characters.
const MOST_BYTES: usize = 2048;

/// One collector, one evaluator or one issuer.
#[derive(Clone)]
pub struct Site {
    /// The address, as in `https://collector.example.com`, perhaps with a port and a path. Plain http is permitted only
    /// if the address is this machine.
    pub address: String,
    /// The collector's name in the campaign file, if the campaign has several collectors. Tokens are derived by this
    /// name and not by the address, so a new address does not change the client's token.
    pub name: Option<String>,
    /// Whether to permit plain http to other machines too. Anyone on the network path then sees the client token and
    /// can alter answers, but reports are sealed and cannot be read.
    pub plain: bool,
    /// The token of the app, for collectors that demand such a token (`authentication = "bearer"`).
    pub app_token: Option<String>,
    /// How long one exchange may take, from the connection to the last byte received; at most 10 minutes.
    pub timeout: Duration,
}

impl From<&str> for Site {
    /// Return a site without a name and an app token, with a timeout of 30 seconds.
    fn from(address: &str) -> Self {
        let timeout = Duration::from_secs(30);
        Self { address: address.to_owned(), name: None, plain: false, app_token: None, timeout }
    }
}

impl From<String> for Site {
    /// Return a site as from `&str`.
    fn from(address: String) -> Self {
        address.as_str().into()
    }
}

impl fmt::Debug for Site {
    /// Write the address; the app's token is a secret.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Site({})", self.address)
    }
}

impl Site {
    /// Return the site with an address that has no slash at its end. `what` names it in messages, as in "site".
    ///
    /// # Errors
    /// `Usage`: the address, the timeout or the app's token cannot be used.
    pub(crate) fn checked(mut self, what: &str) -> Result<Self> {
        let parts = parts_of(&self.address).ok_or_else(|| {
            Error::usage(format!(
                "{what} must be an address such as https://collector.example.com, without user name, ? or #"
            ))
        })?;
        if !parts.by_tls && !self.plain && !is_here(parts.host) {
            return Err(Error::usage(format!(
                "{what} is {}, must begin with https://: reports travel by TLS; plain: true permits plain http",
                self.address
            )));
        }
        if self.timeout.is_zero() || self.timeout > LONGEST {
            return Err(Error::usage(format!(
                "timeout of the {what} is {:?}, must be above 0 and at most {LONGEST:?}",
                self.timeout
            )));
        }
        if self.app_token.as_ref().is_some_and(|token| !is_header(token)) {
            return Err(Error::usage(format!("app_token of the {what} must be printable ASCII text")));
        }
        self.address.truncate(self.address.trim_end_matches('/').len());
        Ok(self)
    }

    /// Return how long one exchange may take, in milliseconds.
    pub(crate) fn millis(&self) -> i64 {
        i64::try_from(self.timeout.as_millis()).unwrap_or(i64::MAX)
    }
}

/// Return whether a text may stand in a header: printable ASCII, and not empty.
pub(crate) fn is_header(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

struct Parts<'a> {
    by_tls: bool,
    host: &'a str,
}

/// Return the parts of an address. User names, queries and control characters are refused, because they would become
/// parts of requests.
fn parts_of(address: &str) -> Option<Parts<'_>> {
    let (by_tls, rest) = match (address.strip_prefix("https://"), address.strip_prefix("http://")) {
        (Some(rest), _) => (true, rest),
        (_, Some(rest)) => (false, rest),
        _ => return None,
    };
    let is_plain = address.bytes().all(|byte| byte.is_ascii_graphic() && !br#"@?#\"<>^`{|}"#.contains(&byte));
    if !is_plain || address.len() > MOST_BYTES {
        return None;
    }
    let authority = rest.split('/').next()?;
    let (host, port) = match authority.strip_prefix('[') {
        Some(inner) => {
            let (host, after) = inner.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, if after.is_empty() { None } else { Some(after.strip_prefix(':')?) })
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let is_port =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0);
    (!host.is_empty() && port.is_none_or(is_port)).then_some(Parts { by_tls, host })
}

fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
