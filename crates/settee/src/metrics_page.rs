//! docs/metrics.md, as a node answers Prometheus and as the tables of statistics say it.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use server::{
    BUCKET_STATISTICS, COMMAND_STATISTICS, COMPACTION_STATISTICS, JOURNAL_STATISTICS, MetricName,
    RANGE_SCAN_STATISTICS, SERVER_STATISTICS, Statistic, StatisticKind,
};

use crate::serve;
use crate::setting_values::MemorySize;
use crate::settings::Settings;

const PAGE: &str = "docs/metrics.md";
const PASSWORD: &str = "secret";

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

#[test]
fn the_page_lists_every_metric_and_every_statistic_of_the_tables() {
    let (statistics, units) = of_tables();
    let mut lines = vec![
        "### Metrics".to_owned(),
        String::new(),
        "| Metric | Kind | Unit | What it is |".to_owned(),
        "| --- | --- | --- | --- |".to_owned(),
    ];
    for (name, Row { kind, help, .. }) in of_answer(&answer()) {
        let unit = units.get(name.as_str()).copied().unwrap_or_else(|| unit_of(&name));
        lines.push(format!("| `{name}` | {kind} | {unit} | {help} |"));
    }
    lines.extend([
        String::new(),
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

/// What a node without documents answers Prometheus: the names do not depend on them.
fn answer() -> String {
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
    let url = format!("http://127.0.0.1:{}/metrics", node.management_port());
    let request = ureq::get(&url).header("Authorization", format!("Basic {credentials}"));
    let text = request.call().unwrap().body_mut().read_to_string().unwrap();
    management.shutdown();
    node.stop().unwrap();
    text
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

/// The statistics of all tables by name, and the units of metrics.
fn of_tables() -> (Rows, BTreeMap<&'static str, &'static str>) {
    let (mut rows, mut units) = (Rows::new(), BTreeMap::new());
    add(SERVER_STATISTICS, &mut rows, &mut units);
    add(COMMAND_STATISTICS, &mut rows, &mut units);
    add(BUCKET_STATISTICS, &mut rows, &mut units);
    add(JOURNAL_STATISTICS, &mut rows, &mut units);
    add(COMPACTION_STATISTICS, &mut rows, &mut units);
    add(RANGE_SCAN_STATISTICS, &mut rows, &mut units);
    (rows, units)
}

fn add<S>(
    table: &[Statistic<S>],
    rows: &mut Rows,
    units: &mut BTreeMap<&'static str, &'static str>,
) {
    for statistic in table {
        if let Some(metric) = statistic.metric.filter(|_| !statistic.unit.is_empty()) {
            units.insert(metric.name, statistic.metric_unit());
        }
        for (name, groups) in statistic.shown {
            let row = rows.entry((*name).to_owned()).or_default();
            let is_new = row.help.is_empty() || row.help == statistic.help();
            assert!(is_new, "`{name}` is two statistics");
            row.help = statistic.help().to_owned();
            row.kind = kind(statistic.kind).to_owned();
            row.unit = statistic.unit;
            row.metric = statistic.metric.map_or_else(String::new, metric_text);
            row.groups.extend(groups.iter().map(|group| group_text(group)));
        }
    }
}

fn group_text(group: &str) -> String {
    if group.is_empty() { "(none)" } else { group }.to_owned()
}

/// The name as Prometheus is asked for it.
fn metric_text(metric: MetricName) -> String {
    let labels: Vec<String> =
        metric.labels.iter().map(|(label, of)| format!("{label}=\"{of}\"")).collect();
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
    ["bytes", "seconds"].into_iter().find(|unit| name.ends_with(unit)).unwrap_or_default()
}
