//! The table of agent programs: how each is configured to use the stub, and where it differs from the others.

use std::path::Path;

use serde_json::json;

/// An agent program, by the name that Bowline's own table has for it.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Its command, where the one of Bowline's table does not suffice.
    pub(crate) command: Option<&'static [&'static str]>,
    /// Variables of its environment. `$STUB` is the address of the stub.
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// Writes its settings into the home directory. The text is the address of the stub.
    pub(crate) configure: fn(&Path, &str),
    /// Whether its run can be given more instructions.
    pub(crate) takes_instructions: bool,
    pub(crate) resumes: Resumes,
}

/// When a program can load a conversation that another process of it has begun.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Resumes {
    AtOnce,
    /// Not within the minute of the clock in which the conversation was begun or loaded: the name of the file has
    /// no seconds, so that the second process writes into the file of the first, and its empty conversation wins.
    NextMinute,
}

pub(crate) const PROGRAMS: &[Program] = &[
    // Its tool `Bash` needs an approval for any command that is not known to only read.
    Program {
        name: "claude",
        command: None,
        variables: &[
            ("ANTHROPIC_API_KEY", "dummy-key"),
            ("ANTHROPIC_BASE_URL", "$STUB"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ],
        configure: |_, _| {},
        takes_instructions: true,
        resumes: Resumes::AtOnce,
    },
    // It requests an approval when the model wants a command to run outside of its sandbox, as `[[run:..]]` does.
    Program {
        name: "codex",
        command: None,
        variables: &[("STUB_KEY", "dummy-key")],
        configure: configure_codex,
        takes_instructions: true,
        resumes: Resumes::AtOnce,
    },
    // Its tool `run_shell_command` needs an approval in its default mode.
    Program {
        name: "gemini",
        command: Some(&["gemini", "--acp", "--skip-trust", "-m", "gemini-2.5-flash"]),
        variables: &[
            ("GEMINI_API_KEY", "dummy-key"),
            ("GOOGLE_GEMINI_BASE_URL", "$STUB"),
            ("GEMINI_TELEMETRY_ENABLED", "false"),
        ],
        configure: configure_gemini,
        takes_instructions: false,
        resumes: Resumes::NextMinute,
    },
    // Its tool `bash` needs no approval, except by its settings.
    Program {
        name: "opencode",
        command: None,
        variables: &[
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ],
        configure: configure_opencode,
        takes_instructions: false,
        resumes: Resumes::AtOnce,
    },
    // Its tool `run_shell_command` needs an approval in its mode `default`.
    Program {
        name: "qwen",
        command: None,
        variables: &[("OPENAI_API_KEY", "dummy-key"), ("OPENAI_BASE_URL", "$STUB/v1"), ("OPENAI_MODEL", "stub-model")],
        configure: configure_qwen,
        takes_instructions: false,
        resumes: Resumes::AtOnce,
    },
];

fn configure_codex(home: &Path, stub: &str) {
    let config = format!(
        "model = \"stub-model\"\nmodel_provider = \"stub\"\n\
         [model_providers.stub]\nname = \"stub\"\nbase_url = \"{stub}/v1\"\nenv_key = \"STUB_KEY\"\nwire_api = \"responses\"\n"
    );
    write(home, ".codex/config.toml", &config);
}

fn configure_gemini(home: &Path, _stub: &str) {
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"disableAutoUpdate": true, "disableUpdateNag": true},
        "privacy": {"usageStatisticsEnabled": false},
    });
    write(home, ".gemini/settings.json", &settings.to_string());
}

fn configure_opencode(home: &Path, stub: &str) {
    let settings = json!({
        "model": "stub/stub-model",
        "small_model": "stub/stub-model",
        "provider": {"stub": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Stub",
            "options": {"baseURL": format!("{stub}/v1"), "apiKey": "dummy-key"},
            // Otherwise it keeps images from the model.
            "models": {"stub-model": {
                "name": "Stub", "attachment": true, "modalities": {"input": ["text", "image"], "output": ["text"]},
            }},
        }},
        "permission": {"bash": "ask"},
        "share": "disabled",
        "autoupdate": false,
    });
    write(home, ".config/opencode/opencode.json", &settings.to_string());
}

fn configure_qwen(home: &Path, _stub: &str) {
    let settings = json!({
        "security": {"auth": {"selectedType": "openai"}},
        // Otherwise it keeps images from the model.
        "model": {"generationConfig": {"modalities": {"image": true}}},
        // Its own default lets a model judge commands.
        "tools": {"approvalMode": "default"},
        "general": {"disableAutoUpdate": true, "disableUpdateNag": true},
        "privacy": {"usageStatisticsEnabled": false},
    });
    write(home, ".qwen/settings.json", &settings.to_string());
}

fn write(home: &Path, name: &str, text: &str) {
    let path = home.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
