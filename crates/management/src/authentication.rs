//! Who asks: HTTP Basic authentication (RFC 7617), a session of the console, or a certificate.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use auth::{Access, Actor, Noted, PlainAttempt, Privilege, PrivilegeSet, TooManyLogins};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::sync::oneshot;

use crate::connection::Slot;
use crate::context::Context;
use crate::session_cookie::{is_from_console, token_in};
use crate::set_up::Peer;

/// As the original says it. Source: docs/specification/clients.md, section 10.
const CHALLENGE: &str = "Basic realm=\"Couchbase Server Admin / REST\"";

/// With this header, as with that of the console, nobody is challenged. Source: as above.
const NO_CHALLENGE: (&str, &str) = ("invalid-auth-response", "on");

/// Who asks. Every handler behind [`require_user`] finds it in the request.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) name: String,
    /// What the user may do, as it was when the request came.
    pub(crate) access: Arc<Access>,
    /// Whether it is anybody who sets the node up, and has shown no login.
    pub(crate) is_setting_up: bool,
}

impl User {
    /// Whether it is told that there is such a bucket.
    pub(crate) fn may_see(&self, bucket: &str) -> bool {
        self.access.in_bucket(bucket).everywhere.contains(Privilege::BucketRead)
    }

    /// Whether it may do everything.
    pub(crate) fn is_administrator(&self) -> bool {
        self.access.on_node().contains(Privilege::NodesWrite)
    }

    /// Whether it sees how the cluster is set up and what it does, and changes nothing of that.
    pub(crate) fn is_reading_administrator(&self) -> bool {
        let on_node = self.access.on_node();
        let sees = PrivilegeSet::of(&[Privilege::SettingsRead, Privilege::Stats]);
        on_node.contains_all(sees) && !on_node.contains(Privilege::SettingsWrite)
    }
}

/// Who a connection's client is by its certificate, if there is such a user.
#[derive(Clone, Debug)]
pub(crate) struct CertifiedUser(pub(crate) String);

/// What a request says of who asks.
struct Said {
    /// A user and a password.
    login: Option<(String, Vec<u8>)>,
    /// The user of a session.
    session: Option<String>,
    /// The user of the connection's certificate.
    certified: Option<CertifiedUser>,
}

/// Lets the request through when it names a user and that user's password, belongs to a session, or
/// when the node is still to be set up.
pub(crate) async fn require_user(
    State(context): State<Arc<Context>>,
    mut request: Request,
    next: Next,
) -> Response {
    let is_challenged = is_challenged(request.headers());
    let said = Said {
        login: basic_credentials(request.headers()),
        session: session_user(&context, &request),
        certified: request.extensions().get::<CertifiedUser>().cloned(),
    };
    // Until the node is set up nobody can know a password, and clients say the one that they are
    // about to give.
    let set_up = context.view.set_up();
    let is_setting_up = set_up.as_ref().is_some_and(|set_up| set_up.lets_in(&request));
    let peer = request.extensions().get::<Peer>().copied();
    let found = match set_up.filter(|_| is_setting_up) {
        Some(set_up) => Ok(Some(set_up.administrator)),
        None => user_of(&context, said, peer).await,
    };
    let user = match found {
        Ok(Some(user)) => user,
        Ok(None) if !is_challenged => return StatusCode::UNAUTHORIZED.into_response(),
        Ok(None) => return unauthorized(),
        Err(unchecked) => return unchecked.answer(),
    };
    // It may have been removed since.
    let Some(access) = context.users.access(&user) else { return unauthorized() };
    if let Some(slot) = request.extensions().get::<Arc<Slot>>() {
        slot.keep(&user, &access);
    }
    request.extensions_mut().insert(User { name: user, access: Arc::new(access), is_setting_up });
    next.run(request).await
}

/// Whether a request without a login hears how to log in: a browser would ask by itself, and keep
/// what it is told.
fn is_challenged(headers: &HeaderMap) -> bool {
    let (name, value) = NO_CHALLENGE;
    !is_from_console(headers) && headers.get(name).is_none_or(|said| said != value)
}

/// The user of a request's session. A browser sends the cookie whoever has it ask, so what changes
/// something has to say that the console asks.
fn session_user(context: &Context, request: &Request) -> Option<String> {
    let is_sound = request.method().is_safe() || is_from_console(request.headers());
    let token = token_in(request.headers()).filter(|_| is_sound)?;
    context.sessions.user_of(token, &context.users)
}

/// The token of the session that a request of `user` belongs to, if it has named no other login.
pub(crate) fn session_token(context: &Context, user: &User, headers: &HeaderMap) -> Option<String> {
    let token = token_in(headers).filter(|_| basic_credentials(headers).is_none())?;
    let is_its = context.sessions.user_of(token, &context.users).as_ref() == Some(&user.name);
    is_its.then(|| token.to_owned())
}

/// Who asks: whom the request names, or else whose session it is, or with whose certificate the
/// connection began.
async fn user_of(
    context: &Context,
    said: Said,
    peer: Option<Peer>,
) -> Result<Option<String>, Unchecked> {
    if let Some((user, password)) = said.login {
        let is_user = logs_in(context, &user, password, peer).await?;
        return Ok(is_user.then_some(user));
    }
    if said.session.is_some() {
        return Ok(said.session);
    }
    let Some(CertifiedUser(user)) = said.certified else { return Ok(None) };
    if context.users.credentials(&user).is_none() {
        note_failure(context, &user, peer);
        return Ok(None);
    }
    Ok(Some(user))
}

/// Whether this is the user's password. What fails is counted and logged.
pub(crate) async fn logs_in(
    context: &Context,
    user: &str,
    password: Vec<u8>,
    peer: Option<Peer>,
) -> Result<bool, Unchecked> {
    let now = context.failed_logins.now();
    // Somebody at an address from which others guess still logs in with what was right lately.
    let is_known = context.users.is_verified(user, &password);
    let refusal = |peer: Peer| context.users.refusal_of_logins_from(peer.0, now);
    if let Some(refusal) = peer.filter(|_| !is_known).and_then(refusal) {
        return Err(Unchecked { try_again_after: refusal });
    }
    let address = peer.map(|Peer(address)| address);
    let is_user = is_user(context, user, password, address).await?;
    if !is_user {
        note_failure(context, user, peer);
    }
    Ok(is_user)
}

fn note_failure(context: &Context, user: &str, peer: Option<Peer>) {
    let address = peer.map(|Peer(address)| address);
    context.failed_logins.note(user, address);
    if let Some(address) = address {
        context.users.note_failure_from(address, context.failed_logins.now());
    }
    context.users.note(Actor { user, address }, Noted::LoginFailed { door: "rest" });
}

/// Hashing takes milliseconds: it happens on threads that nobody else waits for, and not at all
/// for a client that leaves before.
async fn is_user(
    context: &Context,
    user: &str,
    password: Vec<u8>,
    address: Option<IpAddr>,
) -> Result<bool, TooManyLogins> {
    if context.users.is_verified(user, &password) {
        return Ok(true);
    }
    let (answer, answered) = oneshot::channel();
    let attempt = PlainAttempt::new(user, &password);
    let _asked = context.passwords.check(attempt, address, move |checked| {
        answer.send(checked).ok();
    })?;
    // The answer is lost only when the port shuts down.
    let user = answered.await.unwrap_or(Ok(None))?;
    Ok(user.is_some())
}

/// The user and password that the request names.
fn basic_credentials(headers: &HeaderMap) -> Option<(String, Vec<u8>)> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = STANDARD.decode(encoded.trim()).ok()?;
    let colon = decoded.iter().position(|&byte| byte == b':')?;
    let (user, password) = decoded.split_at(colon);
    let password = password.get(1..)?.to_vec();
    let user = std::str::from_utf8(user).ok()?;
    (user.len() <= auth::users::USER_NAME_SIZE_MAX).then(|| (user.to_owned(), password))
}

/// 401: the request names no user with that user's password.
pub(crate) fn unauthorized() -> Response {
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, CHALLENGE)]).into_response()
}

/// A password was not looked at.
#[derive(Debug)]
pub(crate) struct Unchecked {
    try_again_after: Duration,
}

impl From<TooManyLogins> for Unchecked {
    fn from(_: TooManyLogins) -> Self {
        Self { try_again_after: Duration::ZERO }
    }
}

impl Unchecked {
    /// 429, which says when it is worth while to try again: in whole seconds, and not at once.
    pub(crate) fn answer(&self) -> Response {
        let seconds = self.try_again_after.as_secs() + 1;
        let body = format!(
            "Too many logins are being checked, or have failed; try again in {seconds} s.\n"
        );
        let retry_after = [(header::RETRY_AFTER, seconds.to_string())];
        (StatusCode::TOO_MANY_REQUESTS, retry_after, body).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_looked_at_hears_when_it_is_worth_while_to_try_again() {
        let refusal = Unchecked { try_again_after: Duration::from_millis(57_200) };
        for (unchecked, seconds) in [(refusal, "58"), (TooManyLogins.into(), "1")] {
            let answer = unchecked.answer();
            assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(answer.headers()[header::RETRY_AFTER], seconds);
        }
    }

    fn credentials(value: &str) -> Option<(String, Vec<u8>)> {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        basic_credentials(&headers)
    }

    #[test]
    fn a_password_may_contain_colons_and_be_empty() {
        let encoded = |text: &str| format!("Basic {}", STANDARD.encode(text));
        assert_eq!(credentials(&encoded("bob:a:b")), Some(("bob".to_owned(), b"a:b".to_vec())));
        assert_eq!(credentials(&encoded("bob:")), Some(("bob".to_owned(), Vec::new())));
        let lower = encoded("bob:x").replace("Basic", "basic");
        assert_eq!(credentials(&lower), Some(("bob".to_owned(), b"x".to_vec())));
    }

    #[test]
    fn anything_else_names_nobody() {
        let no_colon = format!("Basic {}", STANDARD.encode("bob"));
        let no_text = format!("Basic {}", STANDARD.encode(b"\xff:x"));
        let long = format!("Basic {}", STANDARD.encode(format!("{}:x", "b".repeat(129))));
        for value in ["", "Basic", "Basic !", "Bearer Ym9iOng=", &no_colon, &no_text, &long] {
            assert_eq!(credentials(value), None, "{value}");
        }
    }
}
