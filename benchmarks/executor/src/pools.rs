//! The pools under test: ours, the original's two designs, and what Rust programs use.

pub mod cb3;
pub mod folly_wrapper;
mod original_task;
pub mod rayon_pool;
pub mod settee;
mod task_names;
pub mod tokio_pool;

#[cfg(test)]
mod tests;
