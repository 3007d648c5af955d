//! Blocks answer what was put in, are freed once, and count for one account.

use super::*;

#[test]
fn parts_stand_one_after_the_other() {
    let bytes = UniqueBytes::concatenated(&[b"ab", b"", b"cde"]).share();
    assert_eq!(&*bytes, b"abcde");
    assert_eq!(&*UniqueBytes::concatenated(&[]), b"");
}

#[test]
fn a_unique_block_is_written_and_then_shared() {
    let mut bytes = UniqueBytes::zeroed(3);
    bytes[1] = 7;
    let first = bytes.share();
    let second = first.clone();
    assert_eq!(second.owner_count(), 2);
    drop(first);
    assert_eq!(&*second, [0, 7, 0]);
    assert_eq!(second.owner_count(), 1);
}

#[test]
fn the_last_of_many_threads_frees() {
    let bytes = SharedBytes::copy_of(&[9; 100]);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let bytes = bytes.clone();
            std::thread::spawn(move || {
                for _ in 0..100 {
                    assert_eq!(bytes.clone()[99], 9);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(bytes.owner_count(), 1);
}

#[test]
fn heat_and_owners_do_not_disturb_each_other() {
    let bytes = SharedBytes::copy_of(b"abc");
    for heat in [0, 1, 127, 255] {
        bytes.set_heat(heat);
        let other = bytes.clone();
        assert_eq!((other.heat(), other.owner_count(), &*other), (heat, 2, &b"abc"[..]));
    }
    assert_eq!(bytes.owner_count(), 1);
}

#[test]
fn only_a_sole_owner_charges() {
    let account = crate::accounts::Account::open();
    let mut bytes = SharedBytes::copy_of(&[1; 50]);
    let other = bytes.clone();
    assert!(!bytes.charge_if_alone(account.id()));
    drop(other);
    assert!(bytes.charge_if_alone(account.id()));
    assert!(bytes.charge_if_alone(account.id()), "it counts for it already");
    assert_eq!(account.bytes(), shared_block_size(58) as u64);
    assert_eq!((bytes.len(), bytes[49]), (50, 1));
}

#[test]
fn the_pointer_is_thin() {
    assert_eq!(size_of::<Option<SharedBytes>>(), 8);
}

#[test]
fn a_sequel_is_the_same_block_with_a_number() {
    let block = UniqueBytes::concatenated_with_room(&[b"ab", b"cde"]).share();
    let plain = block.clone();
    let sequel = block.with_sequel(7).unwrap();
    for handle in [&sequel, &sequel.clone(), &block.with_sequel(7).unwrap()] {
        assert_eq!((&**handle, handle.sequel()), (&b"abcde"[..], Some(7)));
        assert_eq!(handle.as_ptr(), plain.as_ptr());
    }
    assert_eq!((&*plain, plain.sequel(), block.sequel()), (&b"abcde"[..], None, None));
    sequel.set_heat(9);
    assert_eq!((plain.heat(), plain.owner_count()), (9, 3));
    drop((plain, block));
    assert_eq!((&*sequel, sequel.owner_count()), (&b"abcde"[..], 1));
}

#[test]
fn a_block_has_one_sequel_and_only_where_there_is_room() {
    assert!(SharedBytes::copy_of(b"abc").with_sequel(1).is_none());
    let block = UniqueBytes::zeroed_with_room(3).share();
    let first = block.with_sequel(u64::MAX).unwrap();
    assert!(block.with_sequel(1).is_none(), "another number");
    assert!(first.with_sequel(u64::MAX).is_some_and(|same| same.sequel() == Some(u64::MAX)));
}

#[test]
fn a_block_with_a_sequel_counts_once_with_its_room() {
    for length in 0..40 {
        let account = crate::accounts::Account::open();
        let mut block = UniqueBytes::zeroed_with_room(length);
        block.charge(account.id());
        let (size, block) = (block.allocation_size(), block.share());
        assert!((length + 16..length + 24).contains(&size) && size % 8 == 0, "{length}: {size}");
        let sequel = block.with_sequel(1).unwrap();
        assert_eq!((sequel.allocation_size(), sequel.account()), (size, account.id()));
        assert_eq!(account.bytes(), shared_block_size(size) as u64, "{length}");
        drop(block);
        assert_eq!(account.bytes(), shared_block_size(size) as u64, "{length}");
        drop(sequel);
        assert_eq!(account.bytes(), 0, "{length}");
    }
}

#[test]
fn a_tag_belongs_to_the_handle_and_changes_nothing_else() {
    let account = crate::accounts::Account::open();
    let mut block = UniqueBytes::concatenated_with_room(&[b"ab", b"cde"]);
    block.charge(account.id());
    let mut tagged = block.share();
    let counted_bytes = account.bytes();
    let (plain, sequel) = (tagged.clone(), tagged.with_sequel(7).unwrap());
    for tag in [1, u16::MAX, 0x8000, 0] {
        tagged.set_tag(tag);
        let (other, other_sequel) = (tagged.clone(), tagged.with_sequel(7).unwrap());
        for handle in [&tagged, &other, &other_sequel] {
            assert_eq!((handle.tag(), &**handle, handle.heat()), (tag, &b"abcde"[..], 0));
            assert_eq!((handle.account(), handle.owner_count()), (account.id(), 5));
            assert_eq!((handle.as_ptr(), handle.len()), (plain.as_ptr(), 5));
            assert_eq!(handle.allocation_size(), plain.allocation_size());
        }
        assert_eq!((tagged.sequel(), other_sequel.sequel()), (None, Some(7)));
        assert_eq!((plain.tag(), sequel.tag()), (0, 0));
    }
    tagged.set_tag(u16::MAX);
    drop((plain, sequel));
    assert_eq!((account.bytes(), tagged.owner_count()), (counted_bytes, 1));
    drop(tagged);
    assert_eq!(account.bytes(), 0);
}
