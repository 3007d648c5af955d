//! A connection that begins with a TLS handshake.

use tls::{Acceptor, Claim};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::authentication::CertifiedUser;
use crate::connection::{Serving, serve_stream};
use crate::stopping::until_stopped;

/// Shakes hands, in the time that a request's headers have, and serves what follows.
pub(crate) async fn serve_tls(stream: TcpStream, acceptor: &Acceptor, mut serving: Serving) {
    let handshake = TlsAcceptor::from(acceptor.config()).accept(stream);
    let slot = serving.slot.clone();
    let accepted = tokio::select! {
        accepted = tokio::time::timeout(serving.limits.header_time_max, handshake) => accepted,
        () = slot.displaced() => return,
        () = until_stopped(serving.stopped.clone()) => return,
    };
    match accepted {
        Ok(Ok(stream)) => {
            let Ok(certified) = certified(&stream, acceptor) else { return };
            serving.certified = certified;
            serve_stream(stream, serving).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "a management connection shook no hands"),
        Err(_) => tracing::debug!("a management connection took too long to shake hands"),
    }
}

/// The user that the client's certificate names.
///
/// # Errors
/// It has to name one and does not: the connection ends.
fn certified(
    stream: &TlsStream<TcpStream>,
    acceptor: &Acceptor,
) -> Result<Option<CertifiedUser>, ()> {
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    match acceptor.claim_of(chain) {
        Claim::None => Ok(None),
        Claim::User(user) => Ok(Some(CertifiedUser(user))),
        Claim::Nameless => {
            tracing::warn!("a client's certificate is refused: no rule finds a user in it");
            Err(())
        }
    }
}
