//! What the files of this machine say about an agent's program. Nothing is run.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bowline_host::agents::{AgentProgram, AgentTable};
use bowline_host::program;
use sha2::{Digest, Sha256};

use super::login;
use super::node::NodeNeed;

type Variables = Vec<(OsString, OsString)>;

/// The program of an agent.
pub(super) struct Lookup {
    /// Where it is, or why it cannot be run, in words.
    pub(super) program: Result<Program, String>,
    /// That the user seems not to have logged in, in words.
    pub(super) login: Option<&'static str>,
}

/// A program that was found, and how to run it.
#[derive(Clone)]
pub(super) struct Program {
    /// The name of its file.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) env: Variables,
    pub(super) cwd: PathBuf,
    pub(super) node: Option<NodeNeed>,
    /// Whether it is one of the programs of the built-in table, which all know `--version`. Another one might start to
    /// work instead.
    pub(super) has_version: bool,
    pub(super) fingerprint: Fingerprint,
}

/// What a program's version and problems depend on: its file, its Node and its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    program: FileId,
    node: Option<FileId>,
    environment: [u8; 32],
}

/// A version of a file. The time of the last change is that of the file's entry, because npm sets the same time of
/// modification in all versions of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileId {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl FileId {
    /// Of the file that a link leads to.
    fn of(path: &Path) -> io::Result<FileId> {
        let found = path.metadata()?;
        let changed = (found.ctime(), found.ctime_nsec());
        Ok(FileId { path: path.to_owned(), device: found.dev(), inode: found.ino(), size: found.len(), changed })
    }
}

impl Lookup {
    /// Looks for an agent's program in the environment that its sessions get: that of a login, with the table's variables.
    pub(super) fn new(agent: &AgentProgram, login_env: &[(OsString, OsString)]) -> Lookup {
        let is_replaced = |name: &OsStr| agent.env.keys().any(|set| name == OsStr::new(set));
        let kept = login_env.iter().filter(|(name, _)| !is_replaced(name)).cloned();
        let env: Variables = kept.chain(agent.env.iter().map(|(name, value)| (name.into(), value.into()))).collect();
        let [program, arguments @ ..] = agent.command.as_slice() else {
            return Lookup { program: Err("no program is configured".to_owned()), login: None };
        };
        let file_name = Path::new(program).file_name().unwrap_or_default();
        let login = login::problem(file_name, arguments, &env);
        Lookup { program: find(program, env), login }
    }
}

fn find(program: &str, env: Variables) -> Result<Program, String> {
    let value = |wanted: &str| env.iter().rfind(|(name, _)| name == wanted).map(|(_, value)| value.as_os_str());
    let home = value("HOME").map(PathBuf::from).filter(|home| home.is_absolute() && home.is_dir());
    let cwd = home.unwrap_or_else(|| "/".into());
    let path = program::find(program.as_ref(), &cwd, value("PATH")).map_err(|why| why.explain(program.as_ref()))?;
    let name = Path::new(program).file_name().unwrap_or_default().display().to_string();
    let node = NodeNeed::of(&path, &cwd, value("PATH"));
    let fingerprint = Fingerprint {
        program: FileId::of(&path).map_err(|_| format!("`{name}` cannot be run: its file cannot be read"))?,
        node: node.as_ref().and_then(|need| FileId::of(need.node.as_ref()?).ok()),
        environment: digest(&env),
    };
    let has_version = AgentTable::builtin().iter().any(|(_, builtin)| builtin.command.first() == Some(&name));
    Ok(Program { name, path, env, cwd, node, has_version, fingerprint })
}

/// A digest of the environment, which may contain secrets.
fn digest(env: &Variables) -> [u8; 32] {
    let mut digest = Sha256::new();
    for (name, value) in env {
        for text in [name, value] {
            digest.update(text.as_bytes());
            digest.update([0]);
        }
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::Programs;
    use super::*;

    fn agent(entry: serde_json::Value) -> AgentProgram {
        let entries = serde_json::from_value(json!({ "claude": entry })).unwrap();
        AgentTable::builtin().merge(&entries).unwrap().get("claude").unwrap().clone()
    }

    #[test]
    fn a_program_that_cannot_be_run_has_its_reason() {
        let programs = Programs::new();
        let problem = || Lookup::new(&agent(json!({})), &programs.only_env()).program.err();
        assert_eq!(problem().unwrap(), "`claude` is not installed: it was not found in PATH");
        let file = programs.path().join("claude");
        std::os::unix::fs::symlink("nowhere", &file).unwrap();
        assert_eq!(problem().unwrap(), "`claude` cannot be run: it is a link to a file that does not exist");
        std::fs::remove_file(&file).unwrap();
        programs.file("claude", "#!/bin/sh\n");
        assert_eq!(problem().unwrap(), "`claude` cannot be run: it is not executable");
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert_eq!(problem().unwrap(), "`claude` cannot be run: it is a directory");
        std::fs::remove_dir(&file).unwrap();
        programs.script("claude", "#!/bin/sh\n");
        assert_eq!(problem(), None);
    }

    #[test]
    fn variables_of_the_table_replace_those_of_the_login() {
        let (login, table) = (Programs::new(), Programs::new());
        table.script("claude", "#!/bin/sh\n");
        let looked_up = Lookup::new(&agent(json!({"env": {"PATH": table.path()}})), &login.env());
        let program = looked_up.program.unwrap();
        assert_eq!(program.path, table.path().join("claude"));
        assert_eq!(program.env.iter().filter(|(name, _)| name == "PATH").count(), 1);
        assert_eq!(program.cwd, login.path());
        assert!(looked_up.login.is_some());
        let with_key = Lookup::new(&agent(json!({"env": {"ANTHROPIC_API_KEY": "x"}})), &login.env());
        assert_eq!(with_key.login, None);
    }

    #[test]
    fn only_programs_of_the_built_in_table_are_asked_for_their_version() {
        let programs = Programs::new();
        let has_version = |command: &str| {
            let path = programs.script(command, "#!/bin/sh\n");
            Lookup::new(&agent(json!({"command": [path]})), &programs.env()).program.unwrap().has_version
        };
        assert!(has_version("qwen") && has_version("cursor-agent"));
        assert!(!has_version("my-agent") && !has_version("claude-agent-acp"));
    }

    #[test]
    fn another_file_or_environment_has_another_fingerprint() {
        let programs = Programs::new();
        let fingerprint =
            |entry: serde_json::Value| Lookup::new(&agent(entry), &programs.env()).program.unwrap().fingerprint;
        programs.script("claude", "#!/usr/bin/env node\n1");
        programs.script("node", "#!/bin/sh\n");
        let first = fingerprint(json!({}));
        assert_eq!(fingerprint(json!({})), first);
        assert_ne!(fingerprint(json!({"env": {"A": "b"}})), first);
        programs.script("node", "#!/bin/sh\n#");
        let with_other_node = fingerprint(json!({}));
        assert_ne!(with_other_node, first);
        programs.script("claude", "#!/usr/bin/env node\n2");
        assert_ne!(fingerprint(json!({})), with_other_node, "of the same size");
    }
}
