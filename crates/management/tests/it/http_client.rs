//! As much of HTTP/1.1 as the tests need: blocking, and strict about what it reads.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::rest_port::{PASSWORD, USER};

pub(crate) struct HttpClient {
    reader: BufReader<TcpStream>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

impl HttpClient {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = platform::network::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { reader: BufReader::new(stream) }
    }

    /// One request of the known user. The body is a form.
    pub(crate) fn ask(&mut self, method: &str, target: &str, body: &str) -> Answer {
        self.send_form(method, target, body);
        self.read_answer().expect("the server answers")
    }

    /// The same, whose answer is not waited for.
    pub(crate) fn send_form(&mut self, method: &str, target: &str, body: &str) {
        let form = "Content-Type: application/x-www-form-urlencoded\r\n";
        let headers = format!("{}{form}Content-Length: {}\r\n", basic(USER, PASSWORD), body.len());
        self.send(&format!("{method} {target} HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}"));
    }

    pub(crate) fn send(&mut self, text: &str) {
        // The server may have closed already; what it answered is read afterwards.
        drop(self.reader.get_mut().write_all(text.as_bytes()));
    }

    /// Status and headers. None when the server closed before.
    pub(crate) fn read_head(&mut self) -> Option<Answer> {
        let line = self.read_line()?;
        let status = line.strip_prefix("HTTP/1.1 ").unwrap_or_else(|| panic!("{line:?}"));
        let status = status.get(..3).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.read_line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Some(Answer { status, headers, body: String::new() })
    }

    /// A whole answer. None when the server closed before.
    pub(crate) fn read_answer(&mut self) -> Option<Answer> {
        let mut answer = self.read_head()?;
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.read_chunk() {
                answer.body.push_str(&chunk);
            }
            return Some(answer);
        }
        let size = answer.header("content-length").map_or(0, |size| size.parse().unwrap());
        let mut body = vec![0; size];
        self.reader.read_exact(&mut body).ok()?;
        answer.body = String::from_utf8(body).unwrap();
        Some(answer)
    }

    /// One chunk. None at the end of the body, or when the server closed.
    pub(crate) fn read_chunk(&mut self) -> Option<String> {
        let size = usize::from_str_radix(&self.read_line()?, 16).expect("a chunk has a size");
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).ok()?;
        assert!(chunk.ends_with(b"\r\n"));
        chunk.truncate(size);
        (size > 0).then(|| String::from_utf8(chunk).unwrap())
    }

    /// Whether the server closed the connection and said nothing more.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.reader.read(&mut [0]) {
            Ok(size) => size == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    pub(crate) fn set_patience(&self, patience: Duration) {
        self.reader.get_ref().set_read_timeout(Some(patience)).unwrap();
    }

    /// Whether a byte arrives while the client has patience.
    pub(crate) fn is_silent(&mut self) -> bool {
        match self.reader.fill_buf() {
            Ok(_) => false,
            Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
        }
    }

    fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        let size = self.reader.read_line(&mut line).ok()?;
        (size > 0).then(|| line.trim_end_matches("\r\n").to_owned())
    }
}

/// The header line of a login.
pub(crate) fn basic(user: &str, password: &str) -> String {
    format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{user}:{password}")))
}
