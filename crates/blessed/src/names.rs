//! Names for numbers that nobody chose: they differ from run to run, or say nothing to a reader.

/// Numbers by the order in which they are met: the first one is `cas1`, the next one `cas2`.
#[derive(Clone, Debug)]
pub struct Names {
    prefix: &'static str,
    known: Vec<u64>,
}

impl Names {
    /// No names yet, each with `prefix`.
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, known: Vec::new() }
    }

    /// The name of a number, which gets one if it has none. 0 and the greatest one are themselves.
    pub fn name(&mut self, number: u64) -> String {
        match number {
            0 => return "0".to_owned(),
            u64::MAX => return "max".to_owned(),
            _ => {}
        }
        let at = self.known.iter().position(|known| *known == number).unwrap_or_else(|| {
            self.known.push(number);
            self.known.len() - 1
        });
        format!("{}{}", self.prefix, at + 1)
    }

    /// The number that is written as a name, with `+1` behind it the one above it, or as a number.
    pub fn number(&self, text: &str) -> u64 {
        let (text, above) = match text.strip_suffix("+1") {
            Some(name) => (name, 1),
            None => (text, 0),
        };
        let Some(index) = text.strip_prefix(self.prefix) else {
            return crate::notation::number_of(text) + above;
        };
        let index = usize::try_from(crate::notation::number_of(index)).unwrap_or(usize::MAX);
        let number = index.checked_sub(1).and_then(|index| self.known.get(index));
        number.unwrap_or_else(|| panic!("nothing is called `{text}` yet")) + above
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_name() {
        let mut names = Names::new("cas");
        assert_eq!(
            [700, 0, 600, 700].map(|number| names.name(number)),
            ["cas1", "0", "cas2", "cas1"]
        );
        assert_eq!(["cas2", "cas2+1", "0x10"].map(|text| names.number(text)), [600, 601, 16]);
    }
}
