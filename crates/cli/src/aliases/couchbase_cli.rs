//! `couchbase-cli`: buckets, collections, users and groups.

use clap::{Arg, Error, Parser, Subcommand};
use platform::redaction::Secret;

use super::login::{Trust, Words, flag, refused, rest_port, without_meaning};

/// How answers are shown.
const OUTPUTS: [&str; 2] = [STANDARD, JSON];
const STANDARD: &str = "standard";
const JSON: &str = "json";

/// Buckets, collections and users of a running node, with couchbase-cli's options
#[derive(Parser)]
#[command(name = "couchbase-cli", disable_version_flag = true)]
struct CouchbaseCli {
    /// The cluster
    #[arg(short = 'c', long, global = true, default_value = "127.0.0.1")]
    cluster: String,
    /// Who logs in
    #[arg(short = 'u', long, global = true)]
    username: Option<String>,
    /// The user's password
    #[arg(short = 'p', long, global = true)]
    password: Option<Secret>,
    /// standard or json
    #[arg(short = 'o', long, global = true, default_value = STANDARD, value_parser = OUTPUTS)]
    output: String,
    #[command(flatten)]
    trust: Trust,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List all buckets
    BucketList,
    /// Make a bucket
    BucketCreate(Bucket),
    /// Change a bucket
    BucketEdit(Bucket),
    /// Delete a bucket
    BucketDelete {
        /// The bucket's name
        #[arg(long)]
        bucket: String,
    },
    /// Delete all documents of a bucket
    BucketFlush {
        /// The bucket's name
        #[arg(long)]
        bucket: String,
        /// Do not ask; nobody is asked here, so it is needed
        #[arg(long)]
        force: bool,
    },
    /// Scopes and collections of a bucket
    CollectionManage(Collections),
    /// Users, groups and their roles
    UserManage(Users),
}

#[derive(clap::Args)]
#[command(arg = without_meaning("wait"))]
struct Bucket {
    /// The bucket's name
    #[arg(long)]
    bucket: String,
    /// couchbase or ephemeral
    #[arg(long)]
    bucket_type: Option<String>,
    /// Memory for its documents, in MiB
    #[arg(long)]
    bucket_ramsize: Option<u64>,
    /// Copies beside the active one
    #[arg(long)]
    bucket_replica: Option<u8>,
    /// What leaves memory when it is full
    #[arg(long)]
    bucket_eviction_policy: Option<String>,
    /// 1 if it may be emptied, 0 if not
    #[arg(long)]
    enable_flush: Option<u8>,
    /// off, passive or active
    #[arg(long)]
    compression_mode: Option<String>,
    /// none, majority, majorityAndPersistActive or persistToMajority
    #[arg(long)]
    durability_min_level: Option<String>,
    /// sequence, timestamp or custom
    #[arg(long)]
    conflict_resolution: Option<String>,
    /// vBuckets
    #[arg(long)]
    num_vbuckets: Option<u16>,
}

#[derive(clap::Args)]
struct Collections {
    /// The bucket
    #[arg(long)]
    bucket: String,
    #[command(flatten)]
    action: CollectionAction,
    /// Seconds that documents of a new collection live at most
    #[arg(long)]
    max_ttl: Option<i64>,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct CollectionAction {
    /// Show all
    #[arg(long, alias = "list-scopes")]
    list_collections: bool,
    /// Make a scope
    #[arg(long, value_name = "SCOPE")]
    create_scope: Option<String>,
    /// Drop a scope
    #[arg(long, value_name = "SCOPE")]
    drop_scope: Option<String>,
    /// Make a collection
    #[arg(long, value_name = "SCOPE.COLLECTION")]
    create_collection: Option<String>,
    /// Drop a collection
    #[arg(long, value_name = "SCOPE.COLLECTION")]
    drop_collection: Option<String>,
}

#[derive(clap::Args)]
#[command(arg = Arg::new("auth-domain").long("auth-domain").value_parser(["local"]))]
struct Users {
    #[command(flatten)]
    action: UserAction,
    /// The user
    #[arg(long)]
    rbac_username: Option<String>,
    /// The user's new password
    #[arg(long)]
    rbac_password: Option<Secret>,
    /// The name for people
    #[arg(long)]
    rbac_name: Option<String>,
    /// Roles with commas between them
    #[arg(long)]
    roles: Option<String>,
    /// Groups with commas between them
    #[arg(long)]
    user_groups: Option<String>,
    /// The group
    #[arg(long)]
    group_name: Option<String>,
    /// What the group is for
    #[arg(long)]
    group_description: Option<String>,
    /// The group of a directory that the group stands for
    #[arg(long)]
    ldap_ref: Option<String>,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct UserAction {
    /// Show all users
    #[arg(long)]
    list: bool,
    /// Make or change a user
    #[arg(long)]
    set: bool,
    /// Delete a user
    #[arg(long)]
    delete: bool,
    /// Show all groups
    #[arg(long)]
    list_groups: bool,
    /// Make or change a group
    #[arg(long)]
    set_group: bool,
    /// Delete a group
    #[arg(long)]
    delete_group: bool,
}

/// The command line of ours that does the same.
pub(super) fn translate(words: Words) -> Result<Words, Error> {
    let CouchbaseCli { cluster, username, password, output, trust, verb } =
        CouchbaseCli::try_parse_from(words)?;
    let is_json = output == JSON;
    Ok([
        words_of(verb)?,
        rest_port(&cluster)?,
        flag("--user", username.as_deref()),
        flag("--password", password.as_deref()),
        flag("--output", is_json.then_some(JSON)),
        trust.words(),
    ]
    .concat())
}

fn words_of(verb: Verb) -> Result<Words, Error> {
    let of_bucket = |action: &str, name: String| vec!["bucket".to_owned(), action.to_owned(), name];
    Ok(match verb {
        Verb::BucketList => vec!["bucket".to_owned(), "list".to_owned()],
        Verb::BucketDelete { bucket } => [of_bucket("delete", bucket), confirmed()].concat(),
        Verb::BucketFlush { bucket, force: true } => {
            [of_bucket("flush", bucket), confirmed()].concat()
        }
        Verb::BucketFlush { bucket, force: false } => {
            let why = format!("all documents of {bucket} would be gone for good; --force does it");
            return Err(refused(why));
        }
        Verb::BucketCreate(bucket) => {
            let new = [
                flag("--type", bucket.bucket_type.as_deref()),
                flag("--vbuckets", bucket.num_vbuckets.map(|count| count.to_string()).as_deref()),
                flag("--conflict-resolution", bucket.rule()?),
            ];
            [of_bucket("create", bucket.bucket.clone()), new.concat(), bucket.settings()].concat()
        }
        Verb::BucketEdit(bucket) => {
            [of_bucket("edit", bucket.bucket.clone()), bucket.settings()].concat()
        }
        Verb::CollectionManage(collections) => collections.words(),
        Verb::UserManage(users) => users.words()?,
    })
}

/// The original does these without a question.
fn confirmed() -> Words {
    vec!["--confirm".to_owned()]
}

impl Bucket {
    /// What can be said of a bucket when it is made, and later.
    fn settings(&self) -> Words {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let flush = self.enable_flush.map(|enabled| (enabled != 0).to_string());
        [
            flag("--quota-mib", number(self.bucket_ramsize).as_deref()),
            flag("--replicas", number(self.bucket_replica.map(u64::from)).as_deref()),
            flag("--eviction-policy", self.bucket_eviction_policy.as_deref()),
            flag("--enable-flush", flush.as_deref()),
            flag("--compression", self.compression_mode.as_deref()),
            flag("--durability-min-level", self.durability_min_level.as_deref()),
        ]
        .concat()
    }

    /// Which version of a document wins, as it is said over REST.
    fn rule(&self) -> Result<Option<&'static str>, Error> {
        Ok(match self.conflict_resolution.as_deref() {
            None => None,
            Some("sequence") => Some("seqno"),
            Some("timestamp") => Some("lww"),
            Some("custom") => Some("custom"),
            Some(other) => {
                let why =
                    format!("--conflict-resolution is sequence, timestamp or custom, not {other}");
                return Err(refused(why));
            }
        })
    }
}

impl Collections {
    fn words(self) -> Words {
        let Self { bucket, action, max_ttl } = self;
        let CollectionAction {
            list_collections,
            create_scope,
            drop_scope,
            create_collection,
            drop_collection,
        } = action;
        let mut words = vec!["collection".to_owned()];
        let actions = [
            ("create-scope", create_scope),
            ("drop-scope", drop_scope),
            ("create", create_collection),
            ("drop", drop_collection),
        ];
        let said = actions.into_iter().find_map(|(action, path)| Some((action, path?)));
        match said {
            None => {
                assert!(list_collections, "one action is said");
                words.push("list".to_owned());
            }
            Some((action, path)) => {
                words.extend([action.to_owned(), path]);
                if action.starts_with("drop") {
                    words.extend(confirmed());
                }
                if action == "create" {
                    let seconds = max_ttl.map(|seconds| seconds.to_string());
                    words.extend(flag("--max-ttl", seconds.as_deref()));
                }
            }
        }
        words.extend(flag("--bucket", Some(&bucket)));
        words
    }
}

impl Users {
    fn words(self) -> Result<Words, Error> {
        let UserAction { list, delete, list_groups, set_group, delete_group, .. } = self.action;
        let (noun, name, name_flag, said) = if list_groups || set_group || delete_group {
            let said = vec![
                flag("--roles", self.roles.as_deref()),
                flag("--description", self.group_description.as_deref()),
                flag("--ldap-group-ref", self.ldap_ref.as_deref()),
            ];
            ("group", self.group_name, "--group-name", said)
        } else {
            let said = vec![
                flag("--new-password", self.rbac_password.as_deref()),
                flag("--full-name", self.rbac_name.as_deref()),
                flag("--roles", self.roles.as_deref()),
                flag("--groups", self.user_groups.as_deref()),
            ];
            ("user", self.rbac_username, "--rbac-username", said)
        };
        let mut words = vec![noun.to_owned()];
        if list || list_groups {
            words.push("list".to_owned());
            return Ok(words);
        }
        let name = name.ok_or_else(|| refused(format!("say the {noun} with {name_flag}")))?;
        if delete || delete_group {
            words.extend(["delete".to_owned(), name]);
            return Ok(words);
        }
        words.extend(["set".to_owned(), name]);
        words.extend(said.concat());
        Ok(words)
    }
}
