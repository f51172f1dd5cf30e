//! Reading the first message of an attach: the gateway and the session refuse the same things in the same words.

use serde_json::{Map, Value};

use crate::close;
use crate::config::TEXT;
use crate::message::{ClientMessage, Hello, Theme, VERSION};
use crate::problem::Code;

/// Why a first message is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHello {
    /// It is longer than [`TEXT`].
    #[error("a hello of {0} bytes is too long")]
    TooLong(usize),
    /// It is not JSON.
    #[error("not a hello: {0}")]
    NotJson(String),
    /// It is another message, or binary.
    #[error("the first message is hello")]
    NotHello,
    /// It is of another protocol version.
    #[error("this end speaks version {VERSION}")]
    Version,
    /// A field is missing, or not what it must be.
    #[error("bad hello: {0}")]
    Field(String),
    /// Colours end up in what the program reads, so they must be colours and nothing else.
    #[error("theme colours are #rrggbb")]
    Theme,
}

impl BadHello {
    /// The close code and the problem code.
    pub fn codes(&self) -> (u16, Code) {
        match self {
            BadHello::Version => (close::NO_VERSION, Code::NoVersion),
            BadHello::TooLong(_) | BadHello::NotJson(_) | BadHello::NotHello | BadHello::Field(_) | BadHello::Theme => {
                (close::MALFORMED, Code::BadRequest)
            }
        }
    }
}

/// The fields of a hello as they came, with those that this version does not know.
pub fn fields(text: &str) -> Result<Map<String, Value>, BadHello> {
    if text.len() > TEXT {
        return Err(BadHello::TooLong(text.len()));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) if fields.get("type").is_some_and(|kind| kind == "hello") => Ok(fields),
        Ok(_) => Err(BadHello::NotHello),
        Err(why) => Err(BadHello::NotJson(why.to_string())),
    }
}

/// A hello that this version understands.
pub fn read(text: &str) -> Result<Hello, BadHello> {
    let fields = fields(text)?;
    // Looked at first, so that a hello of a later version is not called malformed.
    if fields.get("version").is_some_and(|version| version.is_number() && *version != VERSION) {
        return Err(BadHello::Version);
    }
    match serde_json::from_value(Value::Object(fields)) {
        Ok(ClientMessage::Hello(hello)) if hello.theme.as_ref().is_none_or(is_theme) => Ok(hello),
        Ok(ClientMessage::Hello(_)) => Err(BadHello::Theme),
        Ok(_) => Err(BadHello::NotHello),
        Err(why) => Err(BadHello::Field(why.to_string())),
    }
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
    fn r52_a_first_message_is_a_hello_or_is_refused_with_a_reason() {
        assert!(read(&hello(json!({"theme": {"fg": "#ffffff", "bg": "#000000"}}))).is_ok());
        for (text, code, words) in [
            ("{".to_owned(), 4400, "not a hello: "),
            ("[]".to_owned(), 4400, "the first message is hello"),
            (r#"{"type":"end"}"#.to_owned(), 4400, "the first message is hello"),
            (hello(json!({"type": "ping"})), 4400, "the first message is hello"),
            (hello(json!({"version": 2, "client": 7})), 4426, "this end speaks version 1"),
            (hello(json!({"version": "x"})), 4400, "bad hello: "),
            (hello(json!({"client": 7})), 4400, "bad hello: "),
            (hello(json!({"theme": {"fg": "\u{1b}]0;x", "bg": "#000000"}})), 4400, "theme colours are #rrggbb"),
            (hello(json!({"key": "x".repeat(TEXT)})), 4400, "a hello of "),
        ] {
            let bad = read(&text).unwrap_err();
            assert!(bad.codes().0 == code && bad.to_string().starts_with(words), "{text:.80}: {bad:?}");
        }
    }

    #[test]
    fn fields_of_a_later_version_pass() {
        let fields = fields(&hello(json!({"version": 2, "later": [1]}))).unwrap();
        assert_eq!((&fields["version"], &fields["later"]), (&json!(2), &json!([1])));
    }
}
