//! Who has changed what, and who could not log in: lines of JSON in a file of the data directory.
//!
//! ```text
//! {"time":text,"event":"change","user":"<ud>bob</ud>","remote":"10.0.0.1",
//!  "request":"PUT <ud>/settings/...</ud>","status":200 or null}
//! {"time":text,"event":"change","user":"<ud>bob</ud>","remote":"10.0.0.1","door":"data",
//!  "in_name_of":"<ud>eve</ud>","request":"DELETE_BUCKET <ud>orders</ud>","bucket":"travel"}
//! {"time":text,"event":"login failed","user":"<ud>bob</ud>","remote":"10.0.0.1","door":"rest"}
//! {"time":text,"event":"audit log","user":"<ud>bob</ud>","remote":"10.0.0.1","is_on":false}
//! ```
//!
//! Each is one line. It never has the body of a request, so no secret. Lines are written by a
//! thread of their own; one too many is left out, and the next one says how many were. Logins that
//! fail have a part of each minute: whoever makes many of them pushes nothing else out.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use auth::{Actor, Noted};
use platform::files::{directory_of, open_log};
use platform::redaction::UserData;
use platform::{Clock, File, FileError, FileErrorKind, Files, OpenMode, Seldom};
use serde_json::{Map, Value};

use crate::date::rfc3339;

/// Lines that wait to be written.
const WAITING_MAX: usize = 1_024;
/// Bytes of the file behind which it becomes the one of before.
pub(crate) const FILE_BYTES_MAX: u64 = 20 << 20;
/// Logins that fail of which there are lines, in a minute: strangers fill both files in days, not
/// in seconds.
const FAILED_LOGINS_A_MINUTE_MAX: u32 = 30;
const MINUTE_NS: u64 = 60 * 1_000_000_000;
/// Log lines about lines that could not be written come at most as often.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
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
    lines: Mutex<Option<SyncSender<Line>>>,
    left_out: Arc<LeftOut>,
    failed_logins: Mutex<FailedLogins>,
    thread: Option<JoinHandle<()>>,
}

/// A line, and how many it tells of that have none.
struct Line {
    text: String,
    left_out: u64,
    failed_logins: u64,
}

/// Lines that nobody can read: there was no room for them, or the disk did not take them.
#[derive(Default)]
struct LeftOut {
    /// Those that no line has told of.
    since: AtomicU64,
    /// Logins that failed which no line has told of, behind those that have a line of their own.
    failed_logins: AtomicU64,
    ever: AtomicU64,
}

impl LeftOut {
    /// One more: the next one is to tell of it, and of what it would have told.
    fn add(&self, line: &Line) {
        self.since.fetch_add(line.left_out + 1, Ordering::Relaxed);
        self.failed_logins.fetch_add(line.failed_logins, Ordering::Relaxed);
        self.ever.fetch_add(1, Ordering::Relaxed);
    }

    /// A login that failed has no line.
    fn add_failed_login(&self) {
        self.failed_logins.fetch_add(1, Ordering::Relaxed);
        self.ever.fetch_add(1, Ordering::Relaxed);
    }
}

/// Logins that have failed in the minute of the last one.
#[derive(Default)]
struct FailedLogins {
    minute: u64,
    count: u32,
}

impl FailedLogins {
    /// Whether there is a line about one more.
    fn have_room(&mut self, minute: u64) -> bool {
        if self.minute != minute {
            (self.minute, self.count) = (minute, 0);
        }
        let has_room = self.count < FAILED_LOGINS_A_MINUTE_MAX;
        self.count = self.count.saturating_add(1);
        has_room
    }
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
        let (for_marks, left_out) = (Arc::clone(&files), Arc::<LeftOut>::default());
        let (for_lines, times) = (Arc::clone(&left_out), clock.clone());
        let run = move || write_all(&*files, &path, &waiting, &for_lines, &times);
        let thread = Some(platform::threads::spawn("Audit", run)?);
        let lines = Mutex::new(Some(lines));
        Ok(Self {
            clock,
            files: for_marks,
            off_mark,
            is_on: AtomicBool::new(!is_off),
            switching: Mutex::default(),
            lines,
            left_out,
            failed_logins: Mutex::default(),
            thread,
        })
    }

    /// Whether lines could be written to the file at `path`, unless it is switched off. Nothing is
    /// made or changed.
    ///
    /// # Errors
    /// They could not, or nobody can tell whether it is on.
    pub fn check(files: &dyn Files, path: &Path) -> Result<(), FileError> {
        let is_off = files.exists(&with_suffix(path, OFF_SUFFIX))?;
        if !is_off && files.exists(path)? {
            files.open(path, OpenMode::ReadWrite)?;
        }
        Ok(())
    }

    /// Whether anything is noted.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Events that were not noted because there was no room for them.
    pub fn left_out_count(&self) -> u64 {
        self.left_out.ever.load(Ordering::Relaxed)
    }

    /// Switches it on or off, durably. Who has done so is the last thing noted, or the first.
    ///
    /// # Errors
    /// It is as it was. A start may find it the other way, until it has been switched again.
    pub fn switch(&self, is_on: bool, actor: Actor<'_>) -> Result<(), FileError> {
        let _one_at_a_time = self.switching.lock().unwrap_or_else(PoisonError::into_inner);
        // Also where it is so already: an attempt before that failed may have left half of it.
        self.keep(is_on)?;
        if is_on == self.is_on() {
            return Ok(());
        }
        // It is on while the note is taken.
        self.is_on.store(true, Ordering::Relaxed);
        self.record(event_of("audit log", actor), "is_on", is_on.into());
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

    /// Somebody has asked for a change over REST; `path` is that of the request. There is no
    /// `status` where the client has left before it was answered.
    pub fn change(&self, actor: Actor<'_>, method: &str, path: &str, status: Option<u16>) {
        let mut event = event_of("change", actor);
        event.insert("request".to_owned(), format!("{method} {}", marked(path)).into());
        self.record(event, "status", status.into());
    }

    /// Somebody could not log in, or has asked for a change at the data port.
    pub fn note(&self, actor: Actor<'_>, noted: Noted<'_>) {
        match noted {
            Noted::LoginFailed { door } => self.login_failed(actor, door),
            Noted::Ordered { command, key, bucket, in_name_of } => {
                let mut event = event_of("change", actor);
                let in_name_of =
                    in_name_of.map(|user| ("in_name_of".to_owned(), marked(user).into()));
                event.extend(in_name_of);
                let key = marked(&String::from_utf8_lossy(key));
                event.insert("request".to_owned(), format!("{command} {key}").into());
                event.insert("bucket".to_owned(), bucket.into());
                self.record(event, "door", "data".into());
            }
        }
    }

    fn login_failed(&self, actor: Actor<'_>, door: &str) {
        let minute = self.clock.now().0 / MINUTE_NS;
        let lock = || self.failed_logins.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_on() && !lock().have_room(minute) {
            self.left_out.add_failed_login();
            return;
        }
        self.record(event_of("login failed", actor), "door", door.into());
    }

    fn record(&self, mut fields: Map<String, Value>, name: &str, value: Value) {
        if !self.is_on() {
            return;
        }
        let seconds = self.clock.wall_time().seconds();
        fields.insert("time".to_owned(), rfc3339(seconds.into()).into());
        fields.insert(name.to_owned(), value);
        // Taken out before the line is sent, and put back where nobody can read it: no two lines
        // tell of the same ones.
        let left_out = self.left_out.since.swap(0, Ordering::Relaxed);
        if left_out > 0 {
            fields.insert("left_out_before".to_owned(), left_out.into());
        }
        let failed_logins = self.left_out.failed_logins.swap(0, Ordering::Relaxed);
        if failed_logins > 0 {
            fields.insert("failed_logins_left_out_before".to_owned(), failed_logins.into());
        }
        let text = format!("{}\n", Value::Object(fields));
        let line = Line { text, left_out, failed_logins };
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lines) = &*lines else { return };
        if let Err(TrySendError::Full(line) | TrySendError::Disconnected(line)) =
            lines.try_send(line)
        {
            self.left_out.add(&line);
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

/// The beginning of a line.
fn event_of(event: &str, Actor { user, address }: Actor<'_>) -> Map<String, Value> {
    let remote = address.map(|address| address.to_canonical().to_string());
    let fields: [(&str, Value); 3] =
        [("event", event.into()), ("user", marked(user).into()), ("remote", remote.into())];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
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

/// Writes lines as they come. A disk that takes none keeps nobody from anything; lines that are
/// lost are counted, and not each has a line of the log, which may be on the same disk.
fn write_all(
    files: &dyn Files,
    path: &Path,
    lines: &Receiver<Line>,
    left_out: &LeftOut,
    clock: &Clock,
) {
    let (mut current, log) = (None, Seldom::every(LOG_INTERVAL));
    for line in lines {
        let Err(error) = write(files, path, FILE_BYTES_MAX, &mut current, line.text.as_bytes())
        else {
            continue;
        };
        left_out.add(&line);
        if let Some(unlogged) = log.passes(clock.now()) {
            tracing::warn!(%error, unlogged, "a line of the audit log could not be written");
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
    if let Err(error) = open.file.write_at(line, open.size) {
        // Without the half of it that may be there: the next line would go on with that.
        open.file.set_size(open.size)?;
        return Err(error);
    }
    open.size = open.size.saturating_add(u64::try_from(line.len()).unwrap_or(u64::MAX));
    *current = Some(open);
    Ok(())
}

#[cfg(test)]
mod tests {
    use platform::WallTime;
    use platform::files::RealFiles;
    use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};

    use super::*;

    const FAILED: Noted<'_> = Noted::LoginFailed { door: "rest" };

    fn actor(user: &str) -> Actor<'_> {
        Actor { user, address: Some("10.0.0.1".parse().unwrap()) }
    }

    #[test]
    fn many_logins_that_fail_push_nothing_out_and_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        let log = AuditLog::start(clock.clone(), Arc::new(RealFiles), path.clone()).unwrap();
        log.change(actor("eve"), "PUT", "/settings/rbac/users/local/evidence", Some(200));
        for _ in 0..200_000 {
            log.note(actor("eve"), FAILED);
        }
        clock.advance(Duration::from_secs(60));
        log.note(actor("eve"), FAILED);
        log.note(actor("eve"), FAILED);
        assert_eq!(log.left_out_count(), 200_000 - u64::from(FAILED_LOGINS_A_MINUTE_MAX));
        drop(log);
        let lines = lines_of(&path);
        assert_eq!(lines.len(), 1 + 30 + 2);
        assert!(lines[0]["request"].as_str().unwrap().contains("evidence"));
        assert_eq!(lines[31]["failed_logins_left_out_before"], 200_000 - 30);
        assert_eq!(lines[32]["failed_logins_left_out_before"], Value::Null);
    }

    #[test]
    fn a_change_at_the_data_port_has_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let log = AuditLog::start(Clock::real(), Arc::new(RealFiles), path.clone()).unwrap();
        let (command, key, bucket) = ("DELETE_BUCKET", &b"orders"[..], None);
        let names = [(None, Value::Null), (Some("eve"), "<ud>eve</ud>".into())];
        for (in_name_of, _) in &names {
            let in_name_of = *in_name_of;
            log.note(actor("bob"), Noted::Ordered { command, key, bucket, in_name_of });
        }
        drop(log);
        let lines = lines_of(&path);
        assert_eq!([0, 1].map(|at| &lines[at]["in_name_of"]), [&names[0].1, &names[1].1]);
        let line = &lines[0];
        assert_eq!(line["request"], "DELETE_BUCKET <ud>orders</ud>");
        assert_eq!((&line["event"], &line["door"]), (&"change".into(), &"data".into()));
        assert_eq!((&line["user"], &line["remote"]), (&"<ud>bob</ud>".into(), &"10.0.0.1".into()));
    }

    #[test]
    fn lines_that_a_full_disk_does_not_take_are_counted_and_leave_no_half() {
        let path = Path::new("/data/audit.log");
        let files = SimulatedFiles::new();
        files.create_directories(Path::new("/data")).unwrap();
        let (call, error) = (Some(Call::Write), FaultError::ShortWrite);
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        let log = AuditLog::start(clock, Arc::new(files.clone()), path.to_owned()).unwrap();
        log.change(actor("ann"), "PUT", "/before", Some(200));
        for _ in 0..=FAILED_LOGINS_A_MINUTE_MAX {
            log.note(actor("eve"), FAILED);
        }
        wait_until(|| line_count(&files, path) == 31);
        for lost in 1..=3 {
            files.fail(Fault { call, number: 1, error, from_then_on: false });
            log.change(actor("ann"), "PUT", "/lost", Some(200));
            wait_until(|| log.left_out_count() == 1 + lost);
        }
        log.change(actor("ann"), "PUT", "/behind", Some(200));
        drop(log);
        let text = String::from_utf8(files.read_all(path).unwrap()).unwrap();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 32, "{text}");
        assert_eq!(lines[31]["left_out_before"], 3);
        assert_eq!(lines[31]["failed_logins_left_out_before"], 1, "the first line lost had it");
        assert_eq!(lines[31]["request"], "PUT <ud>/behind</ud>");
    }

    fn line_count(files: &SimulatedFiles, path: &Path) -> usize {
        files.read_all(path).map_or(0, |text| text.iter().filter(|it| **it == b'\n').count())
    }

    fn wait_until(is_so: impl Fn() -> bool) {
        for _ in 0..2000 {
            if is_so() {
                return;
            }
            platform::threads::pause(Duration::from_millis(10));
        }
        panic!("it takes too long");
    }

    fn lines_of(path: &Path) -> Vec<Value> {
        let text = platform::files::read_text(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn lines_are_kept_over_starts_and_have_no_control_characters() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        for user in ["bob", "eve\n\"{}"] {
            let log = AuditLog::start(Clock::real(), Arc::new(RealFiles), path.clone()).unwrap();
            log.change(actor(user), "PUT", "/settings/rbac/users/local/u", Some(200));
            log.note(actor(user), FAILED);
        }
        let lines = lines_of(&path);
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0]["user"], "<ud>bob</ud>");
        assert_eq!(lines[0]["status"], 200);
        assert_eq!(lines[3]["door"], "rest");
        assert_eq!(lines[3]["remote"], "10.0.0.1");
    }

    #[test]
    fn what_is_switched_off_stays_off_over_starts_and_says_who_did_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        for (is_on_before, is_on) in [(true, false), (false, false), (false, true), (true, true)] {
            let log = AuditLog::start(Clock::real(), Arc::new(RealFiles), path.clone()).unwrap();
            assert_eq!(log.is_on(), is_on_before);
            log.switch(is_on, actor("bob")).unwrap();
            assert_eq!(log.is_on(), is_on);
            log.note(actor("eve"), FAILED);
        }
        let text = platform::files::read_text(&path).unwrap();
        let events = text.lines().map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["remote"], "10.0.0.1");
            (line["event"].as_str().unwrap().to_owned(), line["is_on"].as_bool())
        });
        let failed = || ("login failed".to_owned(), None);
        let switched = |is_on| ("audit log".to_owned(), Some(is_on));
        let expected = [switched(false), switched(true), failed(), failed()];
        assert_eq!(events.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_found_while_it_is_on_and_nothing_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let check = || AuditLog::check(&RealFiles, &path).map_err(|error| error.to_string());
        assert_eq!(check(), Ok(()));
        assert!(RealFiles.list(directory.path()).unwrap().is_empty());
        // Nobody opens a directory to write to it.
        RealFiles.create_directories(&path).unwrap();
        assert!(check().unwrap_err().contains("audit.log"));
        RealFiles.replace_all(&directory.path().join("audit.log.off"), b"").unwrap();
        assert_eq!(check(), Ok(()));
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
                log.switch(!is_on, actor("bob")).unwrap();
                if let Some(call) = failed_call {
                    let (call, error) = (Some(call), FaultError::Io);
                    files.fail(Fault { call, number: 1, error, from_then_on: false });
                    log.switch(is_on, actor("bob")).unwrap_err();
                    assert_ne!(log.is_on(), is_on, "it is as it was");
                }
                log.switch(is_on, actor("bob")).unwrap();
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
