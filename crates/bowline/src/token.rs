//! `bowline token`: what programs and other machines reach the gateway with.

use bowline_proto::problem;
use std::process::ExitCode;
use std::time::Duration;

use bowline_client::remote::Gateway;
use bowline_client::remote::call::Call;
use bowline_gateway::auth::Auth;
use bowline_host::home::Home;
use bowline_proto::api::{NewToken, TokenInfo, TokenKind, TokenList, TokenReply, TokenScope};
use bowline_proto::ids::SessionId;
use clap::Subcommand;
use http::Method;
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::failure::{Code, Failure, of_admin};
use crate::{place, table, units};

/// Make, list and revoke tokens, with which programs and other machines reach the gateway.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  BOWLINE_TOKEN=$(bowline token create --name laptop --scope write)   the token is all that is printed
  bowline token create --name ci --scope read --ttl 30d
  bowline token ls
  bowline token revoke k3v9x0q2m7aa                                   closes its connections, too

Tokens are kept as hashes, so a token is shown once, when it is made. With --server, the tokens are those of that machine,
and BOWLINE_TOKEN needs the scope admin.")]
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
        #[arg(long)]
        scope: TokenScope,
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

pub(crate) fn run(token: Token, server: Option<&str>) -> anyhow::Result<ExitCode> {
    let keeper = match server {
        Some(url) => Keeper::There(place::gateway(url)?),
        None => Keeper::Here(Auth::open(&Home::from_env()?)?),
    };
    match token.verb {
        Verb::Create { name, scope, ttl } => println!("{}", keeper.create(&name, scope, ttl)?),
        Verb::Ls { json: true } => println!("{}", json!(TokenList { tokens: keeper.list()? })),
        Verb::Ls { json: false } => list(&keeper.list()?),
        Verb::Revoke { ids } => return Ok(revoke(&keeper, &ids)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Revokes all that can be, for a mistake in one id must not leave another good. The first failure's code is the verb's.
fn revoke(keeper: &Keeper, ids: &[String]) -> ExitCode {
    let failed = ids.iter().filter_map(|id| keeper.revoke(id).err());
    let codes: Vec<ExitCode> = failed.map(|error| Failure::from(error).report()).collect();
    codes.into_iter().next().unwrap_or(ExitCode::SUCCESS)
}

/// Who keeps the tokens: this machine's files, or another machine's gateway.
enum Keeper {
    Here(Auth),
    There(Gateway),
}

impl Keeper {
    fn create(&self, name: &str, scope: TokenScope, ttl: Option<Duration>) -> anyhow::Result<String> {
        match self {
            Keeper::Here(auth) => Ok(auth.create_token(name, scope, ttl)?.token.reveal().to_owned()),
            // Asked once: a second one after a lost answer would leave a token that nobody has.
            Keeper::There(gateway) => {
                let body = NewToken { name: name.to_owned(), scope, ttl: ttl.map(|ttl| ttl.as_secs()) };
                let made = gateway.call(&Call::new(Method::POST, "/v1/tokens").body(&body)).map_err(of_admin)?;
                Ok(made.json::<TokenReply>()?.token.reveal().to_owned())
            }
        }
    }

    fn list(&self) -> anyhow::Result<Vec<TokenInfo>> {
        match self {
            Keeper::Here(auth) => Ok(auth.tokens()),
            Keeper::There(gateway) => {
                Ok(gateway.call(&Call::get("/v1/tokens")).map_err(of_admin)?.json::<TokenList>()?.tokens)
            }
        }
    }

    fn revoke(&self, id: &str) -> anyhow::Result<()> {
        let revoked = match self {
            Keeper::Here(auth) => auth.revoke(id)?,
            // Ids of tokens are like those of sessions; what is none has no place in a path.
            Keeper::There(_) if id.parse::<SessionId>().is_err() => false,
            Keeper::There(gateway) => match gateway.call(&Call::new(Method::DELETE, format!("/v1/tokens/{id}"))) {
                Ok(_) => true,
                Err(error) if error.code() == Some(problem::Code::NotFound) => false,
                Err(error) => return Err(of_admin(error)),
            },
        };
        if revoked {
            return Ok(());
        }
        let message = format!("no token and no browser login has the id {id:?}");
        Err(Failure::new(Code::Unknown, message, "`bowline token ls` lists them").into())
    }
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
    let since = |at: &str| OffsetDateTime::parse(at, &Rfc3339).map_or_else(|_| "?".into(), |at| show(now - at));
    let until = |at: &str| OffsetDateTime::parse(at, &Rfc3339).map_or_else(|_| "?".into(), |at| show(at - now));
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
