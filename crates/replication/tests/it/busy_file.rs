//! A file that somebody takes long to write, and streams of others on the same connection.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bucket::{ApplyConfig, BackfillOrder, BucketConfig, Persistence, PersistenceMode};
use document::{Seqno, Vbid};
use platform::simulated::SimulatedFiles;
use platform::{File, FileError, Files, OpenMode, threads};
use replication::Answer;

use crate::consumer::Consumer;
use crate::support::{Machine, VBID, config};

const BUSY: Vbid = Vbid(1);
/// Whoever waits longer for the writer is not meant to wait at all.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where writers of one file stand.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum GateState {
    #[default]
    Open,
    Shut,
    SomebodyWaits,
}

impl Gate {
    fn set(&self, state: GateState) {
        *self.state.lock().unwrap() = state;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        if *state == GateState::Open {
            return;
        }
        *state = GateState::SomebodyWaits;
        self.changed.notify_all();
        let is_shut = |state: &mut GateState| *state != GateState::Open;
        let (mut state, _) = self.changed.wait_timeout_while(state, PATIENCE, is_shut).unwrap();
        *state = GateState::Open;
    }

    fn wait_for_somebody(&self) {
        let state = self.state.lock().unwrap();
        let is_alone = |state: &mut GateState| *state != GateState::SomebodyWaits;
        let (state, _) = self.changed.wait_timeout_while(state, PATIENCE, is_alone).unwrap();
        assert_eq!(*state, GateState::SomebodyWaits, "the file is written");
    }

    fn state(&self) -> GateState {
        *self.state.lock().unwrap()
    }
}

/// A disk on which writes of one vBucket's file pass the gate.
struct GatedFiles(SimulatedFiles, Arc<Gate>);

struct GatedFile(Box<dyn File>, Arc<Gate>);

impl File for GatedFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize, FileError> {
        self.0.read_at(buffer, position)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> Result<(), FileError> {
        self.1.pass();
        self.0.write_at(bytes, position)
    }

    fn sync(&self) -> Result<(), FileError> {
        self.0.sync()
    }

    fn size(&self) -> Result<u64, FileError> {
        self.0.size()
    }

    fn set_size(&self, size: u64) -> Result<(), FileError> {
        self.0.set_size(size)
    }
}

impl Files for GatedFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>, FileError> {
        let file = self.0.open(path, mode)?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("1.couch") {
            return Ok(Box::new(GatedFile(file, Arc::clone(&self.1))));
        }
        Ok(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<(), FileError> {
        self.0.remove(path)
    }

    fn remove_directory(&self, directory: &Path) -> Result<(), FileError> {
        self.0.remove_directory(directory)
    }

    fn sync_directory(&self, directory: &Path) -> Result<(), FileError> {
        self.0.sync_directory(directory)
    }

    fn create_directory(&self, directory: &Path) -> Result<(), FileError> {
        self.0.create_directory(directory)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>, FileError> {
        self.0.list(directory)
    }

    fn exists(&self, path: &Path) -> Result<bool, FileError> {
        self.0.exists(path)
    }
}

#[test]
fn files_are_read_on_while_another_one_is_written() {
    let gate = Arc::<Gate>::default();
    let files = Arc::new(GatedFiles(SimulatedFiles::new(), Arc::clone(&gate)));
    // No file follows the journal by itself.
    let apply = ApplyConfig { cycle: Duration::from_secs(1_000_000), applier_count: 1 };
    let persistence = Persistence::new(PersistenceMode::Journal, 64 << 20);
    let mut machine = Machine::on(files, BucketConfig { apply, persistence, ..config() });
    for number in 0..250 {
        // Together more than is read ahead.
        machine.set(&format!("key{number}"), &[7; 120_000]);
        machine.run();
    }
    machine.set_in(BUSY, "key", b"v");
    machine.run();

    gate.set(GateState::Shut);
    let bucket = machine.bucket.clone();
    let write = move || {
        let begun = bucket.try_begin_backfill(BUSY, Seqno(0), BackfillOrder::BySeqno);
        assert!(begun.expect("nobody else writes").unwrap().is_some());
    };
    let writer = threads::spawn("writer", write).unwrap();
    gate.wait_for_somebody();
    let mut consumer = Consumer::new(&machine);
    for vbid in [BUSY, VBID] {
        assert!(matches!(consumer.resume(&machine, vbid, u64::MAX), Answer::Value(_)));
    }
    machine.run();
    let read = machine.hub.producer_status()[0].backfill_bytes;
    assert!(read >= 20 << 20, "{read} bytes");
    assert_eq!(gate.state(), GateState::SomebodyWaits, "nobody has waited for the writer");

    gate.set(GateState::Open);
    writer.join().unwrap();
    consumer.take_all(&mut machine);
    for (vbid, count) in [(BUSY, 1), (VBID, 250)] {
        assert_eq!(consumer.streams[&vbid].documents.len(), count);
    }
}
