//! Properties of a running node, which IOCTL_SET changes.

use anyhow::bail;
use client::{Connection, status_name};
use protocol::client::Request;
use protocol::{Opcode, Status};

use crate::server_arguments::explain;
use crate::stats::said_context;

/// Sets a property.
///
/// # Errors
/// The node refuses, or is not there.
pub(crate) fn set(connection: &mut Connection, name: &str, value: u64) -> anyhow::Result<()> {
    let text = value.to_string();
    let answer = connection.call(&Request {
        key: name.as_bytes(),
        value: text.as_bytes(),
        ..Request::new(Opcode::IoctlSet)
    });
    let answer = answer.map_err(explain)?;
    let said = said_context(&String::from_utf8_lossy(answer.value())).unwrap_or_default();
    match answer.status() {
        Some(Status::Success) => Ok(()),
        Some(Status::Eaccess) => bail!("log in as an administrator: --user and --password"),
        Some(Status::Einval) if !said.is_empty() => bail!("{name} is not set to {value}: {said}"),
        Some(Status::Einval | Status::UnknownCommand | Status::NotSupported) => {
            bail!("the server has no property {name}; it is another program, or an older version")
        }
        _ => {
            let status = status_name(answer.view().status_code);
            bail!("{name} is not set to {value}: {status} {said}; see the node's log")
        }
    }
}
