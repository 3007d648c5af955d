//! Which request is answered by whom.

mod audit;
mod backup;
mod bucket_changes;
mod bucket_form;
mod bucket_statistics;
mod buckets;
mod certificates;
mod cluster;
mod cluster_nodes;
mod cluster_plan;
mod collections;
mod console;
mod damage;
mod documents;
mod first_start;
mod fixed_settings;
mod form_fields;
mod groups;
mod health;
mod log_level;
mod logs;
mod named_bucket;
mod observed;
mod own_account;
mod password_policy;
mod settings;
mod setup_form;
mod shared_users;
mod statistics;
mod streaming;
mod users;
mod users_change;
mod vbuckets;
mod wanted_manifest;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::Uri;
use axum::http::uri::PathAndQuery;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{delete, get, patch, post, put};

pub use self::bucket_form::new_bucket_order;
use crate::answers;
use crate::authentication::require_user;
use crate::authorization::require_privilege;
use crate::context::Context;
use crate::cross_site::refuse_other_sites;
use crate::request_body::{PLAN_EXCHANGE, USERS_EXCHANGE, read_body, read_sign_in};

/// All requests. Only `/healthz` and the console's files are answered to everybody; what these show
/// is not.
pub(crate) fn router(context: Arc<Context>) -> Router {
    let known_users_only = Router::new()
        .merge(cluster_routes())
        .merge(bucket_routes())
        .merge(collection_routes())
        .merge(user_routes())
        .merge(certificate_routes())
        .merge(first_start_routes())
        .merge(setting_routes())
        .merge(node_routes())
        .merge(statistic_routes())
        // What is read has its limit: that of the framework, of 2 MiB, is less than a plan's.
        .layer(DefaultBodyLimit::disable())
        // The last one is asked first: nobody has a body taken in who may not ask.
        .layer(middleware::from_fn_with_state(context.clone(), read_body))
        .layer(middleware::from_fn_with_state(context.clone(), require_privilege))
        .fallback(async || answers::not_found())
        .layer(middleware::from_fn(refuse_other_sites))
        .layer(middleware::from_fn_with_state(context.clone(), require_user))
        .layer(middleware::from_fn(console::send_browsers));
    let signing_in = Router::new()
        .route("/uilogin", post(console::sign_in))
        .route("/uilogout", post(console::sign_out))
        .layer(middleware::from_fn_with_state(context.clone(), read_sign_in))
        .layer(middleware::from_fn(refuse_other_sites));
    let routes = Router::new()
        .route("/healthz", get(health::healthz))
        .route("/ui", get(console::begin))
        .route(CONSOLE, get(console::page))
        .route("/ui/{file}", get(console::file))
        .merge(signing_in)
        .merge(known_users_only)
        .with_state(context);
    // Around them, as what is around a single route comes behind its choice.
    Router::new().fallback_service(routes).layer(middleware::from_fn(drop_slash_at_end))
}

async fn drop_slash_at_end(mut request: Request, next: Next) -> Response {
    if let Some(uri) = without_slash_at_end(request.uri()) {
        *request.uri_mut() = uri;
    }
    next.run(request).await
}

/// The page whose files are beside it: it is the one path that needs the slash at its end.
const CONSOLE: &str = "/ui/";

/// A slash at the end of a path means nothing, as with the original: its clients write one behind
/// some paths, such as that of all buckets. `None` where there is none.
fn without_slash_at_end(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    let without = path.trim_end_matches('/');
    if without.len() == path.len() || without.is_empty() || path == CONSOLE {
        return None;
    }
    let target = match uri.query() {
        Some(query) => format!("{without}?{query}"),
        None => without.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(target).ok()?);
    Uri::from_parts(parts).ok()
}

fn cluster_routes() -> Router<Arc<Context>> {
    Router::new()
        .route("/", get(cluster::root))
        .route("/pools", get(cluster::pools))
        .route("/pools/default", get(cluster::pool).post(first_start::change_pool))
        .route("/pools/nodes", get(cluster::nodes))
        .route("/pools/default/nodeServices", get(cluster::node_services))
        .route("/pools/default/nodeServicesStreaming", get(streaming::node_services))
        .route("/pools/default/terseClusterInfo", get(cluster::terse_info))
        .route("/pools/default/tasks", get(cluster::tasks))
        .route(PLAN_EXCHANGE, get(cluster_plan::show).put(cluster_plan::carry_out))
        .route("/settee/vbuckets/damaged", get(damage::list))
        .route("/settee/vbuckets/{vbid}/reset", post(damage::reset))
        .route("/settee/logLevel", get(log_level::show).post(log_level::change))
        .route("/metrics", get(health::metrics))
        .route("/_prometheusMetrics", get(health::metrics))
        .route("/_prometheusMetricsHigh", get(health::metrics_of_high_cardinality))
        .route("/openapi.json", get(health::openapi))
        .route("/settee/log", get(logs::lines))
        .route("/logs", get(logs::entries))
}

fn bucket_routes() -> Router<Arc<Context>> {
    Router::new()
        .route("/pools/default/b/{bucket}", get(buckets::terse))
        .route("/pools/default/bs/{bucket}", get(streaming::bucket))
        .route("/pools/default/bucketsStreaming/{bucket}", get(streaming::bucket))
        .route("/pools/default/buckets", get(buckets::list).post(bucket_changes::create))
        .route(
            "/pools/default/buckets/{bucket}",
            get(buckets::verbose).post(bucket_changes::change).delete(bucket_changes::delete),
        )
        .route("/pools/default/buckets/{bucket}/controller/doFlush", post(buckets::flush))
        .route("/pools/default/buckets/{bucket}/controller/compactBucket", post(buckets::compact))
        .route(
            "/pools/default/buckets/{bucket}/controller/compactDatabases",
            post(buckets::compact),
        )
        .route(
            "/pools/default/buckets/{bucket}/controller/unsafePurgeBucket",
            post(buckets::refuse_purge),
        )
        .route(
            "/pools/default/buckets/{bucket}/controller/cancelBucketCompaction",
            post(buckets::cancel_compaction),
        )
        .route(
            "/settee/buckets/{bucket}/compaction",
            post(buckets::compact_here).delete(buckets::cancel_compaction_here),
        )
        .route("/pools/default/buckets/{bucket}/backup", get(backup::begin))
        .route("/pools/default/buckets/{bucket}/backup/{backup}/{vbid}", get(backup::vbucket))
}

fn collection_routes() -> Router<Arc<Context>> {
    let scopes = "/pools/default/buckets/{bucket}/scopes";
    let below = |rest: &str| format!("{scopes}/{rest}");
    Router::new()
        .route(
            scopes,
            get(collections::manifest).post(collections::create_scope).put(collections::replace),
        )
        .route(&below("@ensureManifest/{uid}"), post(collections::ensure_manifest))
        .route(&below("{scope}"), delete(collections::drop_scope))
        .route(&below("{scope}/collections"), post(collections::create_collection))
        .route(
            &below("{scope}/collections/{collection}"),
            patch(collections::change_collection).delete(collections::drop_collection),
        )
        .route(&below("{scope}/collections/{collection}/docs"), get(documents::list))
        .route(
            &below("{scope}/collections/{collection}/docs/{document}"),
            get(documents::read).post(documents::write).delete(documents::delete),
        )
}

fn certificate_routes() -> Router<Arc<Context>> {
    Router::new()
        .route("/pools/default/certificate", get(certificates::trusted))
        .route("/pools/default/certificates", get(certificates::chains))
        .route("/pools/default/trustedCAs", get(certificates::client_authorities))
        .route(
            "/settings/clientCertAuth",
            get(certificates::clients).post(certificates::change_clients),
        )
        .route("/node/controller/reloadCertificate", post(certificates::reload))
        .route("/node/controller/loadTrustedCAs", post(certificates::load_authorities))
}

fn first_start_routes() -> Router<Arc<Context>> {
    Router::new()
        .route("/clusterInit", post(first_start::cluster_init))
        .route("/nodeInit", post(first_start::node_init))
        .route("/nodes/self", get(cluster::this_node_alone))
        .route("/nodes/self/controller/settings", post(first_start::paths))
        .route("/node/controller/rename", post(first_start::rename))
        .route("/node/controller/setupServices", post(first_start::services))
        .route(
            "/node/controller/setupAlternateAddresses/external",
            put(first_start::set_external).delete(first_start::remove_external),
        )
}

fn setting_routes() -> Router<Arc<Context>> {
    Router::new()
        .route("/internalSettings", get(settings::internal))
        .route("/settings/autoCompaction", get(settings::auto_compaction))
        .route(
            "/settings/autoFailover",
            get(settings::auto_failover).post(first_start::auto_failover),
        )
        .route("/settings/indexes", post(first_start::indexes))
        .route("/settings/stats", get(settings::stats).post(first_start::stats))
        .route("/settings/alerts", get(fixed_settings::alerts).post(fixed_settings::confirm_alerts))
        .route("/settings/alerts/testEmail", post(fixed_settings::test_mail))
        .route("/settings/audit", get(audit::show).post(audit::change))
        .route("/settings/audit/descriptors", get(audit::descriptors))
        .route(
            "/settings/security",
            get(fixed_settings::security).post(fixed_settings::confirm_security),
        )
        .route("/settings/web", get(settings::administrator).post(first_start::administrator))
}

fn node_routes() -> Router<Arc<Context>> {
    Router::new()
        .route("/nodeStatuses", get(cluster_nodes::statuses))
        .route("/versions", get(cluster_nodes::versions))
        .route("/pools/default/serverGroups", get(cluster_nodes::groups))
        .route("/pools/default/rebalanceProgress", get(cluster_nodes::rebalance_progress))
        .route("/poolsStreaming/default", get(streaming::pool))
        .route("/prometheus_sd_config", get(cluster_nodes::prometheus_targets))
        .route("/prometheus_sd_config.yaml", get(cluster_nodes::prometheus_targets_yaml))
}

fn statistic_routes() -> Router<Arc<Context>> {
    Router::new()
        .route("/pools/default/stats/range", post(statistics::ranges))
        .route("/pools/default/stats/range/{metric}", get(statistics::range))
        .route("/pools/default/stats/range/{metric}/{function}", get(statistics::range))
        .route("/pools/default/buckets/{bucket}/stats", get(bucket_statistics::of_bucket))
        .route("/pools/default/buckets/{bucket}/nodes", get(bucket_statistics::nodes))
        .route(
            "/pools/default/buckets/{bucket}/nodes/{node}/stats",
            get(bucket_statistics::of_node),
        )
        .route("/settee/figuresStreaming", get(console::figures))
        .route("/settee/buckets/{bucket}/vbuckets", get(vbuckets::list))
        .route("/settee/buckets/{bucket}/collections", get(collections::items))
        .route("/settee/buckets/{bucket}/timings", get(vbuckets::timings))
        .route("/settee/buckets/{bucket}/slowOperations", get(observed::slow_operations))
        .route(
            "/settee/slowThresholds",
            get(observed::slow_thresholds).post(observed::change_slow_threshold),
        )
        .route("/settee/buckets/{bucket}/hotKeys", get(observed::hot_keys))
        .route("/settee/hotKeys", post(observed::sample_hot_keys))
}

fn user_routes() -> Router<Arc<Context>> {
    Router::new()
        .route("/whoami", get(own_account::whoami))
        .route("/controller/changePassword", post(own_account::change_password))
        .route("/pools/default/checkPermissions", post(own_account::check_permissions))
        .route("/settings/rbac/users", get(users::list))
        .route("/settings/rbac/users/local", get(users::list))
        .route(
            "/settings/rbac/users/local/{user}",
            get(users::one).put(users::change).delete(users::remove),
        )
        .route("/settings/rbac/users/external", get(users::external))
        .route(
            "/settings/rbac/users/external/{user}",
            get(users::no_external)
                .put(users::refuse_external)
                .delete(users::no_external_to_remove),
        )
        .route("/settings/rbac/roles", get(groups::roles))
        .route("/settings/rbac/groups", get(groups::list))
        .route(
            "/settings/rbac/groups/{group}",
            get(groups::one).put(groups::change).delete(groups::remove),
        )
        .route("/settings/passwordPolicy", get(password_policy::show).post(password_policy::change))
        .route(USERS_EXCHANGE, post(shared_users::exchange))
}
