//! How vBuckets are made: what all of a bucket have in common.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use document::{VbUuid, Vbid, VbucketState};
use platform::Entropy;
use vbucket::eviction::{EvictionOptions, EvictionPolicy, InitialFrequency};
use vbucket::{ClockRules, DurabilityLimits, HashSeed, MemoryAccount, Restored, Vbucket};

use crate::config::{BucketConfig, BucketType, EvictionConfig};

/// Makes the vBuckets of one bucket.
pub(crate) struct VbucketFactory {
    bucket_type: BucketType,
    /// To which all of them charge what they take.
    account: MemoryAccount,
    /// But for the policy.
    eviction: EvictionOptions,
    eviction_policy: AtomicU8,
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
            eviction_policy: AtomicU8::new(config.eviction.policy as u8),
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
        let vbucket = Vbucket::new(vbid, state, uuid, seed, account);
        let vbucket = self.prepared(vbucket, self.eviction_policy());
        match self.bucket_type {
            BucketType::Couchbase => vbucket,
            BucketType::Ephemeral => vbucket.ephemeral(),
        }
    }

    /// One that a file remembers, still without documents, which leave by `policy`.
    pub(crate) fn restored_vbucket(&self, restored: Restored, policy: EvictionPolicy) -> Vbucket {
        let (seed, account) = (self.hash_seed.clone(), self.account.clone());
        self.prepared(Vbucket::restore(restored, seed, account), policy)
    }

    fn prepared(&self, vbucket: Vbucket, policy: EvictionPolicy) -> Vbucket {
        let eviction = EvictionOptions { policy, ..self.eviction.clone() };
        let mut vbucket =
            vbucket.with_eviction(eviction).with_clock_rules(self.clock_rules.clone());
        vbucket.set_durability_limits(self.durability_limits);
        vbucket
    }

    /// What leaves memory.
    pub(crate) fn eviction_policy(&self) -> EvictionPolicy {
        match self.eviction_policy.load(Ordering::Relaxed) {
            policy if policy == EvictionPolicy::Full as u8 => EvictionPolicy::Full,
            _ => EvictionPolicy::ValueOnly,
        }
    }

    /// Changes what leaves memory, for vBuckets to come. Under a vBucket's lock that was taken
    /// since, everybody sees it.
    pub(crate) fn set_eviction_policy(&self, policy: EvictionPolicy) {
        self.eviction_policy.store(policy as u8, Ordering::Relaxed);
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
