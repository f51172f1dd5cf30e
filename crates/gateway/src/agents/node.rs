//! The Node that a program needs: most agents are npm packages, which begin with `#!/usr/bin/env node`.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bowline_host::files;
use bowline_host::program;
use serde::Deserialize;

use super::version::Release;

/// How much of a program is read to find its interpreter. The kernel reads as much.
const MAX_FIRST_LINE: u64 = 256;
/// The most bytes of a `package.json`. A larger one is ignored.
const MAX_PACKAGE: u64 = 1 << 20;
/// How many directories above a script may be without its `package.json`.
const MAX_LEVELS: usize = 6;

/// What a program that is written for Node needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeNeed {
    /// The `node` that it would be run with; `None` if there is none in PATH.
    pub(super) node: Option<PathBuf>,
    /// Whether the program names it by its path: then another one in PATH would not help.
    is_named: bool,
    /// The oldest release that its package allows, if it says so.
    pub(super) oldest: Option<Release>,
}

impl NodeNeed {
    /// Reads the first line of a program, and the package that it belongs to. `None` if it does not run with Node.
    pub(super) fn of(script: &Path, cwd: &Path, path: Option<&OsStr>) -> Option<NodeNeed> {
        let script = script.canonicalize().ok()?;
        let (node, is_named) = match interpreter(&first_line(&script)?)? {
            Interpreter::Path(node) => (Some(node), true),
            Interpreter::InPath => (program::find(OsStr::new("node"), cwd, path).ok(), false),
        };
        let range = script.ancestors().skip(1).take(MAX_LEVELS).find_map(engine);
        Some(NodeNeed { node, is_named, oldest: range.and_then(|range| Release::oldest(&range)) })
    }

    /// The problem if the program was found not to run, or if its Node, which has this version, is too old.
    pub(super) fn problem(&self, version: Option<Release>) -> Option<String> {
        match (self.oldest, version) {
            (Some(oldest), Some(version)) if version < oldest => {
                let place = if self.is_named { "that the program names in its first line" } else { "in PATH" };
                Some(format!("Node {oldest} or newer is needed; the `node` {place} is {version}"))
            }
            (Some(oldest), _) if self.node.is_none() => {
                Some(format!("Node {oldest} or newer is needed, and no `node` was found in PATH"))
            }
            (None, _) if self.node.is_none() => Some("Node is needed, and no `node` was found in PATH".to_owned()),
            _ => None,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Interpreter {
    /// Node, by its path.
    Path(PathBuf),
    /// Node, through `env`.
    InPath,
}

/// Whether the first line of a file runs it with Node.
fn interpreter(line: &[u8]) -> Option<Interpreter> {
    let mut words = line.strip_prefix(b"#!")?.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let path = Path::new(OsStr::from_bytes(words.next()?));
    if path.file_name()? == "env" {
        let is_program = |word: &&[u8]| !word.starts_with(b"-") && !word.contains(&b'=');
        return (words.find(is_program)? == b"node").then_some(Interpreter::InPath);
    }
    (path.file_name()? == "node").then(|| Interpreter::Path(path.to_owned()))
}

fn first_line(script: &Path) -> Option<Vec<u8>> {
    let mut start = Vec::new();
    files::open(script).ok()?.take(MAX_FIRST_LINE).read_to_end(&mut start).ok()?;
    start.split(|byte| *byte == b'\n').next().map(<[u8]>::to_vec)
}

/// `engines.node` of the package in this directory; empty if the package does not say. `None` if there is no package: a
/// `package.json` without a name only says how to read the files beside it.
fn engine(dir: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Package {
        #[serde(rename = "name")]
        _name: String,
        #[serde(default)]
        engines: Engines,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Engines {
        node: String,
    }
    let package = files::read(&dir.join("package.json"), MAX_PACKAGE).ok()?;
    let package: Package = serde_json::from_slice(&package).ok()?;
    Some(package.engines.node)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Programs;
    use super::*;

    #[test]
    fn node_is_recognised_by_the_first_line() {
        for (line, expected) in [
            ("#!/usr/bin/env node", Some(Interpreter::InPath)),
            ("#! /usr/bin/env -S NODE_OPTIONS=x node --no-warnings=a\r", Some(Interpreter::InPath)),
            ("#!/opt/node/bin/node --x", Some(Interpreter::Path("/opt/node/bin/node".into()))),
            ("#!/usr/bin/env nodemon", None),
            ("#!/bin/sh", None),
            ("#!/usr/bin/env", None),
            ("#!", None),
            ("\u{7f}ELF node", None),
            ("", None),
        ] {
            assert_eq!(interpreter(line.as_bytes()), expected, "{line:?}");
        }
    }

    /// As npm installs a package: a link to a script some levels below its `package.json`.
    #[test]
    fn the_package_of_a_script_says_which_node_it_needs() {
        let programs = Programs::new();
        let script = programs.script("lib/node_modules/@x/agent/dist/bin/agent.js", "#!/usr/bin/env node\n");
        programs.file("lib/node_modules/@x/agent/dist/package.json", r#"{"type": "module"}"#);
        let package = "lib/node_modules/@x/agent/package.json";
        programs.file(package, r#"{"name": "@x/agent", "engines": {"node": ">=22.0.0"}}"#);
        let link = programs.path().join("agent");
        std::os::unix::fs::symlink(script, &link).unwrap();
        let need = || NodeNeed::of(&link, programs.path(), Some(programs.path().as_os_str())).unwrap();
        assert_eq!(need(), NodeNeed { node: None, is_named: false, oldest: Release::parse("22") });
        assert_eq!(need().problem(None).unwrap(), "Node 22 or newer is needed, and no `node` was found in PATH");
        let node = programs.script("node", "#!/bin/sh\n");
        assert_eq!(need().node, Some(node));
        let problem = |version| need().problem(Release::parse(version));
        assert_eq!(problem("v18.19.1").unwrap(), "Node 22 or newer is needed; the `node` in PATH is 18.19.1");
        assert_eq!((problem("v22.0.0"), problem("unknown")), (None, None));
        for package_json in [r#"{"name": "@x/agent"}"#, r#"{"name": "x", "engines": {"node": 7}}"#, "no JSON"] {
            programs.file(package, package_json);
            assert_eq!(need().oldest, None, "{package_json}");
        }
    }

    #[test]
    fn a_node_that_the_program_names_by_its_path_is_not_called_the_one_in_path() {
        let programs = Programs::new();
        let script = programs.script("agent", "#!/opt/old/bin/node\n");
        programs.file("package.json", r#"{"name": "agent", "engines": {"node": ">=22"}}"#);
        let need = NodeNeed::of(&script, programs.path(), None).unwrap();
        assert_eq!(
            need.problem(Release::parse("v18.19.1")).unwrap(),
            "Node 22 or newer is needed; the `node` that the program names in its first line is 18.19.1"
        );
    }

    #[test]
    fn a_program_that_is_no_script_needs_no_node() {
        let programs = Programs::new();
        let sh = NodeNeed::of(Path::new("/bin/sh"), programs.path(), None);
        let script = programs.script("agent", "#!/bin/sh\n");
        assert_eq!((sh, NodeNeed::of(&script, programs.path(), None)), (None, None));
        assert_eq!(NodeNeed::of(&programs.path().join("none"), programs.path(), None), None);
    }
}
