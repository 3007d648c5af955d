//! Requests that have come together: what the later ones are going to touch is fetched while the
//! first ones are executed.

use document::Vbid;
use protocol::request::DocumentKey;
use protocol::{Frame, Header, Magic, Parsed};

use super::state::Connection;

/// Requests that are looked at together: what they touch stays in the nearest caches meanwhile.
const REQUESTS_MAX: usize = 16;

/// What a request is for.
type Addressed<'a> = (Vbid, &'a [u8]);

impl Connection {
    /// Looks at the requests at the start of `bytes`. Returns the offset from which on it is worth
    /// another look.
    pub(super) fn look_ahead(&self, bytes: &[u8], size_max: usize) -> usize {
        let is_alone = Header::parse(bytes, size_max)
            .map_or(true, |header| header.is_none_or(|it| it.frame_size() >= bytes.len()));
        let Some(part) = self.bucket.as_ref().filter(|_| !is_alone && self.is_authenticated())
        else {
            return usize::MAX;
        };
        let mut ahead = [Addressed::default(); REQUESTS_MAX];
        let mut count = 0;
        let mut offset = 0;
        while count < REQUESTS_MAX {
            let Parsed::Complete { frame, consumed } = Frame::parse(&bytes[offset..], size_max)
            else {
                offset = usize::MAX;
                break;
            };
            offset += consumed;
            ahead[count] = addressed(&frame);
            part.bucket.expect(ahead[count].0);
            count += 1;
        }
        for requests in ahead[..count].chunk_by(|one, next| one.0 == next.0) {
            let Some(expecting) = part.bucket.expecting(requests[0].0) else { continue };
            for (_, key) in requests {
                if let Ok(key) = DocumentKey::parse(key, self.features) {
                    expecting.key(key.as_key());
                }
            }
        }
        offset
    }
}

fn addressed<'a>(frame: &Frame<'a>) -> Addressed<'a> {
    match frame.header.magic {
        Magic::ClientRequest | Magic::AltClientRequest => {
            (Vbid(frame.header.vbucket_or_status), frame.key)
        }
        _ => Addressed::default(),
    }
}
