//! The tools against memcached, where it is installed: a server that we did not write.

use std::net::SocketAddr;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use client::ServerAddress;
use platform::network;

use crate::run_at;

/// A memcached of this test, ended with this value.
struct Memcached {
    process: Child,
    node: ServerAddress,
}

impl Memcached {
    /// `None` where it is not installed.
    fn start() -> Option<Self> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let free = network::listen_standard(any).and_then(|listener| listener.local_addr());
        let port = free.expect("loopback has a free port").port();
        let process = Command::new("memcached")
            .args(["-B", "binary", "-l", "127.0.0.1", "-u", "root", "-U", "0", "-p"])
            .arg(port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut server = Self { process, node: ServerAddress::new("127.0.0.1", port) };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let clock = platform::Clock::real();
        let deadline = clock.now().after(Duration::from_secs(10));
        while network::connect(address).is_err() {
            assert!(matches!(server.process.try_wait(), Ok(None)), "memcached has ended");
            assert!(clock.now() < deadline, "memcached does not listen");
            std::thread::yield_now();
        }
        Some(server)
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        // It has no state; that it is gone is all that matters.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[test]
fn memcached_takes_load_and_tells_its_statistics() {
    let Some(server) = Memcached::start() else {
        assert!(std::env::var_os("CI").is_none(), "CI needs memcached");
        eprintln!("memcached is not installed: nothing was tested");
        return;
    };
    for options in ["--memcached", "", "-u nobody -P nothing"] {
        let line = format!("load {options} -I 500 -B 20 -t 8 -c 10 -r 50 -J -M 500");
        let code = run_at(&server.node, &line);
        if options.contains("nobody") {
            let error = format!("{:#}", code.unwrap_err());
            assert!(error.contains("the login: UNKNOWN_COMMAND"), "{error}");
        } else {
            assert_eq!(code.unwrap(), ExitCode::SUCCESS, "{line}");
        }
    }
    let line = "load --memcached -n -r 0 -I 500 -c 5 --sequential";
    assert_eq!(run_at(&server.node, line).unwrap(), ExitCode::SUCCESS);
    assert_eq!(run_at(&server.node, "stats").unwrap(), ExitCode::SUCCESS);
    assert_eq!(run_at(&server.node, "stats settings --json").unwrap(), ExitCode::SUCCESS);
}
