//! The table of all opcodes, in the order of their numbers.

use crate::opcode::{Class, Flags, OpcodeInfo};
use crate::shape::*;

macro_rules! opcodes {
    ($(
        $byte:literal $variant:ident $name:literal $class:ident [$($flag:ident)*] $shape:expr;
    )+) => {
        /// A command.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Opcode {
            $(
                #[doc = concat!("`", $name, "`")]
                $variant = $byte,
            )+
        }

        impl Opcode {
            /// Every opcode, in the order of the numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The opcode with this number; `None` for numbers that were never assigned.
            pub fn from_byte(byte: u8) -> Option<Self> {
                Some(match byte {
                    $($byte => Self::$variant,)+
                    _ => return None,
                })
            }

            /// What the table says about this opcode.
            pub fn info(self) -> &'static OpcodeInfo {
                match self {
                    $(Self::$variant => {
                        const INFO: OpcodeInfo = OpcodeInfo {
                            name: $name,
                            class: Class::$class,
                            flags: Flags::NONE$(.$flag())*,
                            shape: $shape,
                        };
                        &INFO
                    })+
                }
            }
        }
    };
}

opcodes! {
    0x00 Get "GET" Core [ro] DOCUMENT.cas_zero();
    0x01 Set "SET" Core [dur ttl ro] STORE;
    0x02 Add "ADD" Core [dur ro] STORE.cas_zero();
    0x03 Replace "REPLACE" Core [dur ttl ro] STORE;
    0x04 Delete "DELETE" Core [dur ro] DOCUMENT;
    0x05 Increment "INCREMENT" Core [dur ttl ro] COUNTER;
    0x06 Decrement "DECREMENT" Core [dur ttl ro] COUNTER;
    0x07 Quit "QUIT" Ext [] EMPTY;
    0x08 Flush "FLUSH" Retired [] UNCHECKED;
    0x09 GetQ "GETQ" Ext [q] DOCUMENT.cas_zero();
    0x0a Noop "NOOP" Core [] EMPTY;
    0x0b Version "VERSION" Ext [] EMPTY;
    0x0c Getk "GETK" Ext [ro] DOCUMENT.cas_zero();
    0x0d GetkQ "GETKQ" Ext [q] DOCUMENT.cas_zero();
    0x0e Append "APPEND" Core [dur ttl ro] DOCUMENT.optional_value().datatypes(COMPRESSIBLE);
    0x0f Prepend "PREPEND" Core [dur ttl ro] DOCUMENT.optional_value().datatypes(COMPRESSIBLE);
    0x10 Stat "STAT" Core [] EMPTY.optional_key().optional_value().datatypes(JSON);
    0x11 SetQ "SETQ" Ext [q ttl] STORE;
    0x12 AddQ "ADDQ" Ext [q] STORE.cas_zero();
    0x13 ReplaceQ "REPLACEQ" Ext [q ttl] STORE;
    0x14 DeleteQ "DELETEQ" Ext [q] DOCUMENT;
    0x15 IncrementQ "INCREMENTQ" Ext [q ttl] COUNTER;
    0x16 DecrementQ "DECREMENTQ" Ext [q ttl] COUNTER;
    0x17 QuitQ "QUITQ" Ext [q] EMPTY;
    0x18 FlushQ "FLUSHQ" Retired [] UNCHECKED;
    0x19 AppendQ "APPENDQ" Ext [q ttl] DOCUMENT.optional_value().datatypes(COMPRESSIBLE);
    0x1a PrependQ "PREPENDQ" Ext [q ttl] DOCUMENT.optional_value().datatypes(COMPRESSIBLE);
    0x1b Verbosity "VERBOSITY" Rare [] EMPTY.extras(&[4]);
    0x1c Touch "TOUCH" Core [dur ro] DOCUMENT.extras(&[4]).cas_zero();
    0x1d Gat "GAT" Core [dur ro] DOCUMENT.extras(&[4]).cas_zero();
    0x1e GatQ "GATQ" Ext [q] DOCUMENT.extras(&[4]).cas_zero();
    0x1f Hello "HELLO" Core [] EMPTY.optional_key().optional_value().cas_zero();
    0x20 SaslListMechs "SASL_LIST_MECHS" Core [] EMPTY;
    0x21 SaslAuth "SASL_AUTH" Core [] SASL;
    0x22 SaslStep "SASL_STEP" Core [] SASL;
    0x23 IoctlGet "IOCTL_GET" Admin [] EMPTY.key();
    0x24 IoctlSet "IOCTL_SET" Admin [] EMPTY.key().optional_value();
    0x25 ConfigValidate "CONFIG_VALIDATE" Admin [] JSON_VALUE;
    0x26 ConfigReload "CONFIG_RELOAD" Admin [] EMPTY;
    0x27 AuditPut "AUDIT_PUT" Admin [] EMPTY.extras(&[4]).value().datatypes(JSON);
    0x28 AuditConfigReload "AUDIT_CONFIG_RELOAD" Admin [] EMPTY;
    0x29 Shutdown "SHUTDOWN" Admin [] EMPTY;
    0x2a SetBucketThrottleProperties "SET_BUCKET_THROTTLE_PROPERTIES" Rare [ro] JSON_VALUE.key();
    0x2b SetBucketDataLimitExceeded "SET_BUCKET_DATA_LIMIT_EXCEEDED" Admin [ro] DATA_LIMIT;
    0x2c SetNodeThrottleProperties "SET_NODE_THROTTLE_PROPERTIES" Retired [ro] UNCHECKED;
    0x2d SetActiveEncryptionKeys "SET_ACTIVE_ENCRYPTION_KEYS" Rare [ro] JSON_VALUE;
    0x2e PruneEncryptionKeys "PRUNE_ENCRYPTION_KEYS" Rare [ro] JSON_VALUE;
    0x2f RegisterAuthToken "REGISTER_AUTH_TOKEN" Rare [] JSON_VALUE;
    0x30 Rget "RGET" Retired [] UNCHECKED;
    0x31 Rset "RSET" Retired [] UNCHECKED;
    0x32 RsetQ "RSETQ" Retired [] UNCHECKED;
    0x33 Rappend "RAPPEND" Retired [] UNCHECKED;
    0x34 RappendQ "RAPPENDQ" Retired [] UNCHECKED;
    0x35 Rprepend "RPREPEND" Retired [] UNCHECKED;
    0x36 RprependQ "RPREPENDQ" Retired [] UNCHECKED;
    0x37 Rdelete "RDELETE" Retired [] UNCHECKED;
    0x38 RdeleteQ "RDELETEQ" Retired [] UNCHECKED;
    0x39 Rincr "RINCR" Retired [] UNCHECKED;
    0x3a RincrQ "RINCRQ" Retired [] UNCHECKED;
    0x3b Rdecr "RDECR" Retired [] UNCHECKED;
    0x3c RdecrQ "RDECRQ" Retired [] UNCHECKED;
    0x3d SetVbucket "SET_VBUCKET" Admin [] EMPTY.extras(&[1]).optional_value().datatypes(JSON);
    0x3e GetVbucket "GET_VBUCKET" Admin [] EMPTY;
    0x3f DelVbucket "DEL_VBUCKET" Admin [] EMPTY.optional_value();
    0x40 TapConnect "TAP_CONNECT" Retired [] UNCHECKED;
    0x41 TapMutation "TAP_MUTATION" Retired [] UNCHECKED;
    0x42 TapDelete "TAP_DELETE" Retired [] UNCHECKED;
    0x43 TapFlush "TAP_FLUSH" Retired [] UNCHECKED;
    0x44 TapOpaque "TAP_OPAQUE" Retired [] UNCHECKED;
    0x45 TapVbucketSet "TAP_VBUCKET_SET" Retired [] UNCHECKED;
    0x46 TapCheckpointStart "TAP_CHECKPOINT_START" Retired [] UNCHECKED;
    0x47 TapCheckpointEnd "TAP_CHECKPOINT_END" Retired [] UNCHECKED;
    0x48 GetAllVbSeqnos "GET_ALL_VB_SEQNOS" Ext [ro] EMPTY.extras(&[0, 4, 8]);
    0x49 GetEx "GET_EX" Ext [ro] DOCUMENT.cas_zero();
    0x4a GetExReplica "GET_EX_REPLICA" Ext [ro] DOCUMENT.cas_zero();
    0x4b MutateWithMeta "MUTATE_WITH_META" Rare [ro] DOCUMENT.extras(&[4]).value().datatypes(ALL);
    0x50 DcpOpen "DCP_OPEN" Dcp [] EMPTY.extras(&[8]).key().optional_value().datatypes(JSON);
    0x51 DcpAddStream "DCP_ADD_STREAM" Dcp [] EMPTY.extras(&[4]);
    0x52 DcpCloseStream "DCP_CLOSE_STREAM" Dcp [] EMPTY;
    0x53 DcpStreamReq "DCP_STREAM_REQ" Dcp [] EMPTY.extras(&[48]).optional_value().datatypes(JSON);
    0x54 DcpGetFailoverLog "DCP_GET_FAILOVER_LOG" Dcp [] EMPTY;
    0x55 DcpStreamEnd "DCP_STREAM_END" Dcp [] EMPTY.extras(&[4]);
    0x56 DcpSnapshotMarker "DCP_SNAPSHOT_MARKER" Dcp [] EMPTY.extras(&[1, 20]).optional_value();
    0x57 DcpMutation "DCP_MUTATION" Dcp [] STREAMED.extras(&[31]);
    0x58 DcpDeletion "DCP_DELETION" Dcp [] STREAMED.extras(&[18, 21]);
    0x59 DcpExpiration "DCP_EXPIRATION" Dcp [] STREAMED.extras(&[20]);
    0x5a DcpFlush "DCP_FLUSH" Retired [] UNCHECKED;
    0x5b DcpSetVbucketState "DCP_SET_VBUCKET_STATE" Dcp [] EMPTY.extras(&[1]);
    0x5c DcpNoop "DCP_NOOP" Dcp [] EMPTY;
    0x5d DcpBufferAck "DCP_BUFFER_ACK" Dcp [] EMPTY.extras(&[4]);
    0x5e DcpControl "DCP_CONTROL" Dcp [] EMPTY.key().value();
    0x5f DcpSystemEvent "DCP_SYSTEM_EVENT" Dcp [] SYSTEM_EVENT;
    0x60 DcpPrepare "DCP_PREPARE" Dcp [] STREAMED.extras(&[31]).cas_required();
    0x61 DcpSeqnoAcknowledged "DCP_SEQNO_ACKNOWLEDGED" Dcp [] EMPTY.extras(&[8]);
    0x62 DcpCommit "DCP_COMMIT" Dcp [] DOCUMENT.extras(&[16]);
    0x63 DcpAbort "DCP_ABORT" Dcp [] DOCUMENT.extras(&[16]);
    0x64 DcpSeqnoAdvanced "DCP_SEQNO_ADVANCED" Dcp [] EMPTY.extras(&[8]);
    0x65 DcpOsoSnapshot "DCP_OSO_SNAPSHOT" Dcp [] EMPTY.extras(&[4]);
    0x66 DcpCacheTransfer "DCP_CACHE_TRANSFER" Rare [] UNCHECKED;
    0x67 DcpCacheTransferEnd "DCP_CACHE_TRANSFER_END" Rare [] UNCHECKED;
    0x70 GetFusionStorageSnapshot "GET_FUSION_STORAGE_SNAPSHOT" Rare [] UNCHECKED;
    0x71 ReleaseFusionStorageSnapshot "RELEASE_FUSION_STORAGE_SNAPSHOT" Rare [] UNCHECKED;
    0x72 MountFusionVbucket "MOUNT_FUSION_VBUCKET" Rare [] UNCHECKED;
    0x73 UnmountFusionVbucket "UNMOUNT_FUSION_VBUCKET" Rare [] UNCHECKED;
    0x74 SyncFusionLogstore "SYNC_FUSION_LOGSTORE" Rare [] UNCHECKED;
    0x75 StartFusionUploader "START_FUSION_UPLOADER" Rare [] UNCHECKED;
    0x76 StopFusionUploader "STOP_FUSION_UPLOADER" Rare [] UNCHECKED;
    0x77 DeleteFusionNamespace "DELETE_FUSION_NAMESPACE" Rare [] UNCHECKED;
    0x78 GetFusionNamespaces "GET_FUSION_NAMESPACES" Rare [] UNCHECKED;
    0x79 CreateFusionNamespace "CREATE_FUSION_NAMESPACE" Rare [] UNCHECKED;
    0x80 StopPersistence "STOP_PERSISTENCE" Admin [] EMPTY;
    0x81 StartPersistence "START_PERSISTENCE" Admin [] EMPTY;
    0x82 SetParam "SET_PARAM" Admin [] EMPTY.extras(&[4]).key().value();
    0x83 GetReplica "GET_REPLICA" Core [ro] DOCUMENT.cas_zero();
    0x84 SetChronicleAuthToken "SET_CHRONICLE_AUTH_TOKEN" Rare [] EMPTY.optional_value();
    0x85 CreateBucket "CREATE_BUCKET" Admin [] EMPTY.key().value();
    0x86 DeleteBucket "DELETE_BUCKET" Admin [] EMPTY.key().optional_value().datatypes(JSON);
    0x87 ListBuckets "LIST_BUCKETS" Admin [] EMPTY;
    0x89 SelectBucket "SELECT_BUCKET" Core [] EMPTY.key();
    0x8a PauseBucket "PAUSE_BUCKET" Admin [] EMPTY.key();
    0x8b ResumeBucket "RESUME_BUCKET" Admin [] EMPTY.key();
    0x8c ValidateBucketConfig "VALIDATE_BUCKET_CONFIG" Admin [] EMPTY.value();
    0x91 ObserveSeqno "OBSERVE_SEQNO" Core [] EMPTY.value();
    0x92 Observe "OBSERVE" Ext [] EMPTY.value();
    0x93 EvictKey "EVICT_KEY" Admin [ro] DOCUMENT;
    0x94 GetLocked "GET_LOCKED" Core [ro] DOCUMENT.extras(&[0, 4]).cas_zero();
    0x95 UnlockKey "UNLOCK_KEY" Core [ro] DOCUMENT.cas_required();
    0x96 GetFailoverLog "GET_FAILOVER_LOG" Ext [] EMPTY;
    0x97 LastClosedCheckpoint "LAST_CLOSED_CHECKPOINT" Retired [] UNCHECKED;
    0x9e DeregisterTapClient "DEREGISTER_TAP_CLIENT" Retired [] UNCHECKED;
    0x9f ResetReplicationChain "RESET_REPLICATION_CHAIN" Retired [] UNCHECKED;
    0xa0 GetMeta "GET_META" Core [] DOCUMENT.extras(&[0, 1]);
    0xa1 GetQMeta "GETQ_META" Ext [q] DOCUMENT.extras(&[0, 1]);
    0xa2 SetWithMeta "SET_WITH_META" Ext [] WITH_META;
    0xa3 SetQWithMeta "SETQ_WITH_META" Ext [q] WITH_META;
    0xa4 AddWithMeta "ADD_WITH_META" Ext [] WITH_META;
    0xa5 AddQWithMeta "ADDQ_WITH_META" Ext [q] WITH_META;
    0xa6 SnapshotVbStates "SNAPSHOT_VB_STATES" Retired [] UNCHECKED;
    0xa7 VbucketBatchCount "VBUCKET_BATCH_COUNT" Retired [] UNCHECKED;
    0xa8 DelWithMeta "DEL_WITH_META" Ext [] WITH_META;
    0xa9 DelQWithMeta "DELQ_WITH_META" Ext [q] WITH_META;
    0xaa CreateCheckpoint "CREATE_CHECKPOINT" Retired [] UNCHECKED;
    0xac NotifyVbucketUpdate "NOTIFY_VBUCKET_UPDATE" Retired [] UNCHECKED;
    0xad EnableTraffic "ENABLE_TRAFFIC" Admin [] EMPTY;
    0xae DisableTraffic "DISABLE_TRAFFIC" Admin [] EMPTY;
    0xaf Ifconfig "IFCONFIG" Rare [] EMPTY.key().optional_value();
    0xb0 ChangeVbFilter "CHANGE_VB_FILTER" Retired [] UNCHECKED;
    0xb1 CheckpointPersistence "CHECKPOINT_PERSISTENCE" Retired [] UNCHECKED;
    0xb2 ReturnMeta "RETURN_META" Rare [] RETURN_META;
    0xb3 CompactDb "COMPACT_DB" Admin [] EMPTY.extras(&[24]).optional_value().datatypes(JSON);
    0xb4 SetClusterConfig "SET_CLUSTER_CONFIG" Admin [] CLUSTER_CONFIG;
    0xb5 GetClusterConfig "GET_CLUSTER_CONFIG" Core [ro] EMPTY.extras(&[0, 16]);
    0xb6 GetRandomKey "GET_RANDOM_KEY" Ext [] EMPTY.extras(&[0, 4, 5]);
    0xb7 SeqnoPersistence "SEQNO_PERSISTENCE" Admin [] EMPTY.extras(&[8]);
    0xb8 GetKeys "GET_KEYS" Rare [] DOCUMENT.extras(&[0, 4]);
    0xb9 CollectionsSetManifest "COLLECTIONS_SET_MANIFEST" Admin [] JSON_VALUE.vbucket_zero();
    0xba CollectionsGetManifest "COLLECTIONS_GET_MANIFEST" Ext [] EMPTY;
    0xbb CollectionsGetCollectionId "COLLECTIONS_GET_COLLECTION_ID" Core [] PATH;
    0xbc CollectionsGetScopeId "COLLECTIONS_GET_SCOPE_ID" Ext [] PATH;
    0xc1 SetDriftCounterState "SET_DRIFT_COUNTER_STATE" Retired [] UNCHECKED;
    0xc2 GetAdjustedTime "GET_ADJUSTED_TIME" Retired [] UNCHECKED;
    0xc5 SubdocGet "SUBDOC_GET" Core [ro] LOOKUP;
    0xc6 SubdocExists "SUBDOC_EXISTS" Core [ro] LOOKUP;
    0xc7 SubdocDictAdd "SUBDOC_DICT_ADD" Core [dur ttl ro] PATH_MUTATION;
    0xc8 SubdocDictUpsert "SUBDOC_DICT_UPSERT" Core [dur ttl ro] PATH_MUTATION;
    0xc9 SubdocDelete "SUBDOC_DELETE" Core [dur ttl ro] PATH_MUTATION;
    0xca SubdocReplace "SUBDOC_REPLACE" Core [dur ttl ro] PATH_MUTATION;
    0xcb SubdocArrayPushLast "SUBDOC_ARRAY_PUSH_LAST" Core [dur ttl ro] PATH_MUTATION;
    0xcc SubdocArrayPushFirst "SUBDOC_ARRAY_PUSH_FIRST" Core [dur ttl ro] PATH_MUTATION;
    0xcd SubdocArrayInsert "SUBDOC_ARRAY_INSERT" Core [dur ttl ro] PATH_MUTATION;
    0xce SubdocArrayAddUnique "SUBDOC_ARRAY_ADD_UNIQUE" Core [dur ttl ro] PATH_MUTATION;
    0xcf SubdocCounter "SUBDOC_COUNTER" Core [dur ttl ro] PATH_MUTATION;
    0xd0 SubdocMultiLookup "SUBDOC_MULTI_LOOKUP" Core [ro] MULTI_LOOKUP;
    0xd1 SubdocMultiMutation "SUBDOC_MULTI_MUTATION" Core [dur ttl ro] MULTI_MUTATION;
    0xd2 SubdocGetCount "SUBDOC_GET_COUNT" Core [ro] LOOKUP.optional_value();
    0xd3 SubdocReplaceBodyWithXattr "SUBDOC_REPLACE_BODY_WITH_XATTR" Ext [dur ttl ro] PATH_MUTATION;
    0xda RangeScanCreate "RANGE_SCAN_CREATE" Ext [ro] JSON_VALUE;
    0xdb RangeScanContinue "RANGE_SCAN_CONTINUE" Ext [] EMPTY.extras(&[28]);
    0xdc RangeScanCancel "RANGE_SCAN_CANCEL" Ext [] EMPTY.extras(&[16]);
    0xe0 PrepareSnapshot "PREPARE_SNAPSHOT" Rare [] EMPTY.optional_value().datatypes(JSON);
    0xe1 ReleaseSnapshot "RELEASE_SNAPSHOT" Rare [] EMPTY.optional_key();
    0xe2 DownloadSnapshot "DOWNLOAD_SNAPSHOT" Rare [] JSON_VALUE;
    0xe3 GetFileFragment "GET_FILE_FRAGMENT" Rare [] JSON_VALUE.key();
    0xf0 Scrub "SCRUB" Retired [] UNCHECKED;
    0xf1 IsaslRefresh "ISASL_REFRESH" Admin [] EMPTY;
    0xf2 SslCertsRefresh "SSL_CERTS_REFRESH" Retired [] UNCHECKED;
    0xf3 GetCmdTimer "GET_CMD_TIMER" Admin [] EMPTY.extras(&[1]).optional_key();
    0xf4 SetCtrlToken "SET_CTRL_TOKEN" Retired [] UNCHECKED;
    0xf5 GetCtrlToken "GET_CTRL_TOKEN" Retired [] UNCHECKED;
    0xf6 UpdateExternalUserPermissions "UPDATE_EXTERNAL_USER_PERMISSIONS" Rare [] JSON_VALUE;
    0xf7 RbacRefresh "RBAC_REFRESH" Admin [] EMPTY;
    0xf8 AuthProvider "AUTH_PROVIDER" Rare [] EMPTY;
    0xfb DropPrivilege "DROP_PRIVILEGE" Rare [] EMPTY.key();
    0xfc AdjustTimeofday "ADJUST_TIMEOFDAY" Rare [] UNCHECKED;
    0xfd EwouldblockCtl "EWOULDBLOCK_CTL" Rare [] UNCHECKED;
    0xfe GetErrorMap "GET_ERROR_MAP" Core [] EMPTY.value().vbucket_zero();
    0xff Invalid "INVALID" Retired [] UNCHECKED;
}
