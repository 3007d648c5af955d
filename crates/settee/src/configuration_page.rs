//! docs/configuration.md, as the flags, the table of settings and the table of parameters say it.

use clap::{Arg, Args, Command};
use server::{Buckets, PARAMETERS, RuntimeParameter, ShownIn};

use crate::serve::ServeArguments;
use crate::settings::Settings;

const PAGE: &str = "docs/configuration.md";

#[test]
fn the_page_lists_every_setting_and_every_parameter() {
    let command = ServeArguments::augment_args(Command::new("settee"));
    let flags: Vec<&Arg> = command.get_arguments().filter(|flag| !flag.is_hide_set()).collect();
    let mut lines = vec![
        "### Settings".to_owned(),
        String::new(),
        row(["Flag", "Variable", "Key", "Value", "Default", "Allowed", "Changed by", "What it is"]),
        row(["---"; 8]),
    ];
    lines.extend(flags.iter().map(|flag| setting_row(flag)));
    lines.extend([
        String::new(),
        "### Parameters".to_owned(),
        String::new(),
        row(["Parameter", "Unit", "Default", "Allowed", "Buckets", "STAT group", "What it is"]),
        row(["---"; 7]),
    ]);
    lines.extend(PARAMETERS.iter().map(|parameter| parameter_row(parameter, &flags)));
    blessed::check_page(PAGE, &lines.join("\n"));
}

#[test]
fn what_changes_a_setting_is_there() {
    let command = ServeArguments::augment_args(Command::new("settee"));
    for flag in command.get_arguments() {
        if let Some(name) = Settings::parameter(flag.get_id().as_str()) {
            assert!(PARAMETERS.iter().any(|parameter| parameter.name == name), "{name}");
        }
    }
}

fn setting_row(flag: &Arg) -> String {
    let field = flag.get_id().as_str();
    let name = flag.get_long().expect("every flag has a long name");
    let variable = flag.get_env().map(|name| name.to_string_lossy().into_owned());
    let values = flag.get_value_names().filter(|_| flag.get_action().takes_values());
    let value = values.and_then(|names| names.first());
    let default = Settings::default_text(field).unwrap_or_default();
    let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
    let parameter = Settings::parameter(field).map(|name| format!("SET_PARAM {}", code(name)));
    let route = Settings::route(field).map(str::to_owned);
    let changed_by: Vec<String> = parameter.into_iter().chain(route).collect();
    row([
        &code(&format!("--{name}")),
        &variable.map(|name| code(&name)).unwrap_or_default(),
        &if is_file_key(name) { code(name) } else { String::new() },
        value.map_or("", |name| name.as_str()),
        &default,
        &Settings::range_text(field),
        &changed_by.join(", "),
        help.split(" [default: ").next().unwrap_or_default(),
    ])
}

fn parameter_row(parameter: &RuntimeParameter, flags: &[&Arg]) -> String {
    let is_begun_by =
        |flag: &&&Arg| Settings::parameter(flag.get_id().as_str()) == Some(parameter.name);
    let begun_by = flags.iter().find(is_begun_by).and_then(|flag| flag.get_long());
    let default = begun_by
        .map_or_else(|| parameter.default(), |flag| format!("as {}", code(&format!("--{flag}"))));
    let buckets = match parameter.of {
        Buckets::All => "all",
        Buckets::WithFiles => "couchbase",
        Buckets::Ephemeral => "ephemeral",
    };
    let group = match parameter.shown_in {
        ShownIn::Config => "config",
        ShownIn::Compaction => "compaction",
        ShownIn::Workload => "workload",
    };
    row([
        &code(parameter.name),
        parameter.unit(),
        &default,
        &parameter.range(),
        buckets,
        group,
        parameter.help,
    ])
}

/// Whether the file may have it: it refuses names that it does not know.
fn is_file_key(name: &str) -> bool {
    let refused = toml::from_str::<Settings>(&format!("{name} = []")).unwrap_err();
    !refused.message().contains("unknown field")
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn row<const COUNT: usize>(cells: [&str; COUNT]) -> String {
    format!("| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}
