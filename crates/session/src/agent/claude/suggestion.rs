//! Changes of permissions that Claude Code suggests with a request, in words.

use serde_json::Value;

use super::settings::Known;

/// Whether a client may choose it: not if it switches to a mode that is refused.
pub(super) fn is_allowed(suggestion: &Value, known: &Known) -> bool {
    suggestion["type"] != "setMode" || suggestion["mode"].as_str().is_some_and(|mode| known.allows_mode(mode))
}

/// The label of the option that makes this change, and what it changes. `None` for a kind of change that is not known: it
/// could not be explained.
pub(super) fn words(suggestion: &Value) -> Option<(String, String)> {
    let (to, from, during) = destination(suggestion["destination"].as_str()?)?;
    let rules = || Some(list(&suggestion["rules"], rule)?.join(", "));
    let directories =
        || Some(list(&suggestion["directories"], |item| item.as_str().map(ToOwned::to_owned))?.join(", "));
    let behavior = match suggestion["behavior"].as_str() {
        Some("allow") | None => "rule",
        Some("deny") => "deny rule",
        Some("ask") => "ask rule",
        Some(_) => return None,
    };
    Some(match suggestion["type"].as_str()? {
        "addRules" if behavior == "rule" => {
            let rules = rules()?;
            (format!("Always allow {rules}"), format!("adds the rule {rules} {to}"))
        }
        "addRules" => {
            let rules = rules()?;
            (format!("Allow, and add the {behavior} {rules}"), format!("adds the {behavior} {rules} {to}"))
        }
        "replaceRules" => {
            let rules = rules()?;
            let effect = format!("replaces every {behavior} by {rules} {during}");
            (format!("Allow, and replace rules by {rules}"), effect)
        }
        "removeRules" => {
            let rules = rules()?;
            (format!("Allow, and remove the {behavior} {rules}"), format!("removes the {behavior} {rules} {from}"))
        }
        "addDirectories" => {
            let directories = directories()?;
            (format!("Allow, and add the directory {directories}"), format!("adds the directory {directories} {to}"))
        }
        "removeDirectories" => {
            let directories = directories()?;
            let effect = format!("removes the directory {directories} {from}");
            (format!("Allow, and remove the directory {directories}"), effect)
        }
        "setMode" => {
            let mode = suggestion["mode"].as_str()?;
            (format!("Allow, and switch to the mode {mode}"), format!("switches to the mode {mode} {during}"))
        }
        _ => return None,
    })
}

/// Where a change is written: with the words for "to", "from" and "in" that place.
fn destination(destination: &str) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match destination {
        "session" | "cliArg" => ("for this session", "for this session", "for this session"),
        "localSettings" => (
            "to .claude/settings.local.json of the project",
            "from .claude/settings.local.json of the project",
            "in .claude/settings.local.json of the project",
        ),
        "projectSettings" => (
            "to .claude/settings.json of the project",
            "from .claude/settings.json of the project",
            "in .claude/settings.json of the project",
        ),
        "userSettings" => (
            "to your settings in ~/.claude/settings.json",
            "from your settings in ~/.claude/settings.json",
            "in your settings in ~/.claude/settings.json",
        ),
        _ => return None,
    })
}

/// A rule as Claude Code writes it: `Bash(touch a)`.
fn rule(rule: &Value) -> Option<String> {
    let tool = rule["toolName"].as_str()?;
    Some(match rule["ruleContent"].as_str() {
        Some(content) => format!("{tool}({content})"),
        None => tool.to_owned(),
    })
}

/// The words for each item of a list that is not empty. An item that cannot be said is not left out: the effect would be
/// larger than what is shown.
fn list(items: &Value, words: impl Fn(&Value) -> Option<String>) -> Option<Vec<String>> {
    let items = items.as_array().filter(|items| !items.is_empty())?;
    items.iter().map(words).collect()
}
