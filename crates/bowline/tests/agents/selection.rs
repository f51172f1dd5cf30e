//! Which programs the tests run, and their installation.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::programs::{PROGRAMS, Program};

/// The programs to test, installed: those that `BOWLINE_TEST_AGENTS` names, or those that `make test` runs.
pub(crate) fn selected() -> &'static [&'static Program] {
    static SELECTED: OnceLock<Vec<&'static Program>> = OnceLock::new();
    SELECTED.get_or_init(|| {
        let names = std::env::var("BOWLINE_TEST_AGENTS").unwrap_or_else(|_| read(&["--defaults"]));
        let find = |name: &str| PROGRAMS.iter().find(|program| program.name == name);
        let programs: Vec<&Program> = names
            .split(',')
            .map(|name| find(name).unwrap_or_else(|| panic!("BOWLINE_TEST_AGENTS: no program is called {name:?}")))
            .collect();
        eprintln!("testing with {names}");
        install(&programs);
        programs
    })
}

/// Installs what is missing. The script says so on stderr.
fn install(programs: &[&Program]) {
    let names = programs.iter().map(|program| program.name);
    let status = Command::new(script()).args(names).stdin(Stdio::null()).status().expect("scripts/agents runs");
    assert!(status.success(), "scripts/agents could not install the programs: {status}");
}

/// The PATH on which an installed program and its Node are found.
pub(crate) fn path_of(program: &Program) -> String {
    format!("{}:/usr/local/bin:/usr/bin:/bin", read(&["--path", program.name]))
}

/// The version that is installed. The script puts it into the name of the program's directory.
pub(crate) fn version_of(program: &Program) -> String {
    let path = read(&["--path", program.name]);
    let directory = path.split('/').find_map(|part| part.strip_prefix(program.name)?.strip_prefix('-'));
    directory.expect("a directory with the version").to_owned()
}

/// What scripts/agents prints.
fn read(args: &[&str]) -> String {
    let output = Command::new(script()).args(args).output().expect("scripts/agents runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/agents")
}
