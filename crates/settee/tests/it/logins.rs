//! Who is let in.

use crate::support::{Node, log_in, serve_directory};

#[test]
fn an_address_from_which_too_many_logins_fail_is_refused_until_the_minute_is_over() {
    const FAILURES_MAX: usize = 3;
    let root = tempfile::tempdir().unwrap();
    let work = root.path();
    let flags = ["--failed-logins-max", "3", "--password", "right", "--vbuckets", "16"];
    let node = Node::start(serve_directory(work, &flags), work);
    log_in(work, "Administrator", "right").unwrap();
    // A minute may end between two of them, and what has failed in it is forgotten: but not twice.
    let mut answers = (0..=2 * FAILURES_MAX).map(|_| log_in(work, "Administrator", "wrong"));
    let is_refused = |answer: Result<client::Connection, String>| {
        answer.is_err_and(|error| error.contains("too many logins from this address"))
    };
    assert!(answers.any(is_refused));
    node.stop();
}
