//! Which of two versions of a document wins that came about in different places. Source:
//! docs/specification/engine.md, section 6.4.

use std::cmp::Ordering;

use document::{Cas, Datatype, Item, ItemMeta, RevSeqno};

/// What decides first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionOrder {
    /// How often the document has changed, then the CAS.
    Revision,
    /// The CAS, then how often the document has changed.
    Cas,
}

/// What of a version is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) cas: Cas,
    pub(crate) revision: RevSeqno,
    pub(crate) meta: ItemMeta,
}

impl Version {
    pub(crate) fn of(item: &Item) -> Self {
        Self { cas: item.cas(), revision: item.revision(), meta: item.meta() }
    }

    fn has_xattrs(&self) -> bool {
        self.meta.datatype.contains(Datatype::XATTR)
    }
}

impl VersionOrder {
    /// Whether `incoming` takes the place of `existing`. The same version does not, unless it alone
    /// brings xattrs.
    pub(crate) fn accepts(self, incoming: &Version, existing: &Version) -> bool {
        let by_cas = incoming.cas.0.cmp(&existing.cas.0);
        let by_revision = incoming.revision.0.cmp(&existing.revision.0);
        let order = match self {
            Self::Revision => by_revision.then(by_cas),
            Self::Cas => by_cas.then(by_revision),
        };
        if incoming.meta.deletion.is_some() {
            return order == Ordering::Greater;
        }
        let by_expiry = incoming.meta.expiry.cmp(&existing.meta.expiry);
        let by_flags = incoming.meta.flags.cmp(&existing.meta.flags);
        match order.then(by_expiry).then(by_flags) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => incoming.has_xattrs() && !existing.has_xattrs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use document::Deletion;

    use super::*;

    /// CAS, revision, expiry, flags, whether it has xattrs.
    type Row = (u64, u64, u32, u8, bool);

    fn version((cas, revision, expiry, flags, has_xattrs): Row) -> Version {
        let datatype = if has_xattrs { Datatype::XATTR } else { Datatype::RAW };
        let meta = ItemMeta { flags: [0, 0, 0, flags], expiry, datatype, deletion: None };
        Version { cas: Cas(cas), revision: RevSeqno(revision), meta }
    }

    #[test]
    fn the_greater_version_wins_and_ties_do_not() {
        use VersionOrder::{Cas, Revision};
        let existing = (5, 5, 5, 5, false);
        let cases: [(Row, &[VersionOrder], &[VersionOrder]); 11] = [
            ((5, 6, 0, 0, false), &[Revision, Cas], &[Revision, Cas]),
            ((6, 5, 0, 0, false), &[Revision, Cas], &[Revision, Cas]),
            ((6, 4, 9, 9, true), &[Cas], &[Cas]),
            ((4, 6, 9, 9, true), &[Revision], &[Revision]),
            ((5, 4, 9, 9, true), &[], &[]),
            ((5, 5, 6, 0, false), &[Revision, Cas], &[]),
            ((5, 5, 4, 9, true), &[], &[]),
            ((5, 5, 5, 6, false), &[Revision, Cas], &[]),
            ((5, 5, 5, 4, true), &[], &[]),
            ((5, 5, 5, 5, false), &[], &[]),
            ((5, 5, 5, 5, true), &[Revision, Cas], &[]),
        ];
        for (row, stores, deletions) in cases {
            for order in [Revision, Cas] {
                let (mut incoming, existing) = (version(row), version(existing));
                let accepted = order.accepts(&incoming, &existing);
                assert_eq!(accepted, stores.contains(&order), "{row:?} {order:?}");
                incoming.meta.deletion = Some(Deletion::Explicit);
                let accepted = order.accepts(&incoming, &existing);
                assert_eq!(accepted, deletions.contains(&order), "deletion {row:?} {order:?}");
            }
        }
        let full = version((5, 5, 5, 5, true));
        assert!(!Cas.accepts(&full, &full), "both have xattrs");
    }
}
