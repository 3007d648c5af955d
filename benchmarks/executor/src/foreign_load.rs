//! How much CPU other processes used meanwhile. Figures from a busy machine mean little.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::harness::Usage;

/// From this share of the machine on, figures are not to be trusted.
pub const WARNING_SHARE: f64 = 0.1;

/// `/proc/stat` counts in hundredths of a second (`USER_HZ` of Linux).
const TICK: Duration = Duration::from_millis(10);

/// A point of time to measure from.
#[derive(Clone, Copy, Debug)]
pub struct ForeignLoad {
    machine: MachineTime,
    own_cpu: Duration,
}

/// All CPUs together, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MachineTime {
    busy: u64,
    all: u64,
}

impl ForeignLoad {
    /// Begins to measure.
    pub fn begin() -> Result<Self> {
        Ok(Self { machine: MachineTime::now()?, own_cpu: own_cpu() })
    }

    /// The share of the machine that other processes have used since then, time stolen by the host
    /// included: 0 to 1.
    pub fn share(&self) -> Result<f64> {
        let now = MachineTime::now()?;
        let ticks = |duration: Duration| duration.as_secs_f64() / TICK.as_secs_f64();
        let busy = (now.busy - self.machine.busy) as f64;
        let all = (now.all - self.machine.all) as f64;
        let own = ticks(own_cpu().saturating_sub(self.own_cpu));
        Ok(if all > 0.0 { ((busy - own) / all).clamp(0.0, 1.0) } else { 0.0 })
    }
}

/// Of this process and of children that have ended.
fn own_cpu() -> Duration {
    Usage::now().cpu + Usage::of_children().cpu
}

impl MachineTime {
    fn now() -> Result<Self> {
        Self::parse(&fs::read_to_string("/proc/stat")?)
    }

    /// The line `cpu user nice system idle iowait irq softirq steal ...`; guests are in user.
    fn parse(stat: &str) -> Result<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "));
        let fields: Vec<u64> = line
            .context("/proc/stat has a line of all CPUs")?
            .split_whitespace()
            .take(8)
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let [user, nice, system, idle, waiting, irq, soft_irq, steal] = fields[..] else {
            anyhow::bail!("/proc/stat has {} fields of 8", fields.len());
        };
        let busy = user + nice + system + irq + soft_irq + steal;
        Ok(Self { busy, all: busy + idle + waiting })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_time_is_not_busy() {
        let stat = "cpu  10 1 20 1000 50 2 3 4 99 99\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        let time = MachineTime::parse(stat).expect("well-formed");
        assert_eq!(time, MachineTime { busy: 40, all: 1_090 });
        for malformed in ["", "cpu 1 2 3", "cpu a b c d e f g h"] {
            assert!(MachineTime::parse(malformed).is_err(), "{malformed}");
        }
    }

    #[test]
    fn the_share_is_a_share() {
        let load = ForeignLoad::begin().expect("readable");
        std::thread::sleep(Duration::from_millis(50));
        let share = load.share().expect("readable");
        assert!((0.0..=1.0).contains(&share), "{share}");
    }
}
