//! The messages of SCRAM, and the server's half of the conversation. Sources: RFC 5802, section 5;
//! docs/specification/protocol.md, section 8.2.
//!
//! ```text
//! client-first   n,,n=<user>,r=<client nonce>
//! server-first   r=<client nonce><server nonce>,s=<salt>,i=<iterations>
//! client-final   c=<gs2 header>,r=<both nonces>,p=<proof>
//! server-final   v=<server signature>
//! ```

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

use crate::credentials::{Credentials, HashedPassword};
use crate::users::{Login, USER_NAME_SIZE_MAX};

/// What a client says first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientFirst<'a> {
    /// Up to and including the second comma.
    gs2_header: &'a str,
    /// Everything behind it.
    bare: &'a str,
    pub(crate) user: String,
    nonce: &'a str,
}

/// The server's half, between its two messages.
pub(crate) struct ServerScram {
    login: Login,
    user: String,
    gs2_header: String,
    nonce: String,
    /// `client-first-bare,server-first`: the beginning of what both sides sign.
    signed: String,
}

impl<'a> ClientFirst<'a> {
    /// Reads the message; `None` when it is malformed, asks for channel binding, or to act for
    /// another user.
    pub(crate) fn parse(data: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(data).ok()?;
        // `y` is who could bind to a channel, and has seen that nobody offers it here.
        let authzid_and_bare = text.strip_prefix("n,").or_else(|| text.strip_prefix("y,"))?;
        let (authzid, bare) = authzid_and_bare.split_once(',')?;
        let gs2_header = text.strip_suffix(bare)?;
        let (mut user, mut nonce) = (None, None);
        for attribute in bare.split(',') {
            let place = match attribute.split_at_checked(2)? {
                ("n=", _) => &mut user,
                ("r=", _) => &mut nonce,
                _ => return None,
            };
            if place.replace(attribute.get(2..)?).is_some() {
                return None;
            }
        }
        let nonce = nonce.filter(|nonce| !nonce.is_empty())?;
        let user = decode_name(user?)?;
        is_own_authzid(authzid, &user).then_some(Self { gs2_header, bare, user, nonce })
    }
}

/// Whether a client acts for nobody but the user that it logs in as. Source: RFC 5802, section 7:
/// `a=` and the name, or nothing.
fn is_own_authzid(authzid: &str, user: &str) -> bool {
    let name = authzid.strip_prefix("a=").and_then(decode_name);
    authzid.is_empty() || name.is_some_and(|name| name == user)
}

/// A user's name in a message: comma and equals sign are written `=2C` and `=3D`.
pub(crate) fn encode_name(user: &str) -> String {
    user.replace('=', "=3D").replace(',', "=2C")
}

fn decode_name(encoded: &str) -> Option<String> {
    let mut parts = encoded.split('=');
    let mut user = parts.next()?.to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        user.push(match code {
            "2C" => ',',
            "3D" => '=',
            _ => return None,
        });
        user.push_str(rest);
    }
    let is_sound = (1..=USER_NAME_SIZE_MAX).contains(&user.len());
    (is_sound && !user.contains(char::is_control)).then_some(user)
}

impl ServerScram {
    /// Answers client-first with server-first.
    pub(crate) fn begin(
        first: &ClientFirst<'_>,
        login: Login,
        server_nonce: &str,
    ) -> (Self, Vec<u8>) {
        let nonce = [first.nonce, server_nonce].concat();
        let HashedPassword { salt, iterations, .. } = &login.hashed;
        let server_first = format!("r={nonce},s={},i={iterations}", STANDARD.encode(salt));
        let scram = Self {
            login,
            user: first.user.clone(),
            gs2_header: first.gs2_header.to_owned(),
            nonce,
            signed: [first.bare, &server_first].join(","),
        };
        (scram, server_first.into_bytes())
    }

    /// Bytes that wait for client-final.
    pub(crate) fn held_bytes(&self) -> usize {
        let texts = [&self.user, &self.gs2_header, &self.nonce, &self.signed];
        texts.iter().map(|text| text.capacity()).sum()
    }

    /// Answers client-final with the user and server-final; `None` when the login failed.
    /// `is_current` tells whether credentials are still those of the user of that name.
    pub(crate) fn finish(
        self,
        client_final: &[u8],
        is_current: impl FnOnce(&str, &Arc<Credentials>) -> bool,
    ) -> Option<(String, Vec<u8>)> {
        let text = std::str::from_utf8(client_final).ok()?;
        let (without_proof, proof) = text.rsplit_once(",p=")?;
        self.check_final(without_proof)?;
        let proof = STANDARD.decode(proof).ok()?;
        let auth_message = [&self.signed, without_proof].join(",");
        let HashedPassword { algorithm, stored_key, server_key, .. } = &self.login.hashed;
        let client_signature = algorithm.hmac(stored_key, auth_message.as_bytes());
        let client_key = xor(&proof, &client_signature)?;
        // Of unknown users, too: neither the answer nor its time tells who exists.
        let proven: bool = algorithm.hash(&client_key).ct_eq(stored_key).into();
        // The password may have changed since the challenge, which may have been long ago, and the
        // user may be another one by now.
        let known = self.login.known.as_ref().filter(|known| is_current(&self.user, known));
        if !proven || known.is_none() {
            return None;
        }
        let signature = algorithm.hmac(server_key, auth_message.as_bytes());
        Some((self.user, format!("v={}", STANDARD.encode(signature)).into_bytes()))
    }

    /// Channel binding and nonce must repeat what was agreed on.
    fn check_final(&self, without_proof: &str) -> Option<()> {
        let mut attributes = without_proof.split(',');
        let binding = STANDARD.decode(attributes.next()?.strip_prefix("c=")?).ok()?;
        let nonce = attributes.next()?.strip_prefix("r=")?;
        let has_mandatory_extension = attributes.any(|attribute| attribute.starts_with("m="));
        let is_agreed = binding == self.gs2_header.as_bytes() && nonce == self.nonce;
        (is_agreed && !has_mandatory_extension).then_some(())
    }
}

/// `None` when the two are not equally long.
pub(crate) fn xor(first: &[u8], second: &[u8]) -> Option<Vec<u8>> {
    let is_even = first.len() == second.len();
    is_even.then(|| first.iter().zip(second).map(|(first, second)| first ^ second).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str) -> Option<(String, &str)> {
        let first = ClientFirst::parse(text.as_bytes())?;
        assert_eq!([first.gs2_header, first.bare].concat(), text);
        Some((first.user, first.nonce))
    }

    #[test]
    fn clients_first_messages_are_understood() {
        for (text, user, nonce) in [
            ("n,,n=user,r=abc", "user", "abc"),
            ("n,,r=abc,n=user", "user", "abc"),
            ("n,a=user,n=user,r=abc", "user", "abc"),
            ("n,a=a=2Cb,n=a=2Cb,r=abc", "a,b", "abc"),
            ("y,,n=user,r=abc", "user", "abc"),
            ("n,,n=a=2Cb=3Dc,r=0x1f 0x08 0xffffffec", "a,b=c", "0x1f 0x08 0xffffffec"),
            ("n,,n=user,r=a=b==", "user", "a=b=="),
        ] {
            assert_eq!(first(text), Some((user.to_owned(), nonce)), "{text}");
        }
    }

    #[test]
    fn malformed_first_messages_are_refused() {
        for text in [
            "",
            "n",
            "n,",
            "n,,",
            "p=tls-unique,,n=u,r=a",
            "n,,n=u",
            "n,,r=a",
            "n,,n=,r=a",
            "n,,n=u,r=",
            "n,,n=u,r=a,m=x",
            "n,,n=u,n=v,r=a",
            "n,,n=u=2X,r=a",
            "n,,n=u=2,r=a",
            "n,,n=u\u{7},r=a",
            "n,,n=u,r=a,",
            "n,,\u{e9},r=a",
        ] {
            assert_eq!(first(text), None, "{text}");
        }
    }

    #[test]
    fn nobody_acts_for_another_user() {
        for text in [
            "n,a=other,n=user,r=abc",
            "y,a=other,n=user,r=abc",
            "n,a=,n=user,r=abc",
            "n,user,n=user,r=abc",
            "n,a=user=2,n=user,r=abc",
            "n,a=User,n=user,r=abc",
        ] {
            assert_eq!(first(text), None, "{text}");
        }
    }

    #[test]
    fn names_survive_their_encoding() {
        for name in ["user", "a,b=c", "==,,", "=2C"] {
            assert_eq!(decode_name(&encode_name(name)).as_deref(), Some(name));
        }
    }
}
