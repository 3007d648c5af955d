//! The machine that a node runs on, under the original's names: its CPUs, its memory, its disk.

use management::Metric;
use platform::machine::{CpuTicks, MachineMemory};
use platform::{DiskSpace, Instant};

use super::{count, float};
use crate::rate::Rate;

/// What the machine's CPUs do, told as parts of the time since they were looked at before.
#[derive(Default)]
pub(crate) struct MachineMeter {
    busy: Rate,
    stolen: Rate,
    ticks: Rate,
    own_nanoseconds: Rate,
}

impl MachineMeter {
    /// The machine now. `directory` is where the data is, on a disk with `space`.
    pub(crate) fn metrics(&self, now: Instant, directory: &str, space: DiskSpace) -> Vec<Metric> {
        let (busy, stolen) = self.percents(now);
        let own = self.own_nanoseconds.sample(platform::process::cpu_time_ns(), now) / 1e7;
        let cpus = float(count(platform::threads::available_cpus()));
        let cpu_metrics = [
            ("sys_cpu_utilization_rate", "CPU time in use, in percent of all", busy),
            ("sys_cpu_stolen_rate", "CPU time given to others, in percent of all", stolen),
            ("sys_cpu_cores_available", "CPUs that the process may use", cpus),
            ("sysproc_cpu_utilization", "CPU time of the process, in percent of one CPU", own),
        ];
        let gauge = |(name, help, value)| Metric::gauge(name, help, value);
        let mut metrics: Vec<Metric> = cpu_metrics.map(gauge).into();
        metrics.extend(of_memory(MachineMemory::now()).map(gauge));
        metrics.extend(of_disk(space).map(|it| gauge(it).with_label("disk", directory.to_owned())));
        metrics
    }

    /// CPU time of the machine in use, in percent of all.
    pub(crate) fn busy_percent(&self, now: Instant) -> f64 {
        self.percents(now).0
    }

    /// CPU time in use and given to others, in percent of all.
    fn percents(&self, now: Instant) -> (f64, f64) {
        let cpu = CpuTicks::now();
        let per_second = self.ticks.sample(cpu.total, now);
        let percent = |rate: f64| if per_second > 0.0 { 100.0 * rate / per_second } else { 0.0 };
        let busy = percent(self.busy.sample(cpu.busy, now));
        (busy, percent(self.stolen.sample(cpu.stolen, now)))
    }
}

fn of_memory(memory: MachineMemory) -> [(&'static str, &'static str, f64); 6] {
    let used_bytes = memory.total_bytes.saturating_sub(memory.available_bytes);
    [
        ("sys_mem_total", "Bytes of physical memory of the machine", float(memory.total_bytes)),
        ("sys_mem_free", "Bytes of it that nothing is in", float(memory.free_bytes)),
        ("sys_mem_actual_free", "Bytes of it to be had", float(memory.available_bytes)),
        ("sys_mem_actual_used", "Bytes of it in use for good", float(used_bytes)),
        ("sys_swap_total", "Bytes of swap space", float(memory.swap_total_bytes)),
        ("sys_swap_used", "Bytes of it in use", float(memory.swap_used_bytes())),
    ]
}

fn of_disk(space: DiskSpace) -> [(&'static str, &'static str, f64); 2] {
    let used = float(space.total_bytes.saturating_sub(space.free_bytes));
    let total = float(space.total_bytes);
    let ratio = if total > 0.0 { used / total } else { 0.0 };
    [
        ("sys_disk_size_bytes", "Size of the disk that the data is on", total),
        ("sys_disk_usage_ratio", "The part of it in use", ratio),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_before_there_are_two_looks_and_everything_stays_a_part() {
        let meter = MachineMeter::default();
        let space = DiskSpace { free_bytes: 25, total_bytes: 100 };
        let value = |seconds: u64, name: &str| {
            let metrics = meter.metrics(Instant(seconds * 1_000_000_000), "/data", space);
            metrics.iter().find(|metric| metric.name == name).unwrap().value
        };
        assert_eq!(value(1, "sys_cpu_utilization_rate"), 0.0);
        let busy = value(3, "sys_cpu_utilization_rate");
        assert!((0.0..=100.0).contains(&busy), "{busy}");
        assert_eq!(value(3, "sys_disk_usage_ratio"), 0.75);
        assert!(value(3, "sys_mem_total") >= value(3, "sys_mem_actual_used"));
        assert!(value(3, "sys_cpu_cores_available") >= 1.0);
    }
}
