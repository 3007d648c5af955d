//! Whatever an item is made of, it answers that, in every form of its header.

use platform::Random;
use platform::allocator::shared_block_size;
use platform::seeds::seeds;

use super::*;
use crate::ids::CollectionId;
use crate::key::encode_collection;

const FLAGS: [[u8; 4]; 6] =
    [[0; 4], [2, 0, 0, 0], [2, 0, 0, 6], [4, 0, 0, 4], [0, 0, 0, 1], [0xff; 4]];
const REVISIONS: [u64; 7] = [0, 1, 0xff, 0x100, 0xffff, 0x1_0000, U48_MAX];
const SEQNOS: [u64; 5] = [1, 0xffff_ffff, 0x1_0000_0000, U48_MAX - 1, U48_MAX];
const CAS: [u64; 4] = [0, 1, 0x0102_0304_0506_0708, u64::MAX];
const EXPIRIES: [u32; 4] = [0, 1, 0x0102_0304, u32::MAX];
const DELETIONS: [Option<Deletion>; 3] = [None, Some(Deletion::Explicit), Some(Deletion::Expired)];
const COLLECTIONS: [u32; 4] = [0, 8, 300, u32::MAX];

/// All that an item answers.
#[derive(Clone, Debug, PartialEq)]
struct Facts {
    key: Vec<u8>,
    meta: ItemMeta,
    operation: Operation,
    value: Vec<u8>,
    place: (Cas, Seqno, RevSeqno),
}

impl Facts {
    fn any(random: &mut Random) -> Self {
        let mut key = encode_collection(CollectionId(one_of(random, &COLLECTIONS)));
        let name_max = if random.below(4) == 0 { 246 } else { 40 };
        let name_size = 1 + random.below(name_max);
        key.extend((0..name_size).map(|_| random.below(256) as u8));
        key.truncate(251);
        let prepare = Seqno(one_of(random, &SEQNOS));
        let level = DurabilityLevel::from_byte(1 + random.below(3) as u8).unwrap();
        let operations = [
            Operation::Mutation,
            Operation::Prepare(level),
            Operation::Commit { prepare },
            Operation::Abort { prepare },
        ];
        let meta = ItemMeta {
            flags: one_of(random, &FLAGS),
            expiry: one_of(random, &EXPIRIES),
            datatype: Datatype::from_bits(random.below(8) as u8).unwrap(),
            deletion: one_of(random, &DELETIONS),
        };
        let size_max = 1 << random.below(12);
        let value_size = random.below(size_max);
        let value = (0..value_size).map(|_| random.below(256) as u8).collect();
        let (cas, seqno) = (Cas(one_of(random, &CAS)), Seqno(one_of(random, &SEQNOS)));
        let place = (cas, seqno, RevSeqno(one_of(random, &REVISIONS)));
        Self { key, meta, operation: one_of(random, &operations), value, place }
    }

    fn of(item: &Item) -> Self {
        assert_eq!(item.flags(), item.meta().flags);
        assert_eq!((item.expiry(), item.datatype()), (item.meta().expiry, item.meta().datatype));
        assert_eq!((item.deletion(), item.is_deleted()), {
            let deletion = item.meta().deletion;
            (deletion, deletion.is_some())
        });
        Self {
            key: item.key().encoded().to_vec(),
            meta: item.meta(),
            operation: item.operation(),
            value: item.value().to_vec(),
            place: (item.cas(), item.seqno(), item.revision()),
        }
    }

    fn of_builder(&self, builder: &ItemBuilder) -> Self {
        Self {
            key: builder.key().encoded().to_vec(),
            meta: builder.meta(),
            operation: builder.operation(),
            value: builder.value().to_vec(),
            ..self.clone()
        }
    }

    /// The item, built in one of the ways that there are.
    fn build(&self, random: &mut Random) -> Item {
        let key = Key::from_trusted(&self.key);
        let builder = match random.below(4) {
            0 => ItemBuilder::step(key, self.meta, self.operation, &self.value),
            1 => ItemBuilder::new(key, self.meta, &self.value).with_operation(self.operation),
            2 => {
                let size = self.value.len();
                let mut builder = ItemBuilder::with_room(key, self.meta, self.operation, size);
                builder.value_mut().copy_from_slice(&self.value);
                builder
            }
            _ => {
                let meta = ItemMeta { expiry: 0, datatype: Datatype::RAW, ..self.meta };
                let builder = ItemBuilder::step(key, meta, self.operation, &self.value);
                let mut builder = builder.with_room_for_expiry();
                builder.set_expiry(self.meta.expiry);
                builder.set_datatype(self.meta.datatype);
                builder
            }
        };
        assert_eq!(self.of_builder(&builder), *self);
        let (cas, seqno, revision) = self.place;
        builder.finish(cas, seqno, revision)
    }
}

fn one_of<T: Copy>(random: &mut Random, among: &[T]) -> T {
    among[random.below(among.len() as u64) as usize]
}

#[test]
fn an_item_answers_what_was_put_in_however_it_is_built_and_copied() {
    for seed in seeds(4) {
        let mut random = Random::from_seed(seed);
        for _ in 0..5_000 {
            let facts = Facts::any(&mut random);
            let item = facts.build(&mut random);
            assert_eq!(Facts::of(&item), facts, "seed {seed}");
            assert_eq!(Facts::of(&item.moved()), facts, "seed {seed}");
            let ejected = item.ejected();
            assert!(ejected.is_ejected() && !item.is_ejected());
            assert_eq!(Facts::of(&ejected), Facts { value: Vec::new(), ..facts.clone() });
            let other = item.with_value(Datatype::JSON, b"another value");
            let meta = ItemMeta { datatype: Datatype::JSON, ..facts.meta };
            let value = b"another value".to_vec();
            assert_eq!(Facts::of(&other), Facts { meta, value, ..facts.clone() }, "seed {seed}");
            assert!(!ejected.with_value(Datatype::RAW, b"v").is_ejected());
        }
    }
}

#[test]
fn every_edge_of_flags_revision_and_seqno_is_kept_beside_every_other() {
    let key = key("name");
    for flags in FLAGS {
        for (revision, seqno) in REVISIONS
            .iter()
            .flat_map(|revision| SEQNOS.iter().map(|seqno| (RevSeqno(*revision), Seqno(*seqno))))
        {
            for value_size in (0..24).chain([400, 500, 3_000]) {
                let meta = ItemMeta { flags, ..ItemMeta::default() };
                let value = vec![b'v'; value_size];
                let builder = ItemBuilder::new(key.as_key(), meta, &value);
                let item = builder.finish(Cas(7), seqno, revision);
                assert_eq!((item.flags(), item.revision(), item.seqno()), (flags, revision, seqno));
                assert_eq!((item.key(), item.value()), (key.as_key(), &*value));
            }
        }
    }
}

#[test]
fn room_that_may_be_needed_later_costs_small_documents_nothing() {
    let key = key("name");
    for flags in FLAGS {
        for value_size in 0..1_500 {
            let meta = ItemMeta { flags, ..ItemMeta::default() };
            let builder = ItemBuilder::new(key.as_key(), meta, &vec![0; value_size]);
            let flags_size = match flags {
                [0, 0, 0, 0] => 0,
                [2 | 4, ..] => 1,
                _ => 5,
            };
            // Eight bytes of the block, fifteen of the header, one of the collection.
            let least = 8 + 15 + flags_size + 1 + 4 + value_size;
            let block = shared_block_size(builder.allocation_size());
            assert_eq!(block, shared_block_size(least), "{flags:?}, {value_size} bytes");
        }
    }
}
