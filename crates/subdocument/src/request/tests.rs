//! Which requests are refused before the document is looked at.

use super::*;
use crate::testing::{ALL_RIGHTS, ShortSpec, multi, single, specs};

fn checked(head: RequestHead, raw: &[ShortSpec<'_>], rights: ClientRights) -> Result<(), Failure> {
    let specs = specs(raw)?;
    let first = specs.as_slice().first();
    let are_mutations = first.is_some_and(|spec| spec.command.traits().is_mutation);
    check(are_mutations, &head, specs.as_slice(), rights)
}

/// Document flags, paths, and what comes of them.
type Case<'a> = (u8, &'a [ShortSpec<'a>], Result<(), Failure>);

fn run(head: fn(u8) -> RequestHead, cases: &[Case<'_>]) {
    for (flags, raw, expected) in cases {
        assert_eq!(checked(head(*flags), raw, ALL_RIGHTS), *expected, "{flags:#x} {raw:?}");
    }
}

const OK: Result<(), Failure> = Ok(());
const WRONG: Result<(), Failure> = Err(Failure::InvalidArgument);
const COMBINATION: Result<(), Failure> = Err(Failure::InvalidCombination);

#[test]
fn a_command_has_a_value_and_a_path_as_it_needs() {
    run(
        multi,
        &[
            (0, &[(0xc5, 0, "a", "")], OK),
            (0, &[(0xc5, 0, "", "")], WRONG),
            (0, &[(0xc5, 0, "a", "1")], WRONG),
            (0, &[(0xd2, 0, "", "")], OK),
            (0, &[(0xc7, 0, "a", "1")], OK),
            (0, &[(0xc7, 0, "a", "")], WRONG),
            (0, &[(0xc7, 0, "", "1")], WRONG),
            (0, &[(0xc9, 0, "a", "1")], WRONG),
            (0, &[(0xcb, 0, "", "1")], OK),
            (0, &[(0xcf, 0, "", "1")], WRONG),
            (0, &[(0x00, 0, "", "")], OK),
            (0, &[(0x00, 0, "a", "")], WRONG),
            (0, &[(0x01, 0, "", "x")], OK),
            (0, &[(0x01, 0, "", "")], WRONG),
            (0, &[(0x04, 0, "", "")], OK),
            (0, &[(0xd3, 4, "a.b", "")], OK),
            (0, &[(0xd3, 4, "a.b", "1")], WRONG),
        ],
    );
    let long = "a".repeat(PATH_SIZE_MAX + 1);
    run(multi, &[(0, &[(0xc5, 0, &long, "")], WRONG)]);
}

#[test]
fn a_command_has_only_the_path_flags_that_it_allows() {
    run(
        multi,
        &[
            (0, &[(0xc5, 0x01, "a", "")], WRONG),
            (0, &[(0xc5, 0x02, "a", "")], WRONG),
            (0, &[(0xc7, 0x01, "a", "1")], OK),
            (0, &[(0xc7, 0x08, "a", "1")], WRONG),
            (0, &[(0xc7, 0x40, "a", "1")], WRONG),
            (0, &[(0xc7, 0x10, "a", "1")], Err(Failure::InvalidFlagCombination)),
            (0, &[(0xc7, 0x20, "a", "1")], Err(Failure::InvalidFlagCombination)),
            (0, &[(0xc7, 0x34, "a", "1")], Err(Failure::InvalidFlagCombination)),
            (0, &[(0xc7, 0x24, "a", "\u{1}")], OK),
            (0, &[(0xce, 0x14, "a", "1")], WRONG),
            (0, &[(0xc6, 0x24, "a", "")], WRONG),
            (0, &[(0xc9, 0x01, "a", "")], WRONG),
            (0, &[(0xd3, 0, "a", "")], WRONG),
            (0, &[(0x01, 4, "", "x")], WRONG),
        ],
    );
}

#[test]
fn document_flags_must_be_allowed_by_every_command() {
    run(
        multi,
        &[
            (0x01, &[(0xc7, 0, "a", "1")], OK),
            (0x01, &[(0xc9, 0, "a", "")], WRONG),
            (0x01, &[(0xc7, 0, "a", "1"), (0xc9, 0, "a", "")], WRONG),
            (0x04, &[(0x01, 0, "", "x")], WRONG),
            (0x01, &[(0xca, 0, "a", "1")], WRONG),
            (0x02, &[(0xca, 0, "a", "1")], OK),
            (0x03, &[(0xc7, 0, "a", "1")], WRONG),
            (0x08, &[(0xc7, 4, "a", "1")], WRONG),
            (0x0a, &[(0xc7, 4, "a", "1")], OK),
            (0x0e, &[(0xc7, 4, "a", "1")], OK),
            (0x10, &[(0xc9, 4, "a", "")], WRONG),
            (0x14, &[(0xc9, 4, "a", "")], OK),
            (0x1d, &[(0xc7, 4, "a", "1")], WRONG),
            (0x20, &[(0xc5, 0, "a", "")], OK),
            (0x24, &[(0xc5, 4, "a", "")], OK),
            (0x20, &[(0xc7, 0, "a", "1")], WRONG),
            (0x01, &[(0xc5, 0, "a", "")], WRONG),
            (0x40, &[(0xc5, 0, "a", "")], WRONG),
        ],
    );
    let with_cas = |flags| RequestHead { cas: Cas(1), ..multi(flags) };
    assert_eq!(checked(with_cas(0x02), &[(0xc7, 0, "a", "1")], ALL_RIGHTS), WRONG);
    assert_eq!(checked(with_cas(0x0e), &[(0xc7, 4, "a", "1")], ALL_RIGHTS), WRONG);
    assert_eq!(checked(with_cas(0x0c), &[(0xc7, 4, "a", "1")], ALL_RIGHTS), OK);
}

#[test]
fn a_single_path_has_rules_of_its_own() {
    run(
        single,
        &[
            (0x0a, &[(0xc7, 4, "a", "1")], OK),
            (0x0a, &[(0xc7, 0, "a", "1")], WRONG),
            (0x10, &[(0xc9, 4, "a", "")], OK),
            (0, &[(0xd3, 4, "a", "")], OK),
            (0, &[(0x00, 0, "", "")], WRONG),
        ],
    );
}

#[test]
fn paths_are_combined_by_rules() {
    let many = [(0xc5, 0, "a", ""); SPECS_MAX + 1];
    run(
        multi,
        &[
            (0, &[], COMBINATION),
            (0, &many[1..], OK),
            (0, &many, COMBINATION),
            (0, &[(0xc5, 0, "a", ""), (0xc7, 0, "a", "1")], COMBINATION),
            (0, &[(0xc7, 0, "a", "1"), (0xc6, 0, "a", "")], COMBINATION),
            (0, &[(0x01, 0, "", "1"), (0x00, 0, "", "")], COMBINATION),
            (0, &[(0x02, 0, "a", "")], COMBINATION),
            (0, &[(0xd0, 0, "a", "")], COMBINATION),
            (0, &[(0xc5, 4, "a", ""), (0xc5, 4, "b", ""), (0xc5, 0, "a", "")], OK),
            (0, &[(0xc5, 0, "a", ""), (0xc5, 4, "a", "")], Err(Failure::AttributesComeFirst)),
            (0, &[(0xc7, 4, "a", "1"), (0x04, 0, "", "")], OK),
            (0, &[(0x04, 0, "", ""), (0xc7, 0, "a", "1")], COMBINATION),
            (0, &[(0xc7, 0, "a", "1"), (0x04, 0, "", "")], COMBINATION),
            (0, &[(0x01, 0, "", "{}"), (0xc7, 0, "a", "1")], OK),
        ],
    );
}

#[test]
fn attributes_have_keys_and_need_rights() {
    run(
        multi,
        &[
            (0, &[(0xc5, 4, "!a", "")], Err(Failure::AttributeInvalid)),
            (0, &[(0xd2, 4, "", "")], Err(Failure::AttributeInvalid)),
            (0, &[(0xc5, 4, "a.b.c.d.e.f.g.h.i.j", "")], OK),
            (0, &[(0xc5, 4, "$document", "")], OK),
            (0, &[(0xc5, 4, "$x", "")], OK),
            (0, &[(0xc8, 4, "$document", "1")], Err(Failure::VirtualAttribute)),
            (0, &[(0xc8, 0x14, "a", "\"${Mutation.CAS}\"")], OK),
            (0, &[(0xc8, 0x14, "a", "\"${Mutation.x}\"")], Err(Failure::UnknownMacro)),
            (0, &[(0xc8, 0x14, "a", "\"${$document.x}\"")], Err(Failure::UnknownDocumentMacro)),
        ],
    );
    let none = ClientRights::default();
    let xattr_alone = ClientRights { has_attributes: true, ..none };
    let not_supported = Err(Failure::NotSupported);
    assert_eq!(checked(multi(0), &[(0xc5, 0, "a", "")], none), OK);
    assert_eq!(checked(multi(0), &[(0xc5, 4, "a", "")], none), not_supported);
    assert_eq!(checked(multi(0), &[(0xc5, 4, "a", "")], xattr_alone), OK);
    assert_eq!(checked(multi(0), &[(0xc5, 0x24, "a", "")], xattr_alone), not_supported);
    let macro_of_document = [(0xc8, 0x14, "a", "\"${$document}\"")];
    assert_eq!(checked(multi(0), &macro_of_document, xattr_alone), OK);
}
