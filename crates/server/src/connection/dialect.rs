//! Which protocol a connection speaks, and what it remembers of that.

use protocol::text::reader::TextPlace;

use crate::completed::Completed;

/// What a client speaks.
#[derive(Debug)]
pub(super) enum Dialect {
    /// Its first byte will tell.
    Undecided,
    /// Frames of the binary protocol.
    Frames,
    /// Lines of the text protocol.
    Lines(Box<Lines>),
}

/// What a connection of the text protocol remembers between its turns.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) place: TextPlace,
    /// What the request at the head of the input has waited for.
    pub(super) completed: Option<Completed>,
    /// It has said something that this protocol knows.
    pub(super) is_known: bool,
}

impl Dialect {
    /// The first of `bytes` decides where nothing has come before: a text begins with a character.
    pub(super) fn decide(&mut self, bytes: &[u8]) {
        if let (Self::Undecided, Some(first)) = (&self, bytes.first()) {
            // No frame begins so: none of the magic bytes is a character or a blank.
            let is_text = first.is_ascii_graphic() || first.is_ascii_whitespace();
            *self = if is_text { Self::Lines(Box::default()) } else { Self::Frames };
        }
    }

    /// What is remembered of lines, if the connection speaks in these.
    pub(super) fn lines(&mut self) -> Option<&mut Lines> {
        match self {
            Self::Lines(lines) => Some(lines),
            Self::Undecided | Self::Frames => None,
        }
    }

    /// Whether the connection speaks in lines.
    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::Lines(_))
    }
}
