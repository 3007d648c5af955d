//! Requests that a page of another site has a browser send: with the login that the browser knows,
//! it would act for the administrator.

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

const REFUSAL: &str = "A page of another site has sent this; nothing was changed.\n";

/// Refuses what changes something and comes from another site. Tools send neither header.
/// Sources: RFC 6454, section 7 (`Origin`); Fetch Metadata Request Headers, section 2.3
/// (`Sec-Fetch-Site`).
pub(crate) async fn refuse_other_sites(request: Request, next: Next) -> Response {
    if !request.method().is_safe() && is_of_another_site(request.headers()) {
        return (StatusCode::FORBIDDEN, REFUSAL).into_response();
    }
    next.run(request).await
}

fn is_of_another_site(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site != "same-origin" && site != "none";
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return false };
    let own = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    // `null` stands for an origin that is not to be known: a page in a sandbox, a local file.
    let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    own.is_none() || authority.map(|(_, authority)| authority) != own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_nothing_is_a_tool_and_who_names_another_site_is_refused() {
        let cases: [(&[(&'static str, &str)], bool); 10] = [
            (&[], false),
            (&[("host", "node:8091")], false),
            (&[("host", "node:8091"), ("origin", "http://node:8091")], false),
            (&[("host", "node:8091"), ("origin", "http://node:80")], true),
            (&[("host", "node:8091"), ("origin", "https://evil.example")], true),
            (&[("host", "node:8091"), ("origin", "null")], true),
            (&[("origin", "http://node:8091")], true),
            (&[("sec-fetch-site", "same-origin"), ("origin", "http://node:8091")], false),
            (&[("sec-fetch-site", "cross-site")], true),
            (&[("sec-fetch-site", "same-site")], true),
        ];
        for (named, expected) in cases {
            let mut headers = HeaderMap::new();
            for (name, value) in named {
                headers.insert(*name, value.parse().unwrap());
            }
            assert_eq!(is_of_another_site(&headers), expected, "{named:?}");
        }
    }
}
