//! The Debian package of the node, and an archive of the same: `cargo xtask package`.

mod archive;
mod machine;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use machine::Machine;

use crate::shell::{capture, cargo, root, run, target_directory};

/// A file of the repository that is in the package.
struct Item {
    from: &'static str,
    /// Below the root of the machine that it is installed on.
    to: &'static str,
    mode: u32,
}

const fn item(from: &'static str, to: &'static str) -> Item {
    Item { from, to, mode: 0o644 }
}

const fn program(from: &'static str, to: &'static str) -> Item {
    Item { from, to, mode: 0o755 }
}

const BINARY: &str = "usr/bin/settee";
const ITEMS: &[Item] = &[
    item("packaging/systemd/settee.service", "lib/systemd/system/settee.service"),
    item("packaging/systemd/settee.sysusers", "usr/lib/sysusers.d/settee.conf"),
    item("packaging/settee.toml", "etc/settee/settee.toml"),
    item("packaging/debian/default", "etc/default/settee"),
    item("packaging/debian/copyright", "usr/share/doc/settee/copyright"),
    item("CHANGELOG.md", "usr/share/doc/settee/changelog"),
    item("docs/operations.md", "usr/share/doc/settee/operations.md"),
    item("docs/versions.md", "usr/share/doc/settee/versions.md"),
    item("docs/configuration.md", "usr/share/doc/settee/configuration.md"),
    program("packaging/debian/postinst", "DEBIAN/postinst"),
    program("packaging/debian/prerm", "DEBIAN/prerm"),
    program("packaging/debian/postrm", "DEBIAN/postrm"),
];

/// What an upgrade asks about before it replaces it.
const CONFFILES: &[&str] = &["/etc/settee/settee.toml", "/etc/default/settee"];

/// What shells need to complete the binary's commands, and where they look for it.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "usr/share/bash-completion/completions/settee"),
    ("zsh", "usr/share/zsh/vendor-completions/_settee"),
    ("fish", "usr/share/fish/vendor_completions.d/settee.fish"),
];

/// Where `man` looks for pages.
const MANUAL: &str = "usr/share/man/man1";

const DESCRIPTION: &str = "\
Description: key-value server that speaks Couchbase's and memcached's protocols
 Settee keeps documents in memory, writes them to couchstore files and sends
 them to replicas. Couchbase's SDKs and memcached's clients talk to it
 unmodified.
 .
 The package has the node with its tools, and a service that nothing starts
 until it is set up.
";

/// What a package is made of and where it is put.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    /// A binary that was built already.
    binary: Option<PathBuf>,
    /// What it is built for, where that is not this machine.
    target: Option<String>,
    directory: PathBuf,
    version: String,
}

/// `cargo xtask package [--binary FILE] [--target TARGET] [--out DIRECTORY] [--version VERSION]`
pub(crate) fn package(arguments: &[String]) -> Result<()> {
    let options = parse(arguments)?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => build_release(options.target.as_deref())?,
    };
    for made in assemble(&binary, &options)? {
        println!("{}", made.display());
    }
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        binary: None,
        target: None,
        directory: target_directory().join("package"),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().with_context(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--binary" => options.binary = Some(PathBuf::from(value()?)),
            "--target" => options.target = Some(value()?.clone()),
            "--out" => options.directory = PathBuf::from(value()?),
            "--version" => options.version = value()?.clone(),
            _ => bail!(
                "there is no option `{argument}`; there are --binary, --target, --out and --version"
            ),
        }
    }
    Ok(options)
}

fn build_release(target: Option<&str>) -> Result<PathBuf> {
    let mut build = cargo(&["build", "--quiet", "--locked", "--release", "--package", "settee"]);
    let mut built = target_directory();
    if let Some(target) = target {
        let machine = Machine::of_target(target)?;
        build.args(["--target", target]).envs(machine.build_variables(target));
        built.push(target);
    }
    run(&mut build)?;
    Ok(built.join("release").join("settee"))
}

/// Makes the package, the archive, and of a binary for another machine the root of an image: where
/// they are.
fn assemble(binary: &Path, options: &Options) -> Result<Vec<PathBuf>> {
    let content = fs::read(binary).with_context(|| format!("cannot read {}", binary.display()))?;
    let machine = Machine::of_binary(&content)?;
    let architecture = machine.debian;
    let tree = options.directory.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    for Item { from, to, mode } in ITEMS {
        let content = fs::read(root().join(from)).with_context(|| format!("cannot read {from}"))?;
        write(&tree, to, &content, *mode)?;
    }
    write(&tree, BINARY, &content, 0o755)?;
    run(Command::new(machine.tool("strip")).arg("--strip-all").arg(tree.join(BINARY)))?;
    for (shell, to) in COMPLETIONS {
        let completions = said_by(machine.command(binary)?.args(["completions", shell]))?;
        write(&tree, to, &completions, 0o644)?;
    }
    write_manual(&machine.command(binary)?, &tree)?;
    run(Command::new("gzip").arg("-9n").arg(tree.join("usr/share/doc/settee/changelog")))?;
    let time = commit_time().unwrap_or_else(|| "0".to_owned());
    let name = format!("settee-{}-linux-{architecture}", options.version);
    let archive = archive::make(&tree, &options.directory, &name, &time)?;
    let mut made = vec![debian_package(&tree, machine, &content, options, &time)?, archive];
    if let Some(libraries) = machine.library_root() {
        let image = options.directory.join(format!("image-{architecture}"));
        if image.exists() {
            fs::remove_dir_all(&image)?;
        }
        let mut assemble = Command::new(root().join("packaging/container/assemble-root"));
        assemble.args([binary, &image, &libraries]).env("STRIP", machine.tool("strip"));
        run(&mut assemble)?;
        made.push(image);
    }
    Ok(made)
}

/// Makes the package of what is below `tree`; its file.
fn debian_package(
    tree: &Path,
    machine: &Machine,
    binary: &[u8],
    options: &Options,
    time: &str,
) -> Result<PathBuf> {
    let architecture = machine.debian;
    write(tree, "DEBIAN/conffiles", lines(CONFFILES).as_bytes(), 0o644)?;
    let control = Control {
        version: &options.version,
        architecture,
        installed_kib: kib_below(tree)?,
        glibc: highest_glibc(binary),
    };
    write(tree, "DEBIAN/control", control.to_string().as_bytes(), 0o644)?;
    let name = format!("settee_{}_{architecture}.deb", options.version);
    let package = options.directory.join(name);
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "--build"]).args([tree, &package]);
    // The same sources make the same package.
    build.env("SOURCE_DATE_EPOCH", time);
    let packed = capture(&mut build)?;
    if !packed.succeeded {
        bail!("dpkg-deb: {}", packed.text);
    }
    Ok(package)
}

/// Writes a file of the package; directories on its way let everybody in.
fn write(tree: &Path, to: &str, content: &[u8], mode: u32) -> Result<()> {
    let path = tree.join(to);
    let directory = path.parent().context("a file of the package is in a directory")?;
    fs::create_dir_all(directory)?;
    for directory in directory.ancestors().take_while(|directory| directory.starts_with(tree)) {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
    }
    fs::write(&path, content)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    Ok(())
}

/// What a command prints to standard output.
fn said_by(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", output.status);
    }
    Ok(output.stdout)
}

/// A page for each of the binary's commands.
fn write_manual(binary: &Command, tree: &Path) -> Result<()> {
    let directory = tree.with_file_name("manual");
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    let mut pages = Command::new(binary.get_program());
    said_by(pages.args(binary.get_args()).arg("man").arg(&directory))?;
    for page in fs::read_dir(&directory)? {
        let page = page?;
        let to = format!("{MANUAL}/{}", page.file_name().display());
        write(tree, &to, &fs::read(page.path())?, 0o644)?;
        run(Command::new("gzip").arg("-9n").arg(tree.join(to)))?;
    }
    fs::remove_dir_all(&directory).context("cannot remove what pages were written to")
}

/// Seconds since 1970 of the commit that is checked out.
fn commit_time() -> Option<String> {
    let mut command = Command::new("git");
    command.args(["log", "-1", "--format=%ct"]).current_dir(root());
    let captured = capture(&mut command).ok()?;
    captured.succeeded.then(|| captured.text.trim().to_owned())
}

/// The latest version of the C library that the binary names a symbol of: 2.N.
fn highest_glibc(binary: &[u8]) -> Option<u32> {
    const NAME: &[u8] = b"GLIBC_2.";
    let starts = binary.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME);
    let numbers = starts.filter_map(|(at, _)| {
        let rest = binary.get(at + NAME.len()..)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()
    });
    numbers.max()
}

/// The sizes of all files below, each in whole KiB.
fn kib_below(directory: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() {
            kib_below(&entry.path())?
        } else {
            metadata.len().div_ceil(1024)
        };
    }
    Ok(sum)
}

fn lines(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| [*line, "\n"]).collect()
}

/// The package as Debian's tools see it.
struct Control<'a> {
    version: &'a str,
    architecture: &'a str,
    installed_kib: u64,
    /// 2.N; `None` of a static binary.
    glibc: Option<u32>,
}

impl std::fmt::Display for Control<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { version, architecture, installed_kib, glibc } = self;
        writeln!(f, "Package: settee\nVersion: {version}\nArchitecture: {architecture}")?;
        writeln!(f, "Maintainer: The authors of Settee <maintainers@settee.invalid>")?;
        writeln!(f, "Installed-Size: {installed_kib}\nSection: database\nPriority: optional")?;
        match glibc {
            Some(minor) => writeln!(f, "Depends: libc6 (>= 2.{minor}), libgcc-s1, passwd")?,
            None => writeln!(f, "Depends: passwd")?,
        }
        writeln!(f, "Suggests: systemd")?;
        f.write_str(DESCRIPTION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_are_read_and_wrong_ones_are_refused() {
        let options = parse(&words("--binary /b --out /o --version 9 --target t")).unwrap();
        let (binary, directory) = (Some(PathBuf::from("/b")), PathBuf::from("/o"));
        let (target, version) = (Some("t".to_owned()), "9".to_owned());
        assert_eq!(options, Options { binary, target, directory, version });
        assert_eq!(parse(&[]).unwrap().version, env!("CARGO_PKG_VERSION"));
        for wrong in ["--binary", "--bin /b", "/b"] {
            assert!(parse(&words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_file_of_the_package_is_in_the_repository() {
        for Item { from, to, .. } in ITEMS {
            assert!(root().join(from).is_file(), "{from}");
            assert!(!to.starts_with('/'), "{to}");
        }
        for file in CONFFILES {
            assert!(ITEMS.iter().any(|item| format!("/{}", item.to) == *file), "{file}");
        }
    }

    #[test]
    fn a_binary_tells_its_library() {
        let binary = b"GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE\0GLIBC_2.";
        assert_eq!(highest_glibc(binary), Some(34));
        assert_eq!(highest_glibc(b"static"), None);
    }

    #[test]
    fn the_control_file_ends_with_the_description() {
        let control =
            Control { version: "1", architecture: "amd64", installed_kib: 7, glibc: Some(34) };
        let text = control.to_string();
        assert!(text.contains("Depends: libc6 (>= 2.34), libgcc-s1, passwd\n"), "{text}");
        assert!(text.ends_with("until it is set up.\n"), "{text}");
        assert!(text.lines().all(|line| line.starts_with(' ') || line.contains(": ")), "{text}");
    }
}
