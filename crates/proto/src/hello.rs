//! Validates the first message of an attach, for the gateway and the session alike.

use serde_json::{Map, Value};

use crate::close;
use crate::config::{CALLER_ID, TEXT};
use crate::message::{ClientMessage, Hello, Theme, VERSION};
use crate::problem::Code;

/// Why the first message of an attach is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHello {
    /// Longer than [`TEXT`].
    #[error("the hello has {0} bytes, more than the limit of {TEXT}")]
    TooLong(usize),
    #[error("the hello is not valid JSON: {0}")]
    NotJson(String),
    /// Another message, or a binary one.
    #[error("the first message must be a hello")]
    NotHello,
    #[error("unsupported protocol version; this server supports version {VERSION}")]
    Version,
    /// A field is missing or invalid.
    #[error("invalid hello: {0}")]
    Field(String),
    /// The session writes these colours into replies that the program reads, so they must be nothing else.
    #[error("theme colours must have the form #rrggbb")]
    Theme,
}

impl BadHello {
    /// The close code and the problem code to refuse it with.
    pub fn codes(&self) -> (u16, Code) {
        match self {
            BadHello::Version => (close::NO_VERSION, Code::NoVersion),
            BadHello::TooLong(_) | BadHello::NotJson(_) | BadHello::NotHello | BadHello::Field(_) | BadHello::Theme => {
                (close::MALFORMED, Code::BadRequest)
            }
        }
    }
}

/// Parses a hello into its raw fields, including those that this version does not know.
pub fn fields(text: &str) -> Result<Map<String, Value>, BadHello> {
    if text.len() > TEXT {
        return Err(BadHello::TooLong(text.len()));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) if fields.get("type").is_some_and(|kind| kind == "hello") => Ok(fields),
        Ok(_) => Err(BadHello::NotHello),
        Err(error) => Err(BadHello::NotJson(error.to_string())),
    }
}

/// Parses and validates a hello of this version.
pub fn read(text: &str) -> Result<Hello, BadHello> {
    let fields = fields(text)?;
    // Checked first: a hello of a newer version may have other fields, and is not malformed.
    if fields.get("version").is_some_and(|version| version.is_number() && *version != VERSION) {
        return Err(BadHello::Version);
    }
    match serde_json::from_value(Value::Object(fields)) {
        Ok(ClientMessage::Hello(hello)) => check(hello),
        Ok(_) => Err(BadHello::NotHello),
        Err(error) => Err(BadHello::Field(error.to_string())),
    }
}

fn check(hello: Hello) -> Result<Hello, BadHello> {
    let caller = hello.grant.as_ref().and_then(|grant| grant.caller.as_ref());
    let name = hello.grant.as_ref().and_then(|grant| grant.name.as_ref());
    if caller.into_iter().chain(name).any(|text| text.len() > CALLER_ID) {
        return Err(BadHello::Field(format!("the id or name of a caller may have at most {CALLER_ID} bytes")));
    }
    if hello.theme.as_ref().is_some_and(|theme| !is_theme(theme)) {
        return Err(BadHello::Theme);
    }
    Ok(hello)
}

fn is_theme(theme: &Theme) -> bool {
    [&theme.fg, &theme.bg].iter().all(|colour| {
        colour.len() == 7 && colour.starts_with('#') && colour.bytes().skip(1).all(|b| b.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hello(more: Value) -> String {
        let mut hello = json!({"type": "hello", "version": 1, "client": "00000000-0000-4000-8000-000000000001",
            "conn": 1, "cursor": null, "lag": "wait"});
        for (key, value) in more.as_object().unwrap() {
            hello[key] = value.clone();
        }
        hello.to_string()
    }

    #[test]
    fn r52_a_first_message_that_is_no_valid_hello_is_refused_with_a_reason() {
        assert!(read(&hello(json!({"theme": {"fg": "#ffffff", "bg": "#000000"}}))).is_ok());
        for (text, code, message) in [
            ("{".to_owned(), 4400, "the hello is not valid JSON: "),
            ("[]".to_owned(), 4400, "the first message must be a hello"),
            (r#"{"type":"end"}"#.to_owned(), 4400, "the first message must be a hello"),
            (hello(json!({"type": "ping"})), 4400, "the first message must be a hello"),
            (hello(json!({"version": 2, "client": 7})), 4426, "unsupported protocol version"),
            (hello(json!({"version": "x"})), 4400, "invalid hello: "),
            (hello(json!({"client": 7})), 4400, "invalid hello: "),
            (
                hello(json!({"theme": {"fg": "\u{1b}]0;x", "bg": "#000000"}})),
                4400,
                "theme colours must have the form #rrggbb",
            ),
            (
                hello(json!({"grant": {"write": true, "caller": "x".repeat(CALLER_ID + 1)}})),
                4400,
                "invalid hello: the id or name of a caller may have at most ",
            ),
            (
                hello(json!({"grant": {"write": true, "name": "x".repeat(CALLER_ID + 1)}})),
                4400,
                "invalid hello: the id or name of a caller may have at most ",
            ),
            (hello(json!({"key": "x".repeat(TEXT)})), 4400, "the hello has "),
        ] {
            let bad = read(&text).unwrap_err();
            assert!(bad.codes().0 == code && bad.to_string().starts_with(message), "{text:.80}: {bad:?}");
        }
    }

    #[test]
    fn fields_of_a_newer_version_are_kept() {
        let fields = fields(&hello(json!({"version": 2, "later": [1]}))).unwrap();
        assert_eq!((&fields["version"], &fields["later"]), (&json!(2), &json!([1])));
    }
}
