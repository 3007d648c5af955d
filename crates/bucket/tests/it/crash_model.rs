//! Random operations, random progress of flushing, random power cuts: after each there is, of every
//! vBucket, exactly one prefix of its history, and it reaches at least as far as was acknowledged.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bucket::{Addition, CounterRequest, Incoming, Placement, Refused};
use document::{Cas, Seqno, Vbid};
use platform::files::RealFiles;
use platform::seeds::seeds;
use platform::simulated::{Call, Fault, FaultError};
use platform::{Files, OpenMode, Random};
use storage::couchstore::CouchFile;
use vbucket::eviction::EvictionPolicy;
use vbucket::{Mutation, StoreMode, WriteCondition};

use crate::support::{DIRECTORY, Machine, No, Unanswered, answered, config, key, written};

const KEY_COUNT: u64 = 6;
const VBUCKET_COUNT: u16 = 4;

/// A version of a document: its body and its expiry; `None` when it is deleted.
type Version = Option<(Vec<u8>, u32)>;

/// What one vBucket must look like.
#[derive(Default)]
struct History {
    /// The version that each seqno wrote, by key.
    versions: BTreeMap<String, Vec<(Seqno, Version)>>,
    high_seqno: Seqno,
    max_cas: Cas,
}

impl History {
    /// The version of a key that is alive now.
    fn live(&self, name: &str, seconds: u32) -> Version {
        let newest = self.versions.get(name)?.last()?.1.clone()?;
        let is_over = newest.1 != 0 && newest.1 < seconds;
        (!is_over).then_some(newest)
    }

    fn record(&mut self, name: &str, version: Version) {
        self.high_seqno = self.high_seqno.next();
        self.versions.entry(name.to_owned()).or_default().push((self.high_seqno, version));
    }

    /// Takes back everything after `seqno`.
    fn cut(&mut self, seqno: Seqno) {
        self.high_seqno = seqno;
        for versions in self.versions.values_mut() {
            versions.retain(|(written, _)| *written <= seqno);
        }
    }
}

struct Model {
    machine: Machine,
    random: Random,
    histories: Vec<History>,
    seed: u64,
}

#[test]
fn after_every_power_cut_each_vbucket_is_a_prefix_of_its_history() {
    for seed in seeds(60) {
        let mut model = Model::new(seed);
        for _ in 0..8 {
            for _ in 0..model.random.below(80) {
                model.step();
            }
            model.end();
        }
        if seed <= 3 {
            model.machine.run();
            verify_files(&model.machine, seed);
        }
    }
}

impl Model {
    fn new(seed: u64) -> Self {
        let flush_interval = Duration::from_millis(if seed.is_multiple_of(2) { 0 } else { 50 });
        let config =
            bucket::BucketConfig { flush_batch_bytes_max: 400, flush_interval, ..config() };
        Self {
            machine: Machine::with(config),
            random: Random::from_seed(seed),
            histories: (0..VBUCKET_COUNT).map(|_| History::default()).collect(),
            seed,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn step(&mut self) {
        match self.below(25) {
            0..5 => drop(self.machine.driver.run_one()),
            5 => self.machine.advance(Duration::from_secs(1)),
            6 => self.machine.run(),
            7 => self.toggle_faults(),
            8 => self.evict(),
            9 => self.change_policy(),
            _ => self.operate(),
        }
    }

    fn toggle_faults(&mut self) {
        self.machine.files.heal();
        if self.seed.is_multiple_of(3) && self.below(2) == 0 {
            let number = self.below(3) + 1;
            let call = [Call::Sync, Call::Write][self.below(2) as usize];
            let error = [FaultError::Io, FaultError::NoSpace][self.below(2) as usize];
            let from_then_on = self.below(2) == 0;
            self.machine.files.fail(Fault { call: Some(call), number, error, from_then_on });
        }
    }

    fn any_key(&mut self) -> (Vbid, String) {
        let vbid = Vbid(u16::try_from(self.below(u64::from(VBUCKET_COUNT))).unwrap());
        (vbid, format!("key-{}", self.below(KEY_COUNT)))
    }

    fn evict(&mut self) {
        let (vbid, name) = self.any_key();
        self.machine.evict(vbid, &name).ok();
    }

    /// What leaves memory changes, at whatever moment. A start may have either policy.
    fn change_policy(&mut self) {
        let policy = self.any_policy();
        self.machine.bucket.set_eviction_policy(policy);
    }

    fn any_policy(&mut self) -> EvictionPolicy {
        [EvictionPolicy::ValueOnly, EvictionPolicy::Full][self.below(2) as usize]
    }

    /// Does something to one key, here and in the model.
    fn operate(&mut self) {
        let (vbid, name) = self.any_key();
        // Values that are on disk only are fetched first, so that the operation gives its answer.
        let seconds = self.machine.clock.wall_time().seconds();
        self.machine.files.heal();
        let read = self.machine.get(vbid, &name);
        self.settle_read(vbid, &name, read);
        let live = self.histories[usize::from(vbid.0)].live(&name, seconds);
        let expiry = if self.below(3) == 0 { seconds + self.below(3) as u32 + 1 } else { 0 };
        let size = [3, 30, 300, 5000][self.below(4) as usize];
        let value = format!("{:0size$}", self.below(1_000_000)).into_bytes();
        let (result, expected) = match self.below(7) {
            0 => self.expect_store(StoreMode::Set, vbid, &name, value, expiry, true),
            1 => self.expect_store(StoreMode::Add, vbid, &name, value, expiry, live.is_none()),
            2 => self.expect_store(StoreMode::Replace, vbid, &name, value, expiry, live.is_some()),
            3 => (self.machine.delete(vbid, &name), live.is_some().then_some(None)),
            4 => self.append(vbid, &name, live),
            5 => self.count(vbid, &name, live),
            _ => return self.touch(vbid, &name, live, expiry),
        };
        self.settle_write(vbid, &name, result, expected);
    }

    fn expect_store(
        &mut self,
        mode: StoreMode,
        vbid: Vbid,
        name: &str,
        value: Vec<u8>,
        expiry: u32,
        succeeds: bool,
    ) -> (Result<Mutation, Unanswered>, Option<Version>) {
        let result = self.machine.store(mode, vbid, name, &value, expiry);
        (result, succeeds.then_some(Some((value, expiry))))
    }

    fn append(
        &mut self,
        vbid: Vbid,
        name: &str,
        live: Version,
    ) -> (Result<Mutation, Unanswered>, Option<Version>) {
        let added = Incoming::plain(b"+");
        let (key, condition) = (key(name), WriteCondition::default());
        let placement = Placement::Back;
        let addition = Addition { vbid, key: key.as_key(), placement, added, condition };
        let result = self.machine.bucket.concatenate(&mut self.machine.session, addition);
        let result = written(result.map(|attempted| attempted.map(|it| it.written)));
        let expected = live.map(|(value, expiry)| Some(([&value[..], b"+"].concat(), expiry)));
        (result, expected)
    }

    fn count(
        &mut self,
        vbid: Vbid,
        name: &str,
        live: Version,
    ) -> (Result<Mutation, Unanswered>, Option<Version>) {
        let request = CounterRequest {
            is_increment: true,
            delta: 5,
            created_with: Some((40, 0)),
            expiry: None,
        };
        let session = &mut self.machine.session;
        let counted = self.machine.bucket.count(
            session,
            vbid,
            key(name).as_key(),
            request,
            WriteCondition::default(),
        );
        let number = live.as_ref().map(|(value, _)| {
            let digits = value.iter().all(u8::is_ascii_digit);
            let text = std::str::from_utf8(value).ok().filter(|_| digits)?;
            text.parse::<u64>().ok()
        });
        let expected = match number {
            None => Some(Some((b"40".to_vec(), 0))),
            Some(None) => None,
            Some(Some(number)) => {
                let value = number.wrapping_add(5).to_string().into_bytes();
                Some(Some((value, live.map_or(0, |(_, expiry)| expiry))))
            }
        };
        (answered(counted).map(|counter| counter.written.done().unwrap()), expected)
    }

    fn touch(&mut self, vbid: Vbid, name: &str, live: Version, expiry: u32) {
        let session = &mut self.machine.session;
        let touched = self.machine.bucket.touch(session, vbid, key(name).as_key(), expiry);
        let seed = self.seed;
        match (answered(touched), live) {
            (Ok(_), Some((_, before))) if before == expiry => {}
            (Ok(found), Some((value, _))) => {
                let history = &mut self.histories[usize::from(vbid.0)];
                assert!(found.cas > history.max_cas, "seed {seed}: a touch is a new version");
                history.max_cas = found.cas;
                history.record(name, Some((value, expiry)));
            }
            (Err(No(Refused::NotFound)), None) | (Err(No(Refused::Blocked(_))), _) => {}
            (touched, live) => panic!("seed {seed}: {touched:?} of {live:?}"),
        }
        self.check_high_seqno(vbid);
    }

    /// A read shows what the model says, and deletes what is over.
    fn settle_read(&mut self, vbid: Vbid, name: &str, read: Result<Vec<u8>, Unanswered>) {
        let (seed, seconds) = (self.seed, self.machine.clock.wall_time().seconds());
        let history = &mut self.histories[usize::from(vbid.0)];
        let live = history.live(name, seconds);
        let expected = live.clone().map(|(value, _)| value).ok_or(No(Refused::NotFound));
        assert_eq!(read, expected, "seed {seed}, {vbid} {name}");
        let newest = history.versions.get(name).and_then(|versions| versions.last());
        if live.is_none() && newest.is_some_and(|(_, version)| version.is_some()) {
            history.record(name, None);
            self.machine.bucket.with_vbucket(vbid, |vbucket| history.max_cas = vbucket.max_cas());
        }
        self.check_high_seqno(vbid);
    }

    fn settle_write(
        &mut self,
        vbid: Vbid,
        name: &str,
        result: Result<Mutation, Unanswered>,
        expected: Option<Version>,
    ) {
        let seed = self.seed;
        let history = &mut self.histories[usize::from(vbid.0)];
        match (result, expected) {
            (Ok(mutation), Some(version)) => {
                assert_eq!(mutation.seqno, history.high_seqno.next(), "seed {seed}");
                assert!(mutation.cas > history.max_cas, "seed {seed}: CAS rises");
                history.max_cas = mutation.cas;
                history.record(name, version);
            }
            (Err(No(Refused::Blocked(_))), _) => {}
            (Err(No(refused)), None) => assert!(
                matches!(
                    refused,
                    Refused::NotFound | Refused::Exists | Refused::NotStored | Refused::NotANumber
                ),
                "seed {seed}: {refused:?}"
            ),
            (result, expected) => panic!("seed {seed}, {name}: {result:?} for {expected:?}"),
        }
        self.check_high_seqno(vbid);
    }

    fn check_high_seqno(&self, vbid: Vbid) {
        let expected = self.histories[usize::from(vbid.0)].high_seqno;
        assert_eq!(self.machine.high_seqno(vbid), expected, "seed {}, {vbid}", self.seed);
    }

    /// Ends the machine's run one way or another and looks at what the next one finds.
    fn end(&mut self) {
        let is_clean = self.below(3) == 0;
        let cut_seed = self.below(1000);
        self.machine.files.heal();
        let vbids = || (0..VBUCKET_COUNT).map(Vbid);
        let acknowledged: Vec<_> = vbids().map(|vbid| self.machine.persisted(vbid)).collect();
        let branches: Vec<_> = vbids().map(|vbid| self.machine.branches(vbid)).collect();
        let config = config();
        let mut old = std::mem::replace(&mut self.machine, Machine::with(config));
        old.config.eviction.policy = self.any_policy();
        let machine = if is_clean { old.stop_and_start() } else { old.power_cut(cut_seed) };
        self.machine = machine;
        self.machine.run();
        for vbid in vbids() {
            let index = usize::from(vbid.0);
            let found = self.machine.high_seqno(vbid);
            let at = format!("seed {}, {vbid}, {found} after {}", self.seed, acknowledged[index]);
            let history = &mut self.histories[index];
            if is_clean {
                assert_eq!(found, history.high_seqno, "{at}");
            }
            assert!((acknowledged[index]..=history.high_seqno).contains(&found), "{at}");
            history.cut(found);
            let now = self.machine.branches(vbid);
            if found != Seqno(0) {
                let is_continued = now == branches[index];
                let is_branched = now[1..] == branches[index][..branches[index].len().min(24)];
                assert!(if is_clean { is_continued } else { is_branched }, "{at}: {now:?}");
            }
        }
        for vbid in vbids() {
            for number in 0..KEY_COUNT {
                let name = format!("key-{number}");
                let read = self.machine.get(vbid, &name);
                self.settle_read(vbid, &name, read);
            }
            let mut count = 0;
            self.machine.bucket.with_vbucket(vbid, |vbucket| count = vbucket.document_count());
            let versions = self.histories[usize::from(vbid.0)].versions.values();
            let is_there = |it: &&Vec<(Seqno, Version)>| it.last().is_some_and(|it| it.1.is_some());
            assert_eq!(count, versions.filter(is_there).count(), "seed {}, {vbid}", self.seed);
        }
    }
}

/// Has the files of the machine checked by ourselves and read by somebody else.
fn verify_files(machine: &Machine, seed: u64) {
    let target = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for name in machine.files.list(Path::new(DIRECTORY)).unwrap() {
        if name.contains(".couch") {
            let path = target.path().join(&name);
            let content = machine.files.content(&Path::new(DIRECTORY).join(&name)).unwrap();
            RealFiles.replace_all(&path, &content).unwrap();
            let file = CouchFile::open(&RealFiles, &path, OpenMode::Read).unwrap();
            let verification = storage::verify_file(&file).unwrap();
            assert!(verification.is_sound(), "seed {seed}: {:?}", verification.findings);
            paths.push(path);
        }
    }
    assert!(!paths.is_empty(), "seed {seed}");
    let verifier = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/couchverify.py");
    let arguments = [verifier, "--kv", "--all-headers"];
    let output = match Command::new("python3").args(arguments).args(&paths).output() {
        Ok(output) => output,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "CI needs python3: {error}");
            return;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "seed {seed}: {said}");
}
