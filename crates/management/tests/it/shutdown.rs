//! The port ends in time whatever its clients do.

use std::time::Duration;

use management::Limits;
use platform::Clock;

use crate::rest_port::RestPort;
use crate::streaming::open;

#[test]
fn a_streaming_client_hears_the_end_and_does_not_delay_it() {
    let port = RestPort::start();
    let (mut streaming, _) = open(&port, "/pools/default/bs/default");
    let mut idle = port.connect();
    assert_eq!(idle.ask("GET", "/", "").status, 200);
    let address = port.handle.address();
    let clock = Clock::real();
    let began = clock.now();
    port.handle.shutdown();
    assert!(clock.now().since(began) < Limits::default().shutdown_time_max);
    assert_eq!(streaming.read_chunk(), None);
    assert!(streaming.is_closed());
    assert!(idle.is_closed());
    assert!(platform::network::connect(address).is_err());
}

#[test]
fn a_request_that_never_ends_is_cut_off() {
    let shutdown_time_max = Duration::from_millis(100);
    let port = RestPort::start_with(Limits { shutdown_time_max, ..Limits::default() });
    let mut client = port.connect();
    let login = crate::http_client::basic(crate::rest_port::USER, crate::rest_port::PASSWORD);
    client.send(&format!("POST / HTTP/1.1\r\nHost: x\r\n{login}Content-Length: 9\r\n\r\n1"));
    // The answer to another client says that the first one is being served by now.
    assert_eq!(port.ask("GET", "/").status, 200);
    let clock = Clock::real();
    let began = clock.now();
    port.handle.shutdown();
    assert!(clock.now().since(began) < Duration::from_secs(2));
    assert!(client.read_answer().is_none());
}
