//! The form of tasks that go through all vBuckets again and again: a round of visits, then a rest.

use executor::{Next, Task, TaskContext, VbucketVisitor, VisitTask};

/// Begins a round, goes on with it run by run, rests, and begins the next one.
pub(crate) struct Rounds<V: VbucketVisitor, B, R> {
    begin: B,
    rest: R,
    /// `None` between rounds.
    round: Option<VisitTask<V>>,
}

impl<V: VbucketVisitor, B, R> Rounds<V, B, R>
where
    B: FnMut() -> VisitTask<V> + Send,
    R: FnMut() -> Next + Send,
{
    /// `begin` makes the visits of a round; `rest` says what follows one.
    pub(crate) fn new(begin: B, rest: R) -> Self {
        Self { begin, rest, round: None }
    }
}

impl<V: VbucketVisitor, B, R> Task for Rounds<V, B, R>
where
    B: FnMut() -> VisitTask<V> + Send,
    R: FnMut() -> Next + Send,
{
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        let round = self.round.get_or_insert_with(&mut self.begin);
        match round.run(context) {
            Next::Finished => {
                self.round = None;
                (self.rest)()
            }
            next => next,
        }
    }

    fn describe(&self) -> Option<String> {
        self.round.as_ref()?.describe()
    }
}
