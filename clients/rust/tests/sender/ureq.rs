//! An exchange ends, in bounded bytes and time, whatever the other side does; it goes nowhere else.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::sender::http::{Failure, Http, Request, Response};
use crate::sender::ureq_http::UreqHttp;

const MOST: usize = 1000;

/// A server on a real socket that says whatever a test wants, whether that is HTTP or not.
struct Serving {
    address: String,
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Serving {
    fn new(talk: impl Fn(&mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let requests = heard.clone();
        thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                requests.lock().unwrap().push(request_of(&mut connection));
                talk(&mut connection);
            }
        });
        Self { address, heard }
    }

    fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::new(move |connection| drop(connection.write_all(&answer)))
    }

    fn exchange(&self) -> Result<Response, Failure> {
        self.within(Duration::from_secs(10))
    }

    fn within(&self, timeout: Duration) -> Result<Response, Failure> {
        exchange(&self.address, b"body", timeout)
    }
}

fn exchange(address: &str, body: &[u8], timeout: Duration) -> Result<Response, Failure> {
    let headers = vec![("Client-Token", "t".repeat(20))];
    UreqHttp.exchange(&Request {
        url: format!("{address}/v1/x?a=b"),
        headers,
        body: Some(body),
        most_bytes: MOST,
        timeout,
    })
}

/// Read a request with its body.
fn request_of(connection: &mut TcpStream) -> Vec<u8> {
    let (mut heard, mut part) = (Vec::new(), [0; 1024]);
    let is_whole = |heard: &[u8]| {
        let end = heard.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        end.is_some_and(|end| {
            let begin = String::from_utf8_lossy(&heard[..end]).to_ascii_lowercase();
            let length = begin.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            heard.len() >= end + length.unwrap_or(0)
        })
    };
    while !is_whole(&heard) {
        match connection.read(&mut part) {
            Ok(0) | Err(_) => break,
            Ok(length) => heard.extend_from_slice(&part[..length]),
        }
    }
    heard
}

fn http(status: u16, body: &str, headers: &str) -> String {
    format!("HTTP/1.1 {status} Said\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

#[test]
fn an_exchange_sends_what_it_was_given_and_nothing_that_names_the_client() {
    let server = Serving::saying(http(202, "ok", "X-One: 1\r\nSet-Cookie: who=me\r\nETag: \"who\"\r\n"));
    for _ in 0..2 {
        let response = server.exchange().unwrap();
        assert_eq!((response.status, response.body.as_slice()), (202, &b"ok"[..]));
        assert_eq!(response.header("x-one").as_deref(), Some("1"));
    }
    let heard = server.heard.lock().unwrap();
    assert!(heard.len() == 2 && heard[0] == heard[1]);
    let text = String::from_utf8(heard[0].clone()).unwrap();
    let (begin, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(begin.starts_with("POST /v1/x?a=b HTTP/1.1\r\n") && body == "body");
    let mut names: Vec<_> =
        begin.lines().skip(1).map(|line| line.split(':').next().unwrap().to_ascii_lowercase()).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept-encoding", "client-token", "connection", "content-length", "host"]);
}

#[test]
fn a_redirect_is_an_answer_and_not_followed() {
    let other = Serving::saying(http(202, "", ""));
    let moved = Serving::saying(http(307, "", &format!("Location: {}/v1/x\r\n", other.address)));
    assert_eq!(moved.exchange().unwrap().status, 307);
    assert!(other.heard.lock().unwrap().is_empty());
}

#[test]
fn an_answer_that_is_too_long_or_not_whole_is_refused() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let long = "x".repeat(MOST + 1);
    for (answer, failures) in [
        (http(200, &long, ""), &[Failure::TooLong][..]),
        (format!("HTTP/1.1 200 OK\r\n\r\n{long}"), &[Failure::TooLong]),
        (format!("{chunked}{}", "1\r\nx\r\n".repeat(100_000)), &[Failure::TooLong]),
        (format!("{chunked}1;{}", "x".repeat(200_000)), &[Failure::Malformed, Failure::Unreachable]),
        (format!("HTTP/1.1 200 OK\r\n{}", "A: b\r\n".repeat(100_000)), &[Failure::Malformed]),
        (format!("HTTP/1.1 200 {}", "x".repeat(200_000)), &[Failure::Malformed]),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour".to_owned(), &[Failure::Malformed, Failure::Unreachable]),
        (format!("{chunked}5\r\nfour"), &[Failure::Malformed, Failure::Unreachable]),
        (format!("{chunked}zz\r\n"), &[Failure::Malformed]),
        (format!("{chunked}-5\r\nfour\r\n"), &[Failure::Malformed]),
        (format!("{chunked}-{}\r\nfour\r\n", "f".repeat(30)), &[Failure::Malformed]),
        ("SSH-2.0-OpenSSH_9.9\r\n".to_owned(), &[Failure::Malformed]),
        ("<html>".to_owned(), &[Failure::Malformed, Failure::Unreachable]),
        (String::new(), &[Failure::Malformed, Failure::Unreachable]),
    ] {
        let begin = answer.chars().take(60).collect::<String>();
        let failure = Serving::saying(answer).exchange().unwrap_err();
        assert!(failures.contains(&failure), "{begin:?}: {failure:?}");
    }
}

#[test]
fn a_status_that_refuses_counts_whatever_its_body_is() {
    for rest in [
        format!("Content-Length: 70000\r\n\r\n{}", "x".repeat(70_000)),
        "Content-Length: 5\r\n\r\nfour".to_owned(),
        format!("Transfer-Encoding: chunked\r\n\r\n{}", "1\r\nx\r\n".repeat(100_000)),
        "Transfer-Encoding: chunked\r\n\r\nzz\r\n".to_owned(),
        format!("\r\n{}", "x".repeat(70_000)),
    ] {
        for status in [202, 403, 413] {
            let response = Serving::saying(format!("HTTP/1.1 {status} Said\r\n{rest}")).exchange().unwrap();
            assert_eq!((response.status, response.body.len()), (status, 0), "{}", &rest[..30]);
        }
    }
}

#[test]
fn a_server_that_sends_a_byte_now_and_then_is_left_when_the_time_is_over() {
    let half = http(200, &"x".repeat(500), "");
    for beginning in
        ["HTTP/1.1 200 S".to_owned(), "HTTP/1.1 200 OK\r\n".to_owned(), half[..half.len() - 400].to_owned()]
    {
        let server = Serving::new(move |connection| {
            let mut is_there = connection.write_all(beginning.as_bytes()).is_ok();
            while is_there {
                thread::sleep(Duration::from_millis(20));
                is_there = connection.write_all(b"x").is_ok();
            }
        });
        assert_eq!(server.within(Duration::from_millis(300)).unwrap_err(), Failure::TooSlow);
    }
}

#[test]
fn a_server_that_takes_nothing_is_left_and_nobody_there_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let failure = exchange(&address, &vec![0; 1 << 24], Duration::from_millis(300)).unwrap_err();
    assert_eq!(failure, Failure::TooSlow);
    drop(listener);
    assert_eq!(exchange(&address, b"", Duration::from_secs(5)).unwrap_err(), Failure::Unreachable);
    let nowhere = "http://nowhere.invalid";
    assert_eq!(exchange(nowhere, b"", Duration::from_secs(5)).unwrap_err(), Failure::Unreachable);
    // Plain HTTP in place of TLS.
    let plain = Serving::saying("HTTP/1.1 200 OK\r\n\r\n").address.replace("http://", "https://");
    assert!(exchange(&plain, b"", Duration::from_secs(5)).is_err());
}

#[test]
fn an_answer_to_a_part_of_a_body_is_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let refusals = [http(413, "", "Connection: close\r\n"), String::new()];
    let server = thread::spawn(move || {
        for refusal in refusals {
            let mut connection = listener.accept().unwrap().0;
            connection.read_exact(&mut [0; 1000]).unwrap();
            connection.write_all(refusal.as_bytes()).unwrap();
        }
    });
    let body = vec![0; 1 << 23];
    assert_eq!(exchange(&address, &body, Duration::from_secs(60)).map(|answer| answer.status), Ok(413));
    assert_eq!(exchange(&address, &body, Duration::from_secs(60)), Err(Failure::Unreachable));
    server.join().unwrap();
}
