//! The machine: what its CPUs and its memory are used for. Source: proc(5), /proc/stat and
//! /proc/meminfo. Everything is 0 where the system does not say.

use std::fs;

/// Ticks of all CPUs together since the machine's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// In which something ran.
    pub busy: u64,
    /// Of which a hypervisor gave the CPU to others.
    pub stolen: u64,
    /// All of them.
    pub total: u64,
}

/// Physical memory and swap space, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineMemory {
    /// All memory.
    pub total_bytes: u64,
    /// Memory that nothing is in.
    pub free_bytes: u64,
    /// Memory that programs can have without others being swapped out.
    pub available_bytes: u64,
    /// All swap space.
    pub swap_total_bytes: u64,
    /// The part of it that nothing is in.
    pub swap_free_bytes: u64,
}

impl CpuTicks {
    /// Up to now.
    pub fn now() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// The first line: `cpu user nice system idle iowait irq softirq steal`; what follows is
    /// counted in `user` and `nice` already.
    fn parse(stat: &str) -> Self {
        let line = stat.lines().next().and_then(|line| line.strip_prefix("cpu "));
        let ticks: Vec<u64> = line
            .unwrap_or_default()
            .split_whitespace()
            .take(8)
            .map(|field| field.parse().unwrap_or(0))
            .collect();
        let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
        let total: u64 = ticks.iter().sum();
        let stolen = at(7);
        Self { busy: total - at(3) - at(4) - stolen, stolen, total }
    }
}

impl MachineMemory {
    /// As it is now.
    pub fn now() -> Self {
        Self::parse(&fs::read_to_string("/proc/meminfo").unwrap_or_default())
    }

    /// Swap space that something is in.
    pub fn swap_used_bytes(&self) -> u64 {
        self.swap_total_bytes.saturating_sub(self.swap_free_bytes)
    }

    fn parse(meminfo: &str) -> Self {
        let bytes = |name: &str| {
            let of = |line: &str| {
                line.strip_prefix(name)?.strip_prefix(':')?.split(' ').rev().nth(1)?.parse().ok()
            };
            meminfo.lines().find_map(of).map_or(0, |kibibytes: u64| kibibytes * 1024)
        };
        Self {
            total_bytes: bytes("MemTotal"),
            free_bytes: bytes("MemFree"),
            available_bytes: bytes("MemAvailable"),
            swap_total_bytes: bytes("SwapTotal"),
            swap_free_bytes: bytes("SwapFree"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_those_of_all_processors_and_each_is_counted_once() {
        let stat = "cpu  10 1 5 100 20 2 3 4 7 0\ncpu0 5 0 2 50 10 1 1 2 0 0\n";
        let ticks = CpuTicks::parse(stat);
        assert_eq!(ticks, CpuTicks { busy: 21, stolen: 4, total: 145 });
        for other in ["", "cpu0 1 2 3", "cpu  x y"] {
            assert_eq!(CpuTicks::parse(other), CpuTicks::default(), "{other}");
        }
    }

    #[test]
    fn memory_is_read_by_name_in_any_order() {
        let meminfo = "MemTotal:       16 kB\nMemAvailable:    8 kB\nSwapFree: 1 kB\n\
                       MemFree:         4 kB\nSwapTotal:      2 kB\nMemTotalOf:  99 kB\n";
        let memory = MachineMemory {
            total_bytes: 16 << 10,
            free_bytes: 4 << 10,
            available_bytes: 8 << 10,
            swap_total_bytes: 2 << 10,
            swap_free_bytes: 1 << 10,
        };
        assert_eq!(MachineMemory::parse(meminfo), memory);
        assert_eq!(MachineMemory::parse("MemTotal:\n"), MachineMemory::default());
    }
}
