//! Damaged vBuckets, as an operator sees them over the REST port.

use std::fmt::Write as _;

use bucket::{Bucket, LifeError, ResetLoss, Topology};
use cluster::VbucketRole;
use document::Vbid;
use management::{DamagedVbucket, ResetError};
use node::Membership;

/// Those of a bucket.
pub(crate) fn list(bucket: &Bucket) -> Vec<DamagedVbucket> {
    let describe = |damage: bucket::VbucketDamage| DamagedVbucket {
        vbid: damage.vbid.0,
        kind: damage.kind.name(),
        reason: damage.reason.to_string(),
    };
    bucket.damaged_vbuckets().into_iter().map(describe).collect()
}

/// Who has to hold durable writes of a vBucket whose active copy is to be here. Others have
/// another way out.
pub(crate) fn check_role(
    membership: &Membership,
    bucket: &str,
    vbid: u16,
) -> Result<Option<Topology>, ResetError> {
    let plan = membership.plan();
    if plan.buckets.get(bucket).is_none_or(|bucket| bucket.chain(vbid).is_empty()) {
        return Err(ResetError::NotHere(format!("There is no vBucket {vbid}")));
    }
    let this = membership.this_node_in(&plan);
    match this.map_or(VbucketRole::None, |this| plan.role(bucket, vbid, this)) {
        VbucketRole::Active(chain) => Ok(Some(vec![chain])),
        VbucketRole::Replica(_) => Err(ResetError::Refused(format!(
            "vBucket {vbid} is a replica here: it is built anew from the active copy by itself"
        ))),
        VbucketRole::None => Err(ResetError::NotHere(format!(
            "vBucket {vbid} is not on this node by the cluster map; reset it where it is active"
        ))),
    }
}

/// What a vBucket would lose, in words.
pub(crate) fn describe_loss(bucket: &Bucket, vbid: Vbid) -> Result<String, ResetError> {
    let loss = bucket.reset_loss(vbid).map_err(|error| refused(vbid, &error))?;
    Ok(in_words(&loss))
}

/// Has a vBucket begin anew.
pub(crate) fn reset(
    bucket: &Bucket,
    vbid: Vbid,
    topology: Option<Topology>,
) -> Result<(), ResetError> {
    bucket.reset_vbucket(vbid, topology).map_err(|error| refused(vbid, &error))
}

fn refused(vbid: Vbid, error: &LifeError) -> ResetError {
    let text = format!("vBucket {vbid}: {error}");
    match error {
        LifeError::OutOfRange | LifeError::NotHere => ResetError::NotHere(text),
        LifeError::NotDamaged | LifeError::WrongState(_) => ResetError::Refused(text),
        LifeError::Loading
        | LifeError::Damaged { .. }
        | LifeError::NotPersisted
        | LifeError::Storage(_)
        | LifeError::List(_) => ResetError::Failed(text),
    }
}

fn in_words(loss: &ResetLoss) -> String {
    let damage = &loss.damage;
    let mut text = format!("vBucket {} is damaged ({}): ", damage.vbid, damage.kind.name());
    let mut say = |part: std::fmt::Arguments<'_>| {
        text.write_fmt(part).expect("text takes what is written to it");
    };
    say(format_args!("{}. Beginning anew, empty and active, loses all of it: ", damage.reason));
    match (loss.document_count(), loss.in_memory) {
        (Some(count), Some(_)) => say(format_args!("{count} documents that are served now")),
        (Some(count), None) => say(format_args!("{count} documents by the newest header found")),
        (None, _) => say(format_args!("nobody can tell how many documents")),
    }
    match loss.high_seqno() {
        Some(seqno) => say(format_args!(", up to seqno {seqno}")),
        None => say(format_args!(", up to an unknown seqno")),
    }
    if loss.remains.journal_items > 0 {
        say(format_args!(", with {} changes only the journal has", loss.remains.journal_items));
    }
    match (&loss.remains.file, &loss.remains.aside) {
        (Some(file), Some(aside)) => say(format_args!(
            ". Its file {} of {} bytes is not removed: it becomes {}",
            file.display(),
            loss.remains.file_bytes,
            aside.display()
        )),
        _ => say(format_args!(". There is no file of it")),
    }
    say(format_args!(
        ". First think of its file as it was, put back while the node is stopped, of a replica, \
         and of a backup"
    ));
    text
}

#[cfg(test)]
mod tests {
    use bucket::{DamageKind, Remains, VbucketDamage};
    use document::Seqno;

    use super::*;

    fn loss(in_memory: Option<(Seqno, usize)>, remains: Remains) -> ResetLoss {
        let kind = DamageKind::OutOfService;
        let damage = VbucketDamage { vbid: Vbid(7), kind, reason: "a header".into() };
        ResetLoss { damage, remains, in_memory }
    }

    #[test]
    fn what_is_lost_is_said_as_far_as_it_is_known() {
        let whole = Remains {
            file: Some("b/7.couch.3".into()),
            aside: Some("b/7.couch.3.damaged".into()),
            file_bytes: 8192,
            newest_header: Some((Seqno(90), 40)),
            known_seqno: Some(Seqno(100)),
            journal_items: 5,
        };
        for (loss, parts) in [
            (
                loss(None, whole.clone()),
                &[
                    "vBucket 7 is damaged (out of service): a header. ",
                    ": 40 documents by the newest header found, up to seqno 100, with 5 changes",
                    "Its file b/7.couch.3 of 8192 bytes is not removed: it becomes \
                     b/7.couch.3.damaged.",
                ][..],
            ),
            (
                loss(Some((Seqno(120), 60)), whole),
                &[": 60 documents that are served now, up to seqno 120, with 5"],
            ),
            (
                loss(None, Remains::default()),
                &[
                    "nobody can tell how many documents, up to an unknown seqno",
                    "There is no file of it",
                ],
            ),
        ] {
            let said = in_words(&loss);
            for part in parts {
                assert!(said.contains(part), "{part}: {said}");
            }
        }
    }
}
