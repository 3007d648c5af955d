//! Which privileges each command needs, and where. Source: docs/specification/protocol.md, section
//! 3.5.

use auth::{Privilege, PrivilegeSet};
use protocol::Opcode;

/// Where the privileges of a command are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeededIn {
    /// In the cluster, whether or not a bucket is selected.
    Node,
    /// In all of the selected bucket.
    Bucket,
    /// In one of its collections at least. What the command looks at beyond that it checks itself.
    SomeCollection,
    /// In the collection of the document that it names.
    Document,
}

/// What a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Where.
    pub place: NeededIn,
    /// Of these all.
    pub all: PrivilegeSet,
    /// Of these one, unless there are none.
    pub one: PrivilegeSet,
}

impl Need {
    const NOTHING: Self = Self::all(NeededIn::Node, &[]);

    const fn all(place: NeededIn, privileges: &[Privilege]) -> Self {
        Self { place, all: PrivilegeSet::of(privileges), one: PrivilegeSet::NONE }
    }

    const fn one(place: NeededIn, privileges: &[Privilege]) -> Self {
        Self { place, all: PrivilegeSet::NONE, one: PrivilegeSet::of(privileges) }
    }

    /// Whether whoever has these privileges has what is needed.
    #[inline]
    pub fn is_met_by(&self, privileges: PrivilegeSet) -> bool {
        privileges.contains_all(self.all)
            && (self.one.is_empty() || privileges.contains_any(self.one))
    }
}

/// What each command needs, by its number.
static NEEDS: [Need; 256] = {
    let mut needs = [Need::NOTHING; 256];
    let mut opcodes = Opcode::ALL;
    while let [opcode, rest @ ..] = opcodes {
        needs[*opcode as usize] = need(*opcode);
        opcodes = rest;
    }
    needs
};

/// What a command needs.
#[inline]
pub fn needed_for(opcode: Opcode) -> &'static Need {
    &NEEDS[usize::from(opcode.byte())]
}

/// The table.
const fn need(opcode: Opcode) -> Need {
    use NeededIn::{Bucket, Document, Node, SomeCollection};
    use Opcode::*;
    use Privilege::{
        Administrator, Audit, BucketFlush, DcpConsumer, DcpProducer, Delete as DeleteDocuments,
        Impersonate, Insert, MetaWrite, NodeSupervisor, RangeScan, Read, Upsert,
    };
    match opcode {
        Get | GetQ | Getk | GetkQ | GetEx | GetExReplica | GetReplica | GetLocked | UnlockKey
        | GetMeta | GetQMeta | GetKeys | SubdocGet | SubdocExists | SubdocGetCount
        | SubdocMultiLookup => Need::all(Document, &[Read]),
        GetRandomKey | GetFailoverLog | ObserveSeqno | Observe | GetAllVbSeqnos => {
            Need::all(SomeCollection, &[Read])
        }
        Set
        | SetQ
        | Replace
        | ReplaceQ
        | Append
        | AppendQ
        | Prepend
        | PrependQ
        | Touch
        | SubdocDictAdd
        | SubdocDictUpsert
        | SubdocDelete
        | SubdocReplace
        | SubdocArrayPushLast
        | SubdocArrayPushFirst
        | SubdocArrayInsert
        | SubdocArrayAddUnique
        | SubdocMultiMutation
        | SubdocReplaceBodyWithXattr => Need::all(Document, &[Upsert]),
        Add | AddQ => Need::one(Document, &[Insert, Upsert]),
        Increment | IncrementQ | Decrement | DecrementQ | Gat | GatQ | SubdocCounter => {
            Need::all(Document, &[Read, Upsert])
        }
        Delete | DeleteQ => Need::all(Document, &[DeleteDocuments]),
        SetWithMeta | SetQWithMeta | AddWithMeta | AddQWithMeta | DelWithMeta | DelQWithMeta
        | MutateWithMeta | ReturnMeta => Need::all(Document, &[MetaWrite]),
        RangeScanCreate | RangeScanContinue | RangeScanCancel => {
            Need::all(SomeCollection, &[RangeScan])
        }
        Flush | FlushQ => Need::all(Bucket, &[BucketFlush]),
        DcpOpen | DcpCloseStream | DcpNoop | DcpControl => {
            Need::one(Bucket, &[DcpProducer, DcpConsumer])
        }
        DcpStreamReq | DcpGetFailoverLog | DcpBufferAck => Need::all(Bucket, &[DcpProducer]),
        // Durable writes are acknowledged by it.
        DcpSeqnoAcknowledged => Need::all(Bucket, &[DcpProducer, NodeSupervisor]),
        DcpAddStream | DcpStreamEnd | DcpSnapshotMarker | DcpMutation | DcpDeletion
        | DcpExpiration | DcpSetVbucketState | DcpSystemEvent | DcpPrepare | DcpCommit
        | DcpAbort | DcpSeqnoAdvanced | DcpOsoSnapshot | DcpCacheTransfer | DcpCacheTransferEnd => {
            Need::all(Bucket, &[DcpConsumer])
        }
        SetVbucket
        | DelVbucket
        | CompactDb
        | SeqnoPersistence
        | CollectionsSetManifest
        | EnableTraffic
        | DisableTraffic => Need::all(Bucket, &[NodeSupervisor]),
        SetClusterConfig
        | CreateBucket
        | DeleteBucket
        | PauseBucket
        | ResumeBucket
        | ValidateBucketConfig
        | Ifconfig
        | ConfigValidate
        | ConfigReload
        | AuditConfigReload
        | Shutdown
        | IsaslRefresh
        | RbacRefresh
        | SetBucketThrottleProperties
        | SetBucketDataLimitExceeded
        | SetActiveEncryptionKeys
        | PruneEncryptionKeys
        | SetChronicleAuthToken
        | UpdateExternalUserPermissions
        | AuthProvider
        | GetFusionStorageSnapshot
        | ReleaseFusionStorageSnapshot
        | MountFusionVbucket
        | UnmountFusionVbucket
        | SyncFusionLogstore
        | StartFusionUploader
        | StopFusionUploader
        | DeleteFusionNamespace
        | GetFusionNamespaces
        | CreateFusionNamespace => Need::all(Node, &[NodeSupervisor]),
        EvictKey | SetParam | StopPersistence | StartPersistence | PrepareSnapshot
        | ReleaseSnapshot | DownloadSnapshot | GetFileFragment => {
            Need::all(Bucket, &[Administrator])
        }
        IoctlGet | IoctlSet | AdjustTimeofday | EwouldblockCtl => Need::all(Node, &[Administrator]),
        AuditPut => Need::all(Node, &[Audit]),
        RegisterAuthToken => Need::all(Node, &[Impersonate]),
        // Whoever has said who it is. Those that show something check what, and VERBOSITY, which
        // memcached's clients send, changes nothing here.
        Quit
        | QuitQ
        | Noop
        | Version
        | Hello
        | SaslListMechs
        | SaslAuth
        | SaslStep
        | GetErrorMap
        | Stat
        | ListBuckets
        | SelectBucket
        | GetVbucket
        | GetClusterConfig
        | CollectionsGetManifest
        | CollectionsGetCollectionId
        | CollectionsGetScopeId
        | GetCmdTimer
        | DropPrivilege
        | Verbosity => Need::NOTHING,
        // Retired ones, which nobody carries out.
        _ => Need::all(Node, &[Administrator]),
    }
}
