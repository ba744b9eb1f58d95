//! A process that is killed, or whose disk is full or broken, at any call on its file loses nothing that it
//! acknowledged, and neither it nor a forked one has anything counted twice.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, process, thread};

use serde_json::{Value, json};

use super::evaluations::values;
use super::fake_collector::{Fake, Told, World, oblivious};
use crate::errors::Kind;
use crate::formats::bytes::hex;
use crate::hostile::number;
use crate::sender::http::{Failure, Http, Request, Response};
use crate::sender::sending::Sender;
use crate::store::Store;
use crate::store::tests::killed::compiled;
use crate::store::tests::support::{Folder, said, say, task};

const CHILD: &str = concat!(module_path!(), "::process_of_a_test");
const STREAMS: [&str; 2] = ["reports", "discovery"];
/// The second one is in no dictionary.
const VALUES: [&str; 2] = ["one", "four"];

/// A collector that says what it took to the process of the tests, and answers after a time.
struct Saying(Arc<Fake>, Duration);

impl Http for Saying {
    fn exchange(&self, request: &Request<'_>) -> Result<Response, Failure> {
        let before = |told: &Told| (told.posts.len(), told.asked.len());
        let (posts, asked) = before(&self.0.told());
        let answer = self.0.exchange(request);
        let told = self.0.told();
        for post in &told.posts[posts..] {
            post.reports.iter().for_each(|one| say(&format!("{} {} {}", post.stream, hex(one), post.token.1)));
        }
        told.asked[asked..].iter().for_each(|one| say(&format!("asked {}", hex(&one.blinded))));
        drop(told);
        thread::sleep(self.1);
        answer
    }
}

fn saying(world: &World, time: Duration) -> Sender {
    world.sender_with(|options| options.http = Arc::new(Saying(world.fake.clone(), time)))
}

fn world(store: Store, changes: &Value) -> World {
    World { store, ..World::new(changes) }
}

fn campaign(task: &str) -> Value {
    if task == "deliver" { json!({}) } else { oblivious() }
}

/// What a process does that another test begins.
#[test]
fn process_of_a_test() {
    let Some((task, folder)) = task() else { return };
    let Ok(store) = Store::open(folder.join("store")) else { return };
    let world = world(store, &campaign(&task));
    if task == "fork" {
        return fork(&world, &folder);
    }
    if task == "deliver" {
        world.told().most_reports = 3;
        saying(&world, Duration::from_millis(20)).deliver(false).unwrap();
        return;
    }
    let one = saying(&world, Duration::ZERO);
    for value in VALUES {
        if one.try_report(value, &[]).is_ok() {
            say(&format!("acknowledged {value}"));
        }
        let _ = one.deliver(false);
    }
    one.stop();
}

/// Fork while reports wait, in a file and in memory; opening one file forks (`die.c`), and the parent waits for the
/// child.
fn fork(world: &World, folder: &Path) {
    let memory = World::new(&json!({}));
    let (one, lost) = (saying(world, Duration::ZERO), memory.sender());
    for sender in [&one, &lost] {
        sender.try_report("one", &[]).unwrap();
    }
    say("acknowledged one");
    if fs::File::open(folder.join("fork")).is_err() {
        for sender in [&one, &lost] {
            for refused in [sender.try_report("four", &[]), sender.deliver(true).map(drop), sender.forget()] {
                assert_eq!(refused.unwrap_err().kind(), Kind::Usage);
            }
            sender.start();
            sender.stop();
        }
        // What one process has in memory is not spent by two.
        assert_eq!(lost.spent().unwrap_err().kind(), Kind::Usage);
        assert!(one.spent().is_ok());
        let own = saying(world, Duration::ZERO);
        own.try_report("four", &[]).unwrap();
        say("acknowledged four");
        own.stop();
        own.deliver(true).unwrap();
        drop((one, lost));
        process::exit(i32::from(!memory.told().posts.is_empty()));
    }
    one.deliver(false).unwrap();
    assert_eq!(lost.deliver(false).unwrap().sent, 2);
}

/// Let a process report and deliver; at one of its calls something happens.
fn live(library: &Path, folder: &Folder, how: &str, at: &str) -> Vec<String> {
    let mut process = folder.process(CHILD, "live");
    process.env("LD_PRELOAD", library).env("DIE_HOW", how).env("DIE_AT", at).env("DIE_COUNT", folder.file("count"));
    let output = process.output().unwrap();
    assert_eq!(output.status.success(), how == "full" || how == "broken" || at == "-1", "{how} at {at}");
    said(&output)
}

/// Return what a process said of one kind.
fn of_kind<'a>(said: &'a [String], kind: &'static str) -> impl Iterator<Item = &'a str> {
    said.iter().filter_map(move |line| line.strip_prefix(kind)?.strip_prefix(' '))
}

/// Let another process send what is left; return how many values it sent without their names.
fn go_on(folder: &Folder, said: &[String], place: &str) -> usize {
    for file in fs::read_dir(folder.file("")).unwrap() {
        let octets = fs::read(file.unwrap().path()).unwrap();
        assert!(!octets.windows(4).any(|four| four == b"four"), "{place}");
    }
    let world = world(Store::open(folder.file("store")).unwrap(), &oblivious());
    world.sql("UPDATE queue SET claimed_until = 0");
    world.again_now();
    let after = world.sender();
    let done = after.deliver(true).unwrap();
    assert_eq!((done.waiting, done.dropped.len()), (0, 0), "{place}");
    let of = |kind| of_kind(said, kind);
    let acknowledged = of("acknowledged").count();
    for stream in STREAMS {
        let told = world.told();
        let sent = of(stream).map(|line| line.split(' ').next().unwrap().to_owned());
        let all: BTreeSet<_> = sent.chain(told.received(stream).into_iter().map(hex)).collect();
        let of_stream = |line: &&crate::budget::StreamSpent| format!("{:?}", line.stream).to_lowercase() == stream;
        let charged: u64 = after.spent().unwrap().streams.iter().filter(of_stream).map(|line| line.reports).sum();
        let order = [acknowledged, all.len(), charged as usize, acknowledged + 1];
        assert!(order.is_sorted(), "{place}, {stream}: {order:?}");
    }
    let posts = world.told();
    let tokens = posts.posts.iter().map(|post| post.token.1.as_str());
    let said_tokens = STREAMS.into_iter().flat_map(of).map(|line| line.split(' ').nth(1).unwrap());
    assert!(tokens.chain(said_tokens).collect::<BTreeSet<_>>().len() <= 1, "{place}");
    assert!(posts.asked.is_empty(), "{place}: no other process knows the value");
    drop(posts);
    values(&world).iter().filter(|value| value.is_none()).count()
}

/// Do it at every n-th call; return how many reports were sent without their names afterwards.
fn everywhere(how: &str, each: usize) -> usize {
    let (tools, folder) = (Folder::new(), Folder::new());
    let library = compiled(&tools);
    let whole = live(&library, &folder, "kill", "-1");
    for (kind, number) in [("acknowledged", 2), ("asked", 2), ("reports", 2), ("discovery", 2)] {
        assert_eq!(of_kind(&whole, kind).count(), number);
    }
    let calls: usize = fs::read_to_string(folder.file("count")).unwrap().parse().unwrap();
    assert!(calls > 400, "{calls}");
    let blanks = (0..calls).step_by((each / number(1)).max(1)).map(|at| {
        let folder = Folder::new();
        let said = live(&library, &folder, how, &at.to_string());
        // An answer that cannot be stored is asked for again, with the same bytes.
        let mut asked = BTreeSet::new();
        assert!(of_kind(&said, "asked").all(|bytes| asked.insert(bytes) || how != "kill"));
        go_on(&folder, &said, &format!("{how} at call {at} of {calls}"))
    });
    blanks.sum()
}

#[test]
fn a_process_that_is_killed_at_any_step_sends_one_report_of_each_value_and_has_nothing_counted_twice() {
    let blanks = everywhere("kill", 7);
    assert!(blanks > 0, "an evaluation was open");
}

#[test]
fn with_a_full_or_broken_disk_nothing_is_lost_that_was_acknowledged_and_nothing_is_counted_twice() {
    everywhere("full", 19);
    everywhere("broken", 19);
}

#[test]
fn processes_that_deliver_at_once_send_each_report_once() {
    let folder = Folder::new();
    let one = world(Store::open(folder.file("store")).unwrap(), &json!({})).sender();
    (0..12).for_each(|_| one.try_report("one", &[]).unwrap());
    let children: Vec<_> =
        (0..4).map(|_| folder.process(CHILD, "deliver").stdout(process::Stdio::piped()).spawn().unwrap()).collect();
    let outputs: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    assert!(outputs.iter().all(|output| output.status.success()));
    let said: Vec<_> = outputs.iter().flat_map(said).collect();
    for stream in STREAMS {
        let sent: Vec<_> = of_kind(&said, stream).collect();
        assert_eq!((sent.len(), sent.into_iter().collect::<BTreeSet<_>>().len()), (12, 12), "{stream}");
    }
}

#[test]
fn a_forked_process_needs_a_sender_of_its_own_and_sends_nothing_of_its_parents_memory() {
    let (tools, folder) = (Folder::new(), Folder::new());
    let output = folder.process(CHILD, "fork").env("LD_PRELOAD", compiled(&tools)).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = said(&output);
    go_on(&folder, &said, "after a fork");
    for kind in ["acknowledged", "asked", "reports", "discovery"] {
        let each: Vec<_> = of_kind(&said, kind).collect();
        assert_eq!((each.len(), each.into_iter().collect::<BTreeSet<_>>().len()), (2, 2), "{kind}");
    }
}
