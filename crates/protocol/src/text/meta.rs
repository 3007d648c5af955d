//! Meta commands and their flags. Source: memcached's protocol.txt, "Meta Commands".

use super::exptime::Exptime;
use super::key::{Name, decode};
use super::line::{Words, signed, unsigned};
use super::request::{StoreVerb, TextError, key_of};

/// Bytes that a client may have given back to it.
const OPAQUE_SIZE_MAX: usize = 32;

/// Flags that some command has and another has not.
const FLAGS_OF_OTHERS: &[u8] = b"cCDfFhIJlMNRsStTuvx";

/// A meta command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVerb {
    /// `mg`.
    Get,
    /// `ms`.
    Store,
    /// `md`.
    Delete,
    /// `ma`.
    Count,
    /// `me`.
    Debug,
}

/// A request of a meta command, but for its data block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta<'a> {
    /// What is done.
    pub verb: MetaVerb,
    /// The key.
    pub name: Name<'a>,
    /// The key as it was sent, for the answer.
    pub key: &'a [u8],
    /// How it is done.
    pub options: MetaOptions,
    /// The flags as they were sent: the answer has its own in their order.
    words: Words<'a>,
}

/// What the flags of a meta command ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaOptions {
    /// `q`: the usual outcome is not answered.
    pub is_quiet: bool,
    /// `v`: the value is answered.
    pub wants_value: bool,
    /// `I`: what is there becomes stale.
    pub invalidates: bool,
    /// `x`: the value goes, the document stays.
    pub removes_value: bool,
    /// `C`: the version that may be changed; of `mg`, the one whose value the client has.
    pub cas: Option<u64>,
    /// `F`: the client's own.
    pub client_flags: u32,
    /// `T`: when the document is over.
    pub exptime: Option<Exptime>,
    /// `N`: a document that is missing is made, and over then.
    pub vivify: Option<Exptime>,
    /// `R`: whoever reads when fewer seconds are left may make the document anew.
    pub recache_seconds: Option<i64>,
    /// `M` of `ms`.
    pub store_verb: StoreVerb,
    /// `M` of `ma`.
    pub is_decrement: bool,
    /// `D`: by how much a counter changes.
    pub delta: u64,
    /// `J`: what a counter is made with.
    pub initial: u64,
}

impl Default for MetaOptions {
    fn default() -> Self {
        Self {
            is_quiet: false,
            wants_value: false,
            invalidates: false,
            removes_value: false,
            cas: None,
            client_flags: 0,
            exptime: None,
            vivify: None,
            recache_seconds: None,
            store_verb: StoreVerb::Set,
            is_decrement: false,
            delta: 1,
            initial: 0,
        }
    }
}

impl<'a> Meta<'a> {
    /// Reads the flags behind the key, and behind the size of the data block where there is one.
    pub(super) fn parse(
        verb: MetaVerb,
        key: &'a [u8],
        words: Words<'a>,
    ) -> Result<Self, TextError> {
        let mut options = MetaOptions::default();
        let mut seen = 0_u128;
        let mut is_encoded = false;
        for word in words {
            let Some((letter, token)) = word.split_first() else { continue };
            let bit = 1_u128.checked_shl((*letter).into()).ok_or(TextError::InvalidFlag)?;
            if seen & bit != 0 {
                return Err(TextError::DuplicateFlag);
            }
            seen |= bit;
            is_encoded |= *letter == b'b';
            options.set(verb, *letter, token)?;
        }
        let name = if is_encoded {
            decode(key).ok_or(TextError::BadEncoding)?
        } else {
            Name::Plain(key_of(key)?)
        };
        Ok(Self { verb, name, key, options, words })
    }

    /// The flags of this command as they were sent, each with what follows it.
    pub(super) fn flags(&self) -> impl Iterator<Item = (u8, &'a [u8])> {
        let verb = self.verb;
        self.words
            .filter_map(|word| word.split_first())
            .map(|(letter, token)| (*letter, token))
            .filter(move |(letter, _)| has_flag(verb, *letter))
    }
}

impl MetaOptions {
    fn set(&mut self, verb: MetaVerb, letter: u8, token: &[u8]) -> Result<(), TextError> {
        if !has_flag(verb, letter) {
            return match letter {
                b'E' if verb != MetaVerb::Debug => Err(TextError::UnsupportedFlag),
                // Passed over, as memcached does: clients have one set of flags for all commands.
                _ if FLAGS_OF_OTHERS.contains(&letter) => Ok(()),
                _ => Err(TextError::InvalidFlag),
            };
        }
        match letter {
            b'q' => self.is_quiet = true,
            b'v' => self.wants_value = true,
            b'I' if verb != MetaVerb::Count => self.invalidates = true,
            b'x' => self.removes_value = true,
            b'C' => self.cas = Some(number(token)?),
            b'F' => {
                self.client_flags = number(token)?.try_into().map_err(|_| TextError::BadToken)?;
            }
            b'T' => self.exptime = Some(exptime(token)?),
            b'N' => self.vivify = Some(exptime(token)?),
            b'R' => self.recache_seconds = Some(signed(token).ok_or(TextError::BadToken)?),
            b'D' => self.delta = number(token)?,
            b'J' => self.initial = number(token)?,
            b'M' => self.set_mode(verb, token)?,
            b'O' if token.len() > OPAQUE_SIZE_MAX => return Err(TextError::OpaqueTooLong),
            _ => {}
        }
        Ok(())
    }

    fn set_mode(&mut self, verb: MetaVerb, token: &[u8]) -> Result<(), TextError> {
        match (verb, token) {
            (MetaVerb::Store, b"S") => self.store_verb = StoreVerb::Set,
            (MetaVerb::Store, b"E") => self.store_verb = StoreVerb::Add,
            (MetaVerb::Store, b"R") => self.store_verb = StoreVerb::Replace,
            (MetaVerb::Store, b"A") => self.store_verb = StoreVerb::Append,
            (MetaVerb::Store, b"P") => self.store_verb = StoreVerb::Prepend,
            (MetaVerb::Count, b"I" | b"+") => self.is_decrement = false,
            (MetaVerb::Count, b"D" | b"-") => self.is_decrement = true,
            _ => return Err(TextError::InvalidMode),
        }
        Ok(())
    }
}

/// The flags that are carried out, or ignored: hints to proxies (`P`, `L`), as memcached ignores
/// them, and what is about its way to evict (`u`, `h`, `l`): documents here have neither a time of
/// their last read nor a mark that they were read, so the answer does not tell them. A CAS of the
/// client's own (`E`) is refused: a bucket's rise by its clock.
fn has_flag(verb: MetaVerb, letter: u8) -> bool {
    let flags: &[u8] = match verb {
        MetaVerb::Get => b"bcCfhklOqstuvNRTPL",
        MetaVerb::Store => b"bcCFIkOqsTMNPL",
        MetaVerb::Delete => b"bCIkOqTxPL",
        MetaVerb::Count => b"bcCDJkMNOqtTvPL",
        MetaVerb::Debug => b"bkOqPL",
    };
    flags.contains(&letter)
}

fn number(token: &[u8]) -> Result<u64, TextError> {
    unsigned(token).ok_or(TextError::BadToken)
}

fn exptime(token: &[u8]) -> Result<Exptime, TextError> {
    Exptime::parse(token).ok_or(TextError::BadToken)
}
