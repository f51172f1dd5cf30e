//! `bowline token`: what programs and other machines reach the gateway with.

use std::process::ExitCode;
use std::time::Duration;

use bowline_gateway::auth::{Auth, Scope, TokenInfo, TokenKind};
use bowline_session::home::Home;
use clap::Subcommand;
use serde_json::json;
use time::OffsetDateTime;

use crate::failure::{Code, Failure};
use crate::{table, units};

/// Make, list and revoke tokens, with which programs and other machines reach the gateway.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  BOWLINE_TOKEN=$(bowline token create --name laptop --scope write)   the token is all that is printed
  bowline token create --name ci --scope read --ttl 30d
  bowline token ls
  bowline token revoke k3v9x0q2m7aa                                   closes its connections, too

Tokens are kept as hashes, so a token is shown once, when it is made.")]
pub(crate) struct Token {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make a token and print it
    Create {
        /// What it is for: letters, digits, and . _ -
        #[arg(long, short)]
        name: String,
        /// What it allows: read (look), write (also type, start and end), admin (also tokens)
        #[arg(long, short)]
        scope: Scope,
        /// How long it works, such as 12h or 30d [default: until it is revoked]
        #[arg(long, value_name = "TIME", value_parser = units::duration)]
        ttl: Option<Duration>,
    },
    /// List tokens, and browsers that have logged in
    Ls {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// End tokens or browser logins, and close their connections
    Revoke {
        /// Their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

pub(crate) fn run(token: Token) -> anyhow::Result<ExitCode> {
    let auth = Auth::open(&Home::from_env()?)?;
    match token.verb {
        Verb::Create { name, scope, ttl } => println!("{}", auth.create_token(&name, scope, ttl)?.token.reveal()),
        Verb::Ls { json: true } => println!("{}", json!({ "tokens": auth.tokens() })),
        Verb::Ls { json: false } => list(&auth.tokens()),
        Verb::Revoke { ids } => ids.iter().try_for_each(|id| revoke(&auth, id))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(tokens: &[TokenInfo]) {
    if tokens.is_empty() {
        eprintln!("No tokens. `bowline token create` makes one.");
        return;
    }
    let rows: Vec<[String; 7]> = tokens.iter().map(row).collect();
    table::print(["ID", "KIND", "SCOPE", "AGE", "USED", "ENDS", "NAME"], &rows);
}

fn row(token: &TokenInfo) -> [String; 7] {
    let now = OffsetDateTime::now_utc();
    let show = |span: time::Duration| units::show_duration(span.try_into().unwrap_or_default());
    [
        token.id.clone(),
        match token.kind {
            TokenKind::Token => "token".into(),
            TokenKind::Login => "browser".into(),
        },
        token.scope.to_string(),
        show(now - token.created),
        token.used.map_or_else(|| "-".into(), |used| format!("{} ago", show(now - used))),
        token.expires.map_or_else(|| "-".into(), |expires| format!("in {}", show(expires - now))),
        token.name.clone(),
    ]
}

fn revoke(auth: &Auth, id: &str) -> anyhow::Result<()> {
    if auth.revoke(id)? {
        return Ok(());
    }
    let message = format!("no token and no browser login has the id {id:?}");
    Err(Failure::new(Code::Unknown, message, "`bowline token ls` lists them").into())
}
