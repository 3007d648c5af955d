//! One rule a test.
