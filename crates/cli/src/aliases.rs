//! Well-known command lines: what people and scripts type for the original is turned into what does
//! the same here. A tool is meant by the name that the program is called by, as with a link, or by
//! the first word behind it.

mod cbbackupmgr;
mod cbepctl;
mod cbstats;
mod couchbase_cli;
mod login;
mod mctimings;

use std::ffi::OsString;
use std::path::Path;

use clap::Error;

/// A tool by its name: what it is told becomes a command line of ours, without the program's name.
type Alias = (&'static str, Translate);
type Translate = fn(Vec<String>) -> Result<Vec<String>, Error>;

/// All of them.
const ALIASES: [Alias; 5] = [
    ("cbstats", cbstats::translate),
    ("mctimings", mctimings::translate),
    ("cbepctl", cbepctl::translate),
    ("couchbase-cli", couchbase_cli::translate),
    ("cbbackupmgr", cbbackupmgr::translate),
];

/// The command line that is meant: another one if a well-known tool is.
///
/// # Errors
/// What the tool answers itself: its help, what is wrong with its options, or what does not map.
pub fn meant(words: Vec<OsString>) -> Result<Vec<OsString>, Error> {
    let called = words.first().and_then(|program| Path::new(program).file_name());
    let by_name = called.and_then(|name| alias_of(name.to_str()?));
    let by_word = || alias_of(words.get(1)?.to_str()?);
    let (translate, said) = match (by_name, by_word()) {
        (Some(translate), _) => (translate, &words[..]),
        (None, Some(translate)) => (translate, words.get(1..).unwrap_or_default()),
        (None, None) => return Ok(words),
    };
    let said = said.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let meant = translate(said)?.into_iter().map(OsString::from);
    Ok(std::iter::once(OsString::from("settee")).chain(meant).collect())
}

fn alias_of(name: &str) -> Option<Translate> {
    ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, translate)| *translate)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn meant_by(line: &str) -> Result<String, String> {
        let words = line.split(' ').map(OsString::from).collect();
        let meant = meant(words).map_err(|error| error.to_string())?;
        Ok(meant.join(OsStr::new(" ")).into_string().unwrap())
    }

    #[test]
    fn what_is_typed_for_the_original_is_turned_into_what_does_the_same() {
        for (typed, does) in [
            ("cbstats node:11210 all", "stats all --host node --port 11210"),
            (
                "cbstats node -u bob -p x -b travel vbucket-details 17 -j",
                "stats vbucket-details 17 --host node --user bob --password x --bucket travel \
                 --json",
            ),
            ("cbstats node raw memory", "stats memory --host node"),
            ("cbstats node -b travel timings", "timings --host node --bucket travel"),
            ("mctimings -h node:1 -u a -P b", "timings --host node --port 1 --user a --password b"),
            (
                "mctimings -h node -p 11999 GET GETQ disk_commit",
                "timings get_cmd disk_commit --host node --port 11999",
            ),
            (
                "cbepctl node:11210 -b travel set flush_param max_size 1000",
                "engine-control set flush_param max_size 1000 --host node --port 11210 \
                 --bucket travel",
            ),
            (
                "cbepctl node set vbucket_param max_cas 7 17 -u a -p b",
                "engine-control set vbucket_param max_cas 7 --vbucket 17 --host node --user a \
                 --password b",
            ),
            ("cbepctl node drain", "engine-control drain --host node"),
            ("cbstats node all --tls", "stats all --host node --tls"),
            (
                "cbstats node -u a -p b --ssl --cacert ca.pem all",
                "stats all --host node --user a --password b --tls --ca ca.pem",
            ),
            (
                "mctimings -h node:11207 --tls=c.pem,k.pem,ca.pem",
                "timings --host node --port 11207 --tls --client-cert c.pem --client-key k.pem \
                 --ca ca.pem",
            ),
            (
                "cbepctl node --tls --tls-cert c.pem --tls-key k.pem drain --no-ssl-verify",
                "engine-control drain --host node --tls --no-verify --client-cert c.pem \
                 --client-key k.pem",
            ),
            (
                "couchbase-cli bucket-list -c node -u a -p b -o json",
                "bucket list --management http://node:8091 --user a --password b --output json",
            ),
            (
                "couchbase-cli bucket-create -c http://node:9000 --bucket travel --bucket-type \
                 ephemeral --bucket-ramsize 256 --bucket-replica 1 --enable-flush 1 \
                 --num-vbuckets 128 --conflict-resolution timestamp --wait",
                "bucket create travel --type ephemeral --vbuckets 128 --conflict-resolution lww \
                 --quota-mib 256 --replicas 1 --enable-flush true --management http://node:9000",
            ),
            (
                "couchbase-cli bucket-list -c couchbases://node --cacert ca.pem -u a -p b",
                "bucket list --management https://node:18091 --user a --password b --ca ca.pem",
            ),
            (
                "couchbase-cli bucket-list -c https://node:9000 --no-ssl-verify",
                "bucket list --management https://node:9000 --no-verify",
            ),
            (
                "couchbase-cli bucket-list -c https://node --cacert ca.pem --client-cert c.pem \
                 --client-key k.pem",
                "bucket list --management https://node:18091 --ca ca.pem --client-cert c.pem \
                 --client-key k.pem",
            ),
            (
                "couchbase-cli bucket-edit --bucket travel --enable-flush 0",
                "bucket edit travel --enable-flush false --management http://127.0.0.1:8091",
            ),
            (
                "couchbase-cli bucket-flush --bucket travel --force",
                "bucket flush travel --confirm --management http://127.0.0.1:8091",
            ),
            (
                "couchbase-cli collection-manage --bucket travel --create-collection a.b \
                 --max-ttl 60",
                "collection create a.b --max-ttl 60 --bucket travel --management \
                 http://127.0.0.1:8091",
            ),
            (
                "couchbase-cli bucket-delete --bucket travel",
                "bucket delete travel --confirm --management http://127.0.0.1:8091",
            ),
            (
                "couchbase-cli collection-manage --bucket travel --drop-collection a.b",
                "collection drop a.b --confirm --bucket travel --management http://127.0.0.1:8091",
            ),
            (
                "couchbase-cli collection-manage --bucket travel --list-scopes",
                "collection list --bucket travel --management http://127.0.0.1:8091",
            ),
            (
                "couchbase-cli user-manage --set --rbac-username bob --rbac-password secret \
                 --roles admin --auth-domain local",
                "user set bob --new-password secret --roles admin --management \
                 http://127.0.0.1:8091",
            ),
            (
                "couchbase-cli user-manage --delete --rbac-username bob",
                "user delete bob --management http://127.0.0.1:8091",
            ),
            (
                "couchbase-cli user-manage --list-groups",
                "group list --management http://127.0.0.1:8091",
            ),
            (
                "couchbase-cli user-manage --set-group --group-name shop --roles admin \
                 --group-description x --ldap-ref cn=shop",
                "group set shop --roles admin --description x --ldap-group-ref cn=shop \
                 --management http://127.0.0.1:8091",
            ),
            (
                "couchbase-cli user-manage --delete-group --group-name shop",
                "group delete shop --management http://127.0.0.1:8091",
            ),
            (
                "cbbackupmgr backup -a /backups -r daily -c couchbase://node -u a -p b \
                 --include-data travel -t 40",
                "backup --target /backups/daily --management http://node:8091 --user a --password \
                 b --bucket travel --parallel 8",
            ),
            (
                "cbbackupmgr info -a /backups/ -r daily -j",
                "backup --info --target /backups/daily --json",
            ),
        ] {
            for called in ["settee ", "/usr/bin/"] {
                let meant = meant_by(&format!("{called}{typed}"));
                assert_eq!(meant, Ok(format!("settee {does}")), "{called}{typed}");
            }
        }
        for own in ["settee", "settee serve --dev", "settee stats all", "/usr/bin/settee-2 x"] {
            assert_eq!(meant_by(own).as_deref(), Ok(own));
        }
    }

    #[test]
    fn what_does_not_map_is_refused_with_what_to_do() {
        for (typed, says) in [
            ("cbstats", "HOST[:PORT]"),
            ("cbstats node:x all", "HOST:PORT"),
            ("cbepctl node stop", "drain"),
            ("cbstats node all --tls=c.pem", "CERT,KEY"),
            ("couchbase-cli rebalance -c node", "rebalance"),
            ("couchbase-cli bucket-create --bucket b --conflict-resolution x", "timestamp"),
            ("couchbase-cli user-manage --set --roles admin", "--rbac-username"),
            ("couchbase-cli user-manage --rbac-username bob", "--list"),
            ("couchbase-cli user-manage --set-group --roles admin", "--group-name"),
            ("cbbackupmgr backup -a /b -r d -c node", "--include-data"),
            ("cbbackupmgr restore -a /b -r d", "settee restore --target /b/d"),
            (
                "cbbackupmgr restore -a /b -r d -c node -u a -p b -t 4 --include-data travel",
                "settee restore --target /b/d",
            ),
        ] {
            let refused = meant_by(typed).unwrap_err();
            assert!(refused.contains(says), "{typed}: {refused}");
        }
    }
}
