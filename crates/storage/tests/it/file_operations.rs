//! What a store is told and what it does to files: the cases and their answers are in the files of
//! `file_operations/`, which `BLESS=1` writes anew. `file_operations/files.txt` says how they are
//! written.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use blessed::{Line, check_conversations};
use document::{Seqno, Vbid};
use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};
use platform::{Clock, Entropy, Files, WallTime};
use storage::{
    CompactionPhase, CompactionProgress, CompactionRequest, JournalOptions, LastStop, StartReport,
    StorageError, Store, StoreOptions,
};

use crate::batches::{DIRECTORY, batch, item, record};
use crate::compaction::Between;

/// Commits fill a segment soon.
const JOURNAL: JournalOptions = JournalOptions {
    segment_bytes: 16 << 10,
    bytes_max: 64 << 10,
    group_bytes_max: 8 << 10,
    portion_bytes: 4096,
};

/// A disk, and the store on it while it is open.
struct Play {
    files: SimulatedFiles,
    entropy: Entropy,
    journal: Option<JournalOptions>,
    store: Option<Store>,
    last_stop: LastStop,
    /// The last seqno that was handed in, by vBucket.
    seqnos: BTreeMap<u16, u64>,
}

#[test]
fn a_store_without_a_journal_does_to_files_what_is_written() {
    check_conversations(
        "crates/storage/tests/it/file_operations/files.txt",
        || Play::begin(None),
        Play::say,
    );
}

#[test]
fn a_store_with_a_journal_does_to_files_what_is_written() {
    check_conversations(
        "crates/storage/tests/it/file_operations/journal.txt",
        || Play::begin(Some(JOURNAL)),
        Play::say,
    );
}

impl Play {
    fn begin(journal: Option<JournalOptions>) -> Self {
        let files = SimulatedFiles::new();
        files.record();
        Self {
            files,
            entropy: Entropy::simulated(1),
            journal,
            store: None,
            last_stop: LastStop::default(),
            seqnos: BTreeMap::new(),
        }
    }

    fn say(&mut self, line: &Line<'_>) -> Vec<String> {
        if line.verb == "silently" {
            let answers = self.say(&Line::parse(line.rest()));
            let has_failed = answers.iter().any(|answer| answer.contains("fails: "));
            assert!(!has_failed, "{answers:?}");
            return Vec::new();
        }
        line.allow(&["items", "bytes", "commits"]);
        let outcome = match line.verb {
            "open" => self.open(),
            "drop" => {
                self.store = None;
                Ok(Vec::new())
            }
            "stop" => self.stop(),
            "cut" => {
                self.store = None;
                self.last_stop.was_clean = false;
                self.files.power_cut(0);
                Ok(Vec::new())
            }
            "commit" => self.commit(line),
            "apply" => self.apply(line),
            "prepare" => self.store().prepare_journal().map(|()| Vec::new()),
            "carry" => self.store().carry_forward(true).map(|()| Vec::new()),
            "compact" => self.compact(line),
            "delete" => self.delete(line),
            "rollback" => self.rollback(line),
            "reset" => self.store().reset(vbid(line), &record(0)).map(|()| {
                self.seqnos.insert(vbid(line).0, 0);
                Vec::new()
            }),
            "fail" => {
                self.fail(line);
                Ok(Vec::new())
            }
            "damage" => {
                self.damage(line);
                Ok(Vec::new())
            }
            "lose" => {
                self.files.remove(Path::new(line.word(0))).unwrap();
                self.files.take_recorded();
                Ok(Vec::new())
            }
            "list" => return self.list(),
            _ => panic!("`{}` is no line of a case", line.text),
        };
        let mut answers = self.shown_calls();
        match outcome {
            Ok(facts) => answers.extend(facts.into_iter().map(|fact| format!("({fact})"))),
            Err(error) => answers.push(format!("(fails: {error})")),
        }
        answers
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("the store is open")
    }

    fn open(&mut self) -> Result<Vec<String>, StorageError> {
        self.store = None;
        let options = StoreOptions {
            entropy: self.entropy.clone(),
            clock: Clock::simulated(WallTime(1_700_000_000_000_000_000)),
            open_files_max: 2,
            journal: self.journal,
        };
        let (files, directory) = (Arc::new(self.files.clone()), Path::new(DIRECTORY));
        let (store, report) = Store::open_after(files, directory, options, &self.last_stop)?;
        self.store = Some(store);
        self.last_stop = LastStop::default();
        let found = report.vbuckets.iter().map(|found| (found.vbid.0, found.high_seqno.0));
        self.seqnos.extend(found);
        Ok(found_in(&report))
    }

    /// Everything goes to the files, and the next start is told where they were.
    fn stop(&mut self) -> Result<Vec<String>, StorageError> {
        let store = self.store.take().expect("the store is open");
        while let Some(vbid) = store.next_unapplied(|_| true) {
            store.apply(vbid)?;
        }
        let witnesses = Some(store.witnesses(|_| true));
        let was_clean = store.close_journal();
        self.last_stop = LastStop { was_clean, witnesses, ..LastStop::default() };
        Ok(vec![format!("{}clean", if was_clean { "" } else { "not " })])
    }

    /// A batch of each vBucket that is named.
    fn commit(&mut self, line: &Line<'_>) -> Result<Vec<String>, StorageError> {
        let (items, bytes) = (line.number_in("items"), line.number_in("bytes"));
        let value = vec![b'v'; usize::try_from(bytes.unwrap_or(100)).unwrap()];
        let mut batches = Vec::new();
        for index in 0..line.words.len() {
            let vbid = u16::try_from(line.number(index)).unwrap();
            let last = self.seqnos.entry(vbid).or_default();
            let numbers = *last + 1..=*last + items.unwrap_or(1);
            let items = numbers.map(|seqno| item(&format!("key-{seqno}"), seqno, &value));
            batches.push(batch(Vbid(vbid), items.collect()));
        }
        let (mut facts, seqnos) = (Vec::new(), &mut self.seqnos);
        let store = self.store.as_ref().expect("the store is open");
        store.commit(batches, |vbid, committed| match committed {
            Ok(report) => {
                seqnos.insert(vbid.0, report.high_seqno.0);
                let place = if report.applied.is_some() { "in its file" } else { "in the journal" };
                facts.push(format!("vBucket {} is at {} {place}", vbid.0, report.high_seqno.0));
            }
            Err(error) => facts.push(format!("vBucket {} fails: {error}", vbid.0)),
        });
        Ok(facts)
    }

    fn apply(&self, line: &Line<'_>) -> Result<Vec<String>, StorageError> {
        let applied = self.store().apply(vbid(line))?;
        Ok(vec![match applied {
            Some(applied) => format!("up to {}", applied.high_seqno.0),
            None => "there was nothing to do".to_owned(),
        }])
    }

    /// With `commits`, so many are handed in before the last phase.
    fn compact(&mut self, line: &Line<'_>) -> Result<Vec<String>, StorageError> {
        let (vbid, commits) = (vbid(line), line.number_in("commits").unwrap_or_default());
        let last = self.seqnos.entry(vbid.0).or_default();
        let seqnos = Mutex::new((*last + 1..=*last + commits).collect::<Vec<_>>());
        *last += commits;
        let store = self.store();
        let between = Between(|phase| {
            if phase == CompactionPhase::CatchingUp {
                for seqno in std::mem::take(&mut *seqnos.lock().unwrap()) {
                    let batch = batch(vbid, vec![item(&format!("key-{seqno}"), seqno, b"new")]);
                    store.commit(vec![batch], |_, committed| drop(committed.unwrap()));
                }
            }
        });
        let request = CompactionRequest { sync_bytes: 4096, ..CompactionRequest::default() };
        let progress = CompactionProgress::new();
        let outcome = store.compact(vbid, &request, &progress, &between)?;
        let debugged = format!("{outcome:?}");
        let name = debugged.split(|letter: char| !letter.is_alphanumeric()).next();
        Ok(vec![name.unwrap_or_default().to_owned()])
    }

    fn delete(&mut self, line: &Line<'_>) -> Result<Vec<String>, StorageError> {
        if line.word(0) == "all" {
            let mut gone = Vec::new();
            self.store().delete_all(|vbid| gone.push(format!("vBucket {} is gone", vbid.0)))?;
            self.seqnos.clear();
            return Ok(gone);
        }
        self.store().delete(vbid(line))?;
        self.seqnos.remove(&vbid(line).0);
        Ok(Vec::new())
    }

    fn rollback(&mut self, line: &Line<'_>) -> Result<Vec<String>, StorageError> {
        let rolled_back = self.store().rollback(vbid(line), Seqno(line.number(1)))?;
        if let storage::RolledBack::To(seqno) = rolled_back {
            self.seqnos.insert(vbid(line).0, seqno.0);
        }
        Ok(vec![format!("{rolled_back:?}")])
    }

    /// The next call of a kind fails, or one behind it.
    fn fail(&self, line: &Line<'_>) {
        let call = match line.word(0) {
            "open" => Call::Open,
            "write" => Call::Write,
            "sync" => Call::Sync,
            "rename" => Call::Rename,
            "remove" => Call::Remove,
            "directory" => Call::SyncDirectory,
            _ => panic!("`{}` names no call", line.text),
        };
        let (number, error) = (line.number(1), FaultError::Io);
        self.files.fail(Fault { call: Some(call), number, error, from_then_on: false });
    }

    /// The last bytes of a file are others.
    fn damage(&self, line: &Line<'_>) {
        let path = Path::new(line.word(0));
        let mut content = self.files.content(path).expect("the file is there");
        let at = content.len() - usize::try_from(line.number(1)).unwrap();
        content[at..].fill(0xff);
        self.files.insert(path, &content);
    }

    /// What is there, with sizes.
    fn list(&self) -> Vec<String> {
        let mut paths = vec![DIRECTORY.to_owned()];
        let mut lines = Vec::new();
        while let Some(path) = paths.pop() {
            match self.files.content(Path::new(&path)) {
                Some(content) => lines.push(format!("{path} {} bytes", content.len())),
                None => {
                    let names = self.files.list(Path::new(&path)).unwrap_or_default();
                    paths.extend(names.iter().rev().map(|name| format!("{path}/{name}")));
                }
            }
        }
        lines
    }

    /// What was done to files since this was asked before.
    fn shown_calls(&self) -> Vec<String> {
        self.files.take_recorded().iter().map(ToString::to_string).collect()
    }
}

/// What a start says of what it has found.
fn found_in(report: &StartReport) -> Vec<String> {
    let found = report.vbuckets.iter().map(|found| {
        let behind = if found.file_is_behind { ", its file behind" } else { "" };
        let doubt = if found.is_whole { "" } else { ", perhaps not whole" };
        format!("vBucket {} is at {}{behind}{doubt}", found.vbid.0, found.high_seqno.0)
    });
    let ignored = report.ignored.iter().map(|it| format!("{} is ignored: {:?}", it.name, it.why));
    let shortened = report.shortened.iter();
    let shortened =
        shortened.map(|(vbid, seqno)| format!("vBucket {} ends at {}", vbid.0, seqno.0));
    let journal = report.journal.iter().map(|journal| {
        let torn = journal.torn_tail.as_ref().map_or("no", |torn| torn.what);
        let (segments, groups) = (journal.segment_count, journal.group_count);
        format!("journal: {segments} segments, {groups} groups, torn tail: {torn}")
    });
    found.chain(ignored).chain(shortened).chain(journal).collect()
}

fn vbid(line: &Line<'_>) -> Vbid {
    Vbid(u16::try_from(line.number(0)).unwrap())
}
