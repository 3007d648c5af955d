//! Damaged segments.
