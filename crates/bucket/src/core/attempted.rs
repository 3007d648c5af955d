//! What has come of an operation that was let in.

/// What has come of an operation that was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempted<T> {
    /// It has happened, with this answer.
    Answered(T),
    /// It has not happened yet. Its waiter hears through [`crate::Completions`] when it is to be
    /// executed again, or how what it waits for has ended.
    Waits,
}

impl<T> Attempted<T> {
    /// The answer, if there is one already.
    pub fn answer(self) -> Option<T> {
        match self {
            Self::Answered(answer) => Some(answer),
            Self::Waits => None,
        }
    }

    /// The same with another answer.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Attempted<U> {
        match self {
            Self::Answered(answer) => Attempted::Answered(change(answer)),
            Self::Waits => Attempted::Waits,
        }
    }
}
