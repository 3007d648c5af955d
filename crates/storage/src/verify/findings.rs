//! What is wrong with a file.

use std::borrow::Cow;

/// Findings that are listed for one file, at most. The others are counted.
const FINDINGS_MAX: usize = 1000;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The file is not what was written.
    Problem,
    /// The file is whole, but something in it is unusual or of no use to a node.
    Warning,
}

/// What is affected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The header of the last commit, and with it that commit.
    NewestHeader,
    /// Documents, trees or local documents of the newest state.
    #[default]
    CurrentState,
    /// Only states that later commits have replaced.
    OlderState,
    /// The chain of headers.
    History,
    /// What the vBucket's state says, beside the documents.
    VbucketState,
    /// Batches that vBuckets' files may not have yet.
    Journal,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What is affected.
    pub scope: Scope,
    /// Where in the file, in bytes: the beginning of the header, node or body.
    pub position: u64,
    /// What is wrong.
    pub what: Cow<'static, str>,
}

impl Finding {
    pub(crate) fn is_problem(&self) -> bool {
        self.severity == Severity::Problem
    }
}

/// What was found so far.
#[derive(Default)]
pub(crate) struct Findings {
    /// What is affected by a damaged tree.
    pub(crate) scope: Scope,
    listed: Vec<Finding>,
    unlisted_count: u64,
}

impl Findings {
    /// None yet; a damaged tree, or group, will affect `scope`.
    pub(crate) fn new(scope: Scope) -> Self {
        Self { scope, ..Self::default() }
    }

    /// Damage in a tree of the state that is being checked.
    pub(crate) fn damage(&mut self, position: u64, what: impl Into<Cow<'static, str>>) {
        self.problem(self.scope, position, what);
    }

    pub(crate) fn problem(
        &mut self,
        scope: Scope,
        position: u64,
        what: impl Into<Cow<'static, str>>,
    ) {
        self.add(Finding { severity: Severity::Problem, scope, position, what: what.into() });
    }

    pub(crate) fn warning(
        &mut self,
        scope: Scope,
        position: u64,
        what: impl Into<Cow<'static, str>>,
    ) {
        self.add(Finding { severity: Severity::Warning, scope, position, what: what.into() });
    }

    fn add(&mut self, finding: Finding) {
        if self.listed.len() < FINDINGS_MAX {
            self.listed.push(finding);
        } else if finding.severity == Severity::Problem
            && self.listed.iter().all(|listed| listed.severity == Severity::Warning)
        {
            // Warnings alone must not hide that the file is damaged.
            self.listed.push(finding);
        } else {
            self.unlisted_count = self.unlisted_count.saturating_add(1);
        }
    }

    pub(crate) fn into_listed(self) -> (Vec<Finding>, u64) {
        (self.listed, self.unlisted_count)
    }
}
