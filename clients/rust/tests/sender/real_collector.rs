//! The sender's thread and a real collector; and passes of a real issuer.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::sender::issuer::Issuer;
use crate::sender::options::SenderOptions;
use crate::sender::sending::Sender;
use crate::store::Store;
use crate::trust::policy::Policy;

/// A collector in a process of its own, and with `passes` an issuer.
struct Real {
    process: Child,
    output: BufReader<ChildStdout>,
    said: Value,
}

impl Real {
    fn start(arguments: &[&str]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let python = std::env::var_os("HUSHCOUNT_PYTHON").unwrap();
        let mut process = Command::new(python)
            .arg(root.join("clients/typescript/tests/real/serve.py"))
            .args(arguments)
            .env("PYTHONPATH", &root)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let said = serde_json::from_str(&line).unwrap();
        Self { process, output, said }
    }

    fn sender(&self, store: Store, change: impl FnOnce(&mut SenderOptions)) -> Sender {
        let policy = Policy::parse(self.said["policy"].to_string().as_bytes()).unwrap();
        let mut options = SenderOptions::new(self.said["url"].as_str().unwrap(), policy, store);
        options.delay_seconds = 0;
        change(&mut options);
        Sender::open(options).unwrap()
    }

    /// Stop the collector, and return what it stored.
    fn stored(mut self) -> Value {
        drop(self.process.stdin.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert!(self.process.wait().unwrap().success());
        serde_json::from_str(&rest).unwrap()
    }
}

#[test]
#[ignore = "needs HUSHCOUNT_PYTHON, an interpreter with this repository's packages: make test-rust"]
fn a_thread_brings_its_reports_to_the_store() {
    let real = Real::start(&[]);
    let one = real.sender(Store::in_memory().unwrap(), |_| {});
    one.try_report("word-1", &[]).unwrap();
    one.start();
    one.try_report("word-2", &[]).unwrap();
    one.stop();
    assert_eq!(one.waiting(), Some(0), "{:?}", one.log());
    assert_eq!(real.stored(), json!({"reports": 2, "discovery": 2, "clients": 1}));
}

#[test]
#[ignore = "needs HUSHCOUNT_PYTHON, an interpreter with this repository's packages: make test-rust"]
fn passes_of_a_real_issuer_open_a_real_collector() {
    let real = Real::start(&["passes"]);
    for account in real.said["authorizations"].as_array().unwrap() {
        let account = account.as_str().unwrap().to_owned();
        let site = real.said["issuer"].as_str().unwrap().into();
        let one = real.sender(Store::in_memory().unwrap(), |options| {
            options.issuer = Some(Issuer { site, authorization: std::sync::Arc::new(move || account.clone()) });
        });
        one.try_report("word-1", &[]).unwrap();
        let done = one.deliver(true).unwrap();
        assert!(done.waiting == 0 && done.sent > 0 && !done.no_pass, "{done:?} {:?}", one.log());
    }
    assert_eq!(real.stored()["clients"], 2);
}
