//! Cases, and what they ask of answers.

use std::error::Error;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use couchbase::error::{Error as SdkError, ErrorKind};
use couchbase::retry::{RetryAction, RetryReason, RetryRequest, RetryStrategy};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// A case: its name is the same in every language.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: for<'a> fn(&'a crate::Sdk) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>,
}

/// The cases of a file, in the order of running.
macro_rules! cases {
    ($($name:literal: $function:ident,)*) => {
        pub(crate) const CASES: &[crate::case::Case] = &[
            $(crate::case::Case { name: $name, run: |sdk| Box::pin($function(sdk)) },)*
        ];
    };
}

/// An attempt must end with an error of a kind.
macro_rules! refused {
    ($attempt:expr, $kind:pat) => {
        crate::case::expect_refused($attempt.await, |kind| matches!(kind, $kind), stringify!($kind))
    };
}

/// Without line ends, cut to a readable length.
pub(crate) fn one_line(error: &Failure) -> String {
    let line = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(400).collect()
}

pub(crate) fn expect_refused<T: Debug>(
    result: Result<T, SdkError>,
    is_expected: fn(&ErrorKind) -> bool,
    expected: &str,
) -> Outcome {
    match result {
        Err(error) if is_expected(error.kind()) => Ok(()),
        other => Err(format!("expected {expected}, got {other:?}").into()),
    }
}

/// Says what should have held when it does not.
pub(crate) fn expect(holds: bool, sentence: &str) -> Outcome {
    if holds { Ok(()) } else { Err(sentence.into()) }
}

pub(crate) fn expect_equal<T: PartialEq + Debug>(got: &T, wanted: &T, what: &str) -> Outcome {
    if got == wanted {
        return Ok(());
    }
    let (got, wanted) = (format!("{got:?}"), format!("{wanted:?}"));
    Err(format!("{what}: expected {wanted:.200}, got {got:.200}").into())
}

/// Attempts an operation once where the SDK leaves that to the strategy. It has no timeouts, and by
/// itself repeats without an end what may be possible later.
#[derive(Debug)]
struct Once;

impl RetryStrategy for Once {
    fn retry_after(&self, _: &RetryRequest, _: &RetryReason) -> Option<RetryAction> {
        None
    }
}

pub(crate) fn once() -> Arc<dyn RetryStrategy> {
    Arc::new(Once)
}

/// What an attempt ended with; an error when its time is over, as the SDK sets itself no time.
pub(crate) async fn within<T>(
    time: Duration,
    attempt: impl Future<Output = Result<T, SdkError>>,
) -> Result<Result<T, SdkError>, Failure> {
    Ok(tokio::time::timeout(time, attempt).await?)
}

/// An attempt that the SDK repeats in vain, or that is refused.
pub(crate) async fn expect_in_vain<T: Debug>(
    time: Duration,
    attempt: impl Future<Output = Result<T, SdkError>>,
) -> Outcome {
    match within(time, attempt).await {
        Ok(Ok(result)) => Err(format!("expected an error, got {result:?}").into()),
        Ok(Err(_)) | Err(_) => Ok(()),
    }
}

/// Asks until the answer is true; fails when it is not, although it was asked for behind the end of
/// the time. An answer that comes late says nothing.
pub(crate) async fn wait_until<F: Future<Output = bool>>(
    time: Duration,
    what: &str,
    mut question: impl FnMut() -> F,
) -> Outcome {
    let deadline = Instant::now() + time;
    loop {
        let asked = Instant::now();
        if question().await {
            return Ok(());
        }
        if asked > deadline {
            return Err(format!("not within {time:?}: {what}").into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
