//! How much a part of the log is.

use std::ops::{Add, AddAssign, Sub, SubAssign};

/// An amount of log. As a position: how much of it lies before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Items, superseded ones left out.
    pub items: usize,
    /// Bytes of the items, whoever else holds them.
    pub item_bytes: usize,
    /// Bytes of slots and segments.
    pub structure_bytes: usize,
}

impl Extent {
    /// Bytes as the checkpoint quota counts them.
    pub fn bytes(self) -> usize {
        self.item_bytes + self.structure_bytes
    }
}

impl Add for Extent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            items: self.items + other.items,
            item_bytes: self.item_bytes + other.item_bytes,
            structure_bytes: self.structure_bytes + other.structure_bytes,
        }
    }
}

impl Sub for Extent {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let minus = |one: usize, other: usize| {
            one.checked_sub(other).expect("a part of the log is not more than the whole")
        };
        Self {
            items: minus(self.items, other.items),
            item_bytes: minus(self.item_bytes, other.item_bytes),
            structure_bytes: minus(self.structure_bytes, other.structure_bytes),
        }
    }
}

impl AddAssign for Extent {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Extent {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}
