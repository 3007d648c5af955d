//! Blocks are nobody else's, and what is free is found by all.

use std::collections::BTreeSet;

use super::block_chain::BlockChain;
use super::central::Central;
use super::size_class::SizeClass;
use super::spans::SPAN_SIZE;
use crate::seeds::seeds;
use crate::{Random, SharedBytes};

/// Blocks of `class`, as addresses, until there are `count`.
fn take(central: &Central, class: SizeClass, count: u32) -> (BlockChain, Vec<usize>) {
    let mut taken = central.take(class, count);
    let mut addresses = Vec::new();
    let mut again = BlockChain::EMPTY;
    while let Some(block) = taken.pop() {
        addresses.push(block.addr().get());
        // SAFETY: the chain has just given the block away.
        unsafe { again.push(block) };
    }
    (again, addresses)
}

#[test]
fn blocks_of_every_size_lie_apart_inside_of_their_spans() {
    let central = Central::new();
    for class in SizeClass::all() {
        let (blocks, mut addresses) = take(&central, class, 3_000);
        assert_eq!((addresses.len(), blocks.len()), (3_000, 3_000));
        addresses.sort_unstable();
        assert!(addresses.windows(2).all(|pair| pair[1] - pair[0] >= class.size()), "{class:?}");
        assert!(addresses.iter().all(|address| {
            let at = address % SPAN_SIZE;
            address % 8 == 0 && at >= 64 && at + class.size() <= SPAN_SIZE
        }));
        let spans: BTreeSet<usize> = addresses.iter().map(|address| address / SPAN_SIZE).collect();
        let blocks_of_span = (SPAN_SIZE - 64) / class.size();
        assert!(spans.len() <= 3_000_usize.div_ceil(blocks_of_span));
        assert!(blocks_of_span * class.size() > SPAN_SIZE / 32 * 31 - 64, "{class:?}");
        assert_eq!(central.taken_bytes(), 3_000 * class.size());
        central.give_back(class, blocks);
        assert_eq!(central.taken_bytes(), 0);
    }
}

#[test]
fn spans_that_are_empty_serve_other_sizes() {
    let central = Central::new();
    let spans_of = |addresses: &[usize]| -> BTreeSet<usize> {
        addresses.iter().map(|address| address / SPAN_SIZE).collect()
    };
    let mut all = BTreeSet::new();
    for size in [80, 1000, 24] {
        let class = SizeClass::of(size).unwrap();
        let count = (20 * (SPAN_SIZE - 64) / class.size()) as u32;
        let (blocks, addresses) = take(&central, class, count);
        all.extend(spans_of(&addresses));
        central.give_back(class, blocks);
        central.spans().release_all();
    }
    assert!(all.len() <= 21, "{} spans", all.len());
}

#[test]
fn a_block_that_came_back_is_taken_before_memory_that_was_never_used() {
    let central = Central::new();
    let class = SizeClass::of(80).unwrap();
    let (mut blocks, addresses) = take(&central, class, 100);
    central.give_back(class, blocks.split_off(40));
    let (rest, again) = take(&central, class, 40);
    assert!(again.iter().all(|address| addresses.contains(address)));
    central.give_back(class, rest);
    central.give_back(class, blocks);
}

/// A block whose bytes say what they should be.
fn block_of(random: &mut Random) -> SharedBytes {
    let size_max = 2 << random.below(14);
    let size = random.below(size_max) as usize;
    SharedBytes::copy_of(&vec![size as u8; size])
}

fn check(block: &SharedBytes) {
    assert!(block.iter().all(|&byte| byte == block.len() as u8), "a block of {}", block.len());
}

#[test]
fn no_thread_sees_what_others_write_whoever_frees() {
    for seed in seeds(4) {
        let (sender, receiver) = std::sync::mpsc::channel::<SharedBytes>();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let sender = sender.clone();
                scope.spawn(move || {
                    let mut random = Random::from_seed(seed * 10 + thread);
                    let mut held: Vec<SharedBytes> = Vec::new();
                    for _ in 0..20_000 {
                        let at = random.below(held.len() as u64 + 1) as usize;
                        match random.below(5) {
                            0..3 => held.push(block_of(&mut random)),
                            3 if at < held.len() => check(&held.swap_remove(at)),
                            4 if at < held.len() => sender.send(held.swap_remove(at)).unwrap(),
                            _ => {}
                        }
                    }
                    held.iter().for_each(check);
                });
            }
            drop(sender);
            receiver.iter().for_each(|block| check(&block));
        });
    }
}
