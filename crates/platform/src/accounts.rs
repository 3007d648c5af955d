//! Accounts of memory: how many bytes of shared blocks live for whom, exactly.
//!
//! A block that is charged to an account counts from then until its last owner, whoever that is and
//! on whichever thread, lets it go. Each thread adds to a stripe of its own, so that counting is
//! one uncontended addition; a stripe alone may be negative, the sum is not.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

/// Accounts that can be open at once: an id has seven bits in a block, and 0 is nobody's.
pub const ACCOUNTS_MAX: usize = 127;

/// Stripes of an account.
pub const STRIPE_COUNT: usize = 8;

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
    /// Bytes that a stripe keeps to itself, at most.
    drift_max: AtomicI64,
    /// What stripes have handed over.
    merged: Stripe,
    stripes: [Stripe; STRIPE_COUNT],
    /// Bytes that its owner may take.
    quota: AtomicU64,
    /// Bytes that its owner takes beside its blocks, when it last said so.
    structure: AtomicU64,
}

static SLOTS: [Slot; ACCOUNTS_MAX + 1] = [const {
    Slot {
        is_open: AtomicBool::new(false),
        drift_max: AtomicI64::new(0),
        merged: Stripe(AtomicI64::new(0)),
        stripes: [const { Stripe(AtomicI64::new(0)) }; STRIPE_COUNT],
        quota: AtomicU64::new(0),
        structure: AtomicU64::new(0),
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
        // What was before is over, but its stripes may only have been zero together.
        SLOTS[index].merge();
        Self(AccountId(u8::try_from(index).expect("an account id has seven bits")))
    }

    /// What blocks are charged with.
    pub fn id(&self) -> AccountId {
        self.0
    }

    /// Bytes of all blocks that are charged to it and alive, as the allocator rounds them.
    pub fn bytes(&self) -> u64 {
        // The stripes are read one after the other while others count.
        u64::try_from(sum(self.slot())).unwrap_or(0)
    }

    /// About as many as [`Account::bytes`], for whoever asks all the time: one look instead of one
    /// at each stripe. Off by [`STRIPE_COUNT`] drifts at most.
    pub fn estimated_bytes(&self) -> u64 {
        u64::try_from(self.slot().merged.0.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Sets how many bytes each stripe may keep to itself: 0 at first.
    pub fn set_drift_max(&self, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.slot().drift_max.store(bytes, Ordering::Relaxed);
        self.slot().merge();
    }

    /// Tells how many bytes its owner may take, for [`totals`].
    pub fn set_quota_bytes(&self, bytes: u64) {
        self.slot().quota.store(bytes, Ordering::Relaxed);
    }

    /// Tells how many bytes its owner takes beside its blocks, for [`totals`].
    pub fn set_structure_bytes(&self, bytes: u64) {
        self.slot().structure.store(bytes, Ordering::Relaxed);
    }

    fn slot(&self) -> &'static Slot {
        &SLOTS[usize::from(self.0.0)]
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.slot().drift_max.store(0, Ordering::Relaxed);
        self.set_quota_bytes(0);
        self.set_structure_bytes(0);
        // Last: whoever opens the account finds the numbers above as they are to be at first.
        self.slot().is_open.store(false, Ordering::Release);
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Account({}: {} bytes)", self.0.0, self.bytes())
    }
}

impl Slot {
    /// Hands over what the stripes have kept to themselves.
    fn merge(&self) {
        for stripe in &self.stripes {
            self.merged.0.fetch_add(stripe.0.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// What the owners of all accounts take, in bytes, and may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// All blocks, off by the drifts of their accounts, and what their owners take beside them.
    pub used_bytes: u64,
    /// The sum of their quotas.
    pub quota_bytes: u64,
}

/// The sums over all accounts. Looks at each of them once.
pub fn totals() -> Totals {
    let mut totals = Totals::default();
    for slot in &SLOTS {
        let blocks = slot.merged.0.load(Ordering::Relaxed);
        totals.used_bytes += u64::try_from(blocks).unwrap_or(0);
        totals.used_bytes += slot.structure.load(Ordering::Relaxed);
        totals.quota_bytes += slot.quota.load(Ordering::Relaxed);
    }
    totals
}

/// Counts `bytes` more (or fewer) for an account.
pub(crate) fn count(account: AccountId, bytes: i64) {
    if account != AccountId::NOBODY {
        let slot = &SLOTS[usize::from(account.0)];
        let stripe = &slot.stripes[stripe_of_this_thread()].0;
        // Relaxed: only sums are asked for. What others add between this and the swap is handed
        // over, too.
        let drift = stripe.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if drift.abs() > slot.drift_max.load(Ordering::Relaxed) {
            slot.merged.0.fetch_add(stripe.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

fn sum(slot: &Slot) -> i64 {
    let stripes: i64 = slot.stripes.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum();
    slot.merged.0.load(Ordering::Relaxed) + stripes
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
    use crate::allocator::shared_block_size;
    use crate::shared_bytes::UniqueBytes;

    #[test]
    fn a_block_counts_until_its_last_owner_is_gone_wherever_that_is() {
        let account = Account::open();
        let mut block = UniqueBytes::zeroed(1000);
        assert_eq!(account.bytes(), 0);
        block.charge(account.id());
        let first = block.share();
        let size = u64::try_from(shared_block_size(1008)).unwrap();
        assert_eq!(account.bytes(), size);
        let second = first.clone();
        drop(first);
        assert_eq!(account.bytes(), size);
        std::thread::spawn(move || drop(second)).join().unwrap();
        assert_eq!(account.bytes(), 0);
    }

    #[test]
    fn an_estimate_is_off_by_the_drift_at_most() {
        const DRIFT_MAX: u64 = 10_000;
        let account = Account::open();
        account.set_drift_max(DRIFT_MAX);
        let block = || {
            let mut block = UniqueBytes::zeroed(1000);
            block.charge(account.id());
            block.share()
        };
        // Both looks of a comparison are taken while nobody counts.
        let turns = std::sync::RwLock::new(());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut blocks = Vec::new();
                    for number in 0..1000 {
                        {
                            let _counts = turns.read().unwrap();
                            blocks.push(block());
                            if number % 3 == 0 {
                                blocks.remove(number / 7);
                            }
                        }
                        let _looks = turns.write().unwrap();
                        let off = account.bytes().abs_diff(account.estimated_bytes());
                        assert!(off <= DRIFT_MAX * STRIPE_COUNT as u64, "{off}");
                    }
                });
            }
        });
        assert_eq!(account.bytes(), 0);
        account.set_drift_max(0);
        assert_eq!(account.estimated_bytes(), 0, "nothing is kept to themselves any more");
    }

    #[test]
    fn totals_have_what_an_account_takes_and_may_until_it_is_closed() {
        const QUOTA: u64 = 1 << 50;
        let account = Account::open();
        account.set_quota_bytes(QUOTA);
        account.set_structure_bytes(QUOTA);
        let Totals { used_bytes, quota_bytes } = totals();
        assert!(used_bytes >= QUOTA && quota_bytes >= QUOTA);
        drop(account);
        let Totals { used_bytes, quota_bytes } = totals();
        assert!(used_bytes < QUOTA && quota_bytes < QUOTA, "others' tests take less");
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
