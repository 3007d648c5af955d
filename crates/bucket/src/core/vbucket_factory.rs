//! How vBuckets are made: what all of a bucket have in common.

use std::sync::atomic::{AtomicU64, Ordering};

use document::{VbUuid, Vbid, VbucketState};
use platform::Entropy;
use vbucket::eviction::{EvictionOptions, InitialFrequency};
use vbucket::{ClockRules, DurabilityLimits, HashSeed, MemoryAccount, Restored, Vbucket};

use crate::config::{BucketConfig, BucketType, EvictionConfig};

/// Makes the vBuckets of one bucket.
pub(crate) struct VbucketFactory {
    bucket_type: BucketType,
    /// To which all of them charge what they take.
    account: MemoryAccount,
    eviction: EvictionOptions,
    durability_limits: DurabilityLimits,
    clock_rules: ClockRules,
    hash_seed: HashSeed,
    /// The next vBucket uuid is made from this.
    uuid_seed: AtomicU64,
}

impl VbucketFactory {
    /// `entropy` decides uuids and the layout of hash tables.
    pub(crate) fn new(
        config: &BucketConfig,
        bucket_type: BucketType,
        account: MemoryAccount,
        entropy: &Entropy,
    ) -> Self {
        Self {
            bucket_type,
            account,
            eviction: eviction_options(&config.eviction),
            durability_limits: config.durability.limits(),
            clock_rules: ClockRules::default(),
            hash_seed: HashSeed::new(entropy.next_u64()),
            uuid_seed: AtomicU64::new(entropy.next_u64()),
        }
    }

    /// An empty one.
    pub(crate) fn new_vbucket(&self, vbid: Vbid, state: VbucketState) -> Vbucket {
        let seed = self.hash_seed.clone();
        let (uuid, account) = (self.new_uuid(), self.account.clone());
        let vbucket = self.prepared(Vbucket::new(vbid, state, uuid, seed, account));
        match self.bucket_type {
            BucketType::Couchbase => vbucket,
            BucketType::Ephemeral => vbucket.ephemeral(),
        }
    }

    /// One that a file remembers, still without documents.
    pub(crate) fn restored_vbucket(&self, restored: Restored) -> Vbucket {
        self.prepared(Vbucket::restore(restored, self.hash_seed.clone(), self.account.clone()))
    }

    fn prepared(&self, vbucket: Vbucket) -> Vbucket {
        let mut vbucket =
            vbucket.with_eviction(self.eviction.clone()).with_clock_rules(self.clock_rules.clone());
        vbucket.set_durability_limits(self.durability_limits);
        vbucket
    }

    /// What vBuckets make of the clocks of others.
    pub(crate) fn clock_rules(&self) -> &ClockRules {
        &self.clock_rules
    }

    /// The frequency counter of documents that come into memory.
    pub(crate) fn initial_frequency(&self) -> &InitialFrequency {
        &self.eviction.initial_frequency
    }

    /// A name for a branch of history: 48 random bits, never 0.
    pub(crate) fn new_uuid(&self) -> VbUuid {
        let step = self.uuid_seed.fetch_add(1, Ordering::Relaxed);
        VbUuid((platform::Random::from_seed(step).next_u64() >> 16).max(1))
    }
}

fn eviction_options(config: &EvictionConfig) -> EvictionOptions {
    EvictionOptions {
        policy: config.policy,
        filter: config.filter,
        lookups_max_percent: config.lookups_max_percent,
        initial_frequency: InitialFrequency::default(),
    }
}
