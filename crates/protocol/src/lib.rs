//! The memcached binary protocol with Couchbase's extensions, and memcached's text protocol: bytes
//! to requests, and back.
//!
//! Pure functions: no input, no output, no clock. Nothing here panics, whatever the bytes
//! (architecture invariant 4); `docs/protocol.md` says where each rule lives.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]
#![deny(clippy::little_endian_bytes)]
#![cfg_attr(test, expect(clippy::arithmetic_side_effects, reason = "a test may overflow and fail"))]

pub mod client;
pub mod collections;
pub mod dcp;
pub mod error_map;
pub mod fields;
pub mod frame;
pub mod frame_info;
pub mod fuzzing;
pub mod hello;
pub mod opcode;
pub mod range_scan;
pub mod request;
pub mod response;
pub mod server_request;
pub mod shape;
pub mod status;
pub mod subdocument;
pub mod text;
pub mod validate;
pub mod vbucket;
pub mod with_meta;

pub use frame::{Frame, FrameError, FrameLimits, Header, Magic, Parsed};
pub use frame_info::{DurabilityRequirement, FrameInfos};
pub use hello::{Feature, FeatureSet};
pub use opcode::{Class, Opcode, OpcodeInfo};
pub use response::ResponseHead;
pub use status::Status;
pub use validate::Invalid;
