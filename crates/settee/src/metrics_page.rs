//! docs/metrics.md, as a node answers Prometheus and as the tables of statistics say it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use client::{Connection, ConnectionOptions, Login, ServerAddress};
use node::Node;
use server::{
    BUCKET_STATISTICS, COLLECTION_LABELS, COLLECTION_STATISTICS, COMMAND_STATISTICS,
    COMPACTION_STATISTICS, CONNECTION_TYPE_LABEL, DCP_STATISTICS, JOURNAL_STATISTICS, MetricName,
    RANGE_SCAN_STATISTICS, SERVER_STATISTICS, STATE_LABEL, STATE_STATISTICS, Statistic,
    StatisticKind, WARMUP_STATISTICS,
};

use crate::serve;
use crate::setting_values::MemorySize;
use crate::settings::Settings;

const PAGE: &str = "docs/metrics.md";
const PASSWORD: &str = "secret";
/// What names of metrics begin with.
const METRIC_BEGINNINGS: [&str; 6] = ["kv_", "cm_", "sys_", "sysproc_", "couch_", "settee_"];

/// What a page says of one name.
#[derive(Default)]
struct Row {
    kind: String,
    unit: &'static str,
    help: String,
    groups: Vec<String>,
    metric: String,
}

type Rows = BTreeMap<String, Row>;

/// What the tables say of metrics, by their names.
type Known = BTreeMap<&'static str, (StatisticKind, &'static str)>;

#[test]
fn the_page_lists_every_metric_and_every_statistic_of_the_tables() {
    let (statistics, known) = of_tables();
    let mut lines = Vec::new();
    for (title, path) in [("Metrics", "/metrics"), ("High cardinality", "/_prometheusMetricsHigh")]
    {
        lines.extend(of_metrics(title, path, &known));
    }
    lines.extend([
        "### Statistics".to_owned(),
        String::new(),
        "| Statistic | Groups | Kind | Unit | Metric | What it is |".to_owned(),
        "| --- | --- | --- | --- | --- | --- |".to_owned(),
    ]);
    for (name, Row { kind, unit, help, groups, metric }) in statistics {
        let groups = groups.join(", ");
        lines.push(format!("| `{name}` | {groups} | {kind} | {unit} | {metric} | {help} |"));
    }
    blessed::check_page(PAGE, &lines.join("\n"));
}

#[test]
fn every_metric_that_the_console_or_the_page_for_operators_names_is_there() {
    let paths = ["/metrics", "/_prometheusMetricsHigh"];
    let known: Rows = paths.into_iter().flat_map(|path| of_answer(&answer(path))).collect();
    let mut named = 0;
    for (file, text) in texts_with_metrics() {
        for name in text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_') {
            let is_longer = |it: &&str| name.len() > it.len() && name.starts_with(*it);
            let is_metric = METRIC_BEGINNINGS.iter().any(is_longer);
            if is_metric {
                assert!(known.contains_key(name), "{file} names {name}, which there is not");
                named += 1;
            }
        }
    }
    assert!(named > 50, "{named}");
}

/// What the console's files say, what is expected of them in a browser, and what operators read.
fn texts_with_metrics() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directories = ["crates/management/console", "acceptance/console"];
    let files = directories.iter().flat_map(|directory| {
        let entries = fs::read_dir(root.join(directory)).unwrap();
        entries.map(|entry| entry.unwrap().path())
    });
    let files = files.filter(|path| path.extension().is_some_and(|it| it == "js" || it == "py"));
    let files = files.chain([root.join("docs/operations.md")]);
    files.map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap())).collect()
}

/// The table of what a path answers.
fn of_metrics(title: &str, path: &str, known: &Known) -> Vec<String> {
    let mut lines = vec![
        format!("### {title}"),
        String::new(),
        "| Metric | Kind | Unit | What it is |".to_owned(),
        "| --- | --- | --- | --- |".to_owned(),
    ];
    for (name, Row { kind: told, help, .. }) in of_answer(&answer(path)) {
        // A family that is told without a type is of one in the tables.
        let (kind, unit) = match known.get(name.as_str()) {
            Some((known, unit)) => (kind(*known), *unit),
            None if told == "untyped" => ("gauge", unit_of(&name)),
            None => (told.as_str(), unit_of(&name)),
        };
        lines.push(format!("| `{name}` | {kind} | {unit} | {help} |"));
    }
    lines.push(String::new());
    lines
}

/// What a node answers Prometheus that has been asked for something: the names do not depend on its
/// documents.
fn answer(path: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings {
        data_dir: Some(directory.path().join("data")),
        port: Some(0),
        management_port: Some(0),
        vbuckets: Some(4),
        threads: Some(1),
        memory_quota: Some(MemorySize(64 << 20)),
        password: Some(PASSWORD.to_owned()),
        ..Settings::default()
    };
    let (node, management) = serve::start_with_management(&settings.resolve().unwrap()).unwrap();
    let credentials = BASE64_STANDARD.encode(format!("{}:{PASSWORD}", node.config().user));
    ask_for_something(&node);
    let url = format!("http://127.0.0.1:{}{path}", node.management_port());
    let request = ureq::get(&url).header("Authorization", format!("Basic {credentials}"));
    let text = request.call().unwrap().body_mut().read_to_string().unwrap();
    management.shutdown();
    node.stop().unwrap();
    text
}

/// Commands are told of once there were some.
fn ask_for_something(node: &Node) {
    let mut options = ConnectionOptions::new("metrics-page");
    options.login = Some(Login::new(&*node.config().user, PASSWORD));
    options.bucket = Some("default".to_owned());
    let mut connection =
        Connection::open(&ServerAddress::new("127.0.0.1", node.port()), &options).unwrap();
    assert!(!connection.statistics("").unwrap().is_empty());
}

/// The families of an answer, by name.
fn of_answer(text: &str) -> Rows {
    let mut rows = Rows::new();
    for line in text.lines() {
        if let Some((name, help)) = said(line, "# HELP ") {
            rows.entry(name).or_default().help = help;
        } else if let Some((name, kind)) = said(line, "# TYPE ") {
            rows.entry(name).or_default().kind = kind;
        }
    }
    rows
}

fn said(line: &str, beginning: &str) -> Option<(String, String)> {
    let (name, rest) = line.strip_prefix(beginning)?.split_once(' ')?;
    Some((name.to_owned(), rest.to_owned()))
}

/// The statistics of all tables by name, and what is known of metrics.
fn of_tables() -> (Rows, Known) {
    let (mut rows, mut known) = (Rows::new(), Known::new());
    add(SERVER_STATISTICS, "", "", &mut rows, &mut known);
    add(COMMAND_STATISTICS, "", "", &mut rows, &mut known);
    add(BUCKET_STATISTICS, "", "", &mut rows, &mut known);
    add(STATE_STATISTICS, "vb_<state>_", STATE_LABEL, &mut rows, &mut known);
    let labels = COLLECTION_LABELS.join(",");
    add(COLLECTION_STATISTICS, "<scope>:<collection>:", &labels, &mut rows, &mut known);
    add(DCP_STATISTICS, "<type>:", CONNECTION_TYPE_LABEL, &mut rows, &mut known);
    add(JOURNAL_STATISTICS, "", "", &mut rows, &mut known);
    add(COMPACTION_STATISTICS, "", "", &mut rows, &mut known);
    add(WARMUP_STATISTICS, "", "", &mut rows, &mut known);
    add(RANGE_SCAN_STATISTICS, "", "", &mut rows, &mut known);
    (rows, known)
}

/// Takes in a table whose names in STAT stand behind `prefix`, where Prometheus reads a label.
fn add<S>(
    table: &'static [Statistic<S>],
    prefix: &str,
    label: &str,
    rows: &mut Rows,
    known: &mut Known,
) {
    for statistic in table {
        if let Some(metric) = statistic.metric {
            known.insert(metric.name, (statistic.kind, statistic.metric_unit()));
        }
        for (name, groups) in statistic.shown {
            let row = rows.entry(format!("{prefix}{name}")).or_default();
            let is_new = row.help.is_empty() || row.help == statistic.help();
            assert!(is_new, "`{prefix}{name}` is two statistics");
            row.help = statistic.help().to_owned();
            row.kind = kind(statistic.kind).to_owned();
            row.unit = statistic.unit;
            let text = |metric| metric_text(metric, label);
            row.metric = statistic.metric.map_or_else(String::new, text);
            row.groups.extend(groups.iter().map(|group| group_text(group)));
        }
    }
}

fn group_text(group: &str) -> String {
    if group.is_empty() { "(none)" } else { group }.to_owned()
}

/// The name as Prometheus is asked for it.
fn metric_text(metric: MetricName, label: &str) -> String {
    let own = metric.labels.iter().map(|(label, of)| format!("{label}=\"{of}\""));
    let labels: Vec<String> =
        (!label.is_empty()).then(|| label.to_owned()).into_iter().chain(own).collect();
    match labels.is_empty() {
        true => format!("`{}`", metric.name),
        false => format!("`{}{{{}}}`", metric.name, labels.join(",")),
    }
}

fn kind(kind: StatisticKind) -> &'static str {
    match kind {
        StatisticKind::Counter => "counter",
        StatisticKind::Gauge => "gauge",
    }
}

/// What the end of a metric's name says about its unit.
fn unit_of(name: &str) -> &'static str {
    let name = name.trim_end_matches("_total");
    ["bytes", "seconds", "ratio"].into_iter().find(|unit| name.ends_with(unit)).unwrap_or_default()
}
