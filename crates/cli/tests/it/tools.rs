//! `stats` and `timings`.

use std::process::ExitCode;

use crate::{couchbase_like, run};

const BOB: &str = "--user bob --password secret --bucket default";

#[test]
fn groups_are_asked_for_with_their_arguments() {
    let server = couchbase_like();
    server.set_statistics("", &[("uptime", "1")]);
    server.set_statistics("key name 7", &[("key_cas", "1")]);
    for line in ["stats", "stats --json", "stats key name 7"] {
        let code = run(&server, &format!("{line} {BOB}")).unwrap();
        assert_eq!(code, ExitCode::SUCCESS, "{line}");
    }
    let error = run(&server, &format!("stats nonsense {BOB}")).unwrap_err().to_string();
    let expected =
        "the server has no statistics \"nonsense\" (KEY_ENOENT): see settee stats --help";
    assert_eq!(error, expected);
}

#[test]
fn without_a_login_the_hint_is_to_log_in() {
    let error = run(&couchbase_like(), "stats --bucket default").unwrap_err();
    assert!(format!("{error:#}").contains("--user and --password"), "{error:#}");
}

#[test]
fn histograms_are_drawn_by_name() {
    let server = couchbase_like();
    let timings = [("disk_commit_1,2", "3"), ("disk_commit_mean", "1"), ("bg_wait_mean", "0")];
    server.set_statistics("timings", &timings);
    for line in ["timings", "timings bg_wait disk_commit", "timings --json"] {
        let code = run(&server, &format!("{line} {BOB}")).unwrap();
        assert_eq!(code, ExitCode::SUCCESS, "{line}");
    }
    let error = run(&server, &format!("timings other {BOB}")).unwrap_err().to_string();
    assert_eq!(error, "there is no histogram other; there are: bg_wait disk_commit");
}
