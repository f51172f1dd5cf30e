//! Whether a user has logged in to an agent, as far as that shows in variables and files.
//!
//! No program is run for this, and nothing is sent. Of credentials, only whether they exist counts. The check says that a
//! login seems to be missing only if there is no trace of one or of another provider, because agents accept many kinds
//! of them. It is not sure even then: the settings of the project that a session is about are not looked at.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bowline_host::files;

/// The most bytes of a file of settings. A larger one counts as a login.
const MAX_SETTINGS: u64 = 4 << 20;

/// Where the traces of a login to a program are.
struct Traces {
    /// The name of the program's file.
    program: &'static str,
    problem: &'static str,
    /// Any variable that begins with one of these is a trace.
    variables: &'static [&'static str],
    /// Any of these in the arguments of the command is a trace.
    arguments: &'static [&'static str],
    /// The variable that names the program's own directory, and what that is below HOME without it.
    directory: (&'static str, &'static str),
    /// Files that are a trace if they are not empty.
    files: &'static [Place],
    /// Files of settings that are a trace if they contain one of the words.
    settings: &'static [(Place, &'static [&'static str])],
}

/// Where a file is.
#[derive(Clone, Copy)]
enum Place {
    /// In the program's own directory.
    Own(&'static str),
    /// In the home directory.
    Home(&'static str),
    System(&'static str),
}

use Place::{Home, Own, System};

/// Words of Codex's settings that name another provider, or another place for credentials.
const CODEX_SETTINGS: &[&str] = &["model_provider", "credentials_store", "_base_url", "profile", "oss_provider"];
/// Words of the settings of Gemini CLI and Qwen Code that mean that a kind of login was chosen.
const GEMINI_SETTINGS: &[&str] = &["selectedType"];
const QWEN_SETTINGS: &[&str] = &["selectedType", "apiKey", "modelProviders", "\"env\""];
const CLAUDE_SETTINGS: &[&str] = &["apiKeyHelper", "\"env\"", "awsAuthRefresh", "awsCredentialExport"];

/// The programs for which a missing login shows. opencode has models that need none; Cursor could not be tried.
const ALL: &[Traces] = &[
    Traces {
        program: "claude",
        problem: "seems not to be logged in: run `claude` in a terminal and use /login",
        variables: &[
            "ANTHROPIC_",
            "CLAUDE_CODE_OAUTH",
            "CLAUDE_CODE_USE_",
            "CLAUDE_CODE_API_KEY",
            "CLAUDE_CODE_HOST_CREDS",
            "CLAUDE_SECURESTORAGE",
            "AWS_BEARER_TOKEN_BEDROCK",
        ],
        arguments: &["--settings"],
        directory: ("CLAUDE_CONFIG_DIR", ".claude"),
        files: &[Own(".credentials.json"), Home(".config/anthropic/configs")],
        settings: &[
            // A login for the API keeps its key here.
            (Home(".claude.json"), &["primaryApiKey", "oauthAccount"]),
            (Own(".claude.json"), &["primaryApiKey", "oauthAccount"]),
            (Own("settings.json"), CLAUDE_SETTINGS),
            (System("/etc/claude-code/managed-settings.json"), CLAUDE_SETTINGS),
        ],
    },
    Traces {
        program: "codex",
        // Its app-server uses neither OPENAI_API_KEY nor CODEX_API_KEY.
        problem: "seems not to be logged in: run `codex login` in a terminal",
        variables: &["CODEX_ACCESS_TOKEN", "CODEX_AGENT_IDENTITY", "OPENAI_FEDERATION", "OPENAI_IDENTITY"],
        arguments: &["model_provider", "--oss", "--profile"],
        directory: ("CODEX_HOME", ".codex"),
        files: &[Own("auth.json")],
        settings: &[
            (Own("config.toml"), CODEX_SETTINGS),
            (System("/etc/codex/config.toml"), CODEX_SETTINGS),
            (System("/etc/codex/managed_config.toml"), CODEX_SETTINGS),
        ],
    },
    Traces {
        program: "gemini",
        problem: "seems not to be logged in: run `gemini` in a terminal, or set GEMINI_API_KEY",
        variables: &[
            "GEMINI_API_KEY",
            "GEMINI_DEFAULT_AUTH_TYPE",
            "GEMINI_CLI_HOME",
            "GEMINI_CLI_SYSTEM_",
            "GEMINI_CLI_USE_COMPUTE_ADC",
            "GOOGLE_API_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_CLOUD_ACCESS_TOKEN",
            "GOOGLE_GENAI_USE_",
            "CLOUD_SHELL",
        ],
        arguments: &[],
        directory: ("", ".gemini"),
        files: &[Own("oauth_creds.json"), Own("gemini-credentials.json"), Own(".env"), Home(".env")],
        settings: &[
            (Own("settings.json"), GEMINI_SETTINGS),
            (System("/etc/gemini-cli/settings.json"), GEMINI_SETTINGS),
            (System("/etc/gemini-cli/system-defaults.json"), GEMINI_SETTINGS),
        ],
    },
    Traces {
        program: "qwen",
        problem: "seems not to be logged in: run `qwen` in a terminal and use /auth",
        variables: &["OPENAI_", "DASHSCOPE_", "BAILIAN_", "ANTHROPIC_", "GEMINI_API_KEY", "GOOGLE_", "QWEN_"],
        arguments: &["--auth-type", "--openai-api-key"],
        directory: ("", ".qwen"),
        files: &[Own("oauth_creds.json"), Own(".env"), Home(".env")],
        settings: &[
            (Own("settings.json"), QWEN_SETTINGS),
            (System("/etc/qwen-code/settings.json"), QWEN_SETTINGS),
            (System("/etc/qwen-code/system-defaults.json"), QWEN_SETTINGS),
        ],
    },
];

/// The problem of a user who seems not to have logged in to a program. `None` also if nothing can be said.
pub(super) fn problem(program: &OsStr, arguments: &[String], env: &[(OsString, OsString)]) -> Option<&'static str> {
    let traces = ALL.iter().find(|traces| program == traces.program)?;
    let value = |wanted: &str| env.iter().find(|(name, value)| name == wanted && !value.is_empty());
    let home = PathBuf::from(&value("HOME")?.1);
    let own = value(traces.directory.0).map_or_else(|| home.join(traces.directory.1), |(_, own)| own.into());
    if !home.is_absolute() || !own.is_absolute() {
        return None;
    }
    let is_trace = |(name, value): &(OsString, OsString)| {
        !value.is_empty() && traces.variables.iter().any(|start| name.as_bytes().starts_with(start.as_bytes()))
    };
    let path = |place: Place| match place {
        Own(name) => own.join(name),
        Home(name) => home.join(name),
        System(path) => path.into(),
    };
    let has_trace = env.iter().any(is_trace)
        || arguments.iter().any(|argument| traces.arguments.iter().any(|word| argument.contains(word)))
        || traces.files.iter().any(|file| may_have_content(&path(*file)))
        || traces.settings.iter().any(|(file, words)| may_contain(&path(*file), words));
    (!has_trace).then_some(traces.problem)
}

/// Whether a file is there and not empty, or that cannot be seen.
fn may_have_content(path: &Path) -> bool {
    path.metadata().map_or_else(|error| !is_missing(&error), |found| found.len() > 0)
}

/// Whether a file contains one of these words, or cannot be read.
fn may_contain(path: &Path, words: &[&str]) -> bool {
    let has = |text: &[u8], word: &str| text.windows(word.len()).any(|part| part == word.as_bytes());
    match files::read(path, MAX_SETTINGS) {
        Ok(text) => words.iter().any(|word| has(&text, word)),
        Err(error) => !is_missing(&error),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Programs;
    use super::*;

    /// The problem in a home directory with these files.
    fn check(program: &str, variables: &[(&str, &str)], files: &[(&str, &str)]) -> Option<&'static str> {
        let programs = Programs::new();
        files.iter().for_each(|(name, content)| drop(programs.file(name, content)));
        let mut env = programs.env();
        let home = programs.path().to_str().unwrap();
        env.extend(variables.iter().map(|(name, value)| (name.into(), value.replace("$HOME", home).into())));
        problem(program.as_ref(), &[], &env)
    }

    #[test]
    fn a_home_directory_without_any_trace_seems_not_to_be_logged_in() {
        assert_eq!(
            check("claude", &[], &[]),
            Some("seems not to be logged in: run `claude` in a terminal and use /login"),
        );
        for program in ["codex", "gemini", "qwen"] {
            assert!(
                check(program, &[], &[]).is_some_and(|problem| problem.starts_with("seems not to be logged in: ")),
                "{program}"
            );
        }
        for program in ["opencode", "cursor-agent", "my-agent", ""] {
            assert_eq!(check(program, &[], &[]), None, "nothing is claimed about {program:?}");
        }
    }

    #[test]
    fn a_variable_of_a_login_or_of_another_provider_is_a_trace() {
        for (program, variable) in [
            ("claude", "ANTHROPIC_API_KEY"),
            ("claude", "ANTHROPIC_AUTH_TOKEN"),
            ("claude", "ANTHROPIC_BASE_URL"),
            ("claude", "CLAUDE_CODE_OAUTH_TOKEN"),
            ("claude", "CLAUDE_CODE_USE_BEDROCK"),
            ("claude", "CLAUDE_CODE_USE_VERTEX"),
            ("codex", "CODEX_ACCESS_TOKEN"),
            ("gemini", "GEMINI_API_KEY"),
            ("gemini", "GOOGLE_API_KEY"),
            ("gemini", "GOOGLE_GENAI_USE_VERTEXAI"),
            ("qwen", "OPENAI_API_KEY"),
            ("qwen", "DASHSCOPE_API_KEY"),
        ] {
            assert_eq!(check(program, &[(variable, "x")], &[]), None, "{program}: {variable}");
            assert!(check(program, &[(variable, "")], &[]).is_some(), "{program}: {variable} is empty");
        }
        assert!(check("codex", &[("OPENAI_API_KEY", "x")], &[]).is_some(), "its app-server does not use it");
        assert!(check("claude", &[("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")], &[]).is_some());
    }

    #[test]
    fn a_file_of_credentials_or_of_another_provider_is_a_trace() {
        for (program, file, content) in [
            ("claude", ".claude/.credentials.json", "{}"),
            ("claude", ".claude.json", r#"{"primaryApiKey": "x"}"#),
            ("claude", ".claude/settings.json", r#"{"apiKeyHelper": "x"}"#),
            ("claude", ".claude/settings.json", r#"{"env": {}}"#),
            ("codex", ".codex/auth.json", "{}"),
            ("codex", ".codex/config.toml", "model_provider = \"stub\""),
            ("codex", ".codex/config.toml", "cli_auth_credentials_store = \"keyring\""),
            ("gemini", ".gemini/oauth_creds.json", "{}"),
            ("gemini", ".gemini/.env", "GEMINI_API_KEY=x"),
            ("gemini", ".gemini/settings.json", r#"{"security": {"auth": {"selectedType": "x"}}}"#),
            ("qwen", ".qwen/oauth_creds.json", "{}"),
            ("qwen", ".qwen/settings.json", r#"{"modelProviders": {}}"#),
        ] {
            assert_eq!(check(program, &[], &[(file, content)]), None, "{program}: {file}");
            assert!(check(program, &[], &[(file, "")]).is_some(), "{program}: {file} is empty");
        }
        let large = " ".repeat(5 << 20);
        assert_eq!(check("codex", &[], &[(".codex/config.toml", &large)]), None, "nothing is claimed");
        assert!(check("claude", &[], &[(".claude.json", r#"{"numStartups": 1}"#)]).is_some());
        assert!(check("codex", &[], &[(".codex/config.toml", "model = \"x\"")]).is_some());
    }

    #[test]
    fn a_directory_that_a_variable_names_takes_the_place_of_the_usual_one() {
        let (own, usual) = (("other/auth.json", "{}"), (".codex/auth.json", "{}"));
        let codex_home = [("CODEX_HOME", "$HOME/other")];
        assert_eq!(check("codex", &codex_home, &[own]), None);
        assert!(check("codex", &codex_home, &[usual]).is_some());
        assert_eq!(check("codex", &[("CODEX_HOME", "relative")], &[]), None, "where that is, is not known");
        let claude = [("CLAUDE_CONFIG_DIR", "$HOME/c")];
        assert_eq!(check("claude", &claude, &[("c/.credentials.json", "{}")]), None);
        assert!(check("claude", &claude, &[(".claude/.credentials.json", "{}")]).is_some());
    }

    #[test]
    fn an_argument_that_names_another_provider_is_a_trace() {
        let programs = Programs::new();
        let arguments = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            problem("codex".as_ref(), &arguments, &programs.env())
        };
        assert!(arguments(&[]).is_some() && arguments(&["-c", "model=\"x\""]).is_some());
        assert_eq!(arguments(&["-c", "model_provider=\"x\""]), None);
        assert_eq!(problem("codex".as_ref(), &[], &[]), None, "without a home directory, nothing is known");
    }
}
