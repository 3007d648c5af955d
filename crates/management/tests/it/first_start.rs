//! What initialises a server: programs that set the original's up do the same here.

use auth::{Editor, Role, UserLimits, UsersEdit};
use cluster::{ExternalAddress, TlsPorts};
use management::{SetUp, SetupChange, SetupError};
use serde_json::json;

use crate::fake_node::address;
use crate::http_client::{Answer, basic};
use crate::rest_port::{PASSWORD, RestPort, USER};

const EXTERNAL: &str = "/node/controller/setupAlternateAddresses/external";

/// One request with these header lines, on a connection of its own.
fn ask_as(port: &RestPort, login: &str, method: &str, target: &str, form: &str) -> Answer {
    let mut client = port.connect();
    let size = form.len();
    client.send(&format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{login}\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {size}\r\n\r\n{form}"
    ));
    client.read_answer().unwrap()
}

/// A node that programs on its machine may set up.
fn port_to_be_set_up() -> RestPort {
    let port = RestPort::start();
    let set_up = SetUp { administrator: USER.to_owned(), from_anywhere: false };
    *port.node.set_up.lock().unwrap() = Some(set_up);
    port
}

fn changes(port: &RestPort) -> Vec<SetupChange> {
    std::mem::take(&mut *port.node.setup_changes.lock().unwrap())
}

fn host(name: &str) -> SetupChange {
    SetupChange::Host(name.to_owned())
}

fn cluster_name(name: &str) -> SetupChange {
    SetupChange::ClusterName(name.to_owned())
}

/// What is said without a login before the administrator has a password, as modules for containers
/// say it; the last request gives the password.
const STEPS: &[(&str, &str, &str)] = &[
    ("GET", "/pools", ""),
    ("GET", "/pools/default/nodeServices", ""),
    ("POST", "/node/controller/rename", "hostname=172.17.0.2"),
    ("POST", "/node/controller/setupServices", "services=kv"),
    ("POST", "/pools/default", "memoryQuota=256&indexMemoryQuota=256"),
    ("PUT", EXTERNAL, "hostname=localhost&mgmt=31091&kv=31210&capi=31092"),
    ("POST", "/pools/default/buckets", "name=mine&ramQuotaMB=100&flushEnabled=1&replicaNumber=0"),
    ("POST", "/settings/web", "username=Administrator&password=secret&port=SAME"),
];

#[test]
fn who_sets_a_node_up_needs_no_login_until_the_administrator_has_a_password() {
    // Some say a login from the beginning, which nobody can know.
    for login in ["", &basic(USER, "secret")] {
        let port = port_to_be_set_up();
        let pools = ask_as(&port, login, "GET", "/pools", "").json();
        assert_eq!((&pools["pools"], &pools["uuid"]), (&json!([]), &json!([])));
        let unknown = ask_as(&port, login, "GET", "/pools/default", "");
        assert_eq!((unknown.status, unknown.json()), (404, json!("unknown pool")));
        for (method, target, form) in STEPS {
            let answer = ask_as(&port, login, method, target, form);
            assert!([200, 202].contains(&answer.status), "{method} {target}: {answer:?}");
        }
        let ports = [("kv".to_owned(), 31210), ("mgmt".to_owned(), 31091)].into();
        let external = ExternalAddress { hostname: "localhost".to_owned(), ports };
        let expected = [host("172.17.0.2"), SetupChange::External(Some(external))];
        assert_eq!(changes(&port), expected, "the rest is as it was said");
        for wrong in ["", &basic(USER, PASSWORD)] {
            assert_eq!(ask_as(&port, wrong, "GET", "/pools", "").status, 401);
            assert_eq!(ask_as(&port, wrong, "POST", "/clusterInit", "").status, 401);
        }
        let pools = ask_as(&port, &basic(USER, "secret"), "GET", "/pools", "").json();
        assert_eq!(pools["pools"][0]["name"], "default");
    }
}

#[test]
fn who_sets_a_node_up_names_its_administrator() {
    let port = port_to_be_set_up();
    let form = |name: &str| format!("username={name}&password=secret&port=SAME");
    let refused = ask_as(&port, "", "POST", "/settings/web", &form("a%2Fb"));
    assert_eq!(refused.status, 400);
    assert!(refused.json()["errors"]["username"].is_string(), "{}", refused.body);
    assert_eq!(ask_as(&port, "", "POST", "/settings/web", &form("admin")).status, 200);
    let whoami = ask_as(&port, &basic("admin", "secret"), "GET", "/whoami", "").json();
    assert_eq!((&whoami["id"], &whoami["roles"][0]["role"]), (&json!("admin"), &json!("admin")));
    assert_eq!(ask_as(&port, "", "POST", "/settings/web", &form("eve")).status, 401);
}

#[test]
fn a_user_with_a_password_does_not_set_a_node_up_by_changing_it() {
    let port = port_to_be_set_up();
    let bob = UsersEdit::PutUser {
        user: "bob".to_owned(),
        password: Some(port.node.users.hash(b"hunter22", 0)),
        full_name: String::new(),
        roles: Role::parse_all("cluster_admin").unwrap(),
        groups: Vec::new(),
        limits: UserLimits::default(),
    };
    port.node.users.edit(&bob, Editor::Admin).unwrap();
    let mut client = port.connect();
    let (form, login) = ("username=bob&password=hunter33&port=SAME", basic("bob", "hunter22"));
    client.send(&format!(
        "POST /settings/web HTTP/1.1\r\nHost: node.example\r\n{login}Content-Type: \
         application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    ));
    assert_eq!(client.read_answer().unwrap().status, 200);
    assert!(port.node.set_up.lock().unwrap().is_some(), "the administrator has none yet");
    let taken =
        ask_as(&port, "", "POST", "/settings/web", "username=bob&password=hunter33&port=SAME");
    assert_eq!(taken.status, 200, "{}", taken.body);
    let whoami = ask_as(&port, &basic("bob", "hunter33"), "GET", "/whoami", "").json();
    assert_eq!(whoami["roles"][0]["role"], "admin", "who sets a node up is its administrator");
}

#[test]
fn who_comes_through_a_proxy_or_by_another_name_does_not_set_a_node_up() {
    let port = port_to_be_set_up();
    for (host, headers, status) in [
        ("localhost", "", 200),
        ("localhost", "X-Forwarded-For: 10.0.0.1\r\n", 401),
        ("rebound.example", "", 401),
    ] {
        let mut client = port.connect();
        client.send(&format!("GET /whoami HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n"));
        let answer = client.read_answer().unwrap();
        assert_eq!(answer.status, status, "{host} {headers}");
    }
    let mut client = port.connect();
    let login = basic(USER, PASSWORD);
    client.send(&format!("GET /whoami HTTP/1.1\r\nHost: rebound.example\r\n{login}\r\n"));
    assert_eq!(client.read_answer().unwrap().status, 200, "with a login that is one");
}

#[test]
fn of_many_that_set_a_node_up_at_once_one_does() {
    let port = port_to_be_set_up();
    let statuses = std::thread::scope(|threads| {
        let ask = |index: u16| {
            let form = format!("username=u{index}&password=secret&port=SAME");
            ask_as(&port, "", "POST", "/settings/web", &form).status
        };
        let asked = [0, 1, 2, 3, 4, 5, 6, 7].map(|index| threads.spawn(move || ask(index)));
        asked.map(|it| it.join().unwrap())
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 401].contains(status)), "{statuses:?}");
}

#[test]
fn a_node_that_is_set_up_takes_nothing_from_strangers() {
    let port = RestPort::start();
    for (method, target, form) in STEPS {
        assert_eq!(ask_as(&port, "", method, target, form).status, 401, "{target}");
    }
    assert!(changes(&port).is_empty());
}

#[test]
fn a_form_says_what_is_so_already_or_changes_it_or_is_refused_by_its_field() {
    let port = RestPort::start();
    for (target, form, field) in [
        ("/pools/default", "memoryQuota=1024", ""),
        ("/pools/default", "memoryQuota=1025", "memoryQuota"),
        ("/pools/default", "memoryQuota=0", "memoryQuota"),
        ("/pools/default", "memoryQuota=much", "memoryQuota"),
        ("/pools/default", "indexMemoryQuota=much", "indexMemoryQuota"),
        ("/pools/default", "clusterName=test", ""),
        ("/pools/default", "what=x", "what"),
        ("/node/controller/rename", "hostname=127.0.0.1", ""),
        ("/node/controller/rename", "hostname=h%3A8091", "hostname"),
        ("/clusterInit", "hostname=http%3A%2F%2Fh&username=Administrator&password=p", "hostname"),
        ("/node/controller/setupServices", "services=kv%2Cn1ql", "services"),
        ("/node/controller/setupServices", "services=data", ""),
        ("/nodes/self/controller/settings", "path=%2Fsrv%2Fsettee%2F", ""),
        ("/nodes/self/controller/settings", "path=%2Fother", "path"),
        ("/nodes/self/controller/settings", "index_path=%2Fother", "index_path"),
        ("/nodeInit", "hostname=127.0.0.1&dataPath=%2Fsrv%2Fsettee&afamily=ipv4", ""),
        ("/nodeInit", "nodeEncryption=on", "nodeEncryption"),
        ("/settings/stats", "sendStats=true", ""),
        ("/settings/autoFailover", "enabled=false&timeout=120", ""),
        ("/settings/autoFailover", "enabled=true&timeout=120", "enabled"),
        ("/settings/indexes", "storageMode=plasma", "_"),
        ("/settings/web", "username=bob&password=another&port=SAME", "username"),
        ("/settings/web", "username=Administrator&port=SAME", "password"),
        ("/settings/web", "username=Administrator&password=another&port=1", "port"),
        ("/settings/web", "username=Administrator&password=short&port=SAME", "password"),
    ] {
        let answer = port.ask_with("POST", target, form);
        let expected = if field.is_empty() { 200 } else { 400 };
        assert_eq!(answer.status, expected, "{target} {form}: {}", answer.body);
        if !field.is_empty() {
            assert!(answer.json()["errors"][field].is_string(), "{target} {form}: {}", answer.body);
        }
        assert!(changes(&port).is_empty(), "{target} {form}");
    }
    for (target, form, expected) in [
        ("/pools/default", "clusterName=other", cluster_name("other")),
        ("/node/controller/rename", "hostname=h", host("h")),
        ("/nodeInit", "hostname=h", host("h")),
    ] {
        assert_eq!(port.ask_with("POST", target, form).status, 200, "{target}");
        assert_eq!(changes(&port), [expected], "{target}");
    }
    assert_eq!(port.ask("GET", "/whoami").status, 200, "the password is as it was");
}

#[test]
fn what_is_no_form_is_not_taken_for_one_that_says_nothing() {
    let port = RestPort::start();
    let login = basic(USER, PASSWORD);
    for (method, target) in [
        ("POST", "/pools/default"),
        ("POST", "/node/controller/rename"),
        ("PUT", EXTERNAL),
        ("POST", "/clusterInit"),
    ] {
        let mut client = port.connect();
        client.send(&format!(
            "{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{login}\
             Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
        ));
        let refused = client.read_answer().unwrap();
        assert_eq!(refused.status, 400, "{target}");
        assert_eq!(refused.json()["errors"]["_"], "The body is a form", "{target}");
    }
}

#[test]
fn the_administrator_who_asks_is_given_another_password() {
    let port = RestPort::start();
    let same = "username=Administrator&password=pass:word&port=12001";
    let answer = port.ask_with("POST", "/settings/web", same);
    assert_eq!(answer.json(), json!({"newBaseUri": "http://127.0.0.1:12001/"}));
    let users = port.node.users.version();
    assert_eq!(port.ask_with("POST", "/settings/web", same).status, 200);
    assert_eq!(port.node.users.version(), users, "it has that password");
    let another = "username=Administrator&password=another&port=SAME";
    assert_eq!(port.ask_with("POST", "/settings/web", another).status, 200);
    assert_eq!(port.ask("GET", "/whoami").status, 401);
    assert_eq!(ask_as(&port, &basic(USER, "another"), "GET", "/whoami", "").status, 200);
}

#[test]
fn everything_is_set_up_at_once_or_nothing_is() {
    let port = RestPort::start();
    let init = |rest: &str| {
        let form = format!(
            "hostname=h&services=kv&clusterName=mine&memoryQuota=512&port=SAME&sendStats=false\
             &indexerStorageMode=plasma&username=Administrator&password=another{rest}"
        );
        port.ask_with("POST", "/clusterInit", &form)
    };
    let wrong = init("&dataPath=%2Fother&nodeEncryption=on");
    assert_eq!(wrong.status, 400);
    let errors = wrong.json()["errors"].as_object().unwrap().clone();
    assert_eq!(errors.keys().collect::<Vec<_>>(), ["dataPath", "nodeEncryption"]);
    assert!(changes(&port).is_empty());
    for (error, status) in
        [(SetupError::Invalid("why".to_owned()), 400), (SetupError::Failed("why".to_owned()), 503)]
    {
        *port.node.setup_error.lock().unwrap() = Some(error);
        let refused = init("");
        assert_eq!((refused.status, &refused.json()["errors"]["_"]), (status, &json!("why")));
        assert_eq!(port.ask("GET", "/whoami").status, 200, "the password is as it was");
    }
    *port.node.setup_error.lock().unwrap() = None;
    assert_eq!(init("").status, 200);
    assert_eq!(changes(&port), [cluster_name("mine"), host("h")]);
    assert_eq!(port.ask("GET", "/whoami").status, 401, "the password is another one");
}

#[test]
fn an_external_address_has_the_ports_of_services_that_there_are() {
    let port = RestPort::start();
    for (form, field) in [
        ("kv=31210", "hostname"),
        ("hostname=&kv=31210", "hostname"),
        ("hostname=h:11210", "hostname"),
        ("hostname=http://h", "hostname"),
        ("hostname=h&kv=0", "kv"),
        ("hostname=h&kv=65536", "kv"),
        ("hostname=h&what=1", "what"),
    ] {
        let refused = port.ask_with("PUT", EXTERNAL, form);
        assert_eq!(refused.status, 400, "{form}");
        assert!(refused.json()["errors"][field].is_string(), "{form}: {}", refused.body);
    }
    assert!(changes(&port).is_empty());
    let all = "hostname=h&kv=1&kvSSL=2&mgmt=3&mgmtSSL=4&n1ql=5&capiSSL=6";
    for (tls, expected) in [
        (None, vec![("kv", 1), ("mgmt", 3)]),
        (
            Some(TlsPorts { data: 11207, management: 18091 }),
            vec![("kv", 1), ("kvSSL", 2), ("mgmt", 3), ("mgmtSSL", 4)],
        ),
    ] {
        *port.node.tls.lock().unwrap() = tls;
        assert_eq!(port.ask_with("PUT", EXTERNAL, all).status, 200);
        let ports = expected.into_iter().map(|(name, port)| (name.to_owned(), port)).collect();
        let external = ExternalAddress { hostname: "h".to_owned(), ports };
        assert_eq!(changes(&port), [SetupChange::External(Some(external))]);
    }
    assert_eq!(port.ask("DELETE", EXTERNAL).status, 200);
    assert_eq!(changes(&port), [SetupChange::External(None)]);
}

#[test]
fn an_external_address_is_told_where_clients_look_for_it() {
    let port = RestPort::start();
    let ports = [("kv".to_owned(), 31210)].into();
    let external = Some(ExternalAddress { hostname: "outside".to_owned(), ports });
    *port.node.nodes.lock().unwrap() = vec![cluster::NodeAddress { external, ..address(12_000) }];
    for target in ["/pools/default/nodeServices", "/pools/default/b/default"] {
        let told = port.ask("GET", target).json()["nodesExt"][0]["alternateAddresses"].clone();
        let expected = json!({"external": {"hostname": "outside", "ports": {"kv": 31210}}});
        assert_eq!(told, expected, "{target}");
    }
}
