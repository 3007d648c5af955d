//! What client and server agree on. Source: docs/specification/protocol.md, section 6.

use crate::validate::Invalid;

/// Bytes of an agent's name that are kept.
pub const AGENT_SIZE_MAX: usize = 250;
/// Bytes of a connection id that are kept.
pub const CONNECTION_ID_SIZE_MAX: usize = 33;

macro_rules! features {
    ($($code:literal $variant:ident $text:literal;)+) => {
        /// Something that a client may ask for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Feature {
            $(#[doc = $text] $variant = $code,)+
        }

        impl Feature {
            /// Every feature, in the order of the numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The feature with this number.
            pub fn from_code(code: u16) -> Option<Self> {
                Some(match code {
                    $($code => Self::$variant,)+
                    _ => return None,
                })
            }
        }
    };
}

features! {
    0x02 Tls "Never granted.";
    0x03 TcpNoDelay "Small packets leave at once; they always do.";
    0x04 MutationSeqno "Successful mutations carry vBucket uuid and seqno.";
    0x05 TcpDelay "Never granted.";
    0x06 Xattr "Extended attributes.";
    0x07 Xerror "Statuses beyond the oldest ones.";
    0x08 SelectBucket "SELECT_BUCKET may be used.";
    0x0a Snappy "Values may be compressed.";
    0x0b Json "Values may be marked as JSON, and errors explained in it.";
    0x0c Duplex "The server may speak unasked.";
    0x0d ClustermapChangeNotification "New cluster maps are pushed.";
    0x0e UnorderedExecution "Requests may overtake each other.";
    0x0f Tracing "Responses tell how long the server took.";
    0x10 AltRequestSupport "Requests may carry frame infos.";
    0x11 SyncReplication "Writes may be durable.";
    0x12 Collections "Keys carry their collection.";
    0x13 SnappyEverywhere "Any value may be compressed.";
    0x14 PreserveTtl "Writes may keep the expiry.";
    0x15 VAttr "Virtual extended attributes.";
    0x17 SubdocCreateAsDeleted "Documents may be created deleted.";
    0x18 SubdocDocumentMacroSupport "Macros may name the document's properties.";
    0x19 SubdocReplaceBodyWithXattr "An extended attribute may become the body.";
    0x1a ReportUnitUsage "Responses tell what they cost.";
    0x1b NonBlockingThrottling "Throttled requests are refused, not delayed.";
    0x1c SubdocReplicaRead "Sub-document lookups on replicas.";
    0x1d GetClusterConfigWithKnownVersion "GET_CLUSTER_CONFIG may say which map the client has.";
    0x1e DedupeNotMyVbucketClustermap "NOT_MY_VBUCKET comes without a map that was sent before.";
    0x1f ClustermapChangeNotificationBrief "The versions of new cluster maps are pushed.";
    0x20 SubdocAllowsAccessOnMultipleXattrKeys "Several attributes in one request.";
    0x21 SubdocBinaryXattr "Attributes may hold bytes.";
    0x22 RangeScanIncludeXattr "Range scans may include attributes.";
    0x23 SubdocAllowReplicaReadOnDeletedDocs "Lookups on replicas may see deleted documents.";
    0x24 GetRandomKeyIncludeXattr "GET_RANDOM_KEY may include attributes.";
    0x25 MutateWithMeta "MUTATE_WITH_META may be used.";
    0x26 DcpSkipDeletesInInitialBackfill "Backfills may leave out deletions.";
}

/// Features, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureSet(u64);

impl Feature {
    /// The number on the wire.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// The features without which this one makes no sense.
    fn needs(self) -> &'static [Self] {
        match self {
            Self::ClustermapChangeNotification | Self::ClustermapChangeNotificationBrief => {
                &[Self::Duplex]
            }
            Self::VAttr | Self::SubdocDocumentMacroSupport | Self::RangeScanIncludeXattr => {
                &[Self::Xattr]
            }
            Self::GetRandomKeyIncludeXattr => &[Self::Xattr, Self::Json, Self::SnappyEverywhere],
            _ => &[],
        }
    }
}

impl FeatureSet {
    /// Whether nothing was agreed on, as with clients that never say HELLO.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// No feature: what a connection has before HELLO.
    pub const NONE: Self = Self(0);

    /// Whether the feature is among them.
    pub const fn contains(self, feature: Feature) -> bool {
        self.0 & Self::bit(feature) != 0
    }

    /// With one more.
    #[must_use]
    pub const fn with(self, feature: Feature) -> Self {
        Self(self.0 | Self::bit(feature))
    }

    /// With one less.
    #[must_use]
    pub const fn without(self, feature: Feature) -> Self {
        Self(self.0 & !Self::bit(feature))
    }

    /// What is in both.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The features in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.iter().copied().filter(move |feature| self.contains(*feature))
    }

    /// Appends the codes, ascending, as HELLO and its response carry them.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.extend(self.iter().flat_map(|feature| feature.code().to_be_bytes()));
    }

    const fn bit(feature: Feature) -> u64 {
        1 << feature as u8
    }

    fn lacks_what_it_needs(self, feature: Feature) -> bool {
        !feature.needs().iter().all(|needed| self.contains(*needed))
    }
}

impl FromIterator<Feature> for FeatureSet {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> Self {
        features.into_iter().fold(Self::NONE, Self::with)
    }
}

/// What a HELLO agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// The response's value.
    pub granted: FeatureSet,
    /// What the connection has from now on: the granted ones and what they imply.
    pub enabled: FeatureSet,
}

/// Reads the value of a HELLO. Codes that nobody knows are skipped; a feature without those that
/// it needs fails the whole request.
pub fn requested(value: &[u8]) -> Result<FeatureSet, Invalid> {
    let (codes, rest) = value.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Invalid::argument("the features have an odd number of bytes"));
    }
    let requested: FeatureSet =
        codes.iter().filter_map(|code| Feature::from_code(u16::from_be_bytes(*code))).collect();
    if requested.iter().any(|feature| requested.lacks_what_it_needs(feature)) {
        return Err(Invalid::argument("a feature was requested without one that it needs"));
    }
    Ok(requested)
}

/// Grants what was requested and is `supported`.
pub fn negotiate(value: &[u8], supported: FeatureSet) -> Result<Agreement, Invalid> {
    let possible = requested(value)?.intersection(supported);
    // What a feature needs was asked for with it, but need not be supported.
    let granted: FeatureSet =
        possible.iter().filter(|feature| !possible.lacks_what_it_needs(*feature)).collect();
    let granted = granted.without(Feature::Tls).without(Feature::TcpDelay);
    let everywhere = granted.contains(Feature::SnappyEverywhere);
    let enabled = if everywhere { granted.with(Feature::Snappy) } else { granted };
    Ok(Agreement { granted, enabled })
}

/// Who a client says it is. For log lines: control characters are replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    /// Name and version.
    pub name: String,
    /// Which of the client's connections this is; may be empty.
    pub connection_id: String,
}

impl Agent {
    /// Reads the key of a HELLO: `{"a":"agent/version","i":"id"}`, or plain text.
    pub fn parse(key: &[u8]) -> Result<Self, Invalid> {
        if key.len() > AGENT_SIZE_MAX {
            return Err(Invalid::argument("the agent's name is too long"));
        }
        let json = std::str::from_utf8(key).ok().and_then(|text| serde_json::from_str(text).ok());
        Ok(match json {
            Some(AgentJson { a, i }) => Self {
                name: printable(a.as_bytes(), AGENT_SIZE_MAX),
                connection_id: printable(i.as_bytes(), CONNECTION_ID_SIZE_MAX),
            },
            None => Self { name: printable(key, AGENT_SIZE_MAX), connection_id: String::new() },
        })
    }
}

#[derive(serde::Deserialize)]
struct AgentJson {
    a: String,
    #[serde(default)]
    i: String,
}

fn printable(bytes: &[u8], size_max: usize) -> String {
    let bytes = bytes.get(..size_max).unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

#[cfg(test)]
mod tests;
