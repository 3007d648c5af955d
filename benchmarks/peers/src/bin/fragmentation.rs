//! What the node occupies for each byte that it uses, after documents of many sizes have come and
//! gone. The node alone: its peers count what they use otherwise.

use anyhow::Result;
use peers::fragmentation::{Phase, measure};
use peers::options::Options;
use peers::report::{self, Figure};
use peers::servers::{Program, generator_core, pin_thread};
use serde_json::json;

fn main() -> Result<()> {
    let options = Options::from_command_line(1)?;
    pin_thread(&[generator_core()])?;
    let rounds =
        (0..options.rounds).map(|_| measure(&options)).collect::<Result<Vec<Vec<Phase>>>>()?;
    println!("{:<28} {:>12} {:>12} {:>8}", "", "resident MB", "used MB", "ratio");
    let mut figures = Vec::new();
    for (index, phase) in rounds[0].iter().enumerate() {
        let of = |what: fn(&Phase) -> f64| -> Vec<f64> {
            rounds.iter().map(|phases| what(&phases[index])).collect()
        };
        let ratios = of(Phase::ratio);
        println!(
            "{:<28} {:>12.1} {:>12.1} {:>8.3}",
            phase.name,
            report::median(&of(|phase| phase.resident_bytes as f64 / 1e6)),
            report::median(&of(|phase| phase.used_bytes as f64 / 1e6)),
            report::median(&ratios),
        );
        figures.push(Figure {
            bench: "fragmentation",
            variant: Program::Settee.name().to_owned(),
            params: json!({"phase": phase.name}),
            metric: "resident_by_used",
            unit: "ratio",
            rounds: ratios,
        });
    }
    report::append(options.json.as_deref(), &figures)
}
