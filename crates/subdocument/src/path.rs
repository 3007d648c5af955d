//! Where something is in a JSON text. Source: docs/specification/protocol.md, section 12.6.
//!
//! ```text
//! path      = "" | component { "." name | [ "." ] index } [ "." ]
//! component = name | index
//! name      = characters | "`" any characters "`"       a literal backtick is written twice
//! index     = "[" digits "]" | "[-1]"                    the last element
//! ```
//!
//! A parsed path points into the text that it was parsed from and allocates nothing.

use crate::failure::Failure;

/// Bytes of a path.
pub const PATH_SIZE_MAX: usize = 1024;
/// Names and indices of a path.
pub const COMPONENTS_MAX: usize = 31;

/// One step into a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Component<'a> {
    /// To the value of this name.
    Name(Name<'a>),
    /// To the element with this number, counted from 0.
    Index(usize),
    /// To the last element.
    Last,
}

/// A name as it stands in the path: with the escapes of JSON, and each backtick twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name<'a> {
    text: &'a [u8],
    has_backticks: bool,
}

/// The steps from the root of a text to a value.
#[derive(Clone, Debug)]
pub(crate) struct Path<'a> {
    components: [Component<'a>; COMPONENTS_MAX],
    count: usize,
}

impl<'a> Name<'a> {
    /// A name without backticks that can stand between quotes.
    pub(crate) const fn plain(text: &'a [u8]) -> Self {
        Self { text, has_backticks: false }
    }

    /// Whether it is this key, which stands in a document without its quotes.
    pub(crate) fn is(&self, key: &[u8]) -> bool {
        if !self.has_backticks {
            return self.text == key;
        }
        self.letters().eq(key.iter().copied())
    }

    /// Appends the name as the key of an object.
    pub(crate) fn write_key(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        out.extend(self.letters());
        out.push(b'"');
    }

    /// The bytes of the key: of each pair of backticks the second is left out.
    fn letters(&self) -> impl Iterator<Item = u8> {
        let mut is_first = false;
        self.text.iter().copied().filter(move |&byte| {
            is_first = byte == b'`' && !is_first;
            byte != b'`' || is_first
        })
    }
}

impl<'a> Path<'a> {
    /// The path to the whole text.
    pub(crate) fn root() -> Self {
        Self { components: [Component::Last; COMPONENTS_MAX], count: 0 }
    }

    /// Reads a path.
    pub(crate) fn parse(text: &'a [u8]) -> Result<Self, Failure> {
        let mut path = Self::root();
        path.append(text)?;
        Ok(path)
    }

    /// The path that begins with `first` and goes on with `rest`: nothing, an index, or a period
    /// and a path.
    pub(crate) fn below(first: Name<'a>, rest: &'a [u8]) -> Result<Self, Failure> {
        let mut path = Self::root();
        path.push(Component::Name(first))?;
        path.append(rest.strip_prefix(b".").unwrap_or(rest))?;
        Ok(path)
    }

    /// The steps.
    pub(crate) fn components(&self) -> &[Component<'a>] {
        self.components.get(..self.count).expect("a path counts what it has")
    }

    /// How many steps there are: how many containers are around the value.
    pub(crate) fn depth(&self) -> usize {
        self.count
    }

    /// The last step, unless this is the root.
    pub(crate) fn last(&self) -> Option<Component<'a>> {
        self.components().last().copied()
    }

    fn append(&mut self, text: &'a [u8]) -> Result<(), Failure> {
        if text.len() > PATH_SIZE_MAX {
            return Err(Failure::InvalidArgument);
        }
        std::str::from_utf8(text).map_err(|_| Failure::PathInvalid)?;
        let mut rest = text;
        while !rest.is_empty() {
            let (component, behind) = next_component(rest).ok_or(Failure::PathInvalid)?;
            self.push(component)?;
            rest = match behind {
                [] | [b'[', ..] => behind,
                // A period is tolerated in front of an index and at the end.
                [b'.', next @ ..] => next,
                _ => return Err(Failure::PathInvalid),
            };
        }
        Ok(())
    }

    fn push(&mut self, component: Component<'a>) -> Result<(), Failure> {
        *self.components.get_mut(self.count).ok_or(Failure::PathTooLong)? = component;
        self.count += 1;
        Ok(())
    }
}

/// The first component, and what is behind it.
fn next_component(text: &[u8]) -> Option<(Component<'_>, &[u8])> {
    match text {
        [b'[', inside @ ..] => index(inside),
        [b'`', inside @ ..] => {
            let (name, behind) = name(inside, true)?;
            Some((Component::Name(name), behind.strip_prefix(b"`")?))
        }
        _ => name(text, false).map(|(name, behind)| (Component::Name(name), behind)),
    }
}

fn index(text: &[u8]) -> Option<(Component<'_>, &[u8])> {
    let end = text.iter().position(|&byte| byte == b']')?;
    let (number, behind) = text.split_at_checked(end)?;
    let behind = behind.strip_prefix(b"]")?;
    if number == b"-1" {
        return Some((Component::Last, behind));
    }
    let is_number = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(number).ok().filter(|_| is_number)?;
    let index = number.parse::<u32>().ok()?;
    Some((Component::Index(usize::try_from(index).ok()?), behind))
}

/// A name up to what ends it, which is not taken away.
fn name(text: &[u8], is_quoted: bool) -> Option<(Name<'_>, &[u8])> {
    let mut at = 0;
    let mut has_backticks = false;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'`' if text.get(at + 1) == Some(&b'`') => {
                has_backticks = true;
                at += 1;
            }
            b'`' if is_quoted => break,
            b'.' | b'[' if !is_quoted => break,
            b']' if !is_quoted => return None,
            b'"' | b'`' | 0..0x20 => return None,
            // What may follow is what a key of JSON may have; `\u` has too many spellings.
            b'\\' => {
                at += 1;
                text.get(at).filter(|escaped| b"\"\\/bfnrt".contains(escaped))?;
            }
            _ => {}
        }
        at += 1;
    }
    let (text, behind) = text.split_at_checked(at).filter(|(text, _)| !text.is_empty())?;
    Some((Name { text, has_backticks }, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names between angle brackets, indices as numbers.
    fn shown(text: &str) -> Result<String, Failure> {
        let path = Path::parse(text.as_bytes())?;
        let component = |component: &Component<'_>| match component {
            Component::Name(name) => {
                let mut key = Vec::new();
                name.write_key(&mut key);
                assert!(name.is(&key[1..key.len() - 1]), "{text}");
                String::from_utf8(key).unwrap()
            }
            Component::Index(index) => index.to_string(),
            Component::Last => "last".to_owned(),
        };
        Ok(path.components().iter().map(component).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn paths_are_read_component_by_component() {
        for (text, expected) in [
            ("", ""),
            ("a", "\"a\""),
            ("a.b.c", "\"a\" \"b\" \"c\""),
            ("a.", "\"a\""),
            ("a[0]", "\"a\" 0"),
            ("a.[0].[1].b", "\"a\" 0 1 \"b\""),
            ("a[12][-1].b", "\"a\" 12 last \"b\""),
            ("[0].a", "0 \"a\""),
            ("[0].", "0"),
            ("`a.b`.c", "\"a.b\" \"c\""),
            ("`a[0]`[1]", "\"a[0]\" 1"),
            ("`a``b`", "\"a`b\""),
            ("`````a`", "\"``a\""),
            ("a``b", "\"a`b\""),
            ("with space.\u{e9}", "\"with space\" \"\u{e9}\""),
            ("a\\\"b", "\"a\\\"b\""),
            ("a{b}:,", "\"a{b}:,\""),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn malformed_paths_are_named() {
        for text in [
            ".",
            ".a",
            "a..b",
            ".[0]",
            "a..[0]",
            "a]",
            "a[",
            "a[]",
            "a[b]",
            "a[-2]",
            "a[-0]",
            "a[+1]",
            "a[1",
            "a[0]b",
            "[99999999999]",
            "`a",
            "a`",
            "a`b",
            "`a`b",
            "``",
            "a\"b",
            "a\u{1}",
            "a\\u0041",
            "a\\",
            "a\\x",
            "`a\\`",
        ] {
            assert_eq!(shown(text), Err(Failure::PathInvalid), "{text}");
        }
        assert_eq!(Path::parse(b"a\xff").unwrap_err(), Failure::PathInvalid);
    }

    #[test]
    fn paths_have_limits() {
        let long = "a".repeat(PATH_SIZE_MAX);
        assert!(shown(&long).is_ok());
        assert_eq!(shown(&format!("{long}a")), Err(Failure::InvalidArgument));
        let deep = vec!["a"; COMPONENTS_MAX].join(".");
        assert!(shown(&deep).is_ok());
        assert_eq!(shown(&format!("{deep}.a")), Err(Failure::PathTooLong));
        assert_eq!(shown(&format!("{deep}[0]")), Err(Failure::PathTooLong));
    }

    #[test]
    fn a_path_can_go_on_below_a_name() {
        let first = Name::plain(b"x");
        for (rest, count) in [("", 1), (".", 1), (".a.b", 3), ("[0]", 2), (".a[0]", 3)] {
            assert_eq!(Path::below(first, rest.as_bytes()).unwrap().depth(), count, "{rest}");
        }
        assert_eq!(Path::below(first, b"..a").unwrap_err(), Failure::PathInvalid);
    }
}
