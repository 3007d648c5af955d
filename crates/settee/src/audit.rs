//! The audit log of a node's data directory.

use std::path::Path;
use std::sync::Arc;

use management::AuditLog;
use node::Node;
use platform::Files;

/// Its name.
const AUDIT_LOG_NAME: &str = "audit.log";

/// Has what is changed on a node noted from now on.
pub(crate) fn open(node: &Node, files: Arc<dyn Files>) -> anyhow::Result<Arc<AuditLog>> {
    let data_dir = &node.config().data_dir;
    let path = data_dir.join(AUDIT_LOG_NAME);
    tell_fault(&*files, data_dir);
    let log = Arc::new(AuditLog::start(node.clock().clone(), files, path)?);
    let watching = Arc::clone(&log);
    node.users().watch_with(move |actor, noted| watching.note(actor, noted));
    Ok(log)
}

/// Says why nothing can be noted, if so. A node serves nevertheless: a disk keeps nobody from
/// putting it in order.
pub(crate) fn tell_fault(files: &dyn Files, data_dir: &Path) {
    let file = data_dir.join(AUDIT_LOG_NAME);
    if let Err(error) = AuditLog::check(files, &file) {
        tracing::error!(
            file = %file.display(),
            %error,
            "the audit log cannot be opened, and nothing is noted until it can: let the user of \
             the node write to the file, or move away what is there; --audit-log=false does \
             without it"
        );
    }
}
