//! Which peers of the storage benchmark this machine has, and how it is built with them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{capture, has_program};

/// Where Linux distributions put headers.
const HEADERS: &str = "/usr/include";

/// Names the features that the storage benchmark can have here, and tells its build where the
/// libraries are. What is missing is named; nothing is installed, and no peer in C++ is built.
pub(crate) fn with_storage_peers(command: &mut Command) {
    let mut features = Vec::new();
    if has_program("pkg-config") && succeeds(Command::new("pkg-config").args(["sqlite3"])) {
        features.push("sqlite");
    } else {
        println!("SQLite is built for this: pkg-config finds no libsqlite3-dev");
        features.push("sqlite-bundled");
    }
    let headers = Path::new(HEADERS);
    match (library_directory(), headers.join("rocksdb/c.h").is_file(), clang_directory()) {
        (Some(library), true, Some(clang)) => {
            features.push("rocksdb");
            command.env("ROCKSDB_LIB_DIR", library);
            command.env("ROCKSDB_INCLUDE_DIR", headers);
            command.env("LIBCLANG_PATH", clang);
        }
        _ => println!("RocksDB is left out: it wants the packages librocksdb-dev and libclang-dev"),
    }
    command.args(["--features", &features.join(",")]);
}

fn succeeds(command: &mut Command) -> bool {
    capture(command).is_ok_and(|captured| captured.succeeded)
}

/// Where the shared library of RocksDB is.
fn library_directory() -> Option<PathBuf> {
    let name = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let candidates = [PathBuf::from(name), "/usr/lib64".into(), "/usr/lib".into()];
    candidates.into_iter().find(|directory| directory.join("librocksdb.so").exists())
}

/// Where the library is that reads the headers.
fn clang_directory() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("LIBCLANG_PATH") {
        return Some(path.into());
    }
    let versions = std::fs::read_dir("/usr/lib").ok()?.filter_map(Result::ok);
    let mut candidates: Vec<PathBuf> = versions
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("llvm-"))
        .map(|entry| entry.path().join("lib"))
        .filter(|directory| directory.join("libclang.so.1").exists())
        .collect();
    candidates.sort();
    candidates.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_is_always_a_peer() {
        let mut command = Command::new("cargo");
        with_storage_peers(&mut command);
        let features = command.get_args().last().expect("features are named").to_string_lossy();
        assert!(features.starts_with("sqlite"), "{features}");
    }
}
