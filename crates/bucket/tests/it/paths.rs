//! Parts of documents, and the attributes in front of them, through crashes and evictions.

use bucket::{Attempted, Bucket, BucketConfig, Completion, CopyRole, EvictionPolicy, Incoming};
use bucket::{PathMutation, PathsChanged, PathsRefused, Refused, Session, Write};
use document::{Cas, Vbid};
use subdocument::{
    ClientRights, DocumentFlags, LookupRequest, MutationRequest, RawSpec, RequestForm, RequestHead,
    Specs,
};
use vbucket::{Visibility, WriteCondition};

use crate::eviction::with_policy;
use crate::support::{Machine, VBID, config, files_config, key};

const RIGHTS: ClientRights = ClientRights {
    has_attributes: true,
    has_binary_attributes: true,
    reads_system_attributes: true,
    writes_system_attributes: true,
};
const XATTR: u8 = 4;
const GET: u8 = 0xc5;
const UPSERT: u8 = 0xc8;

/// Tombstones are documents, too; with CREATES a missing one is made as a tombstone.
const SEES_DELETED: DocumentFlags = DocumentFlags::ACCESS_DELETED;
const STAGES: DocumentFlags =
    SEES_DELETED.with(DocumentFlags::ADD).with(DocumentFlags::CREATE_AS_DELETED);

fn head(flags: DocumentFlags) -> RequestHead {
    RequestHead { form: RequestForm::Multi, flags, cas: Cas::ANY }
}

fn specs<'a>(opcode: u8, path_flags: u8, paths: &[(&'a str, &'a str)]) -> Specs<'a> {
    let mut specs = Specs::new();
    for (path, value) in paths {
        let (path, value) = (path.as_bytes(), value.as_bytes());
        specs.push(RawSpec { opcode, path_flags, path, value }).unwrap();
    }
    specs
}

/// Gives the document `name`, which is made if there is none, an attribute of its own.
pub(crate) fn give_attribute(bucket: &Bucket, session: &mut Session, name: &str) {
    let specs = specs(UPSERT, XATTR, &[("attribute", "1")]);
    let changed = change_paths(bucket, session, name, DocumentFlags::MKDOC, &specs);
    assert!(matches!(changed, Ok(Attempted::Answered(_))));
}

fn change_paths(
    bucket: &Bucket,
    session: &mut Session,
    name: &str,
    flags: DocumentFlags,
    specs: &Specs<'_>,
) -> Result<Attempted<PathsChanged>, PathsRefused> {
    let key = key(name);
    let request = MutationRequest::new(head(flags), specs, RIGHTS).unwrap();
    let mutation = PathMutation {
        vbid: VBID,
        key: key.as_key(),
        request: &request,
        flags: None,
        expiry: 0,
        value_bytes: 0,
        condition: WriteCondition::default(),
    };
    bucket.change_paths(session, mutation)
}

impl Machine {
    fn try_change(
        &mut self,
        name: &str,
        flags: DocumentFlags,
        path_flags: u8,
        paths: &[(&str, &str)],
    ) -> Result<Attempted<PathsChanged>, PathsRefused> {
        let specs = specs(UPSERT, path_flags, paths);
        change_paths(&self.bucket, &mut self.session, name, flags, &specs)
    }

    /// Changes attributes, once what it needs is read from the file.
    fn change(&mut self, name: &str, flags: DocumentFlags, paths: &[(&str, &str)]) {
        let mut changed = self.try_change(name, flags, XATTR, paths).unwrap();
        while changed == Attempted::Waits {
            self.fetch();
            changed = self.try_change(name, flags, XATTR, paths).unwrap();
        }
    }

    /// What attributes there are of these, once they are read from the file.
    fn attributes(&mut self, name: &str, paths: &[&str]) -> Option<Vec<Option<String>>> {
        let key = key(name);
        let version = loop {
            let session = &mut self.session;
            let (role, visibility) = (CopyRole::Active, Visibility::Deleted);
            match self.bucket.find_version(session, VBID, key.as_key(), role, visibility) {
                Ok(Attempted::Answered(version)) => break version,
                Ok(Attempted::Waits) => self.fetch(),
                Err(Refused::NotFound) => return None,
                Err(other) => panic!("{other:?}"),
            }
        };
        let paths: Vec<_> = paths.iter().map(|path| (*path, "")).collect();
        let specs = specs(GET, XATTR, &paths);
        let request = LookupRequest::new(head(SEES_DELETED), &specs, RIGHTS).unwrap();
        let value = version.value();
        let stored = version.stored(&value);
        let results = request.look_up(Some(&stored), version.clock()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Some(results.map(|result| result.ok().map(|found| text(found.bytes()))).collect())
    }

    /// Reads what a request waits for.
    fn fetch(&mut self) {
        self.run();
        for (_, completion) in self.heard.take() {
            let Completion::Retry(found) = completion else { panic!("{completion:?}") };
            self.session.fetched = found;
        }
    }
}

fn some(values: &[&str]) -> Option<Vec<Option<String>>> {
    let shown = |value: &&str| (!value.is_empty()).then(|| (*value).to_owned());
    Some(values.iter().map(shown).collect())
}

/// A document, what is left of one, and one that is staged as deleted.
fn written(config: BucketConfig) -> Machine {
    let mut machine = Machine::with(config);
    machine.set(VBID, "live", b"{}").unwrap();
    machine.change("live", DocumentFlags::default(), &[("user", "1"), ("_system", "[2]")]);
    machine.set(VBID, "deleted", b"{}").unwrap();
    machine.change("deleted", DocumentFlags::default(), &[("user", "1"), ("_system", "[3]")]);
    machine.delete(VBID, "deleted").unwrap();
    machine.change("staged", STAGES, &[("txn", "{\"op\":1}")]);
    machine
}

fn check(machine: &mut Machine) {
    let mut found = |name| machine.attributes(name, &["user", "_system", "txn.op"]);
    assert_eq!(found("live"), some(&["1", "[2]", ""]));
    assert_eq!(found("deleted"), some(&["", "[3]", ""]));
    assert_eq!(found("staged"), some(&["", "", "1"]));
    assert_eq!(found("none"), None);
    let live = machine.get(VBID, "live").map(|_| ());
    assert_eq!(live, Ok(()));
    assert_eq!(machine.get(VBID, "staged").unwrap_err(), Refused::NotFound);
}

#[test]
fn attributes_and_those_of_tombstones_survive_crashes_and_evictions() {
    let full = with_policy(EvictionPolicy::Full);
    for config in [config(), files_config(), full] {
        let mut machine = written(config);
        check(&mut machine);
        machine.run();
        check(&mut machine);
        machine.evict(VBID, "live").unwrap();
        check(&mut machine);
        for seed in 0..3 {
            machine = machine.power_cut(seed);
            machine.run();
            check(&mut machine);
        }
        machine = machine.stop_and_start();
        machine.run();
        check(&mut machine);
        machine.evict(VBID, "live").unwrap();
        machine.change("live", DocumentFlags::default(), &[("user", "4")]);
        machine.change("deleted", SEES_DELETED, &[("_system", "5")]);
        machine.change("staged", SEES_DELETED, &[("txn.op", "6")]);
        machine.run();
        let machine = &mut machine.power_cut(9);
        machine.run();
        let found = |machine: &mut Machine, name, path| machine.attributes(name, &[path]);
        assert_eq!(found(machine, "live", "user"), some(&["4"]));
        assert_eq!(found(machine, "deleted", "_system"), some(&["5"]));
        assert_eq!(found(machine, "staged", "txn.op"), some(&["6"]));
    }
}

#[test]
fn what_is_kept_and_what_is_stored_are_together_no_larger_than_a_document() {
    let mut machine = Machine::with(BucketConfig { memory_quota_bytes: 1 << 30, ..config() });
    let large = format!("\"{}\"", "x".repeat(12 << 20));
    machine.set(VBID, "k", b"{}").unwrap();
    machine.change("k", DocumentFlags::default(), &[("user", &large)]);
    let body = vec![b'y'; 9 << 20];
    assert_eq!(machine.set(VBID, "k", &body).unwrap_err(), Refused::TooLarge);
    let key = key("k");
    let write = Write::set(Vbid(0), key.as_key(), Incoming::plain(&body[..7 << 20]));
    assert!(machine.bucket.store(&mut machine.session, write).is_ok());
    let found = machine.attributes("k", &["user"]);
    assert_eq!(found, some(&[&large]));
}
