//! What a log says of its users, and what it never says.

use std::convert::Infallible;
use std::fmt::{self, Debug, Display, Formatter, Write};
use std::ops::Deref;
use std::str::FromStr;

/// What users have said or stored: names, keys, parts of documents. It is shown between `<ud>` and
/// `</ud>`, as tools that redact Couchbase's logs expect, and cannot end that itself: `<` and
/// control characters are escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UserData<T>(pub T);

/// What nobody is shown: a password. Its text is what it derefs to.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

/// Passes text on without what would end the mark, or the line.
struct Escaping<'a, 'f>(&'a mut Formatter<'f>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if character == '<' || character.is_control() {
                write!(self.0, "{}", character.escape_unicode())?;
            } else {
                self.0.write_char(character)?;
            }
        }
        Ok(())
    }
}

impl<T: Display> Display for UserData<T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("<ud>")?;
        write!(Escaping(formatter), "{}", self.0)?;
        formatter.write_str("</ud>")
    }
}

impl<T: Display> Debug for UserData<T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, formatter)
    }
}

impl Debug for Secret {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("(secret)")
    }
}

impl Deref for Secret {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl FromStr for Secret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::from(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_data_stands_in_a_mark_that_it_cannot_end() {
        for (said, shown) in [
            ("bob", "<ud>bob</ud>"),
            ("", "<ud></ud>"),
            ("b</ud>ob", "<ud>b\\u{3c}/ud>ob</ud>"),
            ("a\nb\u{1b}[0m", "<ud>a\\u{a}b\\u{1b}[0m</ud>"),
            ("gr\u{f6}\u{df}e", "<ud>gr\u{f6}\u{df}e</ud>"),
        ] {
            assert_eq!(UserData(said).to_string(), shown);
            assert_eq!(format!("{:?}", UserData(said)), shown);
        }
    }

    #[test]
    fn a_secret_is_compared_and_used_and_not_shown() {
        let secret: Secret = "hunter22".parse().unwrap_or_default();
        assert_eq!(&*secret, "hunter22");
        assert_ne!(secret, Secret::from("other"));
        assert_eq!(format!("{:?}", Some(secret)), "Some((secret))");
    }
}
