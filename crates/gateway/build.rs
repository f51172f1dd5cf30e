//! Puts the web app into the gateway. Where it comes from, in this order:
//!
//! 1. `BOWLINE_WEB_DIST`, a directory with a built app;
//! 2. `web-dist` in this crate, filled when the crate is packaged, so that `cargo install` carries it;
//! 3. in release builds with Node 20.19 or newer, a build of `packages/web`, made in the output directory so that nothing is
//!    written into the source tree; if it fails, so does this;
//! 4. a page that says how to build it.
//!
//! It writes a table of files, each also compressed where that makes it smaller, for `src/assets.rs`.

#![allow(clippy::expect_used, clippy::panic, reason = "a build script fails by panicking, with the reason")]

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

/// The oldest Node that builds the app: major and minor.
const NODE: (u32, u32) = (20, 19);
/// What the app is built from, from the repository's root.
const SOURCES: [&str; 12] = [
    ".npmrc",
    "package.json",
    "package-lock.json",
    "packages/client/package.json",
    "packages/client/src",
    "packages/web/index.html",
    "packages/web/package.json",
    "packages/web/public",
    "packages/web/src",
    "packages/web/svelte.config.js",
    "packages/web/tsconfig.json",
    "packages/web/vite.config.ts",
];

fn main() {
    println!("cargo::rerun-if-env-changed=BOWLINE_WEB_DIST");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let (kind, app) = find(&here, &out);
    let table = table(kind, &app, &out);
    fs::write(out.join("web_app.rs"), table).expect("the table of files is written");
}

/// Which app it is, and where.
fn find(here: &Path, out: &Path) -> (&'static str, PathBuf) {
    if let Some(given) = env::var_os("BOWLINE_WEB_DIST").filter(|given| !given.is_empty()) {
        let given = PathBuf::from(given);
        assert!(given.join("index.html").is_file(), "BOWLINE_WEB_DIST={} has no index.html", given.display());
        watch(&given);
        return ("Given", given);
    }
    let packaged = here.join("web-dist");
    if packaged.join("index.html").is_file() {
        watch(&packaged);
        return ("Packaged", packaged);
    }
    let placeholder = here.join("src/placeholder");
    watch(&placeholder);
    let root = here.join("../..");
    let release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if release && root.join("packages/web/package.json").is_file() {
        match node() {
            Some(version) if version >= NODE => return ("Built", build(&root, out)),
            found => {
                let found =
                    found.map_or("none is installed".into(), |(major, minor)| format!("{major}.{minor} is installed"));
                println!(
                    "cargo::warning=the gateway has a placeholder instead of the web app, which needs Node {}.{} to build ({found})",
                    NODE.0, NODE.1
                );
            }
        }
    }
    ("Placeholder", placeholder)
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}

/// Node's version, if there is one.
fn node() -> Option<(u32, u32)> {
    let said = Command::new("node").arg("--version").output().ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    let mut numbers = text.trim().trim_start_matches('v').split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Builds the app from a copy of its sources.
fn build(root: &Path, out: &Path) -> PathBuf {
    let (copy, dist) = (out.join("web-src"), out.join("web"));
    for source in SOURCES {
        let (from, to) = (root.join(source), copy.join(source));
        watch(&from);
        // A file that is no more must not be built.
        let _ = fs::remove_dir_all(&to);
        copy_all(&from, &to).unwrap_or_else(|error| panic!("cannot copy {}: {error}", from.display()));
    }
    // Without the root's packages, which only format and lint.
    run(Command::new("npm").args(["install", "--no-audit", "--no-fund", "-w", "@bowline/web"]).current_dir(&copy));
    let web = copy.join("packages/web");
    run(Command::new("npx").args(["vite", "build", "--emptyOutDir", "--outDir"]).arg(&dist).current_dir(web));
    dist
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        return fs::copy(from, to).map(drop);
    }
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        copy_all(&from.join(&name), &to.join(&name))?;
    }
    Ok(())
}

fn run(command: &mut Command) {
    let ran = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let words = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "the web app was not built: {command:?}\n{}", String::from_utf8_lossy(&words));
}

/// The table of files, as Rust.
fn table(kind: &str, app: &Path, out: &Path) -> String {
    let mut files = Vec::new();
    list(app, "", &mut files);
    files.sort();
    let mut table =
        format!("pub(super) static KIND: WebApp = WebApp::{kind};\npub(super) static FILES: &[File] = &[\n");
    for path in files {
        let file = app.join(&path).canonicalize().expect("a listed file is there");
        let bytes = fs::read(&file).expect("a listed file is read");
        let etag: String = Sha256::digest(&bytes).iter().take(8).fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        let gzip = compressed(&bytes).map(|small| {
            let name = out.join(format!("{etag}.gz"));
            fs::write(&name, small).expect("a compressed file is written");
            name
        });
        let gzip = gzip.map_or("None".into(), |name| format!("Some(include_bytes!({name:?}))"));
        let _ = writeln!(
            table,
            "    File {{ path: {path:?}, etag: {etag:?}, bytes: include_bytes!({file:?}), gzip: {gzip} }},"
        );
    }
    table.push_str("];\n");
    table
}

fn list(folder: &Path, prefix: &str, files: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display())) {
        let entry = entry.expect("a directory is read to its end");
        let name = entry.file_name().into_string().expect("the app's files have plain names");
        if entry.path().is_dir() {
            list(&entry.path(), &format!("{prefix}{name}/"), files);
        } else {
            files.push(format!("{prefix}{name}"));
        }
    }
}

/// The bytes compressed, where that saves a tenth at least.
fn compressed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    let small = encoder.finish().ok()?;
    (small.len() * 10 < bytes.len() * 9).then_some(small)
}
