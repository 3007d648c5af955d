//! `settee backup --info`: which backups there are.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;

use serde_json::json;

use super::dates::readable;
use super::manifest::{self, Manifest};
use super::target::{Object, Target};
use crate::output::print;

/// Lists the backups, the oldest first. The exit code tells whether all are whole.
pub(super) fn run(target: &dyn Target, is_json: bool) -> anyhow::Result<ExitCode> {
    let mut by_name: BTreeMap<String, Vec<Object>> = BTreeMap::new();
    for object in target.list("")? {
        if let Some((name, _)) = object.name.split_once('/') {
            by_name.entry(name.to_owned()).or_default().push(object);
        }
    }
    let (mut text, mut code) = (String::new(), ExitCode::SUCCESS);
    for (name, objects) in &by_name {
        let found = state_of(target, name, objects)?;
        if matches!(found, State::Damaged(_)) {
            code = ExitCode::FAILURE;
        }
        match is_json {
            true => writeln!(text, "{}", found.to_json(name))?,
            false => writeln!(text, "{}", found.to_line(name))?,
        }
    }
    if by_name.is_empty() && !is_json {
        writeln!(text, "no backups in {}", target.describe())?;
    }
    print(&text)?;
    Ok(code)
}

/// What is under a name.
enum State {
    /// Only a restore or `settee verify-file` reads the objects themselves.
    Whole(Box<Manifest>),
    /// Bytes stored so far.
    Interrupted(u64),
    Damaged(String),
}

fn state_of(target: &dyn Target, name: &str, objects: &[Object]) -> anyhow::Result<State> {
    let manifest = manifest::object_name(name);
    if objects.iter().all(|object| object.name != manifest) {
        return Ok(State::Interrupted(objects.iter().map(|object| object.bytes).sum()));
    }
    let manifest = match Manifest::get(target, name) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => return Ok(State::Damaged("its manifest is gone".to_owned())),
        Err(error) => return Ok(State::Damaged(format!("{error:#}"))),
    };
    let sizes: BTreeMap<&str, u64> =
        objects.iter().map(|object| (object.name.as_str(), object.bytes)).collect();
    for part in &manifest.vbuckets {
        let object = format!("{name}/{}", part.object);
        match sizes.get(object.as_str()) {
            Some(bytes) if *bytes == part.bytes => {}
            Some(bytes) => {
                let what = format!("{object} has {bytes} bytes and not {}", part.bytes);
                return Ok(State::Damaged(what));
            }
            None => return Ok(State::Damaged(format!("{object} is missing"))),
        }
    }
    Ok(State::Whole(Box::new(manifest)))
}

impl State {
    fn to_line(&self, name: &str) -> String {
        match self {
            Self::Whole(manifest) => format!(
                "{name}  {}  bucket {}  {} documents  {:.1} MB  {} vBuckets",
                readable(manifest.began_at),
                manifest.bucket.name,
                manifest.documents(),
                manifest.bytes() as f64 / 1e6,
                manifest.vbuckets.len(),
            ),
            Self::Interrupted(bytes) => format!(
                "{name}  not complete, {:.1} MB stored; run settee backup again to go on with it",
                *bytes as f64 / 1e6
            ),
            Self::Damaged(what) => format!("{name}  DAMAGED: {what}"),
        }
    }

    fn to_json(&self, name: &str) -> serde_json::Value {
        match self {
            Self::Whole(manifest) => json!({
                "backup": name,
                "state": "whole",
                "bucket": manifest.bucket.name,
                "began_at": manifest.began_at,
                "ended_at": manifest.ended_at,
                "documents": manifest.documents(),
                "bytes": manifest.bytes(),
                "vbuckets": manifest.vbuckets.len(),
            }),
            Self::Interrupted(bytes) => {
                json!({"backup": name, "state": "interrupted", "bytes": bytes})
            }
            Self::Damaged(what) => json!({"backup": name, "state": "damaged", "what": what}),
        }
    }
}
