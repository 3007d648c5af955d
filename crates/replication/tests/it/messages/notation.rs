//! How messages are written in cases.

use blessed::{Line, Names, number_of, shown};
use document::{Cas, Datatype, DurabilityLevel, RevSeqno, Seqno, VbUuid, VbucketState};
use protocol::dcp::{
    DcpDeletion, DeletionForm, Document, EndReason, Marker, MarkerFlags, Message, Open, OpenFlags,
    Prepare, Resolution, StreamFlags, StreamRequest, SystemEvent,
};
use protocol::{Opcode, Status};

/// Branches with lower numbers were made up by a case, and stand for themselves.
const MADE_UP_MAX: u64 = 1000;

/// What messages name that nobody chose.
pub(super) struct Numbers {
    pub(super) uuids: Names,
    pub(super) cas: Names,
}

impl Numbers {
    pub(super) fn new() -> Self {
        Self { uuids: Names::new("uuid"), cas: Names::new("cas") }
    }

    pub(super) fn uuid(&mut self, uuid: u64) -> String {
        if uuid < MADE_UP_MAX { uuid.to_string() } else { self.uuids.name(uuid) }
    }

    /// A failover log as words.
    pub(super) fn log(&mut self, log: &[(VbUuid, Seqno)]) -> String {
        let entries = log.iter().map(|(uuid, seqno)| format!("{}@{}", self.uuid(uuid.0), seqno.0));
        entries.collect::<Vec<_>>().join(" ")
    }
}

/// Does something with the message that the words and fields of a line describe.
pub(super) fn with_message<T>(
    line: &Line<'_>,
    has_collections: bool,
    numbers: &Numbers,
    then: impl FnOnce(&Message<'_>) -> T,
) -> T {
    let kind = line.word(0);
    let value = line.bytes_in("value");
    let number = |name| line.number_in(name).unwrap_or_default();
    let small = |name| u32::try_from(number(name)).unwrap();
    let seqno = |name| Seqno(number(name));
    let uuid = || VbUuid(line.field("uuid").map_or(0, |uuid| numbers.uuids.number(uuid)));
    let key = match line.words.get(1) {
        Some(name) if has_collections => [b"\0", name.as_bytes()].concat(),
        name => name.map_or_else(Vec::new, |name| name.as_bytes().to_vec()),
    };
    let document = || Document {
        key: &key,
        value: &value,
        datatype: Datatype::from_bits(u8::try_from(number("datatype")).unwrap()).unwrap(),
        cas: Cas(line.field("cas").map_or(number("seqno") << 16, number_of)),
        seqno: seqno("seqno"),
        revision: RevSeqno(line.number_in("rev").unwrap_or(1)),
        flags: small("flags").to_be_bytes(),
        expiry: small("expiry"),
        lock_seconds: 0,
        heat: 0,
    };
    let deletion = || {
        let Document { key, value, datatype, cas, seqno, revision, .. } = document();
        let time = line.number_in("time").map(|time| u32::try_from(time).unwrap());
        let form = time.map_or(DeletionForm::WithoutTime, DeletionForm::WithTime);
        DcpDeletion { key, value, datatype, cas, seqno, revision, form }
    };
    let resolution = || Resolution { key: &key, prepare: seqno("prepare"), seqno: seqno("seqno") };
    let message = match kind {
        "open" => Message::Open(Open {
            flags: OpenFlags(small("flags")),
            name: line.word(1).as_bytes(),
            value: &value,
        }),
        "add-stream" => Message::AddStream { flags: 0 },
        "control" => Message::Control {
            key: line.words.get(1).map_or(&[][..], |key| key.as_bytes()),
            value: line.words.get(2).map_or(&[][..], |value| value.as_bytes()),
        },
        "stream-request" => Message::StreamRequest(StreamRequest {
            flags: StreamFlags(small("flags")),
            start: seqno("start"),
            end: Seqno(line.number_in("end").unwrap_or(u64::MAX)),
            uuid: uuid(),
            snapshot_start: Seqno(line.number_in("from").unwrap_or_else(|| number("start"))),
            snapshot_end: Seqno(line.number_in("to").unwrap_or_else(|| number("start"))),
            value: &value,
        }),
        "close-stream" => Message::CloseStream,
        "failover-log" => Message::GetFailoverLog,
        "noop" => Message::Noop,
        "buffer-ack" => Message::BufferAck { bytes: u32::try_from(line.number(1)).unwrap() },
        "acknowledged" => Message::SeqnoAcknowledged { seqno: Seqno(line.number(1)) },
        "marker" => Message::SnapshotMarker(Marker {
            start: Seqno(line.number(1)),
            end: Seqno(line.number(2)),
            flags: marker_flags(&line.words[3..]),
            max_visible: line.number_in("visible").map(Seqno),
            high_completed: line.number_in("completed").map(Seqno),
            purge: line.number_in("purge").map(Seqno),
            high_prepared: line.number_in("prepared").map(Seqno),
        }),
        "mutation" => Message::Mutation(document()),
        "deletion" => Message::Deletion(deletion()),
        "expiration" => Message::Expiration(deletion()),
        "prepare" => Message::Prepare(Prepare {
            document: document(),
            is_deletion: line.words.get(2) == Some(&"deletion"),
            level: level(number("level")),
        }),
        "commit" => Message::Commit(resolution()),
        "abort" => Message::Abort(resolution()),
        "seqno-advanced" => Message::SeqnoAdvanced { seqno: Seqno(line.number(1)) },
        "set-state" => Message::SetVbucketState { state: state(line.word(1)) },
        "stream-end" => Message::StreamEnd(end_reason(line.word(1))),
        _ => panic!("`{}` has no message", line.text),
    };
    then(&message)
}

pub(super) fn state(name: &str) -> VbucketState {
    let mut states = (1..=4).filter_map(VbucketState::from_number);
    states.find(|state| state.name() == name).unwrap_or_else(|| panic!("`{name}` is no role"))
}

pub(super) fn level(number: u64) -> DurabilityLevel {
    let level = u8::try_from(number).ok().and_then(DurabilityLevel::from_byte);
    level.unwrap_or_else(|| panic!("{number} is no level"))
}

pub(super) fn status(name: &str) -> Status {
    let mut statuses = Status::ALL.iter();
    let status = statuses.find(|status| status.name() == name);
    *status.unwrap_or_else(|| panic!("`{name}` is no status"))
}

pub(super) fn opcode(name: &str) -> Opcode {
    let mut opcodes = Opcode::ALL.iter();
    let opcode = opcodes.find(|opcode| opcode.name() == name);
    *opcode.unwrap_or_else(|| panic!("`{name}` is no opcode"))
}

fn end_reason(name: &str) -> EndReason {
    let mut reasons = (0..9).filter_map(EndReason::from_code);
    let reason = reasons.find(|reason| format!("{reason:?}") == name);
    reason.unwrap_or_else(|| panic!("`{name}` is no reason"))
}

const MARKER_FLAGS: [(&str, MarkerFlags); 6] = [
    ("memory", MarkerFlags::MEMORY),
    ("disk", MarkerFlags::DISK),
    ("checkpoint", MarkerFlags::CHECKPOINT),
    ("ack", MarkerFlags::ACK),
    ("history", MarkerFlags::HISTORY),
    ("duplicates", MarkerFlags::DUPLICATES),
];

fn marker_flags(words: &[&str]) -> MarkerFlags {
    let flag = |word: &&str| {
        let found = MARKER_FLAGS.iter().find(|(name, _)| name == word);
        found.unwrap_or_else(|| panic!("`{word}` is no flag of a marker")).1
    };
    words.iter().map(flag).fold(MarkerFlags::default(), MarkerFlags::with)
}

/// A message, as [`with_message`] reads it but for what nobody chose.
pub(super) fn shown_message(
    message: &Message<'_>,
    has_collections: bool,
    numbers: &mut Numbers,
) -> String {
    match message {
        Message::Open(open) => {
            format!("open {} flags={:#x}", open.name.escape_ascii(), open.flags.0)
        }
        Message::AddStream { .. } => "add-stream".to_owned(),
        Message::CloseStream => "close-stream".to_owned(),
        Message::StreamRequest(request) => {
            let StreamRequest { flags, start, end, uuid, snapshot_start, snapshot_end, .. } =
                request;
            let end = if end.0 == u64::MAX { String::new() } else { format!(" end={}", end.0) };
            let flags = if flags.0 == 0 { String::new() } else { format!(" flags={:#x}", flags.0) };
            let (from, to, uuid) = (snapshot_start.0, snapshot_end.0, numbers.uuid(uuid.0));
            format!("stream-request start={} uuid={uuid} from={from} to={to}{end}{flags}", start.0)
        }
        Message::GetFailoverLog => "failover-log".to_owned(),
        Message::StreamEnd(reason) => format!("stream-end {reason:?}"),
        Message::SnapshotMarker(marker) => shown_marker(marker),
        Message::Mutation(document) => {
            format!("mutation {}", shown_document(document, has_collections, numbers))
        }
        Message::Deletion(deletion) => {
            format!("deletion {}", shown_deletion(deletion, has_collections, numbers))
        }
        Message::Expiration(deletion) => {
            format!("expiration {}", shown_deletion(deletion, has_collections, numbers))
        }
        Message::SystemEvent(event) => {
            let SystemEvent { seqno, event, version, name, value } = event;
            let (name, seqno) = (name.escape_ascii(), seqno.0);
            let value: String = match *version {
                // The layout has a test of its own.
                2 => "...".to_owned(),
                _ => value.iter().map(|byte| format!("{byte:02x}")).collect(),
            };
            format!("system-event {event} seqno={seqno} version={version} {name} {value}")
        }
        Message::Prepare(Prepare { document, is_deletion, level }) => {
            let document = shown_document(document, has_collections, numbers);
            let deletion = if *is_deletion { " deletion" } else { "" };
            format!("prepare {document} level={}{deletion}", *level as u8)
        }
        Message::SeqnoAcknowledged { seqno } => format!("acknowledged {}", seqno.0),
        Message::Commit(end) => format!("commit {}", shown_resolution(end, has_collections)),
        Message::Abort(end) => format!("abort {}", shown_resolution(end, has_collections)),
        Message::SeqnoAdvanced { seqno } => format!("seqno-advanced {}", seqno.0),
        Message::SetVbucketState { state } => format!("set-state {}", state.name()),
        Message::OsoSnapshot { is_start: true } => "by-key begins".to_owned(),
        Message::OsoSnapshot { is_start: false } => "by-key ends".to_owned(),
        Message::Noop => "noop".to_owned(),
        Message::BufferAck { bytes } => format!("buffer-ack {bytes}"),
        Message::Control { key, value } => {
            format!("control {} {}", key.escape_ascii(), value.escape_ascii())
        }
    }
}

fn shown_marker(marker: &Marker) -> String {
    let mut text = format!("marker {} {}", marker.start.0, marker.end.0);
    for (name, flag) in MARKER_FLAGS {
        if marker.flags.contains(flag) {
            text += &format!(" {name}");
        }
    }
    for (name, seqno) in [
        ("visible", marker.max_visible),
        ("completed", marker.high_completed),
        ("purge", marker.purge),
        ("prepared", marker.high_prepared),
    ] {
        if let Some(seqno) = seqno {
            text += &format!(" {name}={}", seqno.0);
        }
    }
    text
}

fn shown_key(key: &[u8], has_collections: bool) -> String {
    let name = key.strip_prefix(b"\0").filter(|_| has_collections).unwrap_or(key);
    name.escape_ascii().to_string()
}

fn shown_document(document: &Document<'_>, has_collections: bool, numbers: &mut Numbers) -> String {
    let Document { key, value, datatype, cas, seqno, revision, flags, expiry, .. } = document;
    let key = shown_key(key, has_collections);
    let mut text = format!("{key} seqno={} rev={}", seqno.0, revision.0);
    text += &format!(" cas={}", numbers.cas.name(cas.0));
    let others = [
        ("datatype", u32::from(datatype.bits())),
        ("flags", u32::from_be_bytes(*flags)),
        ("expiry", *expiry),
    ];
    for (name, number) in others {
        if number != 0 {
            text += &format!(" {name}={number}");
        }
    }
    if !value.is_empty() {
        text += &format!(" value={}", shown(value));
    }
    text
}

fn shown_deletion(
    deletion: &DcpDeletion<'_>,
    has_collections: bool,
    numbers: &mut Numbers,
) -> String {
    let key = shown_key(deletion.key, has_collections);
    let cas = numbers.cas.name(deletion.cas.0);
    let (seqno, revision) = (deletion.seqno.0, deletion.revision.0);
    let time = match deletion.form {
        DeletionForm::WithoutTime => String::new(),
        DeletionForm::WithTime(seconds) => format!(" time={seconds}"),
    };
    let value = match deletion.value {
        [] => String::new(),
        value => format!(" value={}", shown(value)),
    };
    format!("{key} seqno={seqno} rev={revision} cas={cas}{time}{value}")
}

fn shown_resolution(end: &Resolution<'_>, has_collections: bool) -> String {
    let key = shown_key(end.key, has_collections);
    format!("{key} prepare={} seqno={}", end.prepare.0, end.seqno.0)
}
