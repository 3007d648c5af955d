//! A journal in front of the files, and the files behind it: what is where, who brings the files up
//! to date, and what a start takes of the journal.

pub(crate) mod apply;
pub(crate) mod backlog;
pub(crate) mod journal_note;
pub(crate) mod journalled;
pub(crate) mod portions;
pub(crate) mod replay;
pub(crate) mod replayed;
