//! Accounts of memory: how many bytes of shared blocks live for whom, exactly.
//!
//! A block that is charged to an account counts from then until its last owner, whoever that is and
//! on whichever thread, lets it go. Each thread adds to a stripe of its own, so that counting is
//! one uncontended addition; a stripe alone may be negative, the sum is not.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

/// Accounts that can be open at once: an id has seven bits in a block, and 0 is nobody's.
pub const ACCOUNTS_MAX: usize = 127;

const STRIPE_COUNT: usize = 8;

/// The name of an account inside of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountId(u8);

impl AccountId {
    /// Blocks of nobody are not counted.
    pub const NOBODY: Self = Self(0);

    pub(crate) fn from_bits(bits: u8) -> Self {
        assert!(usize::from(bits) <= ACCOUNTS_MAX, "an account id has seven bits");
        Self(bits)
    }

    pub(crate) fn bits(self) -> u8 {
        self.0
    }
}

/// An open account. Its id is used again only after it was dropped and its last block is gone.
pub struct Account(AccountId);

/// One stripe, alone on its cache line.
#[repr(align(64))]
struct Stripe(AtomicI64);

struct Slot {
    is_open: AtomicBool,
    stripes: [Stripe; STRIPE_COUNT],
}

static SLOTS: [Slot; ACCOUNTS_MAX + 1] = [const {
    Slot {
        is_open: AtomicBool::new(false),
        stripes: [const { Stripe(AtomicI64::new(0)) }; STRIPE_COUNT],
    }
}; ACCOUNTS_MAX + 1];

impl Account {
    /// A fresh account. Panics when [`ACCOUNTS_MAX`] are open: buckets are far fewer.
    pub fn open() -> Self {
        let free = (1..=ACCOUNTS_MAX).find(|&index| {
            let slot = &SLOTS[index];
            sum(slot) == 0 && !slot.is_open.swap(true, Ordering::AcqRel)
        });
        let index = free.expect("no more than 127 accounts are open at once");
        Self(AccountId(u8::try_from(index).expect("an account id has seven bits")))
    }

    /// What blocks are charged with.
    pub fn id(&self) -> AccountId {
        self.0
    }

    /// Bytes of all blocks that are charged to it and alive, as the allocator rounds them.
    pub fn bytes(&self) -> u64 {
        // The stripes are read one after the other while others count.
        u64::try_from(sum(&SLOTS[usize::from(self.0.0)])).unwrap_or(0)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        SLOTS[usize::from(self.0.0)].is_open.store(false, Ordering::Release);
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Account({}: {} bytes)", self.0.0, self.bytes())
    }
}

/// Counts `bytes` more (or fewer) for an account.
pub(crate) fn count(account: AccountId, bytes: i64) {
    if account != AccountId::NOBODY {
        let stripe = &SLOTS[usize::from(account.0)].stripes[stripe_of_this_thread()];
        stripe.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

fn sum(slot: &Slot) -> i64 {
    slot.stripes.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum()
}

/// Threads take stripes in turn, so that the few busy ones do not meet.
fn stripe_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static STRIPE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPE_COUNT;
    }
    STRIPE.with(|stripe| *stripe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UniqueBytes;
    use crate::allocator::rounded_size;

    #[test]
    fn a_block_counts_until_its_last_owner_is_gone_wherever_that_is() {
        let account = Account::open();
        let mut block = UniqueBytes::zeroed(1000);
        assert_eq!(account.bytes(), 0);
        block.charge(account.id());
        let first = block.share();
        let size = u64::try_from(rounded_size(1008)).unwrap();
        assert_eq!(account.bytes(), size);
        let second = first.clone();
        drop(first);
        assert_eq!(account.bytes(), size);
        std::thread::spawn(move || drop(second)).join().unwrap();
        assert_eq!(account.bytes(), 0);
    }

    #[test]
    fn an_id_with_blocks_left_is_not_given_out_again() {
        let account = Account::open();
        let id = account.id();
        let mut block = UniqueBytes::zeroed(1);
        block.charge(id);
        drop(account);
        let others: Vec<Account> = (0..20).map(|_| Account::open()).collect();
        assert!(others.iter().all(|other| other.id() != id));
        assert!(others.iter().all(|other| other.bytes() == 0));
    }
}
