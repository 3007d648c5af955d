//! Taking over the directory of a bucket that the original's server has left.
//!
//! It holds vBucket files and no description. How many vBuckets the bucket has is in none of them;
//! but clients compute a document's vBucket from its name and that number, so the names tell it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use document::Vbid;
use document::limits::VBUCKET_COUNT_MAX;
use platform::{Files, OpenMode};
use storage::couchstore::CouchFile;
use storage::couchstore::layout::{self, FileName};
use storage::{Order, Selection, StorageError};

use super::open_error::OpenError;

/// vBuckets of a bucket where nothing says otherwise.
const VBUCKET_COUNT_DEFAULT: u16 = 1024;
/// Names that are looked at in each file.
const NAMES_PER_FILE_MAX: u32 = 8;

/// What a directory without a description holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Adoption {
    /// No vBucket's file: a bucket is to be made.
    Nothing,
    /// Files of a bucket of so many vBuckets.
    Files {
        vbucket_count: u16,
        /// Numbers with which names agree as well, the smallest first.
        others: Vec<u16>,
    },
}

impl Adoption {
    /// The number of vBuckets where `demanded` is said, or nothing.
    ///
    /// # Errors
    /// Names speak against it: what is wrong, for people.
    pub(crate) fn vbucket_count(
        likeliest: u16,
        others: &[u16],
        demanded: Option<u16>,
    ) -> Result<u16, String> {
        match demanded {
            Some(count) if count != likeliest && !others.contains(&count) => Err(format!(
                "holds files of another server, and names of documents speak for {likeliest} \
                 vBuckets{}, not {count}: leave --vbuckets out, or give another directory",
                or_others(others)
            )),
            demanded => Ok(demanded.unwrap_or(likeliest)),
        }
    }
}

fn or_others(others: &[u16]) -> String {
    others.iter().map(|count| format!(" or {count}")).collect()
}

/// Whether a directory is one in which the original's server keeps, or kept, a bucket.
pub fn is_bucket_directory(files: &dyn Files, directory: &Path) -> bool {
    let is_data = |name: &String| matches!(layout::parse(name), FileName::Data(..));
    let names = files.list(directory).unwrap_or_default();
    names.iter().any(is_data) || has_magma(&names)
}

fn has_magma(names: &[String]) -> bool {
    names.iter().any(|name| name.starts_with("magma."))
}

/// How many vBuckets a bucket has whose files the original's server has left in a directory, and
/// in which each vBucket's newest file is. Changes nothing.
///
/// # Errors
/// What keeps a node from taking it over.
pub fn look_at_original(
    files: &dyn Files,
    directory: &Path,
) -> Result<Option<OriginalBucket>, OpenError> {
    match look(files, directory)? {
        Adoption::Nothing => Ok(None),
        Adoption::Files { vbucket_count, others } => {
            let newest = layout::newest_files(directory, &files.list(directory)?);
            Ok(Some(OriginalBucket { vbucket_count, others, files: newest }))
        }
    }
}

/// A bucket that the original's server has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginalBucket {
    /// vBuckets of the whole bucket, of which other nodes may have had some.
    pub vbucket_count: u16,
    /// Other numbers with which the names of its documents agree as well, the smallest first: a
    /// node that is told one of them takes that.
    pub others: Vec<u16>,
    /// The newest file of each vBucket that is here.
    pub files: BTreeMap<Vbid, PathBuf>,
}

/// Looks for vBucket files in a directory that has no description. Changes nothing.
pub(crate) fn look(files: &dyn Files, directory: &Path) -> Result<Adoption, OpenError> {
    let names = files.list(directory)?;
    let refuse = |what: &str| {
        Err(OpenError::BadDescription { path: directory.to_path_buf(), what: what.to_owned() })
    };
    if has_magma(&names) {
        return refuse("holds a bucket in Magma's format, which is not read; only couchstore is");
    }
    let newest = layout::newest_files(directory, &names);
    let Some((highest, _)) = newest.last_key_value() else { return Ok(Adoption::Nothing) };
    if highest.0 >= VBUCKET_COUNT_MAX {
        return refuse("holds a file of a vBucket above 32767, which no bucket has");
    }
    let mut votes = Votes::new(highest.0);
    for (vbid, path) in &newest {
        match count_votes(files, *vbid, path, &mut votes) {
            // Start-up says what is wrong with it.
            Ok(()) | Err(StorageError::Corrupt { .. } | StorageError::Failed(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let vbucket_count = votes.winner();
    let others = votes.equals_of(vbucket_count);
    let directory = directory.display();
    let file_count = newest.len();
    tracing::info!(%directory, file_count, vbucket_count, "taking over the original's files");
    if !others.is_empty() {
        tracing::info!(?others, "numbers of vBuckets with which names agree as well");
    }
    if file_count < usize::from(vbucket_count) {
        tracing::warn!(
            "vBuckets without a file begin empty: another node of the cluster may have had them"
        );
    }
    Ok(Adoption::Files { vbucket_count, others })
}

/// For each number of vBuckets that is possible, how many names agree with it.
struct Votes {
    candidates: Vec<(u16, u32)>,
    names: u32,
}

impl Votes {
    fn new(highest: u16) -> Self {
        let smallest = (highest + 1).next_power_of_two();
        let larger = std::iter::successors(Some(smallest), |count| count.checked_mul(2));
        let candidates = larger.take_while(|count| *count <= VBUCKET_COUNT_MAX);
        Self { candidates: candidates.map(|count| (count, 0)).collect(), names: 0 }
    }

    fn count(&mut self, name: &[u8], vbid: Vbid) {
        self.names += 1;
        for (count, votes) in &mut self.candidates {
            *votes += u32::from(Vbid::of_name(name, *count) == vbid);
        }
    }

    /// The number that most names agree with. Of several the usual one, unless names that agree
    /// with none say that clients have numbers of their own: then the smallest.
    fn winner(&self) -> u16 {
        let most = self.candidates.iter().map(|(_, votes)| *votes).max().unwrap_or(0);
        let mut best = self.candidates.iter().filter(|(_, votes)| *votes == most);
        let smallest = best.clone().next().map_or(VBUCKET_COUNT_DEFAULT, |(count, _)| *count);
        let is_usual = |(count, _): &&(u16, u32)| *count == VBUCKET_COUNT_DEFAULT;
        let names_say_nothing = most == 0 && self.names > 0;
        if !names_say_nothing && best.any(|candidate| is_usual(&candidate)) {
            return VBUCKET_COUNT_DEFAULT;
        }
        smallest
    }

    /// Numbers with which as many names agree as with the winner: where the lower half of a bucket
    /// is, they agree with half the number of vBuckets as with all.
    fn equals_of(&self, winner: u16) -> Vec<u16> {
        let votes_of = |wanted: u16| {
            self.candidates.iter().find(|(count, _)| *count == wanted).map(|(_, votes)| *votes)
        };
        let most = votes_of(winner);
        let equals = self
            .candidates
            .iter()
            .filter(|(count, votes)| *count != winner && Some(*votes) == most);
        equals.map(|(count, _)| *count).collect()
    }
}

fn count_votes(
    files: &dyn Files,
    vbid: Vbid,
    path: &Path,
    votes: &mut Votes,
) -> Result<(), StorageError> {
    let file = CouchFile::open(files, path, OpenMode::Read)?;
    let (header, _) = file.newest_header()?;
    let selection = Selection { order: Order::BySeqno, start_seqno: 0, with_bodies: false };
    let mut left = NAMES_PER_FILE_MAX;
    storage::documents(&file, &header, selection, |document| {
        if let Some((collection, name)) = document.key
            && !(1..=7).contains(&collection.0)
        {
            votes.count(name, vbid);
            left -= 1;
        }
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn winner(count: u16, highest: u16, names: u32) -> u16 {
        votes(count, highest, names).winner()
    }

    /// `names` in their vBuckets of a bucket of `count`, as far as `highest` is not below them.
    fn votes(count: u16, highest: u16, names: u32) -> Votes {
        let mut votes = Votes::new(highest);
        for number in 0..names {
            let name = number.to_string();
            let vbid = Vbid::of_name(name.as_bytes(), count);
            if vbid.0 <= highest {
                votes.count(name.as_bytes(), vbid);
            }
        }
        votes
    }

    #[test]
    fn names_tell_how_many_vbuckets_there_are() {
        for count in [1, 2, 64, 128, 1024, 4096, 32768] {
            assert_eq!(winner(count, count - 1, 40), count);
        }
        assert_eq!(winner(1024, 511, 40), 1024, "half of a cluster of two nodes");
    }

    #[test]
    fn where_the_lower_half_is_alone_the_number_that_is_said_counts() {
        let half = votes(16, 7, 400);
        assert_eq!((half.winner(), half.equals_of(8)), (8, vec![16]));
        for (demanded, count) in [(None, 8), (Some(8), 8), (Some(16), 16)] {
            assert_eq!(Adoption::vbucket_count(8, &[16], demanded), Ok(count));
        }
        let why = Adoption::vbucket_count(8, &[16], Some(32)).unwrap_err();
        assert!(why.contains("speak for 8 vBuckets or 16, not 32"), "{why}");
        assert!(votes(16, 15, 400).equals_of(16).is_empty(), "all of it is here");
    }

    #[test]
    fn without_names_the_usual_number_is_assumed_where_it_can_be() {
        assert_eq!(winner(64, 63, 0), 1024);
        assert_eq!(winner(2048, 2047, 0), 2048);
    }

    #[test]
    fn names_that_clients_put_where_they_like_leave_the_smallest_number() {
        let mut votes = Votes::new(3);
        for number in 0..40 {
            let name = number.to_string();
            let elsewhere = Vbid(Vbid::of_name(name.as_bytes(), 4).0 ^ 1);
            votes.count(name.as_bytes(), elsewhere);
        }
        assert_eq!(votes.winner(), 4);
    }
}
