//! The console's files: all of them are in the binary, and none comes from elsewhere.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// The page itself.
const INDEX: &str = "index.html";

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

struct ConsoleFile {
    name: &'static str,
    media_type: &'static str,
    bytes: &'static [u8],
}

macro_rules! file {
    ($media_type:expr, $name:literal) => {
        ConsoleFile {
            name: $name,
            media_type: $media_type,
            bytes: include_bytes!(concat!("../console/", $name)),
        }
    };
}

const FILES: [ConsoleFile; 25] = [
    file!(HTML, "index.html"),
    file!(STYLE, "console.css"),
    file!(SCRIPT, "main.js"),
    file!(SCRIPT, "elements.js"),
    file!(SCRIPT, "requests.js"),
    file!(SCRIPT, "figures.js"),
    file!(SCRIPT, "charts.js"),
    file!(SCRIPT, "units.js"),
    file!(SCRIPT, "overview.js"),
    file!(SCRIPT, "buckets.js"),
    file!(SCRIPT, "collections.js"),
    file!(SCRIPT, "documents.js"),
    file!(SCRIPT, "servers.js"),
    file!(SCRIPT, "vbuckets.js"),
    file!(SCRIPT, "timings.js"),
    file!(SCRIPT, "slow.js"),
    file!(SCRIPT, "hot_keys.js"),
    file!(SCRIPT, "log.js"),
    file!(SCRIPT, "users.js"),
    file!(SCRIPT, "set_up.js"),
    file!(SCRIPT, "settings.js"),
    file!(SCRIPT, "uPlot.iife.min.js"),
    file!(STYLE, "uPlot.min.css"),
    file!(TEXT, "uPlot.LICENSE.txt"),
    file!("image/svg+xml", "icon.svg"),
];

/// What the browser is to keep to, whatever is in a page: scripts, styles and data of this node
/// alone, in no frame of another page, and the content as what it is said to be. Sources: Content
/// Security Policy Level 3; Fetch, section 3.6 (`nosniff`); Referrer Policy; HTML, section 7.1.3
/// (cross-origin opener policies).
const RULES: [(&str, &str); 5] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    // After an upgrade no page is made of files of two versions.
    ("cache-control", "no-cache"),
];

/// The page.
pub(crate) fn page() -> Response {
    file(INDEX)
}

/// A file that the page loads.
pub(crate) fn file(name: &str) -> Response {
    let Some(file) = FILES.iter().find(|file| file.name == name) else {
        return (StatusCode::NOT_FOUND, "The console has no such file; it begins at /ui/\n")
            .into_response();
    };
    let mut answer = file.bytes.into_response();
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.media_type));
    for (name, value) in RULES {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of all files together.
    const SIZE_MAX: usize = 300 * 1024;

    fn text_of(name: &str) -> &'static str {
        let file = FILES.iter().find(|file| file.name == name).unwrap();
        std::str::from_utf8(file.bytes).unwrap()
    }

    #[test]
    fn all_files_together_are_small() {
        let size: usize = FILES.iter().map(|file| file.bytes.len()).sum();
        assert!(size < SIZE_MAX, "{size} bytes");
    }

    #[test]
    fn what_files_load_is_there_and_comes_from_nowhere_else() {
        let own = FILES.iter().filter(|file| !file.name.starts_with("uPlot"));
        let mut loaded = vec![INDEX];
        for file in own {
            let text = text_of(file.name);
            let addresses = text.matches("http://").count() + text.matches("https://").count();
            let namespaces = text.matches("http://www.w3.org/2000/svg").count();
            assert_eq!(addresses, namespaces, "{} names another place", file.name);
            let quoted = text.split('"').skip(1).step_by(2);
            loaded.extend(quoted.filter_map(|name| name.strip_prefix("./")));
        }
        let is_loaded = |file: &&ConsoleFile| loaded.contains(&file.name);
        let unused = FILES.iter().filter(|file| !is_loaded(file)).map(|file| file.name);
        assert_eq!(unused.collect::<Vec<_>>(), ["uPlot.LICENSE.txt"]);
        for name in loaded {
            assert!(FILES.iter().any(|file| file.name == name), "{name} is not there");
        }
    }

    #[test]
    fn pages_have_nothing_that_the_policy_forbids() {
        for file in FILES.iter().filter(|file| file.media_type == HTML) {
            let text = text_of(file.name);
            for forbidden in ["style=", "<style", "onclick=", "onload=", "javascript:"] {
                assert!(!text.contains(forbidden), "{}: {forbidden}", file.name);
            }
            assert_eq!(text.matches("<script").count(), text.matches(" src=\"./").count());
        }
        let builds_markup = ["innerHTML", "insertAdjacentHTML", "document.write", "eval("];
        for file in FILES.iter().filter(|file| file.media_type == SCRIPT) {
            let is_own = !file.name.starts_with("uPlot");
            let found = builds_markup.iter().find(|it| is_own && text_of(file.name).contains(*it));
            assert_eq!(found, None, "{}", file.name);
        }
    }
}
