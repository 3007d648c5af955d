//! A connection that fails when its client takes nothing for too long.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Bounds the time for which a write may stall. Reading is bounded by who reads.
pub(crate) struct StallingStream<S> {
    stream: S,
    stall_max: Duration,
    /// Runs while a write waits for the client.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> StallingStream<S> {
    pub(crate) fn new(stream: S, stall_max: Duration) -> Self {
        Self { stream, stall_max, stalled: None }
    }

    /// Passes on what the write said, or gives up when it has waited too long.
    fn watch<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            // The client has taken something: the next stall is timed from its own beginning.
            self.stalled = None;
            return written;
        }
        let stall_max = self.stall_max;
        let timer = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(stall_max)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallingStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallingStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// A pipe that holds 16 bytes, written through a stream that stalls for 50 ms at most.
    async fn write(bytes: &[u8], reader_takes: bool) -> io::Result<()> {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut stream = StallingStream::new(ours, Duration::from_millis(50));
        let reader = async move {
            if reader_takes {
                let mut sink = Vec::new();
                theirs.read_to_end(&mut sink).await.map(drop)
            } else {
                tokio::time::sleep(Duration::from_secs(60)).await;
                Ok(())
            }
        };
        let reader = tokio::spawn(reader);
        let written = stream.write_all(bytes).await;
        reader.abort();
        written
    }

    #[test]
    fn only_a_client_that_takes_nothing_is_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let small = runtime.block_on(write(&[0; 16], false));
        assert!(small.is_ok());
        let taken = runtime.block_on(write(&[0; 1000], true));
        assert!(taken.is_ok());
        let stalled = runtime.block_on(write(&[0; 1000], false));
        assert_eq!(stalled.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
