//! The table against the specification.

use std::ops::RangeInclusive;

use super::*;

/// The numbers of docs/specification/protocol.md, section 25, written down a second time.
const ASSIGNED: &[RangeInclusive<u8>] = &[
    0x00..=0x4b,
    0x50..=0x67,
    0x70..=0x79,
    0x80..=0x87,
    0x89..=0x8c,
    0x91..=0x97,
    0x9e..=0xaa,
    0xac..=0xbc,
    0xc1..=0xc2,
    0xc5..=0xd3,
    0xda..=0xdc,
    0xe0..=0xe3,
    0xf0..=0xf8,
    0xfb..=0xff,
];

#[test]
fn the_numbers_are_those_of_the_specification() {
    for byte in 0..=u8::MAX {
        let expected = ASSIGNED.iter().any(|range| range.contains(&byte));
        assert_eq!(Opcode::from_byte(byte).is_some(), expected, "{byte:#04x}");
        assert!(Opcode::from_byte(byte).is_none_or(|opcode| opcode.byte() == byte));
    }
    assert_eq!(Opcode::ALL.len(), 197);
}

#[test]
fn flags_are_those_of_the_specification() {
    let with = |flag: fn(Flags) -> bool| {
        Opcode::ALL.iter().filter(move |opcode| flag(opcode.flags())).copied().collect::<Vec<_>>()
    };
    let durable = with(Flags::accepts_durability);
    assert_eq!(durable.len(), 21, "{durable:?}");
    assert!(durable.iter().all(|opcode| !opcode.flags().is_quiet()));
    let keeps_ttl = with(Flags::accepts_preserve_ttl);
    assert_eq!(keeps_ttl.len(), 23, "{keeps_ttl:?}");
    assert!(!keeps_ttl.contains(&Opcode::Add) && !keeps_ttl.contains(&Opcode::Touch));
    assert!(Opcode::GetLocked.flags().is_reorderable() && !Opcode::Stat.flags().is_reorderable());
}

#[test]
fn every_quiet_command_has_a_loud_one() {
    for &opcode in Opcode::ALL {
        let loud = opcode.loud();
        assert_eq!(loud != opcode, opcode.flags().is_quiet(), "{opcode:?}");
        assert_eq!(loud.info().shape, opcode.info().shape, "{opcode:?}");
        assert_eq!(loud.name().len() + usize::from(loud != opcode), opcode.name().len());
    }
}

#[test]
fn names_are_unique_and_loud() {
    let mut names: Vec<&str> = Opcode::ALL.iter().map(|opcode| opcode.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Opcode::ALL.len());
    assert!(names.iter().all(|name| !name.contains(|letter: char| letter.is_lowercase())));
}
