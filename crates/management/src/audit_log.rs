//! Who has changed what, and who could not log in: lines of JSON in a file of the data directory.
//!
//! ```text
//! {"time":text,"event":"change","user":"<ud>bob</ud>","request":"PUT /settings/...","status":200}
//! {"time":text,"event":"login failed","user":"<ud>bob</ud>","door":"rest"}
//! {"time":text,"event":"audit log","user":"<ud>bob</ud>","is_on":false}
//! ```
//!
//! A line never has the body of a request, so no secret. Lines are written by a thread of their
//! own; one too many is left out, and the next one says how many were.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use platform::files::{directory_of, open_log};
use platform::redaction::UserData;
use platform::{Clock, File, FileError, FileErrorKind, Files};
use serde_json::{Value, json};

use crate::date::rfc3339;

/// Lines that wait to be written.
const WAITING_MAX: usize = 1_024;
/// Bytes of the file behind which it becomes the one of before.
pub(crate) const FILE_BYTES_MAX: u64 = 20 << 20;
/// Bytes that are shown of what a client has said.
const SHOWN_BYTES_MAX: usize = 512;

/// Beside the file, and there while it is switched off.
const OFF_SUFFIX: &str = ".off";

/// The audit log. Dropping it writes what waits.
pub struct AuditLog {
    clock: Clock,
    files: Arc<dyn Files>,
    /// The mark that it is off, which is there after a start, too.
    off_mark: PathBuf,
    is_on: AtomicBool,
    /// Held while it is switched.
    switching: Mutex<()>,
    lines: Mutex<Option<SyncSender<String>>>,
    /// Lines since the last one that there was no room for, and all of them.
    left_out: AtomicU64,
    left_out_ever: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

impl AuditLog {
    /// Begins, or goes on with, the file at `path`; the one of before is beside it, as `<path>.1`.
    /// It is on unless it was switched off.
    ///
    /// # Errors
    /// There is no thread for it, or nobody can tell whether it is on.
    pub fn start(clock: Clock, files: Arc<dyn Files>, path: PathBuf) -> std::io::Result<Self> {
        let off_mark = with_suffix(&path, OFF_SUFFIX);
        let is_off = files.exists(&off_mark).map_err(std::io::Error::other)?;
        let (lines, waiting) = sync_channel(WAITING_MAX);
        let for_marks = Arc::clone(&files);
        let run = move || write_all(&*files, &path, FILE_BYTES_MAX, &waiting);
        let thread = Some(platform::threads::spawn("Audit", run)?);
        let lines = Mutex::new(Some(lines));
        Ok(Self {
            clock,
            files: for_marks,
            off_mark,
            is_on: AtomicBool::new(!is_off),
            switching: Mutex::default(),
            lines,
            left_out: AtomicU64::new(0),
            left_out_ever: AtomicU64::new(0),
            thread,
        })
    }

    /// Whether anything is noted.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Events that were not noted because there was no room for them.
    pub fn left_out_count(&self) -> u64 {
        self.left_out_ever.load(Ordering::Relaxed)
    }

    /// Switches it on or off, durably. Who has done so is the last thing noted, or the first.
    ///
    /// # Errors
    /// It is as it was. A start may find it the other way, until it has been switched again.
    pub fn switch(&self, is_on: bool, user: &str) -> Result<(), FileError> {
        let _one_at_a_time = self.switching.lock().unwrap_or_else(PoisonError::into_inner);
        // Also where it is so already: an attempt before that failed may have left half of it.
        self.keep(is_on)?;
        if is_on == self.is_on() {
            return Ok(());
        }
        // It is on while the note is taken.
        self.is_on.store(true, Ordering::Relaxed);
        let event = json!({"event": "audit log", "user": marked(user)});
        self.record(event, "is_on", is_on.into());
        self.is_on.store(is_on, Ordering::Relaxed);
        Ok(())
    }

    /// Has the next start find it on or off.
    fn keep(&self, is_on: bool) -> Result<(), FileError> {
        if !is_on {
            return self.files.replace_all(&self.off_mark, b"");
        }
        match self.files.remove(&self.off_mark) {
            Err(error) if error.kind != FileErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.files.sync_directory(directory_of(&self.off_mark))
    }

    /// Somebody has asked for a change; `path` is that of the request.
    pub fn change(&self, user: &str, method: &str, path: &str, status: u16) {
        let request = format!("{method} {}", marked(path));
        let event = json!({"event": "change", "user": marked(user), "request": request});
        self.record(event, "status", status.into());
    }

    /// Somebody could not log in.
    pub fn login_failed(&self, user: &str, door: &str) {
        self.record(json!({"event": "login failed", "user": marked(user)}), "door", door.into());
    }

    fn record(&self, mut event: Value, name: &str, value: Value) {
        if !self.is_on() {
            return;
        }
        let Some(fields) = event.as_object_mut() else { return };
        let seconds = self.clock.wall_time().seconds();
        fields.insert("time".to_owned(), rfc3339(seconds.into()).into());
        fields.insert(name.to_owned(), value);
        // Taken out before the line is sent, and put back if it is not: no two lines tell of the
        // same ones.
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        if left_out > 0 {
            fields.insert("left_out_before".to_owned(), left_out.into());
        }
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = lines.as_ref().is_some_and(|lines| lines.try_send(format!("{event}\n")).is_ok());
        if !sent {
            self.left_out.fetch_add(left_out + 1, Ordering::Relaxed);
            self.left_out_ever.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        *self.lines.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that writes the audit log has panicked");
        }
    }
}

/// What a client has said, marked as that, and not longer than it may be shown.
fn marked(said: &str) -> String {
    let shown: String = said.chars().take(SHOWN_BYTES_MAX).collect();
    UserData(shown).to_string()
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Writes lines as they come. A disk that takes none keeps nobody from anything.
fn write_all(files: &dyn Files, path: &Path, bytes_max: u64, lines: &Receiver<String>) {
    let mut current = None;
    for line in lines {
        if let Err(error) = write(files, path, bytes_max, &mut current, line.as_bytes()) {
            tracing::warn!(%error, "a line of the audit log could not be written");
        }
    }
}

/// The file that lines go to.
struct Current {
    file: Box<dyn File>,
    size: u64,
    /// Bytes from which on it is to become the one of before.
    renamed_from: u64,
}

impl Current {
    fn open(files: &dyn Files, path: &Path, bytes_max: u64) -> Result<Self, FileError> {
        let (file, size) = open_log(files, path)?;
        Ok(Self { file, size, renamed_from: bytes_max })
    }
}

fn write(
    files: &dyn Files,
    path: &Path,
    bytes_max: u64,
    current: &mut Option<Current>,
    line: &[u8],
) -> Result<(), FileError> {
    let mut open = match current.take() {
        Some(open) => open,
        None => Current::open(files, path, bytes_max)?,
    };
    if open.size >= open.renamed_from {
        match files.rename(path, &with_suffix(path, ".1")) {
            Err(error) if error.kind != FileErrorKind::NotFound => {
                tracing::warn!(%error, "the audit log grows further");
                // The line has a place all the same. Tried again behind as much.
                open.renamed_from = open.size.saturating_add(bytes_max);
            }
            _ => open = Current::open(files, path, bytes_max)?,
        }
    }
    open.file.write_at(line, open.size)?;
    open.size = open.size.saturating_add(u64::try_from(line.len()).unwrap_or(u64::MAX));
    *current = Some(open);
    Ok(())
}

#[cfg(test)]
mod tests {
    use platform::files::RealFiles;
    use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};

    use super::*;

    #[test]
    fn lines_are_kept_over_starts_and_have_no_control_characters() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        for user in ["bob", "eve\n\"{}"] {
            let log = AuditLog::start(Clock::real(), Arc::new(RealFiles), path.clone()).unwrap();
            log.change(user, "PUT", "/settings/rbac/users/local/u", 200);
            log.login_failed(user, "rest");
        }
        let text = platform::files::read_text(&path).unwrap();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0]["user"], "<ud>bob</ud>");
        assert_eq!(lines[0]["status"], 200);
        assert_eq!(lines[3]["door"], "rest");
    }

    #[test]
    fn what_is_switched_off_stays_off_over_starts_and_says_who_did_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        for (is_on_before, is_on) in [(true, false), (false, false), (false, true), (true, true)] {
            let log = AuditLog::start(Clock::real(), Arc::new(RealFiles), path.clone()).unwrap();
            assert_eq!(log.is_on(), is_on_before);
            log.switch(is_on, "bob").unwrap();
            assert_eq!(log.is_on(), is_on);
            log.login_failed("eve", "rest");
        }
        let text = platform::files::read_text(&path).unwrap();
        let events = text.lines().map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            (line["event"].as_str().unwrap().to_owned(), line["is_on"].as_bool())
        });
        let failed = || ("login failed".to_owned(), None);
        let switched = |is_on| ("audit log".to_owned(), Some(is_on));
        let expected = [switched(false), switched(true), failed(), failed()];
        assert_eq!(events.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_file_that_is_long_enough_becomes_the_one_of_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let mut current = None;
        for line in [b"one\n", b"two\n", b"thr\n"] {
            write(&RealFiles, &path, 4, &mut current, line).unwrap();
        }
        assert_eq!(platform::files::read_text(&path).unwrap(), "thr\n");
        let before = directory.path().join("audit.log.1");
        assert_eq!(platform::files::read_text(&before).unwrap(), "two\n");
    }

    #[test]
    fn what_is_switched_is_so_after_a_power_cut_and_after_an_attempt_that_failed() {
        let path = Path::new("/data/audit.log");
        for is_on in [false, true] {
            for failed_call in [None, Some(Call::SyncDirectory)] {
                let files = SimulatedFiles::new();
                files.create_directories(Path::new("/data")).unwrap();
                let start = || {
                    let files = Arc::new(files.clone());
                    AuditLog::start(Clock::real(), files, path.to_owned()).unwrap()
                };
                let log = start();
                log.switch(!is_on, "bob").unwrap();
                if let Some(call) = failed_call {
                    let (call, error) = (Some(call), FaultError::Io);
                    files.fail(Fault { call, number: 1, error, from_then_on: false });
                    log.switch(is_on, "bob").unwrap_err();
                    assert_ne!(log.is_on(), is_on, "it is as it was");
                }
                log.switch(is_on, "bob").unwrap();
                assert_eq!(log.is_on(), is_on);
                files.power_cut(0);
                assert_eq!(start().is_on(), is_on, "{failed_call:?}");
            }
        }
    }

    #[test]
    fn a_file_that_cannot_be_renamed_takes_every_line_until_it_can() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let before = directory.path().join("audit.log.1");
        // No file can be renamed to a directory.
        RealFiles.create_directories(&before.join("inside")).unwrap();
        let mut current = None;
        let mut add = |line| write(&RealFiles, &path, 4, &mut current, line).unwrap();
        for line in [b"one\n", b"two\n", b"thr\n"] {
            add(line);
        }
        assert_eq!(platform::files::read_text(&path).unwrap(), "one\ntwo\nthr\n");
        platform::files::remove_tree(&before).unwrap();
        add(b"fou\n");
        assert_eq!(platform::files::read_text(&path).unwrap(), "fou\n");
        assert_eq!(platform::files::read_text(&before).unwrap(), "one\ntwo\nthr\n");
    }
}
