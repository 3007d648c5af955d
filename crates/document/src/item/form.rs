//! The byte that says which rare parts an item's header has.
//!
//! ```text
//! bits 0-3  flags: 0 to 14 for those of `COMMON_FLAGS`, 15 for others, which follow
//!      4-5  bytes of the revision that follow: none, 1 or 5
//!        6  2 more bytes of the seqno follow
//! ```

pub(super) const FORM_SIZE: usize = 1;

/// What clients set: nothing, or what SDKs call JSON, binary and text, each with and without what
/// older ones said of the same. The order is that of the codes.
const COMMON_FLAGS: [[u8; 4]; 7] = [
    [0, 0, 0, 0],
    [2, 0, 0, 0],
    [2, 0, 0, 6],
    [3, 0, 0, 0],
    [3, 0, 0, 2],
    [4, 0, 0, 0],
    [4, 0, 0, 4],
];
const FLAGS_BITS: u8 = 0x0f;
const OTHER_FLAGS: u8 = 0x0f;
const FLAGS_SIZE: usize = 4;

const REVISION_SHIFT: u32 = 4;
const REVISION_BITS: u8 = 0x03;
const LONG_SEQNO: u8 = 0x40;
const LONG_SEQNO_SIZE: usize = 2;

/// Bytes of the rare parts at most, the form's own left out.
pub(super) const RARE_SIZE_MAX: usize = FLAGS_SIZE + 5 + LONG_SEQNO_SIZE;

/// How much of revision and seqno has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Width {
    /// A revision of one byte and a seqno of four.
    Narrow,
    /// A revision of two bytes.
    Medium,
    /// Six bytes for each.
    Wide,
}

/// Which rare parts there are. The default has none, and is not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Form(pub(super) u8);

impl Width {
    /// The least that has room.
    pub(super) fn for_place(revision: u64, seqno: u64) -> Self {
        match (revision, seqno) {
            (..=0xff, ..=0xffff_ffff) => Self::Narrow,
            (..=0xffff, ..=0xffff_ffff) => Self::Medium,
            _ => Self::Wide,
        }
    }
}

impl Form {
    pub(super) fn new(flags: [u8; 4], width: Width) -> Self {
        let code = COMMON_FLAGS.iter().zip(0..).find(|(common, _)| **common == flags);
        let code = code.map_or(OTHER_FLAGS, |(_, code)| code);
        Self(code).with_width(width)
    }

    pub(super) fn with_width(self, width: Width) -> Self {
        Self(
            self.0 & FLAGS_BITS
                | match width {
                    Width::Narrow => 0,
                    Width::Medium => 1 << REVISION_SHIFT,
                    Width::Wide => 2 << REVISION_SHIFT | LONG_SEQNO,
                },
        )
    }

    pub(super) const fn width(self) -> Width {
        match self.0 >> REVISION_SHIFT & REVISION_BITS {
            0 => Width::Narrow,
            1 => Width::Medium,
            _ => Width::Wide,
        }
    }

    pub(super) const fn has_other_flags(self) -> bool {
        self.0 & FLAGS_BITS == OTHER_FLAGS
    }

    /// The flags, unless they are others.
    pub(super) fn common_flags(self) -> Option<[u8; 4]> {
        COMMON_FLAGS.get(usize::from(self.0 & FLAGS_BITS)).copied()
    }

    /// Bytes of flags that follow.
    const fn flags_size(self) -> usize {
        if self.has_other_flags() { FLAGS_SIZE } else { 0 }
    }

    /// Bytes of the revision that follow.
    pub(super) const fn revision_size(self) -> usize {
        match self.width() {
            Width::Narrow => 0,
            Width::Medium => 1,
            Width::Wide => 5,
        }
    }

    /// Bytes of the seqno that follow.
    pub(super) const fn seqno_size(self) -> usize {
        if self.0 & LONG_SEQNO == 0 { 0 } else { LONG_SEQNO_SIZE }
    }

    /// Bytes that follow. Every look at a key asks for them.
    #[inline]
    pub(super) fn rare_size(self) -> usize {
        usize::from(RARE_SIZES[usize::from(self.0)])
    }
}

const RARE_SIZES: [u8; 256] = {
    let mut sizes = [0; 256];
    let mut form = 0;
    while form < sizes.len() {
        let of = Form(form as u8);
        sizes[form] = (of.flags_size() + of.revision_size() + of.seqno_size()) as u8;
        form += 1;
    }
    sizes
};

const _: () = assert!(COMMON_FLAGS.len() <= OTHER_FLAGS as usize);
