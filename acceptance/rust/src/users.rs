//! Cases: users, groups, and what they may do.

use std::time::Duration;

use couchbase::bucket::Bucket;
use couchbase::cluster::Cluster;
use couchbase::error::{Error, ErrorKind};
use couchbase::management::users::user::{Group, Role, User};
use couchbase::options::kv_options::{GetOptions, RemoveOptions, UpsertOptions};

use crate::case::{Outcome, expect, expect_equal, once, wait_until, within};
use crate::collections::expect_unknown;
use crate::connecting::expect_refused;
use crate::sdk::{BUCKET, Sdk, connect};

const PASSWORD: &str = "a-password";
const LIMIT: Duration = Duration::from_secs(10);

cases! {
    "users-come-and-go": come_and_go,
    "groups-come-and-go": groups,
    "roles-are-listed": roles_are_listed,
    "own-password": own_password,
    "reader-does-not-write": reader_does_not_write,
    "user-of-one-collection": of_one_collection,
    "removed-user": removed,
}

fn reader() -> Role {
    Role::new("data_reader").bucket(BUCKET)
}

fn writer() -> Role {
    Role::new("data_writer").bucket(BUCKET)
}

fn user(name: &str, roles: Vec<Role>) -> User {
    User::new(name, format!("User {name}"), roles).password(PASSWORD)
}

async fn put(sdk: &Sdk, name: &str, roles: Vec<Role>) -> Result<(), Error> {
    sdk.cluster.users().upsert_user(user(name, roles), None).await
}

/// Runs a body with the bucket as a new user has it, who is dropped in the end.
async fn with_user(
    sdk: &Sdk,
    name: &str,
    roles: Vec<Role>,
    body: impl AsyncFnOnce(Bucket) -> Outcome,
) -> Outcome {
    put(sdk, name, roles).await?;
    let cluster: Cluster = connect(name, PASSWORD).await??;
    let outcome = body(cluster.bucket(BUCKET)).await;
    sdk.cluster.users().drop_user(name, None).await?;
    outcome
}

fn expect_roles<'a>(got: impl IntoIterator<Item = &'a Role>, wanted: &[&str]) -> Outcome {
    let mut names = got.into_iter().map(|role| role.name.as_str()).collect::<Vec<_>>();
    names.sort_unstable();
    expect_equal(&names.as_slice(), &wanted, "roles")
}

async fn come_and_go(sdk: &Sdk) -> Outcome {
    let manager = sdk.cluster.users();
    refused!(manager.get_user("alice", None), ErrorKind::UserNotFound)?;
    put(sdk, "alice", vec![reader()]).await?;
    let found = manager.get_user("alice", None).await?.user;
    expect_equal(&found.display_name.as_str(), &"User alice", "displayed name")?;
    expect_roles(&found.roles, &["data_reader"])?;
    let all = manager.get_all_users(None).await?;
    expect(all.iter().any(|each| each.user.username == "alice"), "it is listed")?;
    put(sdk, "alice", vec![reader(), writer()]).await?;
    let found = manager.get_user("alice", None).await?.user;
    expect_roles(&found.roles, &["data_reader", "data_writer"])?;
    manager.drop_user("alice", None).await?;
    refused!(manager.get_user("alice", None), ErrorKind::UserNotFound)?;
    expect(manager.drop_user("alice", None).await.is_err(), "it is not dropped twice")
}

async fn groups(sdk: &Sdk) -> Outcome {
    let manager = sdk.cluster.users();
    refused!(manager.get_group("readers", None), ErrorKind::GroupNotFound)?;
    manager.upsert_group(Group::new("readers", "They read", vec![reader()]), None).await?;
    let found = manager.get_group("readers", None).await?;
    expect_equal(&found.description.as_deref(), &Some("They read"), "description")?;
    expect_roles(&found.roles, &["data_reader"])?;
    let all = manager.get_all_groups(None).await?;
    expect_equal(&all.len(), &1, "number of groups")?;
    manager.upsert_user(user("bob", Vec::new()).add_group("readers"), None).await?;
    let bob = manager.get_user("bob", None).await?;
    expect_roles(bob.effective_roles.iter().map(|each| &each.role), &["data_reader"])?;
    manager.drop_group("readers", None).await?;
    expect(manager.drop_group("readers", None).await.is_err(), "it is not dropped twice")?;
    Ok(manager.drop_user("bob", None).await?)
}

async fn roles_are_listed(sdk: &Sdk) -> Outcome {
    let roles = sdk.cluster.users().get_roles(None).await?;
    for known in ["admin", "bucket_admin", "data_reader", "data_writer"] {
        expect(roles.iter().any(|each| each.role.name == known), known)?;
    }
    Ok(())
}

async fn own_password(sdk: &Sdk) -> Outcome {
    put(sdk, "carol", vec![Role::new("admin")]).await?;
    let carol = connect("carol", PASSWORD).await??;
    carol.users().change_password("another-one", None).await?;
    expect_refused("carol", PASSWORD).await?;
    let again = connect("carol", "another-one").await??;
    within(LIMIT, again.bucket(BUCKET).wait_until_ready(None)).await??;
    Ok(sdk.cluster.users().drop_user("carol", None).await?)
}

async fn reader_does_not_write(sdk: &Sdk) -> Outcome {
    let (key, _) = sdk.stored(1, None).await?;
    with_user(sdk, "dave", vec![reader()], async |bucket| {
        let collection = bucket.default_collection();
        expect_equal(&collection.get(&key, None).await?.content_as::<i64>()?, &1, "it reads")?;
        refused!(collection.get(sdk.key(), None), ErrorKind::DocumentNotFound)?;
        let store = UpsertOptions::new().retry_strategy(once());
        expect(collection.upsert(&key, 2, store).await.is_err(), "a reader does not store")?;
        let remove = RemoveOptions::new().retry_strategy(once());
        expect(collection.remove(&key, remove).await.is_err(), "a reader does not remove")?;
        sdk.expect_value(&key, 1).await?;
        // It learns at once that it may.
        put(sdk, "dave", vec![reader(), writer()]).await?;
        collection.upsert(&key, 3, None).await?;
        Ok(())
    })
    .await?;
    sdk.expect_value(&key, 3).await
}

async fn of_one_collection(sdk: &Sdk) -> Outcome {
    let manager = sdk.bucket.collections();
    manager.create_scope("private", None).await?;
    manager.create_collection("private", "own", None, None).await?;
    manager.create_collection("private", "foreign", None, None).await?;
    let own = |role: Role| role.scope("private").collection("own");
    with_user(sdk, "erin", vec![own(reader()), own(writer())], async |bucket| {
        let scope = bucket.scope("private");
        scope.collection("own").upsert("k", 1, None).await?;
        scope.collection("own").get("k", None).await?;
        expect_unknown(&scope.collection("foreign")).await
    })
    .await?;
    Ok(manager.drop_scope("private", None).await?)
}

async fn removed(sdk: &Sdk) -> Outcome {
    put(sdk, "frank", vec![reader()]).await?;
    let (key, _) = sdk.stored(1, None).await?;
    let frank = connect("frank", PASSWORD).await??;
    let collection = frank.bucket(BUCKET).default_collection();
    collection.get(&key, None).await?;
    sdk.cluster.users().drop_user("frank", None).await?;
    wait_until(LIMIT, "its open connections are of no use", || async {
        let read = collection.get(&key, GetOptions::new().retry_strategy(once()));
        // What waits for a connection waits in vain.
        !matches!(tokio::time::timeout(Duration::from_secs(1), read).await, Ok(Ok(_)))
    })
    .await?;
    expect_refused("frank", PASSWORD).await
}
