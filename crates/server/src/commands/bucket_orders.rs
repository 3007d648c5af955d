//! CREATE_BUCKET and DELETE_BUCKET. Source: docs/specification/protocol.md, section 18.2.

use executor::TaskKind;
use protocol::Status;
use serde_json::Value;

use crate::bucket_administrator::{BucketAdministrator, BucketRefusal, BucketWords};
use crate::completed::Completed;
use crate::connection::{Connection, Done, Request, Turn};

/// The module of all buckets that keep documents.
const MODULE: &str = "ep.so";
/// The module of a bucket that would keep none.
const NO_BUCKET_MODULE: &str = "nobucket.so";
/// Bytes of a bucket's configuration, at most.
const CONFIG_BYTES_MAX: usize = 16 << 10;

/// CREATE_BUCKET: answered when the bucket can be selected.
pub(super) fn create(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    let words = match words_of(request.frame.value) {
        Ok(words) => words,
        Err((status, context)) => {
            request.reply(connection).fail(turn, status, context);
            return Done::Answered;
        }
    };
    let (waiter, mailboxes) = (turn.session.waiter, turn.shared.mailboxes.clone());
    in_background(connection, request, turn, move |administrator, name| {
        let result = administrator.create(name, &words);
        mailboxes.complete_with(waiter, Completed::BucketChanged(result));
    })
}

/// DELETE_BUCKET: answered when nothing of the bucket is left.
pub(super) fn delete(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    if !is_deletion(request.frame.value) {
        let context = "the value is nothing, or JSON that says force";
        request.reply(connection).fail(turn, Status::Einval, context);
        return Done::Answered;
    }
    let (waiter, mailboxes) = (turn.session.waiter, turn.shared.mailboxes.clone());
    in_background(connection, request, turn, move |administrator, name| {
        let done = mailboxes.clone();
        let done = move || done.complete_with(waiter, Completed::BucketChanged(Ok(())));
        if let Err(refusal) = administrator.delete(name, Box::new(done)) {
            mailboxes.complete_with(waiter, Completed::BucketChanged(Err(refusal)));
        }
    })
}

/// Whether a value may be that of a deletion. Whether it is forced makes no difference: nothing is
/// flushed of what goes.
fn is_deletion(value: &[u8]) -> bool {
    let is_forced = |value: Value| value.as_object()?.get("force").map(Value::is_boolean);
    value.is_empty()
        || serde_json::from_slice(value)
            .is_ok_and(|value: Value| value.is_object() && is_forced(value) != Some(false))
}

/// Has a thread that may wait for files carry out an order.
fn in_background(
    connection: &Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
    order: impl FnOnce(&dyn BucketAdministrator, &str) + Send + 'static,
) -> Done {
    let reply = request.reply(connection);
    if connection.is_anonymous {
        let context = "buckets are changed by administrators, not anonymously";
        reply.fail(turn, Status::Eaccess, context);
        return Done::Answered;
    }
    let Ok(name) = std::str::from_utf8(request.frame.key).map(str::to_owned) else {
        reply.fail(turn, Status::Einval, "no bucket can have this name");
        return Done::Answered;
    };
    let Some(administrator) = turn.shared.administrator() else {
        reply.fail(turn, Status::NotSupported, "the node's buckets are fixed");
        return Done::Answered;
    };
    let mut order = Some((administrator, order));
    let added = turn.shared.pool.add(&turn.shared.owner, TaskKind::AuxIo, move || {
        let Some((administrator, order)) = order.take() else { return };
        order(&*administrator, &name);
    });
    match added {
        Ok(_) => Done::Parked,
        Err(_) => {
            reply.fail(turn, Status::Etmpfail, "the node is stopping");
            Done::Answered
        }
    }
}

/// The order has been carried out, or not.
pub(super) fn changed(
    connection: &Connection,
    request: &Request<'_>,
    result: Result<(), BucketRefusal>,
    turn: &mut Turn<'_>,
) {
    let reply = request.reply(connection);
    let Err(refusal) = result else { return reply.done(turn) };
    let status = match refusal {
        BucketRefusal::Exists => Status::KeyEexists,
        BucketRefusal::NotFound => Status::KeyEnoent,
        BucketRefusal::Invalid(..) => Status::Einval,
        BucketRefusal::Failed(_) => Status::Etmpfail,
    };
    reply.fail(turn, status, &refusal.to_string());
}

/// Reads `module NUL name=value;name=value`, where a backslash takes the next character as it is.
fn words_of(value: &[u8]) -> Result<BucketWords, (Status, &'static str)> {
    let invalid = |context| (Status::Einval, context);
    if value.len() > CONFIG_BYTES_MAX {
        return Err(invalid("the configuration is too long"));
    }
    let text = std::str::from_utf8(value).map_err(|_| invalid("the value is text"))?;
    let (module, config) = text.split_once('\0').unwrap_or((text, ""));
    match module {
        MODULE => {}
        NO_BUCKET_MODULE => return Err((Status::NotSupported, "such a bucket would keep nothing")),
        _ => return Err(invalid("the module of a bucket is ep.so")),
    }
    let mut words = Vec::new();
    let mut word = (String::new(), None);
    let mut characters = config.trim_end_matches('\0').chars();
    let put = |word: &mut (String, Option<String>), character| match &mut word.1 {
        Some(value) => value.push(character),
        None => word.0.push(character),
    };
    let mut end = |word: &mut (String, Option<String>)| match std::mem::take(word) {
        (name, None) if name.trim().is_empty() => Ok(()),
        (name, Some(value)) => {
            words.push((name.trim().to_owned(), value.trim().to_owned()));
            Ok(())
        }
        _ => Err(invalid("a setting is a name and a value with = between them")),
    };
    while let Some(character) = characters.next() {
        match character {
            ';' => end(&mut word)?,
            '=' if word.1.is_none() => word.1 = Some(String::new()),
            '\\' => characters.next().into_iter().for_each(|next| put(&mut word, next)),
            other => put(&mut word, other),
        }
    }
    end(&mut word)?;
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_names_and_values() {
        let words = |words: &[(&str, &str)]| -> BucketWords {
            words.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        for (text, expected) in [
            ("ep.so", words(&[])),
            ("ep.so\0", words(&[])),
            ("ep.so\0a=1;b=two;", words(&[("a", "1"), ("b", "two")])),
            ("ep.so\0a=x=y\\;z; b = 2", words(&[("a", "x=y;z"), ("b", "2")])),
            ("ep.so\0a=1\0", words(&[("a", "1")])),
        ] {
            assert_eq!(words_of(text.as_bytes()), Ok(expected), "{text:?}");
        }
        for (text, status) in [
            ("", Status::Einval),
            ("other.so\0", Status::Einval),
            ("nobucket.so\0", Status::NotSupported),
            ("ep.so\0a", Status::Einval),
        ] {
            assert_eq!(words_of(text.as_bytes()).unwrap_err().0, status, "{text:?}");
        }
    }
}
