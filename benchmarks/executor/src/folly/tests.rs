//! How Folly is found and which commands build with it, with tools that only write down how they
//! were called.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::baton::Waiting;

/// A machine: a directory with tools that append their arguments to `calls`.
struct Machine {
    directory: tempfile::TempDir,
    tools: Tools,
}

impl Machine {
    /// `pkg_config`, `compiler` and `cmake` are what the tools do after writing down their call.
    fn new(pkg_config: &str, compiler: &str, cmake: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let calls = directory.path().join("calls");
        let tool = |name: &str, body: &str| {
            let path = directory.path().join(name);
            let calls = calls.display();
            let script = format!("#!/bin/sh\necho {name} \"$@\" >> {calls}\n{body}\n");
            fs::write(&path, script).expect("writable");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permitted");
            path
        };
        let tools = Tools {
            pkg_config: tool("pkg-config", pkg_config),
            compiler: tool("c++", compiler),
            cmake: tool("cmake", cmake),
        };
        Self { directory, tools }
    }

    fn find(&self) -> Result<Option<FollyProgram>> {
        self.tools.find_and_build(Path::new("/source"), &self.build())
    }

    fn build(&self) -> PathBuf {
        self.directory.path().join("build")
    }

    /// The calls of all tools, with `BUILD` for the directory.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.directory.path().join("calls")).expect("readable");
        let build = self.build().display().to_string();
        text.lines().map(|line| line.replace(&build, "BUILD")).collect()
    }
}

const EXISTS: &str = "pkg-config --exists libfolly";
const FLAGS: &str = "pkg-config --cflags --libs libfolly";
const CONFIGURE: &str = "cmake -S /source -B BUILD -DCMAKE_BUILD_TYPE=Release";

fn compile(standard: &str) -> String {
    format!(
        "c++ -std=gnu++{standard} -O3 -DNDEBUG /source/folly_benchmark.cpp -o \
         BUILD/folly_benchmark -I/include -lfolly"
    )
}

#[test]
fn pkg_config_is_asked_first_and_the_compiler_gets_its_flags() {
    let machine = Machine::new("[ $1 = --exists ] || echo -I/include -lfolly", "", "exit 1");
    let found = machine.find().expect("it compiles");
    assert_eq!(found, Some(FollyProgram(machine.build().join("folly_benchmark"))));
    assert_eq!(machine.calls(), [EXISTS, FLAGS, &compile("20")]);
}

#[test]
fn an_older_compiler_is_asked_for_an_older_standard() {
    let compiler = "[ $1 = -std=gnu++17 ]";
    let machine = Machine::new("[ $1 = --exists ] || echo -I/include -lfolly", compiler, "exit 1");
    assert!(machine.find().expect("it compiles").is_some());
    assert_eq!(machine.calls(), [EXISTS, FLAGS, &compile("20"), &compile("17")]);
}

#[test]
fn cmake_is_asked_when_pkg_config_knows_nothing() {
    let machine = Machine::new("exit 1", "exit 1", "");
    let found = machine.find().expect("it builds");
    assert_eq!(found, Some(FollyProgram(machine.build().join("folly_benchmark"))));
    assert_eq!(machine.calls(), [EXISTS, CONFIGURE, "cmake --build BUILD"]);
}

#[test]
fn where_nobody_knows_folly_nothing_is_built() {
    let machine = Machine::new("exit 1", "", "exit 1");
    assert_eq!(machine.find().expect("that is no error"), None);
    assert_eq!(machine.calls(), [EXISTS, CONFIGURE]);
}

#[test]
fn a_machine_without_the_tools_has_no_folly() {
    let mut machine = Machine::new("", "", "");
    machine.tools.pkg_config = "/no/such/pkg-config".into();
    machine.tools.cmake = "/no/such/cmake".into();
    assert_eq!(machine.find().expect("that is no error"), None);
}

#[test]
fn a_folly_that_does_not_compile_is_an_error_that_says_why() {
    let machine = Machine::new("exit 0", "echo no such header; exit 1", "exit 1");
    let error = machine.find().expect_err("it does not compile").to_string();
    assert!(error.contains("no such header"), "{error}");
}

#[test]
fn the_real_tools_agree_with_the_program_that_asks_them() {
    // Whatever this machine has: either a program that can be run, or none, but no error.
    if let Some(program) = find_and_build().expect("tools work") {
        let cell = Benchmark::OneShotScheduleRun.cells(true)[0];
        let measured = program.measure(&cell, Duration::from_millis(5)).expect("it measures");
        assert!(measured.operations > 0);
    }
}

#[test]
fn the_program_is_told_the_cell_and_its_answer_is_read() {
    let machine = Machine::new("", "", "");
    let answer = r#"{"operations":4,"wall_ns":1000,"cpu_ns":3000,"voluntary_switches":2}"#;
    let path = machine.directory.path().join("program");
    let calls = machine.directory.path().join("calls");
    let script = format!("#!/bin/sh\necho \"$@\" >> {}\necho '{answer}'\n", calls.display());
    fs::write(&path, script).expect("writable");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permitted");
    let program = FollyProgram(path);
    let one_shot = Cell {
        benchmark: Benchmark::OneShotScheduleRun,
        threads: 8,
        items: 0,
        waiting: Some(Waiting::Spin),
    };
    let timers =
        Cell { benchmark: Benchmark::TimeoutAddCancel, threads: 2, items: 4_096, waiting: None };
    for cell in [one_shot, timers] {
        let measured = program.measure(&cell, Duration::from_millis(250)).expect("it measures");
        assert_eq!(measured.operations, 4);
        assert_eq!(measured.nanos_per_operation(), 250.0);
        assert_eq!(measured.cpu, Duration::from_nanos(3_000));
        assert_eq!(measured.voluntary_switches, 2);
    }
    assert_eq!(
        machine.calls(),
        ["OneShotScheduleRun 8 0 0.25 spin", "TimeoutAddCancel 2 4096 0.25 none"]
    );
}

#[test]
fn an_answer_that_is_none_is_an_error() {
    for answer in ["", "{}", "{\"operations\":-1}", "gone"] {
        assert!(parse(answer).is_err(), "{answer}");
    }
}
