//! The end of the REST port, as its connections see it.

use tokio::sync::watch;

/// Returns when the server is to stop, or its handle is gone, which means the same.
pub(crate) async fn until_stopped(mut stopped: watch::Receiver<bool>) {
    drop(stopped.wait_for(|&stopped| stopped).await);
}
