//! Locks that outlive no panic: what a thread has left half done under one is not looked at.

use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

const NO_PANIC: &str = "no thread has panicked with this lock";

/// Locks what no thread has panicked with.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect(NO_PANIC)
}

/// Likewise, for as many readers as there are.
pub(crate) fn lock_shared<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().expect(NO_PANIC)
}

/// Likewise, for one writer.
pub(crate) fn lock_exclusive<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().expect(NO_PANIC)
}
