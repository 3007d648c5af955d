//! The service manager that has started this process, where one listens (sd_notify(3)).

use std::io;
use std::time::Duration;

use sd_notify::NotifyState;

/// What a service manager is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceNews<'a> {
    /// The service does what it is for.
    Ready,
    /// What it does now, in a line for people.
    Status(&'a str),
    /// It lives: the watchdog may wait anew.
    Alive,
    /// It is about to end.
    Stopping,
    /// Its start, or its end, takes this much longer from now on.
    NeedsTime(Duration),
}

/// Whether a service manager wants to hear of this process.
pub fn is_listening() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

/// How long a service manager waits for [`ServiceNews::Alive`] before it ends this process; `None`
/// if it does not.
pub fn watchdog_patience() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

/// Tells the service manager, if there is one.
///
/// # Errors
/// It does not take the message. It may restart a service of which it hears nothing.
pub fn tell(news: ServiceNews<'_>) -> io::Result<()> {
    let state = match news {
        ServiceNews::Ready => NotifyState::Ready,
        ServiceNews::Status(line) => NotifyState::Status(line),
        ServiceNews::Alive => NotifyState::Watchdog,
        ServiceNews::Stopping => NotifyState::Stopping,
        ServiceNews::NeedsTime(time) => {
            NotifyState::ExtendTimeoutUsec(u32::try_from(time.as_micros()).unwrap_or(u32::MAX))
        }
    };
    sd_notify::notify(&[state])
}
