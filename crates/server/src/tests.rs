//! The data port over loopback.
