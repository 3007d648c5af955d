//! FlatBuffers, as far as files and streams need them: one table of numbers and a name, and tables
//! that others have laid out.
//!
//! ```text
//! root      u32: from here to the table
//! layout    u16 bytes of the layout, u16 bytes of the table, a u16 a field: its place in the table
//! table     i32: back to the layout; the fields, numbers at multiples of their size
//! name      u32 size, bytes, a zero
//! ```
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

/// The value of one field to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// Left out: a reader takes its default.
    Absent,
    /// Eight bytes.
    U64(u64),
    /// Four bytes.
    U32(u32),
    /// One byte.
    Bool(bool),
    /// A string.
    Text(&'a str),
}

impl Field<'_> {
    fn size(self) -> usize {
        match self {
            Self::Absent => 0,
            Self::U64(_) => 8,
            Self::U32(_) | Self::Text(_) => 4,
            Self::Bool(_) => 1,
        }
    }
}

/// A buffer whose root is a table with `fields`, at most 64 in number, of which at most one is a
/// text, of at most 64 KiB.
pub fn encode_table(fields: &[Field<'_>]) -> Vec<u8> {
    assert!(fields.len() <= 64, "a table has a few fields");
    let small = |number: usize| u16::try_from(number).expect("a table is small");
    let wide = |number: usize| u32::try_from(number).expect("a table is small");
    let layout_size = fields.len().saturating_mul(2).saturating_add(4);
    // Behind the offset to the layout, at a multiple of eight, the widest fields come first.
    let table = layout_size.saturating_add(8).next_multiple_of(8).saturating_sub(4);
    let table = if table < layout_size.saturating_add(4) { table.saturating_add(8) } else { table };
    let layout = table.saturating_sub(layout_size);
    let mut places = vec![0; fields.len()];
    let mut end: usize = 4;
    for size in [8, 4, 1] {
        for (place, field) in places.iter_mut().zip(fields) {
            if field.size() == size {
                *place = end;
                end = end.saturating_add(size);
            }
        }
    }
    let mut content = wide(table).to_le_bytes().to_vec();
    content.resize(layout, 0);
    content.extend_from_slice(&small(layout_size).to_le_bytes());
    content.extend_from_slice(&small(end).to_le_bytes());
    for place in &places {
        content.extend_from_slice(&small(*place).to_le_bytes());
    }
    assert!(content.len() == table, "a table lies behind its layout");
    content.extend_from_slice(&wide(layout_size).to_le_bytes());
    let text_at = table.saturating_add(end).next_multiple_of(4);
    let mut text = "";
    for size in [8, 4, 1] {
        for (place, field) in places.iter().zip(fields).filter(|(_, field)| field.size() == size) {
            match *field {
                Field::Absent => {}
                Field::U64(number) => content.extend_from_slice(&number.to_le_bytes()),
                Field::U32(number) => content.extend_from_slice(&number.to_le_bytes()),
                Field::Bool(flag) => content.push(u8::from(flag)),
                Field::Text(bytes) => {
                    let from = table.saturating_add(*place);
                    content.extend_from_slice(&wide(text_at.saturating_sub(from)).to_le_bytes());
                    text = bytes;
                }
            }
        }
    }
    if fields.iter().any(|field| matches!(field, Field::Text(_))) {
        content.resize(text_at, 0);
        content.extend_from_slice(&wide(text.len()).to_le_bytes());
        content.extend_from_slice(text.as_bytes());
        content.push(0);
    }
    content
}

/// A FlatBuffer that may be damaged: what is not there is `None`, and nothing panics.
#[derive(Clone, Copy)]
pub struct FlatBuffer<'a>(pub &'a [u8]);

impl<'a> FlatBuffer<'a> {
    /// Where the root table is.
    pub fn root(self) -> Option<usize> {
        self.follow(0)
    }

    fn bytes<const SIZE: usize>(self, at: usize) -> Option<[u8; SIZE]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    fn u16(self, at: usize) -> Option<usize> {
        self.bytes(at).map(|bytes| usize::from(u16::from_le_bytes(bytes)))
    }

    /// The number at `at`.
    pub fn u32(self, at: usize) -> Option<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    /// The number at `at`.
    pub fn u64(self, at: usize) -> Option<u64> {
        self.bytes(at).map(u64::from_le_bytes)
    }

    /// Where the offset at `at` leads.
    pub fn follow(self, at: usize) -> Option<usize> {
        at.checked_add(usize::try_from(self.u32(at)?).ok()?)
    }

    /// Where a field of a table is; `Some(None)` if it is left out.
    pub fn field(self, table: usize, number: usize) -> Option<Option<usize>> {
        let back = i64::from(i32::from_le_bytes(self.bytes(table)?));
        let layout = i64::try_from(table).ok()?.checked_sub(back)?;
        let layout = usize::try_from(layout).ok()?;
        let at = number.checked_mul(2)?.checked_add(4)?;
        if at >= self.u16(layout)? {
            return Some(None);
        }
        match self.u16(layout.checked_add(at)?)? {
            0 => Some(None),
            offset => Some(Some(table.checked_add(offset)?)),
        }
    }

    /// A number of eight bytes; 0 where it is left out.
    pub fn field_u64(self, table: usize, number: usize) -> Option<u64> {
        self.field(table, number)?.map_or(Some(0), |at| self.u64(at))
    }

    /// A number of four bytes; 0 where it is left out.
    pub fn field_u32(self, table: usize, number: usize) -> Option<u32> {
        self.field(table, number)?.map_or(Some(0), |at| self.u32(at))
    }

    /// A flag; unset where it is left out.
    pub fn field_bool(self, table: usize, number: usize) -> Option<bool> {
        self.field(table, number)?.map_or(Some(false), |at| Some(*self.0.get(at)? != 0))
    }

    /// A text; empty where it is left out.
    pub fn field_text(self, table: usize, number: usize) -> Option<&'a str> {
        let Some(at) = self.field(table, number)? else { return Some("") };
        let at = self.follow(at)?;
        let size = usize::try_from(self.u32(at)?).ok()?;
        let from = at.checked_add(4)?;
        std::str::from_utf8(self.0.get(from..from.checked_add(size)?)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_reads_back_and_no_damage_panics() {
        let fields = [
            Field::U64(u64::MAX),
            Field::U32(7),
            Field::Absent,
            Field::Bool(true),
            Field::Text("name"),
            Field::U64(3),
        ];
        for count in 0..=fields.len() {
            let content = encode_table(&fields[..count]);
            let buffer = FlatBuffer(&content);
            let table = buffer.root().unwrap();
            for (number, field) in fields[..count].iter().enumerate() {
                match *field {
                    Field::Absent => assert_eq!(buffer.field(table, number), Some(None)),
                    Field::U64(expected) => {
                        assert_eq!(buffer.field(table, number).unwrap().unwrap() % 8, 0);
                        assert_eq!(buffer.field_u64(table, number), Some(expected));
                    }
                    Field::U32(expected) => {
                        assert_eq!(buffer.field_u32(table, number), Some(expected));
                    }
                    Field::Bool(expected) => {
                        assert_eq!(buffer.field_bool(table, number), Some(expected));
                    }
                    Field::Text(expected) => {
                        assert_eq!(buffer.field_text(table, number), Some(expected));
                    }
                }
            }
            assert_eq!(buffer.field_u64(table, count), Some(0), "what is left out is 0");
            for at in 0..content.len() {
                let mut damaged = content.clone();
                damaged[at] ^= 0xff;
                for damaged in [&damaged[..], &content[..at]] {
                    let buffer = FlatBuffer(damaged);
                    let Some(table) = buffer.root() else { continue };
                    for number in 0..8 {
                        let _ = buffer.field_u64(table, number);
                        let _ = buffer.field_text(table, number);
                    }
                }
            }
        }
    }
}
