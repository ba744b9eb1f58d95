//! Campaigns of the vectors with keys whose private halves these tests have.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use crypto_box::SecretKey;
use hushcount::{Client, ClientOptions, Clock, Policy, Store};
use serde_json::{Value, json};

/// The items of the dictionary of most campaigns; the item after these is "other".
pub const ITEMS: [&str; 4] = ["one", "two", "three", "größer"];
/// An epsilon at which a report shows its value: it shows another one with probability below 1e-16.
pub const CERTAIN: f64 = 40.0;
/// 2026-11-24, 12:00 UTC, in milliseconds since 1970.
pub const NOON: i64 = 1_795_521_600_000;
pub const DAY: i64 = 86_400_000;
/// Windows so long that none ends within a test.
pub const CENTURY: u64 = 100 * 366 * 86_400;

pub fn analyzer() -> SecretKey {
    SecretKey::from([11; 32])
}

pub fn aux_server() -> SecretKey {
    SecretKey::from([12; 32])
}

/// Return a file of vectors.
pub fn vectors(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/v1").join(format!("{name}.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Return the section of a public key whose id is hashed for this person.
pub fn key_section(key: &[u8; 32], person: &str) -> Value {
    let id = blake2b_simd::Params::new().hash_length(8).personal(person.as_bytes()).hash(key).to_hex();
    let key = key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    json!({"id": id.as_str(), "key": key, "not_before": "2020-01-01T00:00:00Z", "not_after": "2120-01-01T00:00:00Z"})
}

/// Return a campaign file of the vectors with this test's keys and these sections in place of its own.
pub fn file(name: &str, changes: &Value) -> Value {
    let all = vectors("campaigns");
    let named = all["accept"].as_array().unwrap().iter().find(|entry| entry["name"] == name);
    let mut file = named.unwrap()["file"].clone();
    let keys = &mut file["keys"];
    keys["analyzer"] = json!([key_section(analyzer().public_key().as_bytes(), "")]);
    if !keys["aux_server"].as_array().unwrap().is_empty() {
        keys["aux_server"] = json!([key_section(aux_server().public_key().as_bytes(), "")]);
    }
    for (section, change) in changes.as_object().unwrap() {
        file[section] = change.clone();
    }
    file
}

/// Return options of a file: any campaign is trusted, and windows are long.
pub fn options(file: &Value) -> ClientOptions {
    let mut options = ClientOptions::new(serde_json::to_vec(file).unwrap(), Policy::trusting());
    options.dictionary = Some(ITEMS.map(|item| format!("{item}\n")).concat().into_bytes());
    if file.get("noise").is_none() {
        options.window_seconds = CENTURY;
    }
    options
}

pub fn open(file: &Value) -> Client {
    Client::open(options(file)).unwrap()
}

/// Return the section of a shuffler with this cap.
pub fn cap(cap: u64) -> Value {
    json!({"cap": cap, "minimum_batch": 1000, "delta": 1e-8})
}

/// Return a campaign of both streams whose reports show their value and cost CERTAIN; `values`: how many are
/// remembered.
pub fn certain(values: u64) -> Value {
    let mut changes = json!({
        "mechanism": {"name": "grr", "epsilon": CERTAIN, "parameters": {}},
        "shuffle": cap(1000),
        "memory": values > 0,
        "memory_values": values.max(1),
    });
    let mut discovery = file("both", &json!({}))["discovery"].clone();
    discovery["epsilon"] = json!(CERTAIN);
    changes["discovery"] = discovery;
    file("both", &changes)
}

/// Return what the analyzer opens of a frequency report, without the binding.
pub fn answer(report: &[u8]) -> Vec<u8> {
    analyzer().unseal(report).unwrap()[16..].to_vec()
}

/// Return the item that a report of `certain` shows.
pub fn shown(report: &[u8]) -> &'static str {
    let [item] = answer(report)[..] else { panic!("an answer of one byte") };
    ITEMS.get(usize::from(item)).copied().unwrap_or("other")
}

/// Return the hash and the value in a discovery report, by the keys of both parties.
pub fn found(report: &[u8]) -> (Vec<u8>, Option<String>) {
    let outer = aux_server().unseal(report).unwrap();
    let inner = analyzer().unseal(&outer[48..]).unwrap();
    assert_eq!(inner[..16], outer[..16], "one binding");
    assert!(analyzer().unseal(report).is_err() && aux_server().unseal(&outer[48..]).is_err());
    let length = u16::from_le_bytes([inner[16], inner[17]]);
    let end = if length == 0xffff { 0 } else { usize::from(length) };
    let value = String::from_utf8(inner[18..18 + end].to_vec()).unwrap();
    assert!(inner[18 + end..].iter().all(|&byte| byte == 0));
    (outer[16..48].to_vec(), (length != 0xffff).then_some(value))
}

/// A clock that shows what a test sets.
pub struct Stopped(pub AtomicI64);

impl Stopped {
    pub fn at(moment: i64) -> std::sync::Arc<Self> {
        std::sync::Arc::new(Self(AtomicI64::new(moment)))
    }

    pub fn set(&self, moment: i64) {
        self.0.store(moment, Ordering::Relaxed);
    }
}

impl Clock for Stopped {
    fn now(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A folder of one test, which is removed with it.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("hushcount-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> PathBuf {
        self.0.join("store.sqlite")
    }

    pub fn store(&self) -> Store {
        Store::open(self.path()).unwrap()
    }

    /// Run SQL on the store's file, as nobody but a test does.
    pub fn sql(&self, sql: &str) {
        rusqlite::Connection::open(self.path()).unwrap().execute_batch(sql).unwrap();
    }

    /// Return how many answers the store remembers.
    pub fn answers(&self) -> u64 {
        let count = "SELECT count(*) FROM records WHERE name LIKE 'answer/%'";
        rusqlite::Connection::open(self.path()).unwrap().query_row(count, [], |row| row.get(0)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
