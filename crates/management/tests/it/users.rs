//! Users, groups and what they may do, over REST.

use std::time::Duration;

use auth::{Editor, Privilege, PrivilegeSet, Role, UsersEdit, all_roles};
use management::{Limits, NeededAt, REST_ROUTES, RestRoute};
use serde_json::{Value, json};

use crate::http_client::{Answer, basic};
use crate::rest_port::{PASSWORD, RestPort, USER};

const USERS: &str = "/settings/rbac/users/local";
const GROUPS: &str = "/settings/rbac/groups";

/// One request of this user, whose password is `password`.
fn ask_as(port: &RestPort, user: &str, method: &str, target: &str, form: &str) -> Answer {
    ask_with(port, &basic(user, "password"), method, target, form)
}

fn ask_with(port: &RestPort, login: &str, method: &str, target: &str, form: &str) -> Answer {
    let mut client = port.connect();
    let size = form.len();
    client.send(&format!(
        "{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{login}\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {size}\r\n\r\n{form}"
    ));
    client.read_answer().unwrap()
}

/// A user with these roles, whose password is `password`.
fn put(port: &RestPort, user: &str, roles: &str) {
    let edit = UsersEdit::PutUser {
        user: user.to_owned(),
        password: Some(port.node.users.hash(b"password", 0)),
        full_name: String::new(),
        roles: Role::parse_all(roles).unwrap(),
        groups: Vec::new(),
        limits: auth::UserLimits::default(),
    };
    port.node.users.edit(&edit, Editor::Admin).unwrap();
}

/// The path with the names that there are in the place of those in braces.
fn filled_in(path: &str) -> String {
    let names = [("{bucket}", "default"), ("{scope}", "s"), ("{collection}", "c"), ("{vbid}", "3")];
    let path = names.iter().fold(path.to_owned(), |path, (name, value)| path.replace(name, value));
    let path = path.replace("{user}", "u").replace("{group}", "g").replace("{backup}", "1");
    let path = path.replace("{metric}", "kv_curr_items").replace("{function}", "max_over_time");
    path.replace("{node}", "127.0.0.1:12001").replace("{document}", "d")
}

#[test]
fn who_asks_hears_whether_it_is_an_administrator() {
    let port = RestPort::start();
    for (user, roles, expected) in [
        ("full", "admin", (true, false)),
        ("reading", "ro_admin", (false, true)),
        ("managing", "cluster_admin", (false, false)),
        ("replicating", "replication_admin", (false, false)),
        ("of_bucket", "bucket_admin[*],data_reader[*]", (false, false)),
        ("nobody", "", (false, false)),
    ] {
        put(&port, user, roles);
        let told = ask_as(&port, user, "GET", "/pools", "").json();
        let told = (told["isAdminCreds"].as_bool(), told["isROAdminCreds"].as_bool());
        assert_eq!(told, (Some(expected.0), Some(expected.1)), "{user}");
    }
}

#[test]
fn every_request_needs_its_privilege_and_no_role_without_it_is_let_through() {
    let port = RestPort::start();
    for kind in all_roles() {
        put(&port, kind.name, &role_everywhere(kind.name));
    }
    put(&port, "nobody", "");
    for user in all_roles().map(|kind| kind.name).chain(["nobody"]) {
        for RestRoute { method, path, need, .. } in REST_ROUTES {
            let target = filled_in(path);
            let access = port.node.users.access(user).unwrap();
            let is_allowed = need.is_none_or(|(place, privilege)| {
                let privileges = match place {
                    NeededAt::Node => access.on_node(),
                    _ => access.in_bucket("default").everywhere,
                };
                privileges.contains_all(PrivilegeSet::of(&[privilege]))
            });
            // These answers do not end by themselves.
            let is_endless = ["treaming", "/bs/", "/backup"].iter().any(|it| path.contains(it));
            if is_allowed && is_endless {
                continue;
            }
            let answer = ask_as(&port, user, method, &target, "");
            let is_forbidden = answer.status == 403;
            assert_eq!(is_forbidden, !is_allowed, "{user} {method} {target}: {answer:?}");
            if is_forbidden {
                let json = answer.json();
                let message = "Forbidden. User needs the following permissions";
                assert_eq!(json["message"], message, "{json}");
                let (_, privilege) = need.unwrap_or((NeededAt::Node, Privilege::NodesWrite));
                let permission = privilege.permission().split('[').next().unwrap_or_default();
                let named = json["permissions"][0].as_str().unwrap();
                assert!(named.starts_with(permission), "{named}");
            }
        }
    }
}

#[test]
fn nothing_is_taken_in_of_a_request_that_may_not_be_made() {
    // Whoever waits for these bodies waits for good.
    let limits = Limits { body_time_max: Duration::from_secs(10_000), ..Limits::default() };
    let port = RestPort::start_with(limits);
    put(&port, "nobody", "");
    let login = basic("nobody", "password");
    for (request, login, status) in [
        ("POST /settee/users", login.as_str(), 403),
        ("PUT /settee/clusterMap", &login, 403),
        ("POST /pools/default/buckets", &login, 403),
        // A login is small.
        ("POST /uilogin", "", 413),
    ] {
        let mut client = port.connect();
        client.send(&format!(
            "{request} HTTP/1.1\r\nHost: x\r\n{login}Content-Length: 100000\r\n\r\n"
        ));
        assert_eq!(client.read_answer().unwrap().status, status, "{request}");
    }
}

/// The role, everywhere where it can be.
fn role_everywhere(name: &str) -> String {
    let alone = Role::parse(name).is_some();
    if alone { name.to_owned() } else { format!("{name}[*]") }
}

#[test]
fn users_come_change_and_go_in_the_words_that_clients_look_for() {
    let port = RestPort::start();
    make_collection(&port);
    let mut client = port.connect();
    let too_long = format!("name={}&password=password", "n".repeat(1_025));
    for (method, target, form, status, words) in [
        ("GET", "/settings/rbac/users/local/u", "", 404, "\"Unknown user.\""),
        ("DELETE", "/settings/rbac/users/local/u", "", 404, "\"User was not found.\""),
        ("PUT", "/settings/rbac/users/local/u", "roles=admin", 400, "Password is required"),
        ("PUT", "/settings/rbac/users/local/u", "password=short", 400, "at least 6"),
        ("PUT", "/settings/rbac/users/local/u", "password=password&roles=root", 400, "[root]"),
        ("PUT", "/settings/rbac/users/local/u", "password=password&groups=g", 400, "Groups do"),
        ("PUT", "/settings/rbac/users/local/u", "password=password&x=y", 400, "Unsupported"),
        ("PUT", "/settings/rbac/users/local/u", &too_long, 400, "1024 bytes"),
        ("PUT", "/settings/rbac/users/local/u", "password=password&limits=5", 400, "num_ops"),
        ("PUT", "/settings/rbac/users/local/a%2Fb", "password=password", 400, "/errors/username"),
        (
            "PUT",
            "/settings/rbac/users/local/u",
            "password=password&roles=data_reader[none]",
            400,
            "data_reader[none]",
        ),
        (
            "PUT",
            "/settings/rbac/users/local/u",
            "password=password&roles=data_reader[default:s:d],data_reader[default:s]",
            400,
            "undefined: [data_reader[default:s:d]]",
        ),
        (
            "PUT",
            "/settings/rbac/groups/g",
            "roles=data_reader[default:nope]",
            400,
            "undefined: [data_reader[default:nope]]",
        ),
        (
            "PUT",
            "/settings/rbac/users/local/u",
            "name=U&password=password&roles=data_reader%5B*%5D,data_writer[default:s:c]&groups=",
            200,
            "",
        ),
        ("GET", "/settings/rbac/users/local/u", "", 200, "\"collection_name\":\"c\""),
        ("GET", "/settings/rbac/users", "", 200, "\"id\":\"u\""),
        ("PUT", "/settings/rbac/users/local/u", "name=V", 200, ""),
        ("GET", "/settings/rbac/users/local/u", "", 200, "\"name\":\"V\",\"password_change"),
        ("DELETE", "/settings/rbac/users/local/u", "", 200, ""),
        ("DELETE", "/settings/rbac/users/local/Administrator", "", 400, "role admin"),
    ] {
        let answer = client.ask(method, target, form);
        assert_eq!(answer.status, status, "{method} {target} {form}: {}", answer.body);
        if let Some(pointer) = words.strip_prefix("/") {
            let json = answer.json();
            assert!(json.pointer(&format!("/{pointer}")).is_some(), "{json}");
        } else {
            assert!(answer.body.contains(words), "{method} {target} {form}: {}", answer.body);
        }
        assert!(!answer.body.contains("sha512"), "nothing of a password is told");
    }
}

/// The scope `s` with the collection `c` in the default bucket.
fn make_collection(port: &RestPort) {
    let scopes = "/pools/default/buckets/default/scopes";
    let mut client = port.connect();
    assert_eq!(client.ask("POST", scopes, "name=s").status, 200);
    assert_eq!(client.ask("POST", &format!("{scopes}/s/collections"), "name=c").status, 200);
}

#[test]
fn what_a_user_or_a_group_has_already_may_be_said_again() {
    let port = RestPort::start();
    make_collection(&port);
    let mut client = port.connect();
    let (user, group) = ("/settings/rbac/users/local/u", "/settings/rbac/groups/g");
    let roles = "roles=data_reader[default:s],data_writer[default:s:c]";
    for dropped in [false, true] {
        for target in [user, group] {
            let form =
                if target == user { format!("{roles}&password=password") } else { roles.into() };
            let answer = client.ask("PUT", target, &form);
            assert_eq!(answer.status, 200, "{target}, dropped: {dropped}: {}", answer.body);
        }
        if !dropped {
            let scope = "/pools/default/buckets/default/scopes/s";
            assert_eq!(client.ask("DELETE", scope, "").status, 200);
        }
    }
    let answer =
        client.ask("PUT", "/settings/rbac/users/local/v", &format!("{roles}&password=pass12"));
    assert_eq!(answer.status, 400, "{}", answer.body);
}

#[test]
fn a_user_has_the_roles_of_its_groups_and_is_told_where_they_come_from() {
    let port = RestPort::start();
    let mut client = port.connect();
    for (method, target, form, status, words) in [
        ("GET", GROUPS, "", 200, "[]"),
        ("GET", "/settings/rbac/groups/g", "", 404, "\"Unknown group.\""),
        ("DELETE", "/settings/rbac/groups/g", "", 404, "\"Group was not found.\""),
        ("PUT", "/settings/rbac/groups/g", "roles=root", 400, "[root]"),
        ("PUT", "/settings/rbac/groups/g", "ldap_group_ref=a%0Ab", 400, "\"ldap_group_ref\""),
        ("PUT", "/settings/rbac/groups/g", "ldap_group_ref=cn%3Dg", 200, ""),
        ("GET", "/settings/rbac/groups/g", "", 200, "\"ldap_group_ref\":\"cn=g\""),
        ("PUT", "/settings/rbac/groups/g", "description=d&roles=data_reader[*]", 200, ""),
        ("GET", "/settings/rbac/groups/g", "", 200, "\"id\":\"g\",\"roles\""),
        ("GET", "/settings/rbac/groups/g", "", 200, "\"description\":\"d\",\"id\":\"g\""),
        (
            "PUT",
            "/settings/rbac/users/local/u",
            "password=password&roles=data_reader[*]&groups=g,g",
            200,
            "",
        ),
    ] {
        let answer = client.ask(method, target, form);
        assert_eq!(answer.status, status, "{method} {target} {form}: {}", answer.body);
        assert!(answer.body.contains(words), "{method} {target} {form}: {}", answer.body);
    }
    let user = client.ask("GET", &format!("{USERS}/u"), "").json();
    let origins = json!([{"type": "user"}, {"type": "group", "name": "g"}]);
    assert_eq!(user["roles"][0]["origins"], origins, "{user}");
    assert_eq!(user["roles"].as_array().unwrap().len(), 1);
    assert_eq!(client.ask("DELETE", &format!("{GROUPS}/g"), "").status, 200);
    let user = client.ask("GET", &format!("{USERS}/u"), "").json();
    assert_eq!(user["groups"], json!([]));
}

#[test]
fn users_change_their_own_password_and_the_old_one_stops_working() {
    let port = RestPort::start();
    put(&port, "bob", "data_reader[*]");
    let change = "/controller/changePassword";
    assert_eq!(ask_as(&port, "bob", "POST", change, "password=short").status, 400);
    assert_eq!(ask_as(&port, "bob", "POST", change, "password=another").status, 200);
    assert_eq!(ask_as(&port, "bob", "GET", "/whoami", "").status, 401);
    let whoami = ask_with(&port, &basic("bob", "another"), "GET", "/whoami", "").json();
    assert_eq!((&whoami["domain"], &whoami["id"]), (&json!("local"), &json!("bob")));
    assert_eq!(whoami["roles"][0]["bucket_name"], "*");
}

#[test]
fn a_security_admin_manages_users_and_neither_is_nor_makes_nor_changes_a_full_one() {
    let port = RestPort::start();
    put(&port, "eve", "security_admin");
    for (method, target, form, status) in [
        ("PUT", "/settings/rbac/users/local/u", "password=password&roles=data_reader[*]", 200),
        ("PUT", "/settings/rbac/users/local/u", "roles=admin", 403),
        ("PUT", "/settings/rbac/users/local/eve", "roles=admin", 403),
        ("PUT", "/settings/rbac/users/local/Administrator", "password=mine-now&roles=admin", 403),
        ("DELETE", "/settings/rbac/users/local/Administrator", "", 403),
        ("PUT", "/settings/rbac/groups/g", "roles=admin", 403),
        ("PUT", "/settee/clusterMap", "{}", 403),
        ("POST", "/settee/users", "{}", 403),
        ("DELETE", "/settings/rbac/users/local/u", "", 200),
    ] {
        let answer = ask_as(&port, "eve", method, target, form);
        assert_eq!(answer.status, status, "{method} {target} {form}: {}", answer.body);
    }
    assert_eq!(port.ask("GET", "/whoami").status, 200);
}

#[test]
fn passwords_are_as_the_policy_wants_them() {
    let port = RestPort::start();
    let policy = "/settings/passwordPolicy";
    let strict = "minLength=8&enforceDigits=true&enforceUppercase=true";
    assert_eq!(port.ask_with("POST", policy, strict).status, 200);
    let shown = port.ask("GET", policy).json();
    let expected = json!({
        "minLength": 8, "enforceDigits": true, "enforceUppercase": true,
        "enforceLowercase": false, "enforceSpecialChars": false,
    });
    assert_eq!(shown, expected);
    for (password, status) in [("Passw0rd", 200), ("passw0rd", 400), ("Password", 400)] {
        let form = format!("password={password}&roles=");
        assert_eq!(port.ask_with("PUT", &format!("{USERS}/u"), &form).status, status, "{password}");
    }
    for wrong in ["minLength=101", "minLength=x", "enforceDigits=yes", "what=5"] {
        assert_eq!(port.ask_with("POST", policy, wrong).status, 400, "{wrong}");
    }
}

#[test]
fn permissions_are_told_one_by_one() {
    let port = RestPort::start();
    put(&port, "bob", "data_reader[default]");
    let asked = "cluster.pools!read,cluster.bucket[default].data.docs!upsert";
    let answer = ask_as(&port, "bob", "POST", "/pools/default/checkPermissions", asked).json();
    let expected = json!({
        "cluster.pools!read": true, "cluster.bucket[default].data.docs!upsert": false,
    });
    assert_eq!(answer, expected);
}

#[test]
fn only_what_one_may_see_is_listed() {
    let port = RestPort::start();
    for (roles, buckets, scopes) in
        [("data_reader[default:s]", 1, 403), ("security_admin", 0, 403), ("ro_admin", 1, 200)]
    {
        put(&port, "bob", roles);
        let listed = ask_as(&port, "bob", "GET", "/pools/default/buckets", "").json();
        assert_eq!(listed.as_array().unwrap().len(), buckets, "{roles}");
        let target = "/pools/default/buckets/default/scopes";
        let answer = ask_as(&port, "bob", "GET", target, "");
        if roles.starts_with("data_reader") {
            assert_eq!(answer.json()["scopes"], json!([]), "it sees none of those that there are");
        } else {
            assert_eq!(answer.status, scopes, "{roles}");
        }
    }
}

#[test]
fn a_node_that_does_not_know_yet_is_named() {
    let port = RestPort::start();
    *port.node.silent_nodes.lock().unwrap() = vec!["n_1".to_owned(), "n_2".to_owned()];
    let form = "password=password&roles=data_reader[*]";
    let answer = port.ask_with("PUT", &format!("{USERS}/u"), form);
    assert_eq!((answer.status, answer.header("settee-pending-nodes")), (200, Some("n_1,n_2")));
    let bucket = "/pools/default/buckets/default";
    for (query, expected) in [("", Some("n_1,n_2")), ("?just_validate=1", None)] {
        let answer = port.ask_with("POST", &format!("{bucket}{query}"), "flushEnabled=1");
        assert_eq!((answer.status, answer.header("settee-pending-nodes")), (200, expected));
    }
    let answer = port.ask_with("DELETE", bucket, "");
    assert_eq!((answer.status, answer.header("settee-pending-nodes")), (200, Some("n_1,n_2")));
}

#[test]
fn nodes_take_users_of_each_other_and_never_two_that_follow_the_same() {
    let port = RestPort::start();
    put(&port, "bob", "data_reader[*]");
    let mut client = port.connect();
    let mut registry: Value = serde_json::from_str(&port.node.users.to_json()).unwrap();
    let revision = registry["revision"].as_u64().unwrap();
    registry["revision"] = (revision + 1).into();
    registry["users"]["bob"]["full_name"] = "first".into();
    let first = registry.to_string();
    registry["users"]["bob"]["full_name"] = "second".into();
    let second = registry.to_string();
    let follows = format!("/settee/users?follows={revision}");
    for offer in [&first, &second] {
        let taken = client.ask("POST", &follows, offer).json();
        assert_eq!(taken["users"]["bob"]["full_name"], "first");
    }
    registry["revision"] = (revision + 9).into();
    let taken = client.ask("POST", "/settee/users", &registry.to_string()).json();
    assert_eq!(taken["users"]["bob"]["full_name"], "second");
    assert_eq!(client.ask("POST", "/settee/users", "{}").status, 400);
    let login = basic(USER, PASSWORD);
    assert_eq!(ask_with(&port, &login, "GET", "/whoami", "").status, 200);
}

#[test]
fn nodes_are_answered_while_changes_wait_for_other_nodes() {
    let port = RestPort::start();
    let mut changing: Vec<_> = (0..4).map(|_| port.connect()).collect();
    // What it waits for: as long as this is held, other nodes do not answer.
    let silent_nodes = port.node.silent_nodes.lock().unwrap();
    for (number, client) in changing.iter_mut().enumerate() {
        let target = format!("{GROUPS}/g{number}");
        client.send_form("PUT", &target, "roles=ro_admin");
    }
    let clock = platform::Clock::real();
    let deadline = clock.now().after(Duration::from_secs(10));
    while port.node.users.registry().groups.len() < 2 {
        assert!(clock.now() < deadline, "two changes are under way");
        platform::threads::pause(Duration::from_millis(1));
    }
    let users = port.node.users.to_json();
    for (method, target, body) in
        [("POST", "/settee/users", users.as_str()), ("PUT", "/settee/clusterMap", "{}")]
    {
        let mut node = port.connect();
        node.set_patience(Duration::from_secs(10));
        assert_eq!(node.ask(method, target, body).status, 200, "{method} {target}");
    }
    drop(silent_nodes);
    for client in &mut changing {
        assert_eq!(client.read_answer().unwrap().status, 200);
    }
}
