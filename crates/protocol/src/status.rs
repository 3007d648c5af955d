//! What a response says about its request, and what the error map says about that. Sources:
//! docs/specification/protocol.md, sections 4 and 5.

use crate::error_map::Attribute;

macro_rules! statuses {
    ($(
        $code:literal $variant:ident $name:literal $description:literal [$($attribute:ident)+];
    )+) => {
        /// The outcome of a request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Status {
            $(
                #[doc = concat!("`", $name, "`: ", $description, ".")]
                $variant = $code,
            )+
        }

        impl Status {
            /// Every status, in the order of the numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The status with this number.
            pub fn from_code(code: u16) -> Option<Self> {
                Some(match code {
                    $($code => Self::$variant,)+
                    _ => return None,
                })
            }

            /// The name by which clients and people know it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// What happened, in words.
            pub fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $description,)+
                }
            }

            /// What a client that does not know the status should do about it.
            pub fn attributes(self) -> &'static [Attribute] {
                match self {
                    $(Self::$variant => &[$(Attribute::$attribute),+],)+
                }
            }
        }
    };
}

statuses! {
    0x00 Success "SUCCESS"
        "the operation succeeded"
        [Success];
    0x01 KeyEnoent "KEY_ENOENT"
        "there is no document with this key"
        [ItemOnly];
    0x02 KeyEexists "KEY_EEXISTS"
        "the document exists already or has another CAS"
        [ItemOnly];
    0x03 E2big "E2BIG"
        "the value is too large"
        [ItemOnly InvalidInput];
    0x04 Einval "EINVAL"
        "the request is malformed"
        [Internal InvalidInput];
    0x05 NotStored "NOT_STORED"
        "there is no document to append to"
        [Internal ItemOnly];
    0x06 DeltaBadval "DELTA_BADVAL"
        "the document is not a number that can be counted"
        [ItemOnly InvalidInput];
    0x07 NotMyVbucket "NOT_MY_VBUCKET"
        "another node owns this vBucket"
        [FetchConfig InvalidInput];
    0x08 NoBucket "NO_BUCKET"
        "the connection has not selected a bucket"
        [ConnStateInvalidated];
    0x09 Locked "LOCKED"
        "the document is locked"
        [ItemLocked ItemOnly RetryNow];
    0x0a DcpStreamNotFound "DCP_STREAM_NOT_FOUND"
        "there is no such DCP stream"
        [ConnStateInvalidated];
    0x0b OpaqueNoMatch "OPAQUE_NO_MATCH"
        "the message belongs to another DCP stream"
        [ConnStateInvalidated];
    0x0c EwouldThrottle "EWOULD_THROTTLE"
        "the request would have to wait for its share of the node"
        [Temp RetryLater RateLimit];
    0x0d EconfigOnly "ECONFIG_ONLY"
        "the node only hosts the configuration of this bucket"
        [FetchConfig RetryNow];
    0x0e NotLocked "NOT_LOCKED"
        "the document is not locked"
        [ItemOnly];
    0x0f CasValueInvalid "CAS_VALUE_INVALID"
        "the CAS is outside the range that clocks allow"
        [ItemOnly];
    0x1f AuthStale "AUTH_STALE"
        "the login is out of date"
        [ConnStateInvalidated Auth];
    0x20 AuthError "AUTH_ERROR"
        "the login failed"
        [ConnStateInvalidated Auth];
    0x21 AuthContinue "AUTH_CONTINUE"
        "the login needs another step"
        [SpecialHandling];
    0x22 Erange "ERANGE"
        "a number is out of range"
        [InvalidInput];
    0x23 Rollback "ROLLBACK"
        "the stream must roll back first"
        [Dcp SpecialHandling];
    0x24 Eaccess "EACCESS"
        "the user may not do this"
        [Support];
    0x25 NotInitialized "NOT_INITIALIZED"
        "the node is not part of a cluster yet"
        [ConnStateInvalidated];
    0x26 EncryptionKeyNotAvailable "ENCRYPTION_KEY_NOT_AVAILABLE"
        "an encryption key is missing"
        [SpecialHandling];
    0x27 ChecksumMismatch "CHECKSUM_MISMATCH"
        "a checksum does not match"
        [SpecialHandling];
    0x28 ExpiryOverflow "EXPIRY_OVERFLOW"
        "the expiry does not fit its field"
        [ItemOnly SystemConstraint NoRetry];
    0x29 LockExpiryOverflow "LOCK_EXPIRY_OVERFLOW"
        "the lock time does not fit its field"
        [ItemOnly SystemConstraint NoRetry];
    0x30 RateLimitedNetworkIngress "RATE_LIMITED_NETWORK_INGRESS"
        "the tenant sends too many bytes"
        [Temp RetryLater RateLimit];
    0x31 RateLimitedNetworkEgress "RATE_LIMITED_NETWORK_EGRESS"
        "the tenant receives too many bytes"
        [Temp RetryLater RateLimit];
    0x32 RateLimitedMaxConnections "RATE_LIMITED_MAX_CONNECTIONS"
        "the tenant has too many connections"
        [ConnStateInvalidated RateLimit];
    0x33 RateLimitedMaxCommands "RATE_LIMITED_MAX_COMMANDS"
        "the tenant sends too many commands"
        [Temp RetryLater RateLimit];
    0x35 BucketSizeLimitExceeded "BUCKET_SIZE_LIMIT_EXCEEDED"
        "the bucket has reached its size limit"
        [ItemOnly SystemConstraint NoRetry];
    0x36 BucketResidentRatioTooLow "BUCKET_RESIDENT_RATIO_TOO_LOW"
        "too little of the bucket is in memory"
        [ItemOnly SystemConstraint NoRetry];
    0x37 BucketDataSizeTooBig "BUCKET_DATA_SIZE_TOO_BIG"
        "the bucket holds too much data for this node"
        [ItemOnly SystemConstraint NoRetry];
    0x38 BucketDiskSpaceTooLow "BUCKET_DISK_SPACE_TOO_LOW"
        "too little disk space is left"
        [ItemOnly SystemConstraint NoRetry];
    0x50 BucketPaused "BUCKET_PAUSED"
        "the bucket is paused"
        [Support];
    0x51 Cancelled "CANCELLED"
        "the operation was cancelled"
        [ItemOnly RetryNow];
    0x80 UnknownFrameInfo "UNKNOWN_FRAME_INFO"
        "the request has a frame info that the server does not know"
        [Support];
    0x81 UnknownCommand "UNKNOWN_COMMAND"
        "the server does not know this command"
        [Support];
    0x82 Enomem "ENOMEM"
        "the server is out of memory"
        [Temp RetryLater];
    0x83 NotSupported "NOT_SUPPORTED"
        "the server does not support this"
        [Support];
    0x84 Einternal "EINTERNAL"
        "the server has failed"
        [Internal ConnStateInvalidated];
    0x85 Ebusy "EBUSY"
        "the server is busy with this already"
        [Temp RetryNow];
    0x86 Etmpfail "ETMPFAIL"
        "a passing failure; try again"
        [Temp RetryNow];
    0x87 XattrEinval "XATTR_EINVAL"
        "the extended attributes are malformed"
        [InvalidInput];
    0x88 UnknownCollection "UNKNOWN_COLLECTION"
        "there is no such collection"
        [InvalidInput];
    0x8a CannotApplyCollectionsManifest "CANNOT_APPLY_COLLECTIONS_MANIFEST"
        "the collections manifest cannot follow the present one"
        [InvalidInput];
    0x8c UnknownScope "UNKNOWN_SCOPE"
        "there is no such scope"
        [InvalidInput];
    0x8d DcpStreamIdInvalid "DCP_STREAM_ID_INVALID"
        "the DCP stream id is not valid here"
        [InvalidInput];
    0xa0 DurabilityInvalidLevel "DURABILITY_INVALID_LEVEL"
        "there is no such durability level or timeout"
        [InvalidInput];
    0xa1 DurabilityImpossible "DURABILITY_IMPOSSIBLE"
        "too few replicas for this durability level"
        [ItemOnly InvalidInput];
    0xa2 SyncWriteInProgress "SYNC_WRITE_IN_PROGRESS"
        "another durable write of this key is under way"
        [ItemOnly RetryLater];
    0xa3 SyncWriteAmbiguous "SYNC_WRITE_AMBIGUOUS"
        "whether the durable write took place is unknown"
        [ItemOnly];
    0xa4 SyncWriteReCommitInProgress "SYNC_WRITE_RE_COMMIT_IN_PROGRESS"
        "a durable write of this key is being committed again"
        [ItemOnly RetryLater];
    0xa5 RangeScanCancelled "RANGE_SCAN_CANCELLED"
        "the range scan was cancelled"
        [Success];
    0xa6 RangeScanMore "RANGE_SCAN_MORE"
        "the range scan has more"
        [Success];
    0xa7 RangeScanComplete "RANGE_SCAN_COMPLETE"
        "the range scan is complete"
        [Success];
    0xa8 VbuuidNotEqual "VBUUID_NOT_EQUAL"
        "the history of the vBucket is another one"
        [InvalidInput];
    0xc0 SubdocPathEnoent "SUBDOC_PATH_ENOENT"
        "there is nothing at this path"
        [Subdoc ItemOnly];
    0xc1 SubdocPathMismatch "SUBDOC_PATH_MISMATCH"
        "the path does not fit the document"
        [Subdoc ItemOnly];
    0xc2 SubdocPathEinval "SUBDOC_PATH_EINVAL"
        "the path is malformed"
        [Subdoc InvalidInput];
    0xc3 SubdocPathE2big "SUBDOC_PATH_E2BIG"
        "the path has too many components"
        [Subdoc InvalidInput];
    0xc4 SubdocDocE2deep "SUBDOC_DOC_E2DEEP"
        "the document is nested too deeply"
        [Subdoc InvalidInput];
    0xc5 SubdocValueCantinsert "SUBDOC_VALUE_CANTINSERT"
        "the value cannot be put in this place"
        [Subdoc InvalidInput];
    0xc6 SubdocDocNotjson "SUBDOC_DOC_NOTJSON"
        "the document is not JSON"
        [Subdoc ItemOnly];
    0xc7 SubdocNumErange "SUBDOC_NUM_ERANGE"
        "the stored number is out of range"
        [Subdoc ItemOnly];
    0xc8 SubdocDeltaEinval "SUBDOC_DELTA_EINVAL"
        "the delta is not a number that can be added"
        [Subdoc ItemOnly];
    0xc9 SubdocPathEexists "SUBDOC_PATH_EEXISTS"
        "the path exists already"
        [Subdoc ItemOnly];
    0xca SubdocValueEtoodeep "SUBDOC_VALUE_ETOODEEP"
        "the value would nest the document too deeply"
        [Subdoc InvalidInput ItemOnly];
    0xcb SubdocInvalidCombo "SUBDOC_INVALID_COMBO"
        "these commands cannot be combined"
        [Subdoc InvalidInput];
    0xcc SubdocMultiPathFailure "SUBDOC_MULTI_PATH_FAILURE"
        "at least one path failed"
        [Subdoc SpecialHandling];
    0xcd SubdocSuccessDeleted "SUBDOC_SUCCESS_DELETED"
        "the operation succeeded on a deleted document"
        [ItemDeleted Success Subdoc];
    0xce SubdocXattrInvalidFlagCombo "SUBDOC_XATTR_INVALID_FLAG_COMBO"
        "these path flags cannot be combined"
        [Subdoc InvalidInput];
    0xcf SubdocXattrInvalidKeyCombo "SUBDOC_XATTR_INVALID_KEY_COMBO"
        "these attribute keys cannot be combined"
        [Subdoc InvalidInput];
    0xd0 SubdocXattrUnknownMacro "SUBDOC_XATTR_UNKNOWN_MACRO"
        "there is no such macro"
        [Subdoc InvalidInput];
    0xd1 SubdocXattrUnknownVattr "SUBDOC_XATTR_UNKNOWN_VATTR"
        "there is no such virtual attribute"
        [Subdoc InvalidInput];
    0xd2 SubdocXattrCantModifyVattr "SUBDOC_XATTR_CANT_MODIFY_VATTR"
        "virtual attributes cannot be changed"
        [Subdoc InvalidInput];
    0xd3 SubdocMultiPathFailureDeleted "SUBDOC_MULTI_PATH_FAILURE_DELETED"
        "at least one path of a deleted document failed"
        [ItemDeleted Subdoc SpecialHandling];
    0xd4 SubdocInvalidXattrOrder "SUBDOC_INVALID_XATTR_ORDER"
        "attributes must come before the body"
        [Subdoc InvalidInput];
    0xd5 SubdocXattrUnknownVattrMacro "SUBDOC_XATTR_UNKNOWN_VATTR_MACRO"
        "there is no such macro of a virtual attribute"
        [Subdoc InvalidInput];
    0xd6 SubdocCanOnlyReviveDeletedDocuments "SUBDOC_CAN_ONLY_REVIVE_DELETED_DOCUMENTS"
        "only a deleted document can be revived"
        [Subdoc ItemOnly];
    0xd7 SubdocDeletedDocumentCantHaveValue "SUBDOC_DELETED_DOCUMENT_CANT_HAVE_VALUE"
        "a deleted document cannot have a body"
        [Subdoc ItemOnly];
    0xd8 SubdocFieldNotBinaryValue "SUBDOC_FIELD_NOT_BINARY_VALUE"
        "the field does not hold a binary value"
        [Subdoc ItemOnly];
}

impl Status {
    /// The number on the wire.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// Whether a response with this status has the body of its command, so that an error context
    /// must never take its place (docs/specification/protocol.md, section 3.2).
    pub fn has_own_body(self) -> bool {
        matches!(
            self,
            Self::Success
                | Self::NotMyVbucket
                | Self::AuthContinue
                | Self::Rollback
                | Self::SubdocMultiPathFailure
                | Self::SubdocMultiPathFailureDeleted
                | Self::SubdocSuccessDeleted
                | Self::RangeScanMore
                | Self::RangeScanComplete
        )
    }

    /// The status for a client without the feature Xerror, which knows only the oldest ones.
    /// `None`: it knows none that fits. The original closes the connection then; this server sends
    /// the extended status (docs/specification/protocol.md, section 3.3).
    pub fn without_xerror(self, context: LegacyContext) -> Option<Self> {
        Some(match self {
            Self::Locked if context == LegacyContext::Mutation => Self::KeyEexists,
            Self::CasValueInvalid => Self::KeyEexists,
            Self::Locked
            | Self::NotLocked
            | Self::SyncWriteInProgress
            | Self::SyncWriteReCommitInProgress => Self::Etmpfail,
            Self::UnknownCollection | Self::UnknownScope => Self::Einval,
            Self::RateLimitedMaxConnections => Self::E2big,
            Self::CannotApplyCollectionsManifest => Self::Einternal,
            Self::EconfigOnly => Self::NotSupported,
            Self::NoBucket
            | Self::AuthStale
            | Self::Eaccess
            | Self::DurabilityInvalidLevel
            | Self::DurabilityImpossible
            | Self::SyncWriteAmbiguous
            | Self::RangeScanCancelled
            | Self::RangeScanMore
            | Self::RangeScanComplete
            | Self::VbuuidNotEqual => return None,
            other => other,
        })
    }
}

/// What kind of command met a locked document: old clients hear different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacyContext {
    /// A write of the whole document.
    Mutation,
    /// GET_LOCKED, UNLOCK_KEY or a sub-document command.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_statuses_are_one_to_one() {
        assert_eq!(Status::ALL.len(), 83);
        for &status in Status::ALL {
            assert_eq!(Status::from_code(status.code()), Some(status));
        }
        let assigned = (0..=u16::MAX).filter_map(Status::from_code).count();
        assert_eq!(assigned, Status::ALL.len());
        assert!(Status::ALL.is_sorted());
    }

    #[test]
    fn the_names_are_the_fields() {
        for (code, name) in [
            (0x00, "SUCCESS"),
            (0x0e, "NOT_LOCKED"),
            (0x86, "ETMPFAIL"),
            (0xa3, "SYNC_WRITE_AMBIGUOUS"),
            (0xd8, "SUBDOC_FIELD_NOT_BINARY_VALUE"),
        ] {
            assert_eq!(Status::from_code(code).map(Status::name), Some(name));
        }
    }

    #[test]
    fn old_clients_hear_only_what_they_know() {
        for (status, context, heard) in [
            (Status::Locked, LegacyContext::Mutation, Some(Status::KeyEexists)),
            (Status::Locked, LegacyContext::Other, Some(Status::Etmpfail)),
            (Status::NotLocked, LegacyContext::Other, Some(Status::Etmpfail)),
            (Status::SyncWriteInProgress, LegacyContext::Mutation, Some(Status::Etmpfail)),
            (Status::UnknownCollection, LegacyContext::Mutation, Some(Status::Einval)),
            (Status::KeyEnoent, LegacyContext::Mutation, Some(Status::KeyEnoent)),
            (Status::Eaccess, LegacyContext::Mutation, None),
        ] {
            assert_eq!(status.without_xerror(context), heard, "{status:?}");
        }
    }
}
