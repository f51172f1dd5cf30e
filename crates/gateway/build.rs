//! Embeds the web app in the gateway. Takes the first of these that exists:
//!
//! 1. the directory `BOWLINE_WEB_DIST`, with a built app;
//! 2. `web-dist` in this crate, which is filled when the crate is packaged, for `cargo install`;
//! 3. in release builds with Node 20.19 or newer, a build of `packages/web`, which leaves the source tree untouched;
//!    if it fails, so does this script;
//! 4. a placeholder page that says how to build the app.
//!
//! Generates the table of files for `src/assets.rs`, with compressed copies where those are smaller.

#![allow(clippy::expect_used, clippy::panic, reason = "a build script reports failure by panicking")]

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

/// The oldest supported version of Node: major and minor.
const MIN_NODE: (u32, u32) = (20, 19);
/// The app's sources, relative to the repository's root.
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
    let crate_dir = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let (kind, app) = find(&crate_dir, &out);
    let table = table(kind, &app, &out);
    fs::write(out.join("web_app.rs"), table).expect("cannot write the table of files");
}

/// Finds or builds the app. Returns its `WebApp` variant and directory.
fn find(crate_dir: &Path, out: &Path) -> (&'static str, PathBuf) {
    if let Some(dist) = env::var_os("BOWLINE_WEB_DIST").filter(|dist| !dist.is_empty()) {
        let dist = PathBuf::from(dist);
        assert!(dist.join("index.html").is_file(), "BOWLINE_WEB_DIST={} contains no index.html", dist.display());
        watch(&dist);
        return ("Given", dist);
    }
    let packaged = crate_dir.join("web-dist");
    if packaged.join("index.html").is_file() {
        watch(&packaged);
        return ("Packaged", packaged);
    }
    let placeholder = crate_dir.join("src/placeholder");
    watch(&placeholder);
    let root = crate_dir.join("../..");
    let release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if release && root.join("packages/web/package.json").is_file() {
        match node_version() {
            Some(version) if version >= MIN_NODE => return ("Built", build(&root, out)),
            found => {
                let found =
                    found.map_or("none is installed".into(), |(major, minor)| format!("{major}.{minor} is installed"));
                println!(
                    "cargo::warning=building without the web app, which needs Node {}.{} or newer ({found})",
                    MIN_NODE.0, MIN_NODE.1
                );
            }
        }
    }
    ("Placeholder", placeholder)
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}

/// The major and minor version of the installed Node.
fn node_version() -> Option<(u32, u32)> {
    let output = Command::new("node").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.trim().trim_start_matches('v').split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Builds the app from a copy of its sources. Returns the directory with the result.
fn build(root: &Path, out: &Path) -> PathBuf {
    let (copy, dist) = (out.join("web-src"), out.join("web"));
    for source in SOURCES {
        let (from, to) = (root.join(source), copy.join(source));
        watch(&from);
        // Remove files that were deleted from the sources.
        let _ = fs::remove_dir_all(&to);
        copy_all(&from, &to).unwrap_or_else(|error| panic!("cannot copy {}: {error}", from.display()));
    }
    // Skips the root's packages, which are only for formatting and linting.
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
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "cannot build the web app: {command:?}\n{}", String::from_utf8_lossy(&text));
}

/// Generates the table of files as Rust code.
fn table(kind: &str, app: &Path, out: &Path) -> String {
    let mut files = Vec::new();
    list(app, "", &mut files);
    files.sort();
    let mut table =
        format!("pub(super) static KIND: WebApp = WebApp::{kind};\npub(super) static FILES: &[File] = &[\n");
    for path in files {
        let file = app.join(&path).canonicalize().expect("cannot resolve a listed file");
        let bytes = fs::read(&file).expect("cannot read a listed file");
        let etag: String = Sha256::digest(&bytes).iter().take(8).fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        let gzip = compressed(&bytes).map(|small| {
            let name = out.join(format!("{etag}.gz"));
            fs::write(&name, small).expect("cannot write a compressed file");
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
        let entry = entry.expect("cannot read a directory");
        let name = entry.file_name().into_string().expect("a file name is not UTF-8");
        if entry.path().is_dir() {
            list(&entry.path(), &format!("{prefix}{name}/"), files);
        } else {
            files.push(format!("{prefix}{name}"));
        }
    }
}

/// Compresses the bytes. `None` if that saves less than a tenth.
fn compressed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    let small = encoder.finish().ok()?;
    (small.len() * 10 < bytes.len() * 9).then_some(small)
}
