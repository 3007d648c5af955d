//! Figures of the last month, in the forms in which the original tells them. Source: the
//! original's REST documentation of statistics.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use platform::Clock;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::cluster::management_host;
use super::named_bucket::Fields;
use crate::answers;
use crate::context::Context;
use crate::label_match::{LabelMatch, Wanted};
use crate::range_query::{Aggregate, AnswerRoom, RangeQuery};
use crate::stats_history::{Point, SeriesName};

/// Queries in one request.
const QUERIES_MAX: usize = 100;

/// What is asked about which figures.
struct Asked {
    /// All of them have to accept a figure.
    matches: Vec<LabelMatch>,
    query: RangeQuery,
}

/// What is wrong, by the name of the parameter.
type Wrong = (String, String);

/// GET /pools/default/stats/range/{metric} and /pools/default/stats/range/{metric}/{function}:
/// parameters that are none are labels.
pub(super) async fn range(
    State(context): State<Arc<Context>>,
    Path(path): Path<Fields>,
    Query(parameters): Query<Fields>,
) -> Response {
    let told = match asked_in_path(&path, parameters, now_seconds()) {
        Ok(asked) => told(&context, &[asked]).await,
        Err(wrong) => Err(wrong),
    };
    match told {
        Ok(mut told) => answers::ok(&told.pop().unwrap_or_default()),
        Err((parameter, why)) => answers::refused(&parameter, &why),
    }
}

fn asked_in_path(path: &Fields, parameters: Fields, now: u64) -> Result<Asked, Wrong> {
    let mut query = RangeQuery::until(now);
    if let Some(function) = path.get("function") {
        query.take_function(function).map_err(|why| ("function".to_owned(), why))?;
    }
    let name = path.get("metric").cloned().unwrap_or_default();
    let mut matches = vec![LabelMatch::equal("name".to_owned(), name)];
    for (name, value) in parameters {
        let is_known = query.take(&name, &value, now).map_err(|why| (name.clone(), why))?;
        if !is_known && name != "nodes" {
            matches.push(LabelMatch::equal(name, value));
        }
    }
    query.check().map_err(|why| ("_".to_owned(), why))?;
    Ok(Asked { matches, query })
}

/// One of several queries.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueryBody {
    /// Labels, and the figure's own name under `name`.
    metric: Vec<LabelBody>,
    #[serde(default)]
    apply_functions: Vec<String>,
    /// Everything else.
    #[serde(flatten)]
    parameters: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct LabelBody {
    label: String,
    value: Wanted,
    #[serde(default)]
    operator: Option<String>,
}

/// POST /pools/default/stats/range: several queries at once, as a list in JSON.
pub(super) async fn ranges(State(context): State<Arc<Context>>, body: Bytes) -> Response {
    // Whatever its content type: `curl -d` says that it is a form.
    let Ok(bodies) = serde_json::from_slice::<Vec<QueryBody>>(&body) else {
        return answers::refused("_", "The body is a list of queries in JSON");
    };
    if bodies.len() > QUERIES_MAX {
        return answers::refused("_", &format!("At most {QUERIES_MAX} queries at once"));
    }
    let now = now_seconds();
    let all: Result<Vec<Asked>, Wrong> =
        bodies.into_iter().map(|body| asked_in_body(body, now)).collect();
    let told = match all {
        Ok(all) => told(&context, &all).await,
        Err(wrong) => Err(wrong),
    };
    match told {
        Ok(told) => answers::ok(&Value::Array(told)),
        Err((parameter, why)) => answers::refused(&parameter, &why),
    }
}

fn asked_in_body(body: QueryBody, now: u64) -> Result<Asked, Wrong> {
    let mut query = RangeQuery::until(now);
    for function in &body.apply_functions {
        query.take_function(function).map_err(|why| ("applyFunctions".to_owned(), why))?;
    }
    for (name, value) in &body.parameters {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let is_known = query.take(name, &text, now).map_err(|why| (name.clone(), why))?;
        if !is_known && name != "nodes" {
            return Err((name.clone(), "Unsupported key".to_owned()));
        }
    }
    query.check().map_err(|why| ("_".to_owned(), why))?;
    let of_label = |LabelBody { label, value, operator }| {
        LabelMatch::new(label, operator.as_deref().unwrap_or("="), value)
    };
    let matches: Result<Vec<LabelMatch>, String> = body.metric.into_iter().map(of_label).collect();
    let matches = matches.map_err(|why| ("metric".to_owned(), why))?;
    if !matches.iter().any(LabelMatch::is_of_name) {
        return Err(("metric".to_owned(), "One label must be called name".to_owned()));
    }
    Ok(Asked { matches, query })
}

/// What is answered to each query. Everybody else is served between two of them, and one answer is
/// made at a time: until it is text it takes much more memory than that.
///
/// # Errors
/// Together they ask for more than one answer may take.
async fn told(context: &Context, all: &[Asked]) -> Result<Vec<Value>, Wrong> {
    let _alone = context.telling_ranges.lock().await;
    let mut room = AnswerRoom::default();
    let mut told = Vec::with_capacity(all.len());
    for asked in all {
        told.push(found(context, asked, &mut room).map_err(|why| ("_".to_owned(), why))?);
        tokio::task::yield_now().await;
    }
    Ok(told)
}

/// What is answered to a query. Other nodes are named as those that were not asked.
fn found(context: &Context, asked: &Asked, room: &mut AnswerRoom) -> Result<Value, String> {
    let map = context.view.cluster_map();
    let this = management_host(&map.this_address);
    let is_wanted = |series: &SeriesName| asked.matches.iter().all(|it| it.accepts(series));
    let (mut names, mut figures) = (Vec::new(), Vec::new());
    context.history.visit(is_wanted, asked.query.needed_since_seconds(), |series| {
        figures.push(asked.query.values_of(&series, room)?);
        names.push(series.name);
        Ok::<(), String>(())
    })?;
    if !asked.query.aggregates.is_empty() && !names.is_empty() {
        let together =
            |figures: Vec<Vec<Point>>, aggregate: &Aggregate| vec![aggregate.of(&figures)];
        figures = asked.query.aggregates.iter().fold(figures, together);
        names = vec![shared_name(names)];
    }
    let data = names.iter().zip(&figures).map(|(name, values)| {
        let values: Value =
            values.iter().map(|point| json!([point.seconds, point.value.to_string()])).collect();
        json!({"metric": metric_json(name, &this), "values": values})
    });
    let data: Value = data.collect();
    let others = map.nodes.iter().map(management_host).filter(|host| *host != this);
    let errors = others.map(|node| {
        let error = "not asked: a node tells its own figures";
        json!({"node": node, "error": error})
    });
    Ok(json!({
        "data": data,
        "errors": errors.collect::<Value>(),
        "startTimestamp": asked.query.start_seconds,
        "endTimestamp": asked.query.end_seconds,
    }))
}

/// What figures of several labels are called together: by their name alone, if it is one.
fn shared_name(names: Vec<SeriesName>) -> SeriesName {
    let mut all = names.into_iter().map(|series| series.name);
    let first = all.next().unwrap_or_default();
    let name = if all.all(|name| name == first) { first } else { String::new() };
    SeriesName { name, labels: Vec::new() }
}

fn metric_json(series: &SeriesName, node: &str) -> Value {
    let mut metric = Map::new();
    let name = &series.name;
    if !name.is_empty() {
        // Counters are asked for without their ending, and are told so.
        metric.insert("name".to_owned(), json!(name.strip_suffix("_total").unwrap_or(name)));
    }
    for (label, value) in &series.labels {
        metric.insert((*label).to_owned(), json!(value));
    }
    metric.insert("nodes".to_owned(), json!([node]));
    Value::Object(metric)
}

fn now_seconds() -> u64 {
    Clock::real().wall_time().seconds().into()
}
