//! The ports that a node listens on, and what to do when it cannot.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use platform::network::{Listener, Network};

use crate::config::NodeConfig;

/// Listens on `port`, which `flag` has said; 0 takes any free one. Returned is also which.
pub(crate) fn open_door(
    network: &Network,
    config: &NodeConfig,
    port: u16,
    flag: &str,
) -> anyhow::Result<(Listener, u16)> {
    let address = SocketAddr::new(config.host, port);
    let door = server::open_door(network, address);
    let (listener, opened) = door.map_err(|error| cannot_listen(address, flag, error))?;
    assert!(opened != 0, "a door that is open has a port that others can be told");
    assert!(port == 0 || opened == port, "no other port is opened than was said");
    Ok((listener, opened))
}

/// The error of a port that cannot be listened on, with what to do about it: which depends on the
/// error. `flag` says another port.
pub fn cannot_listen(address: SocketAddr, flag: &str, error: io::Error) -> anyhow::Error {
    let hint = match error.kind() {
        ErrorKind::AddrInUse => format!("is another node running? {flag} 0 takes any free port"),
        ErrorKind::AddrNotAvailable => {
            "this machine has no such address; --host says one that it has".to_owned()
        }
        ErrorKind::PermissionDenied => {
            format!("ports below 1024 take rights; {flag} says another")
        }
        _ => format!("{flag} and --host say another"),
    };
    anyhow::Error::new(error).context(format!("cannot listen on {address}; {hint}"))
}
