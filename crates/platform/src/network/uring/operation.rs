//! What a completion belongs to, as the 64 bits that the kernel carries along.

/// Values that a generation has: it is counted in 24 bits.
const GENERATIONS: u32 = 1 << 24;

/// Which connection. A slot is used again, by another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// What the kernel was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// To say whenever listeners or a waker have something.
    Watch(u32),
    /// To say once that a connection can be read.
    AwaitReadable(Place),
    /// To receive of a connection whatever comes, again and again.
    Receive(Place),
    /// To say once that a connection has room.
    AwaitWritable(Place),
    /// To send.
    Send(Place),
    /// To end another operation.
    Cancel,
}

impl Place {
    /// The same slot for whoever has it next.
    pub(super) fn next(self) -> Self {
        Self { slot: self.slot, generation: (self.generation + 1) % GENERATIONS }
    }
}

impl Operation {
    /// From the top: 8 bits that say what, 24 of the generation, 32 of the slot.
    #[inline]
    pub(super) fn bits(self) -> u64 {
        let (what, place) = match self {
            Self::Watch(index) => (0, Place { slot: index, generation: 0 }),
            Self::AwaitReadable(place) => (1, place),
            Self::Receive(place) => (2, place),
            Self::AwaitWritable(place) => (3, place),
            Self::Send(place) => (4, place),
            Self::Cancel => (5, Place { slot: 0, generation: 0 }),
        };
        assert!(place.generation < GENERATIONS, "a generation has 24 bits");
        what << 56 | u64::from(place.generation) << 32 | u64::from(place.slot)
    }

    /// The operation of `bits`.
    #[inline]
    pub(super) fn from_bits(bits: u64) -> Self {
        let slot = (bits & u64::from(u32::MAX)) as u32;
        let generation = (bits >> 32) as u32 % GENERATIONS;
        let place = Place { slot, generation };
        match bits >> 56 {
            0 => Self::Watch(slot),
            1 => Self::AwaitReadable(place),
            2 => Self::Receive(place),
            3 => Self::AwaitWritable(place),
            4 => Self::Send(place),
            5 => Self::Cancel,
            other => panic!("the kernel completes what it was asked for, not {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_comes_back_as_it_went() {
        let last = Place { slot: u32::MAX, generation: GENERATIONS - 1 };
        let some = Place { slot: 7, generation: 3 };
        assert_eq!(last.next(), Place { slot: u32::MAX, generation: 0 });
        let watches = [Operation::Watch(0), Operation::Watch(u32::MAX), Operation::Cancel];
        let of_place = [last, some].into_iter().flat_map(|place| {
            [
                Operation::AwaitReadable(place),
                Operation::Receive(place),
                Operation::AwaitWritable(place),
                Operation::Send(place),
            ]
        });
        for operation in watches.into_iter().chain(of_place) {
            assert_eq!(Operation::from_bits(operation.bits()), operation);
        }
    }
}
