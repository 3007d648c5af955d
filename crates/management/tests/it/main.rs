//! A real server on a loopback port, a made-up node behind it, and a plain client in front.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod fake_node;
mod http_client;
mod rest_port;

mod authentication;
mod backup;
mod bucket_changes;
mod cluster_plan;
mod console;
mod damage;
mod first_start;
mod openapi;
mod robustness;
mod routes;
mod several_buckets;
mod shutdown;
mod statistics;
mod streaming;
mod users;
