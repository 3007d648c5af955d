//! Where the outside world may be taken from: everything else is handed it, or no run could be
//! repeated.

/// A way to the outside world, and where it may be named, by beginnings of paths.
struct Door {
    /// As it stands in the code.
    name: &'static str,
    places: &'static [&'static str],
}

/// The tools are processes of their own, as is what supervises nodes on this machine.
const DOORS: &[Door] = &[
    Door { name: "mio::", places: &["crates/platform/src/network"] },
    Door { name: "getrandom::", places: &["crates/platform/src/entropy.rs"] },
    Door { name: "std::thread::Builder", places: &["crates/platform/src/threads.rs"] },
    Door { name: "tokio::", places: &["crates/management/src/"] },
    Door {
        name: "ureq::",
        places: &[
            "crates/cli/src/",
            "crates/settee/src/cluster_run/member_port.rs",
            "crates/settee/src/metrics_page.rs",
            "crates/settee/src/peer_agent.rs",
        ],
    },
    Door { name: "Clock::real(", places: REAL },
    Door { name: "Network::real(", places: REAL },
    Door { name: "Network::with_uring(", places: REAL },
    Door { name: "Entropy::real(", places: REAL },
    Door { name: "RealFiles)", places: REAL },
];

/// Where the real world is made, or used by a program of its own; REST, which runs beside a node;
/// and threads that measure how long their own wakes take.
const REAL: &[&str] = &[
    "crates/platform/src/",
    "crates/cli/src/",
    "crates/client/src/",
    "crates/management/src/",
    "crates/executor/src/threads/",
    "crates/settee/src/cluster_run/",
    "crates/settee/src/main.rs",
    "crates/settee/src/real_world.rs",
    "crates/settee/src/doctor.rs",
    "crates/settee/src/restore.rs",
    "crates/settee/src/serve.rs",
    "crates/auth/src/users.rs",
    "crates/bucket/src/start/bucket_file.rs",
    "crates/storage/src/fuzzing.rs",
    "crates/auth/src/fuzzing.rs",
];

/// Complaints about one file. What only tests see is left out: it ends the file, or is a file or a
/// folder of its own.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let is_product = path.starts_with("crates/") && path.contains("/src/");
    if !is_product || path.contains("/tests") || path.contains("/models") {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    let code = text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
    for (number, line) in (1..).zip(code) {
        let line = line.split("//").next().unwrap_or_default();
        for Door { name, places } in DOORS {
            let is_allowed = places.iter().any(|place| path.starts_with(place));
            if !is_allowed && line.contains(name) {
                let places = places.join(", ");
                complaints.push(format!("{path}:{number}: `{name}` is for {places}"));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_is_found_where_it_must_not_be() {
        let text = "//! A.\nfn f() { let clock = Clock::real(); }\n";
        assert_eq!(check("crates/bucket/src/a.rs", text).len(), 1);
        assert!(check("crates/bucket/src/a.rs", text)[0].starts_with("crates/bucket/src/a.rs:2:"));
        for place in ["crates/cli/src/a.rs", "crates/bucket/tests/it/a.rs", "xtask/src/a.rs"] {
            assert!(check(place, text).is_empty(), "{place}");
        }
    }

    #[test]
    fn tests_and_comments_may_name_it() {
        let tests = "//! A.\n#[cfg(test)]\nmod tests { fn f() { mio::poll() } }\n";
        assert!(check("crates/bucket/src/a.rs", tests).is_empty());
        assert!(check("crates/bucket/src/a.rs", "//! A.\n// As mio::Poll.\n").is_empty());
        assert!(check("crates/bucket/src/a/tests.rs", "use mio::Poll;\n").is_empty());
    }
}
