//! Snappy's raw format, within the limits of a document.

use crate::limits::STORED_VALUE_SIZE_MAX;

/// The inflated value, unless the bytes are no snappy or would grow beyond what a document may be.
pub fn inflate(compressed: &[u8]) -> Option<Vec<u8>> {
    let size = snap::raw::decompress_len(compressed).ok()?;
    if size > STORED_VALUE_SIZE_MAX {
        return None;
    }
    snap::raw::Decoder::new().decompress_vec(compressed).ok()
}

/// Whether the bytes say that they would grow beyond what a document may be.
pub fn is_too_large(compressed: &[u8]) -> bool {
    snap::raw::decompress_len(compressed).is_ok_and(|size| size > STORED_VALUE_SIZE_MAX)
}

/// The compressed value.
pub fn deflate(value: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(value).expect("snappy compresses anything below 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_whole() {
        let values: [&[u8]; 3] = [b"", b"hello, hello, hello", &[7; 100_000]];
        for value in values {
            assert_eq!(inflate(&deflate(value)).unwrap(), value);
        }
    }

    #[test]
    fn bombs_and_garbage_are_refused() {
        assert_eq!(inflate(b"\xff\xff\xff\xff\x0f"), None);
        assert_eq!(inflate(b"\x05abc"), None);
        assert_eq!(inflate(b""), None);
    }

    #[test]
    fn what_would_be_too_large_is_told_from_garbage() {
        let larger = deflate(&vec![7; STORED_VALUE_SIZE_MAX + 1]);
        assert_eq!((inflate(&larger), is_too_large(&larger)), (None, true));
        for garbage in [&b"\xff\xff\xff\xff no snappy"[..], b"\x05abc", b""] {
            assert_eq!((inflate(garbage), is_too_large(garbage)), (None, false), "{garbage:?}");
        }
    }
}
