//! Bodies of REST requests, given to a port whose node is the one of the tests of `management`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use auth::{Users, UsersConfig};
use management::{Handle, Limits, ManagementServer, Ports, REST_ROUTES, RestRoute};

use crate::fake_node::FakeNode;

const USER: &str = "Administrator";
const PASSWORD: &str = "password";
/// The same, as a header has it.
const LOGIN: &str = "Basic QWRtaW5pc3RyYXRvcjpwYXNzd29yZA==";
/// Requests to one port: its node keeps what it is told.
const REQUESTS_MAX: usize = 2_000;
/// Bytes of an answer that are looked at.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const CONTENT_TYPES: [&str; 3] =
    ["application/x-www-form-urlencoded", "application/json", "text/plain"];

/// A port, and how many requests it may still get.
struct Port {
    handle: Handle,
    requests_left: usize,
}

static PORT: Mutex<Option<Port>> = Mutex::new(None);

/// Sends `bytes`: which route, which kind of body, and the body. Every request is answered, and not
/// by saying that the server is broken.
pub(crate) fn request(bytes: &[u8]) {
    let ([route, kind], body) = match bytes {
        [route, kind, body @ ..] => ([usize::from(*route), usize::from(*kind)], body),
        _ => return,
    };
    let routes: Vec<&RestRoute> = changing_routes().collect();
    let route = routes[route % routes.len()];
    let mut port = PORT.lock().unwrap_or_else(PoisonError::into_inner);
    if port.as_ref().is_none_or(|port| port.requests_left == 0) {
        *port = Some(open());
    }
    let port = port.as_mut().expect("it was just opened");
    port.requests_left -= 1;
    let answer = ask(port.handle.address(), route, CONTENT_TYPES[kind % 3], body);
    let status = answer.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3));
    let is_well = status.is_some_and(|status| status != b"500");
    assert!(is_well, "{} {}: {}", route.method, route.path, String::from_utf8_lossy(&answer));
}

/// The routes that take a body, but for those that wait for something.
pub(crate) fn changing_routes() -> impl Iterator<Item = &'static RestRoute> {
    let takes_body = |route: &&RestRoute| ["POST", "PUT", "PATCH"].contains(&route.method);
    REST_ROUTES.iter().filter(takes_body).filter(|route| !route.path.contains("@ensureManifest"))
}

fn open() -> Port {
    // A password that is set is hashed, which is no part of this.
    let users =
        Users::new(UsersConfig { iterations: 4096, verified_max: 16, ..Default::default() });
    users.set_password(USER, PASSWORD.as_bytes());
    let users = Arc::new(users);
    let node = Arc::new(FakeNode::new(Arc::clone(&users)));
    let plain = platform::network::listen_standard(([127, 0, 0, 1], 0).into());
    let ports = Ports { plain: plain.expect("a port is free"), tls: None, query_stub: None };
    let handle = ManagementServer::start_with(ports, node, users, Limits::default());
    Port { handle: handle.expect("the port opens"), requests_left: REQUESTS_MAX }
}

/// One request on a connection of its own, with what is in braces in the path filled in.
fn ask(address: SocketAddr, route: &RestRoute, kind: &str, body: &[u8]) -> Vec<u8> {
    let path = route.path.replace("{bucket}", "default").replace("{vbid}", "3");
    let path = path.replace(['{', '}'], "");
    let head = format!(
        "{} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: {LOGIN}\r\n\
         Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        route.method,
        body.len()
    );
    let mut stream = TcpStream::connect(address).expect("the port is open");
    let sent = stream.write_all(&[head.as_bytes(), body].concat());
    sent.expect("a request fits into what the system takes");
    let mut answer = Vec::new();
    // What was read before an error is judged.
    stream.take(ANSWER_BYTES_MAX as u64).read_to_end(&mut answer).unwrap_or_default();
    answer
}

/// Bodies that say something, to every route that takes one.
pub(crate) fn corpus() -> Vec<Vec<u8>> {
    const FORMS: &[&str] = &[
        "name=b&ramQuotaMB=100&bucketType=couchbase&evictionPolicy=fullEviction&replicaNumber=1",
        "flushEnabled=1&maxTTL=5&compressionMode=active&durabilityMinLevel=majority&noRestart=true",
        "name=c&maxTTL=5&history=true",
        "password=secret12&name=Bob&roles=bucket_admin[*],data_reader[default:_default:c]&groups=g",
        "roles=admin,ro_admin&description=text",
        "minLength=8&enforceUppercase=true&enforceDigits=false",
        "hostname=h&username=Administrator&password=password&port=SAME&services=kv&memoryQuota=256",
        "hostname=outside&kv=31210&mgmt=30091&kvSSL=5",
        "auditdEnabled=true&disabled=&rotateSize=20971520",
        "enabled=false&recipients=a%40b&tlsMinVersion=tlsv1.2&filter=bucket%3Ddebug",
        "cluster.bucket[default].data!read,cluster.admin!read",
        "confirm=lose&sendStats=false&timeout=120",
    ];
    const DOCUMENTS: &[&str] = &[
        r#"{"scopes":[{"name":"_default","collections":[{"name":"_default","maxTTL":0}]},
            {"name":"s","collections":[{"name":"c","maxTTL":-1,"history":false}]}]}"#,
        r#"[{"metric":[{"label":"name","value":"kv_ops","operator":"="}],"step":1,"start":-60,
            "applyFunctions":["rate"],"nodesAggregation":"sum"}]"#,
        r#"{"state":"enable","prefixes":[{"path":"subject.cn","prefix":"a","delimiter":"."}]}"#,
        r#"{"rev":[1,7],"nodes":[],"buckets":{}}"#,
        r#"{"version":2,"revision":7,"users":{},"groups":{"g":{"description":"d","roles":[]}}}"#,
    ];
    let mut inputs = Vec::new();
    for route in 0..changing_routes().count() {
        let route = u8::try_from(route).expect("a byte says which route");
        let bodies = FORMS.iter().map(|form| (0, form)).chain(DOCUMENTS.iter().map(|it| (1, it)));
        inputs.extend(bodies.map(|(kind, body)| [&[route, kind], body.as_bytes()].concat()));
    }
    inputs
}
