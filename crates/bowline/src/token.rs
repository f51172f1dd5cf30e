//! `bowline token`: creates, lists and revokes tokens.

use bowline_proto::problem;
use std::process::ExitCode;
use std::time::Duration;

use bowline_client::remote::Gateway;
use bowline_client::remote::api::ApiRequest;
use bowline_gateway::auth::Auth;
use bowline_host::home::Home;
use bowline_proto::api::{NewToken, TokenInfo, TokenKind, TokenList, TokenReply, TokenScope};
use bowline_proto::ids::SessionId;
use clap::Subcommand;
use http::Method;
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::failure::{Code, Failure, explain_admin_call};
use crate::{host, table, units};

/// Create, list and revoke tokens, which programs and other machines use to log in to the gateway.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  BOWLINE_TOKEN=$(bowline token create --name laptop --scope write)   prints only the token
  bowline token create --name ci --scope read --ttl 30d
  bowline token ls
  bowline token revoke k3v9x0q2m7aa                                   also closes its connections

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
    },
}

pub(crate) fn run(token: Token, server: Option<&str>) -> anyhow::Result<ExitCode> {
    let store = match server {
        Some(url) => TokenStore::Remote(host::gateway_client(url)?),
        None => TokenStore::Local(Auth::open(&Home::from_env()?)?),
    };
    match token.action {
        Action::Create { name, scope, ttl } => println!("{}", store.create(&name, scope, ttl)?),
        Action::Ls { json: true } => println!("{}", json!(TokenList { tokens: store.list()? })),
        Action::Ls { json: false } => print_table(&store.list()?),
        Action::Revoke { ids } => return Ok(revoke(&store, &ids)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Revokes every valid id, even after a wrong one. Reports every error; the exit code is that of the first.
fn revoke(store: &TokenStore, ids: &[String]) -> ExitCode {
    let failed = ids.iter().filter_map(|id| store.revoke(id).err());
    let codes: Vec<ExitCode> = failed.map(|error| Failure::from(error).report()).collect();
    codes.into_iter().next().unwrap_or(ExitCode::SUCCESS)
}

/// The tokens of this machine, in its files, or of another one, behind its gateway.
enum TokenStore {
    Local(Auth),
    Remote(Gateway),
}

impl TokenStore {
    fn create(&self, name: &str, scope: TokenScope, ttl: Option<Duration>) -> anyhow::Result<String> {
        match self {
            TokenStore::Local(auth) => Ok(auth.create_token(name, scope, ttl)?.token.reveal().to_owned()),
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
            TokenStore::Local(auth) => Ok(auth.tokens()),
            TokenStore::Remote(gateway) => Ok(gateway
                .send(&ApiRequest::get("/v1/tokens"))
                .map_err(explain_admin_call)?
                .json::<TokenList>()?
                .tokens),
        }
    }

    fn revoke(&self, id: &str) -> anyhow::Result<()> {
        let revoked = match self {
            TokenStore::Local(auth) => auth.revoke(id)?,
            // Token ids have the form of session ids. Anything else must not get into the URL path.
            TokenStore::Remote(_) if id.parse::<SessionId>().is_err() => false,
            TokenStore::Remote(gateway) => {
                match gateway.send(&ApiRequest::new(Method::DELETE, format!("/v1/tokens/{id}"))) {
                    Ok(_) => true,
                    Err(error) if error.code() == Some(problem::Code::NotFound) => false,
                    Err(error) => return Err(explain_admin_call(error)),
                }
            }
        };
        if revoked {
            return Ok(());
        }
        let message = format!("no token or browser login has the id {id:?}");
        Err(Failure::new(Code::NotFound, message, "`bowline token ls` lists them").into())
    }
}

fn print_table(tokens: &[TokenInfo]) {
    if tokens.is_empty() {
        eprintln!("No tokens. `bowline token create` creates one.");
        return;
    }
    let rows: Vec<[String; 7]> = tokens.iter().map(row).collect();
    table::print(["ID", "KIND", "SCOPE", "AGE", "USED", "EXPIRES", "NAME"], &rows);
}

fn row(token: &TokenInfo) -> [String; 7] {
    let now = OffsetDateTime::now_utc();
    let format = |span: time::Duration| units::format_duration(span.try_into().unwrap_or_default());
    let since = |at: &str| OffsetDateTime::parse(at, &Rfc3339).map_or_else(|_| "?".into(), |at| format(now - at));
    let until = |at: &str| OffsetDateTime::parse(at, &Rfc3339).map_or_else(|_| "?".into(), |at| format(at - now));
    [
        token.id.clone(),
        match token.kind {
            TokenKind::Token => "token".into(),
            TokenKind::Login => "browser".into(),
        },
        token.scope.to_string(),
        since(&token.created),
        token.used.as_deref().map_or_else(|| "-".into(), |used| format!("{} ago", since(used))),
        token.expires.as_deref().map_or_else(|| "-".into(), |expires| format!("in {}", until(expires))),
        token.name.clone(),
    ]
}
