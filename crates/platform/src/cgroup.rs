//! Limits of the control groups that this process is in, as containers and service managers set
//! them (cgroups(7)).

use std::fs;
use std::path::Path;

/// Where the hierarchies of groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// The lowest memory limit of this process's groups and of those around them, in bytes; `None` when
/// there is none.
pub(crate) fn memory_limit_bytes() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    lowest_memory_limit(&groups, Path::new(MOUNT))
}

/// The same by what /proc/<pid>/cgroup says, a line a hierarchy: `id:controllers:path`.
fn lowest_memory_limit(groups: &str, mount: &Path) -> Option<u64> {
    groups.lines().filter_map(|line| limit_of_hierarchy(line, mount)).min()
}

fn limit_of_hierarchy(line: &str, mount: &Path) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, group) = (fields.next()?, fields.next()?);
    if controllers.is_empty() {
        // Version 2, which stands beside hierarchies of version 1 on some systems.
        let mounts = [mount.to_path_buf(), mount.join("unified")];
        return mounts.iter().filter_map(|root| lowest(root, group, "memory.max")).min();
    }
    let is_memory = controllers.split(',').any(|controller| controller == "memory");
    is_memory.then(|| lowest(&mount.join("memory"), group, "memory.limit_in_bytes"))?
}

/// The lowest limit of a group and of those around it. Where a container has the hierarchy without
/// a namespace for it, its own group is the root, and the path leads nowhere.
fn lowest(root: &Path, group: &str, file: &str) -> Option<u64> {
    let group = Path::new(group.trim_start_matches('/'));
    // Without a limit version 2 says `max`, and version 1 a number that no machine has.
    let limit = |group: &Path| -> Option<u64> {
        let text = fs::read_to_string(root.join(group).join(file)).ok()?;
        text.trim().parse().ok()
    };
    group.ancestors().filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limit_of_all_groups_around_the_process_counts() {
        const V1_NONE: &str = "9223372036854771712\n";
        type Files<'a> = &'a [(&'a str, &'a str)];
        let cases: [(&str, &str, Files<'_>, Option<u64>); 8] = [
            ("no groups", "", &[], None),
            ("version 2, none said", "0::/a\n", &[("a/memory.max", "max\n")], None),
            (
                "version 2, said around it",
                "0::/system.slice/settee.service\n",
                &[
                    ("system.slice/memory.max", "1000\n"),
                    ("system.slice/settee.service/memory.max", "max\n"),
                ],
                Some(1000),
            ),
            ("version 2 in a container", "0::/\n", &[("memory.max", "2000\n")], Some(2000)),
            (
                "version 1",
                "4:memory:/a/b\n1:cpu:/\n0::/\n",
                &[
                    ("memory/a/b/memory.limit_in_bytes", "3000\n"),
                    ("memory/a/memory.limit_in_bytes", V1_NONE),
                ],
                Some(3000),
            ),
            (
                "version 1 in a container without a namespace",
                "4:cpu,memory:/docker/0123\n",
                &[("memory/memory.limit_in_bytes", "4000\n")],
                Some(4000),
            ),
            (
                "both versions",
                "4:memory:/a\n0::/b\n",
                &[("memory/a/memory.limit_in_bytes", V1_NONE), ("unified/b/memory.max", "5000\n")],
                Some(5000),
            ),
            ("nonsense", "memory\n:::\n4:memory\n", &[("memory.max", "lots\n")], None),
        ];
        for (case, groups, files, expected) in cases {
            let mount = tempfile::tempdir().unwrap();
            for (path, content) in files {
                let path = mount.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            assert_eq!(lowest_memory_limit(groups, mount.path()), expected, "{case}");
        }
    }
}
