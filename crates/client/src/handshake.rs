//! HELLO, login, bucket.

use std::sync::PoisonError;

use auth::Mechanism;
use auth::client::{ScramClient, plain};
use platform::Entropy;
use protocol::client::Request;
use protocol::{Feature, FeatureSet, Opcode, Status, hello};

use crate::connection::Connection;
use crate::error::ClientError;
use crate::options::{ConnectionOptions, Login};
use crate::response::OwnedResponse;

/// Prepares a fresh connection. A server that does not know a step goes without it: classic
/// memcached knows neither HELLO nor buckets. Returns what was granted.
pub(crate) fn perform(
    connection: &mut Connection,
    options: &ConnectionOptions,
) -> Result<FeatureSet, ClientError> {
    let features = say_hello(connection, options)?;
    if let Some(login) = &options.login {
        log_in(connection, login)?;
    }
    if let Some(bucket) = options.bucket.as_ref().filter(|_| features != FeatureSet::NONE) {
        let request = Request { key: bucket.as_bytes(), ..Request::new(Opcode::SelectBucket) };
        let response = connection.call(&request)?;
        if !response.is_success() {
            return Err(connection.refused("SELECT_BUCKET", &response));
        }
    }
    Ok(features)
}

fn say_hello(
    connection: &mut Connection,
    options: &ConnectionOptions,
) -> Result<FeatureSet, ClientError> {
    let mut codes = Vec::new();
    options.features.encode(&mut codes);
    let agent = options.agent.as_bytes();
    let key = agent.get(..hello::AGENT_SIZE_MAX).unwrap_or(agent);
    // memcached 1.6 loses its place in the stream after an unknown command that has a body, so the
    // first HELLO has none.
    if is_unknown(&connection.call(&Request::new(Opcode::Hello))?) {
        return Ok(FeatureSet::NONE);
    }
    let response =
        connection.call(&Request { key, value: &codes, ..Request::new(Opcode::Hello) })?;
    if !response.is_success() {
        return Err(connection.refused("HELLO", &response));
    }
    let (granted, _) = response.value().as_chunks::<2>();
    let granted = granted.iter().filter_map(|code| Feature::from_code(u16::from_be_bytes(*code)));
    Ok(granted.collect::<FeatureSet>().intersection(options.features))
}

fn log_in(connection: &mut Connection, login: &Login) -> Result<(), ClientError> {
    let algorithm = match login.mechanism {
        Mechanism::Plain => {
            let data = plain(&login.user, login.password.as_bytes());
            let response = say(connection, Opcode::SaslAuth, login, &data)?;
            return finish(connection, &response);
        }
        Mechanism::Scram(algorithm) => algorithm,
    };
    let password = login.password.as_bytes();
    let scram = ScramClient::new(algorithm, &login.user, password, &Entropy::real());
    let challenge = say(connection, Opcode::SaslAuth, login, &scram.first())?;
    if challenge.status() != Some(Status::AuthContinue) {
        return finish(connection, &challenge);
    }
    let answer = {
        let mut keys = login.keys.lock().unwrap_or_else(PoisonError::into_inner);
        scram.answer_with(&mut keys, challenge.value())
    };
    let address = connection.address().to_owned();
    let failed = |cause| ClientError::Login { address, cause };
    let (data, expected) = match answer {
        Ok(answer) => answer,
        Err(error) => return Err(failed(error)),
    };
    let response = say(connection, Opcode::SaslStep, login, &data)?;
    finish(connection, &response)?;
    expected.check(response.value()).map_err(failed)
}

fn say(
    connection: &mut Connection,
    opcode: Opcode,
    login: &Login,
    data: &[u8],
) -> Result<OwnedResponse, ClientError> {
    let key = login.mechanism.name().as_bytes();
    connection.call(&Request { key, value: data, ..Request::new(opcode) })
}

fn finish(connection: &Connection, response: &OwnedResponse) -> Result<(), ClientError> {
    if response.is_success() {
        return Ok(());
    }
    Err(connection.refused("the login", response))
}

fn is_unknown(response: &OwnedResponse) -> bool {
    matches!(response.status(), Some(Status::UnknownCommand | Status::NotSupported))
}
