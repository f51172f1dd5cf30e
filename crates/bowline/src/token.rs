//! `bowline token`: creates, lists and revokes tokens.

use bowline_proto::problem;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use bowline_client::remote::Gateway;
use bowline_client::remote::api::ApiRequest;
use bowline_gateway::auth::{Auth, Maker};
use bowline_host::home::Home;
use bowline_host::meta::makers_of_this_session;
use bowline_proto::api::{NewToken, Revoked, TokenInfo, TokenKind, TokenList, TokenReply, TokenScope};
use bowline_proto::ids::SessionId;
use clap::Subcommand;
use http::Method;
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::failure::{Code, Failure, explain_admin_call};
use crate::print::one_line;
use crate::{host, table, units};

/// Create, list and revoke tokens, which programs and other machines use to log in to the gateway.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  BOWLINE_TOKEN=$(bowline token create --name laptop --scope write)   prints only the token
  bowline token create --name ci --scope read --ttl 30d
  bowline token ls
  bowline token revoke k3v9x0q2m7aa                                   also closes its connections
  bowline token revoke --with-made k3v9x0q2m7aa                       and revokes the tokens that were made with it

A client that can type into a session can run `bowline token create` there, so a leaked token with the scope write may have \
made others. \
The column MADE BY of `bowline token ls` shows which token or login made each, where that is known.

A token is printed once, when it is created; only a hash of it is stored. With --server, the tokens are those of that machine, \
and BOWLINE_TOKEN needs the scope admin.")]
pub(crate) struct Token {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a token and print it
    Create {
        /// Name that says what the token is for: letters, digits, and . _ -
        #[arg(long, short)]
        name: String,
        /// What it allows: read (list and watch), write (also type, start and end), admin (also manage tokens)
        #[arg(long)]
        scope: TokenScope,
        /// How long it is valid, such as 12h or 30d [default: until it is revoked]
        #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
        ttl: Option<Duration>,
    },
    /// List tokens and browser logins
    Ls {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke tokens or browser logins, and close their connections
    Revoke {
        /// Ids of the tokens or logins, from `bowline token ls`
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Also revoke the tokens and browser logins that were made under them, directly or not
        #[arg(long)]
        with_made: bool,
    },
}

pub(crate) fn run(token: Token, server: Option<&str>) -> anyhow::Result<ExitCode> {
    let store = match server {
        Some(url) => TokenStore::Remote(host::gateway_client(url)?),
        None => {
            let home = Home::from_env()?;
            TokenStore::Local(Auth::open(&home)?, Maker::CommandLine(makers_of_this_session(&home)))
        }
    };
    match token.action {
        Action::Create { name, scope, ttl } => println!("{}", store.create(&name, scope, ttl)?),
        Action::Ls { json: true } => println!("{}", json!(TokenList { tokens: store.list()? })),
        Action::Ls { json: false } => print_table(&store.list()?),
        Action::Revoke { ids, with_made } => return Ok(revoke(&store, &ids, with_made)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Revokes every valid id, even after a wrong one. Reports each; the exit code is that of the first error.
fn revoke(store: &TokenStore, ids: &[String], with_made: bool) -> ExitCode {
    let mut codes = Vec::new();
    for id in ids {
        match store.revoke(id, with_made) {
            Ok(revoked) => report(id, &revoked),
            Err(error) => codes.push(Failure::from(error).report()),
        }
    }
    codes.into_iter().next().unwrap_or(ExitCode::SUCCESS)
}

/// Says what was revoked, and what else could be.
fn report(id: &str, revoked: &Revoked) {
    for id in &revoked.revoked {
        println!("revoked {}", one_line(id));
    }
    if !revoked.made.is_empty() {
        eprintln!("Still valid, although they were made under {id}:");
        for token in &revoked.made {
            eprintln!("  {} ({} {}, scope {})", one_line(&token.id), kind(token), one_line(&token.name), token.scope);
        }
        eprintln!("To revoke them too: bowline token revoke --with-made {id}");
    }
}

/// The tokens of this machine, in its files, or of another one, behind its gateway.
enum TokenStore {
    Local(Auth, Maker),
    Remote(Gateway),
}

impl TokenStore {
    fn create(&self, name: &str, scope: TokenScope, ttl: Option<Duration>) -> anyhow::Result<String> {
        match self {
            TokenStore::Local(auth, maker) => {
                Ok(auth.create_token_by(maker, name, scope, ttl)?.token.reveal().to_owned())
            }
            // No retries: after a lost response, a retry would leave an unused token behind.
            TokenStore::Remote(gateway) => {
                let body = NewToken { name: name.to_owned(), scope, ttl: ttl.map(|ttl| ttl.as_secs()) };
                let response = gateway
                    .send(&ApiRequest::new(Method::POST, "/v1/tokens").body(&body))
                    .map_err(explain_admin_call)?;
                Ok(response.json::<TokenReply>()?.token.reveal().to_owned())
            }
        }
    }

    fn list(&self) -> anyhow::Result<Vec<TokenInfo>> {
        match self {
            TokenStore::Local(auth, _) => Ok(auth.tokens()),
            TokenStore::Remote(gateway) => Ok(gateway
                .send(&ApiRequest::get("/v1/tokens"))
                .map_err(explain_admin_call)?
                .json::<TokenList>()?
                .tokens),
        }
    }

    fn revoke(&self, id: &str, with_made: bool) -> anyhow::Result<Revoked> {
        let unknown = || {
            let message = format!("no token or browser login has the id {id:?}");
            Failure::new(Code::NotFound, message, "`bowline token ls` lists them")
        };
        match self {
            TokenStore::Local(auth, _) => {
                let revoked = match with_made {
                    true => auth.revoke_with_made(id)?.into_iter().collect(),
                    false if auth.revoke(id)? => vec![id.to_owned()],
                    false => Vec::new(),
                };
                if revoked.is_empty() {
                    return Err(unknown().into());
                }
                Ok(Revoked { revoked, made: auth.made_under(id) })
            }
            // Token ids have the form of session ids. Anything else must not get into the URL path.
            TokenStore::Remote(_) if id.parse::<SessionId>().is_err() => Err(unknown().into()),
            TokenStore::Remote(gateway) => {
                let path = format!("/v1/tokens/{id}?with_made={with_made}");
                let response = gateway.send(&ApiRequest::new(Method::DELETE, path));
                let body = match response {
                    Ok(response) => response.bytes()?,
                    Err(error) if error.code() == Some(problem::Code::NotFound) => return Err(unknown().into()),
                    Err(error) => return Err(explain_admin_call(error)),
                };
                // A gateway that does not know `with_made` answers without a body.
                if body.is_empty() && with_made {
                    let message = format!("revoked {id}, but not what was made under it: the gateway is too old");
                    return Err(Failure::new(Code::Other, message, "`bowline token ls` lists what is left").into());
                }
                if body.is_empty() {
                    return Ok(Revoked { revoked: vec![id.to_owned()], made: Vec::new() });
                }
                Ok(serde_json::from_slice(&body).context("cannot read the gateway's response")?)
            }
        }
    }
}

fn print_table(tokens: &[TokenInfo]) {
    if tokens.is_empty() {
        eprintln!("No tokens. `bowline token create` creates one.");
        return;
    }
    let rows: Vec<[String; 8]> = tokens.iter().map(row).collect();
    table::print(["ID", "KIND", "SCOPE", "AGE", "USED", "EXPIRES", "MADE BY", "NAME"], &rows);
}

fn kind(token: &TokenInfo) -> &'static str {
    match token.kind {
        TokenKind::Token => "token",
        TokenKind::Login => "browser",
    }
}

fn row(token: &TokenInfo) -> [String; 8] {
    let now = OffsetDateTime::now_utc();
    let format = |span: time::Duration| units::format_duration(span.try_into().unwrap_or_default());
    let since = |at: &str| OffsetDateTime::parse(at, &Rfc3339).map_or_else(|_| "?".into(), |at| format(now - at));
    let until = |at: &str| OffsetDateTime::parse(at, &Rfc3339).map_or_else(|_| "?".into(), |at| format(at - now));
    [
        token.id.clone(),
        kind(token).into(),
        token.scope.to_string(),
        since(&token.created),
        token.used.as_deref().map_or_else(|| "-".into(), |used| format!("{} ago", since(used))),
        token.expires.as_deref().map_or_else(|| "-".into(), |expires| format!("in {}", until(expires))),
        token.made_by.clone().unwrap_or_else(|| "-".into()),
        token.name.clone(),
    ]
}
