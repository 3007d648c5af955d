//! What a form of a first start says: what the node is already, what is to change, and what cannot.

use cluster::{HOST_RULE, is_host};

use super::named_bucket::Fields;
use crate::node_view::{NodeView, SetupChange};

/// The only service of a node, and what the original's command line calls it.
const SERVICES: [&str; 2] = ["kv", "data"];

/// A form that was read.
#[derive(Debug, Default)]
pub(super) struct SetupForm {
    /// What is to change.
    pub(super) changes: Vec<SetupChange>,
    /// What is wrong, by field.
    pub(super) errors: Fields,
}

impl SetupForm {
    /// Reads a form that may have the fields `allowed`, and must have those `needed`.
    pub(super) fn read(
        view: &dyn NodeView,
        fields: Fields,
        allowed: &[&str],
        needed: &[&str],
    ) -> Self {
        let mut form = Self::default();
        for name in needed.iter().filter(|name| !fields.contains_key(**name)) {
            form.refuse(name, "The value must be supplied");
        }
        for (field, value) in fields {
            if !allowed.contains(&field.as_str()) {
                form.refuse(&field, "Unsupported key");
                continue;
            }
            match change_of(view, &field, &value) {
                Ok(change) => form.changes.extend(change),
                Err(why) => form.refuse(&field, &why),
            }
        }
        form
    }

    pub(super) fn refuse(&mut self, field: &str, why: &str) {
        self.errors.insert(field.to_owned(), why.to_owned());
    }
}

/// What a field changes: nothing, if the node is so already; otherwise what is wrong with it.
fn change_of(view: &dyn NodeView, field: &str, value: &str) -> Result<Option<SetupChange>, String> {
    match field {
        "hostname" => {
            let host = view.cluster_map().this_address.host;
            if host == value {
                return Ok(None);
            }
            check_host(value)?;
            Ok(Some(SetupChange::Host(value.to_owned())))
        }
        "clusterName" => {
            let name = view.cluster_map().name;
            Ok((name != value).then(|| SetupChange::ClusterName(value.to_owned())))
        }
        "services" => check_services(value),
        "memoryQuota" => check_quota(view, value),
        "indexMemoryQuota"
        | "ftsMemoryQuota"
        | "cbasMemoryQuota"
        | "eventingMemoryQuota"
        | "queryMemoryQuota" => match value.parse::<u64>() {
            // Nothing takes memory for it.
            Ok(_) => Ok(None),
            Err(_) => Err("The value must be an integer".to_owned()),
        },
        "port" => check_port(view, value),
        "path" | "dataPath" => check_data_path(view, value),
        "index_path" | "indexPath" | "cbas_path" | "analyticsPath" | "eventing_path"
        | "eventingPath" | "java_home" | "javaHome" => match value {
            "" => Ok(None),
            _ => Err("This node has no such service".to_owned()),
        },
        "afamily" => one_of(value, &["ipv4", "ipv6"]),
        "afamilyOnly" => one_of(value, &["false"]),
        "nodeEncryption" => one_of(value, &["off"]),
        "sendStats" | "setDefaultMemQuotas" => one_of(value, &["true", "false"]),
        "indexerStorageMode" => one_of(value, &["plasma", "memory_optimized", "forestdb"]),
        "enabled" => match value {
            "false" => Ok(None),
            _ => Err("Nodes do not fail over by themselves; an operator, or a program, gives \
                      them another map"
                .to_owned()),
        },
        "timeout" | "maxCount" => match value.parse::<u32>() {
            // It counts only where failover is enabled.
            Ok(_) => Ok(None),
            Err(_) => Err("The value must be an integer".to_owned()),
        },
        _ => Err("Unsupported key".to_owned()),
    }
}

/// Refuses what nobody could connect to.
pub(super) fn check_host(value: &str) -> Result<(), String> {
    if is_host(value) { Ok(()) } else { Err(format!("The host name is {HOST_RULE}")) }
}

fn check_services(value: &str) -> Result<Option<SetupChange>, String> {
    let mut services = value.split(',').map(str::trim);
    match services.find(|service| !SERVICES.contains(service)) {
        None => Ok(None),
        Some(other) => Err(format!("This node has no service `{other}`, but kv alone")),
    }
}

/// A node that has more than it is told to have has that, too.
fn check_quota(view: &dyn NodeView, value: &str) -> Result<Option<SetupChange>, String> {
    let quota_mib = view.node().quota_bytes_max >> 20;
    match value.parse::<u64>() {
        Ok(mib) if mib > 0 && mib <= quota_mib => Ok(None),
        Ok(mib) if mib > 0 => Err(format!(
            "The data service quota ({mib}MB) cannot be set above {quota_mib}MB, which the node \
             was started with (--memory-quota)"
        )),
        _ => Err("The value must be a positive integer".to_owned()),
    }
}

fn check_port(view: &dyn NodeView, value: &str) -> Result<Option<SetupChange>, String> {
    let port = view.cluster_map().this_address.management_port;
    if value == "SAME" || value.parse() == Ok(port) {
        return Ok(None);
    }
    Err(format!("The port is {port}, which the node was started with (--management-port)"))
}

fn check_data_path(view: &dyn NodeView, value: &str) -> Result<Option<SetupChange>, String> {
    let directory = view.node().data_directory;
    if value.is_empty() || value.trim_end_matches('/') == directory.trim_end_matches('/') {
        return Ok(None);
    }
    Err(format!("Data is kept in {directory}, which the node was started with (--data-dir)"))
}

fn one_of(value: &str, allowed: &[&str]) -> Result<Option<SetupChange>, String> {
    if allowed.contains(&value) {
        return Ok(None);
    }
    Err(format!("The value must be {}", allowed.join(" or ")))
}
