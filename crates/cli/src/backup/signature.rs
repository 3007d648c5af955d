//! Signatures of requests to S3-compatible stores: AWS Signature Version 4, in headers.

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use super::spool::hex;

/// Who asks.
#[derive(Clone)]
pub(super) struct Signer {
    pub(super) region: String,
    pub(super) key_id: String,
    pub(super) secret: String,
    pub(super) session_token: Option<String>,
}

/// A request to be signed.
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    /// As in the `Host` header.
    pub(super) host: &'a str,
    /// Encoded, see [`encode`].
    pub(super) path: &'a str,
    /// Encoded, names in order.
    pub(super) query: &'a str,
    /// 64 hexadecimal digits.
    pub(super) payload_sha256: &'a str,
    /// `20240229T235959Z`
    pub(super) date: &'a str,
}

impl Signer {
    /// The headers to add, beside `Host`.
    pub(super) fn headers(&self, request: &Request<'_>) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("x-amz-content-sha256", request.payload_sha256.to_owned()),
            ("x-amz-date", request.date.to_owned()),
        ];
        if let Some(token) = &self.session_token {
            headers.push(("x-amz-security-token", token.clone()));
        }
        let mut signed = vec![("host", request.host.to_owned())];
        signed.extend(headers.iter().cloned());
        let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let lines: String =
            signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let Request { method, path, query, payload_sha256, date, .. } = request;
        let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{payload_sha256}");
        let day = date.split('T').next().unwrap_or_default();
        let scope = format!("{day}/{}/s3/aws4_request", self.region);
        let digest = hex(&Sha256::digest(canonical));
        let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}");
        let first = format!("AWS4{}", self.secret).into_bytes();
        let parts = [day, &self.region, "s3", "aws4_request", &text];
        let signature = hex(&parts.iter().fold(first, |key, part| keyed(&key, part)));
        let credential = format!("Credential={}/{scope}", self.key_id);
        let value =
            format!("AWS4-HMAC-SHA256 {credential},SignedHeaders={names},Signature={signature}");
        headers.push(("authorization", value));
        headers
    }
}

fn keyed(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Percent-encodes everything but letters, digits, `-._~`, and `/` if that is to be kept.
pub(super) fn encode(text: &str, keeps_slash: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if is_plain || (keeps_slash && byte == b'/') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example `GET Bucket (List Objects)` of the specification.
    #[test]
    fn the_example_of_the_specification_has_its_signature() {
        let signer = Signer {
            region: "us-east-1".to_owned(),
            key_id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: None,
        };
        let headers = signer.headers(&Request {
            method: "GET",
            host: "examplebucket.s3.amazonaws.com",
            path: "/",
            query: "max-keys=2&prefix=J",
            payload_sha256: &hex(&Sha256::digest(b"")),
            date: "20130524T000000Z",
        });
        let signature = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
        let (_, value) = headers.last().unwrap();
        assert!(value.ends_with(&format!("Signature={signature}")), "{value}");
    }

    #[test]
    fn what_is_not_plain_is_encoded() {
        assert_eq!(encode("a/b c~\u{e9}", true), "a/b%20c~%C3%A9");
        assert_eq!(encode("a/b=", false), "a%2Fb%3D");
    }
}
