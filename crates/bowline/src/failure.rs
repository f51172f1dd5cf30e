//! What went wrong, what to do about it, and the exit code that says so to scripts.

use bowline_proto::problem;
use std::fmt;
use std::process::ExitCode;

use bowline_client::remote::{BadAddress, CallError, GatewayError};
use bowline_gateway::auth::AuthError;
use bowline_host::control::ControlError;
use bowline_host::home::HomeError;
use bowline_host::registry::RegistryError;
use bowline_host::remove::EndError;
use bowline_host::rename::RenameError;
use bowline_host::start::StartError;

const OWN_PLACE: &str = "set BOWLINE_STATE_DIR to a directory of your own";
const NAME_TAKEN: &str = "attach to it, choose another --name, or replace it with --if-exists restart; --if-exists return takes it \
     if the command and the directory are the same";
const LIST: &str = "`bowline ls` lists the sessions there are";
/// What to do about a certificate that is not known to be the server's.
pub(crate) const TRUST: &str =
    "the certificate must be of that name, and of an authority that this machine knows or that SSL_CERT_FILE has";
/// What to do without a token that the server takes.
pub(crate) const GET_TOKEN: &str =
    "set BOWLINE_TOKEN; `bowline token create --name laptop --scope write` on the server prints one";
/// What to do with a token that may do too little.
pub(crate) const MORE_SCOPE: &str =
    "this token may not do that; `bowline token create --name laptop --scope write` on the server prints one that may";
/// The same, for what only an admin may.
const ADMIN_SCOPE: &str = "tokens and logins need `--scope admin`; `bowline token create --name admin --scope admin` on the server prints one";

/// A code, and something to do about it.
type Advice = (Code, Option<&'static str>);

/// An exit code of the table in `bowline --help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// Anything without a code of its own.
    Other = 1,
    /// The command line or the configuration.
    Usage = 2,
    /// No such session.
    Unknown = 3,
    /// The name is taken.
    Taken = 4,
    /// The program, the directory or the space.
    CannotStart = 5,
    /// The session process does not answer.
    Silent = 6,
}

/// An error as the user sees it.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// A failure with something to do about it.
    pub(crate) fn new(code: Code, message: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), hint: Some(hint.into()) }
    }

    /// Says it on standard error.
    pub(crate) fn report(&self) -> ExitCode {
        eprintln!("{self}");
        ExitCode::from(self.code as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bowline: {}", self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}

impl std::error::Error for Failure {}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        let error = match error.downcast::<Failure>() {
            Ok(failure) => return failure,
            Err(error) => error,
        };
        let (code, hint) = error.chain().find_map(advise).unwrap_or((Code::Other, None));
        Failure { code, message: message(&error), hint: hint.map(Into::into) }
    }
}

/// What went wrong and why, without causes that the sentence before them already tells.
fn message(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said.as_str() {
        "" => cause,
        told if told.contains(&cause) => said,
        _ => format!("{said}: {cause}"),
    })
}

/// The code and hint for an error of the libraries.
fn advise(error: &(dyn std::error::Error + 'static)) -> Option<Advice> {
    if let Some(error) = error.downcast_ref::<RegistryError>() {
        return Some(match error {
            RegistryError::Unknown(_) => (Code::Unknown, Some(LIST)),
            RegistryError::Damaged { .. } => (Code::Other, Some("`bowline kill` with its id forgets it")),
            RegistryError::Io { .. } => (Code::Other, Some("check the owner and permissions of that directory")),
        });
    }
    match error.downcast_ref::<StartError>() {
        Some(StartError::Registry(error)) => return advise(error),
        Some(StartError::End(error)) => return advise(error),
        _ => {}
    }
    if let Some(error) = error.downcast_ref::<StartError>() {
        let other = (Code::CannotStart, matches!(error, StartError::Home(_)).then_some(OWN_PLACE));
        return Some(advise_on_start(error.code()).unwrap_or(other));
    }
    if let Some(error) = error.downcast_ref::<CallError>() {
        return Some(advise_on_call(error));
    }
    if error.is::<BadAddress>() {
        return Some((Code::Usage, Some("give the URL that `bowline serve` prints, without what follows #")));
    }
    if let Some(error) = error.downcast_ref::<GatewayError>() {
        return Some(match error {
            GatewayError::Token => (Code::Usage, Some(GET_TOKEN)),
            GatewayError::NoRoots(_) => (Code::Usage, Some("set SSL_CERT_FILE to a file of trusted certificates")),
        });
    }
    if let Some(error) = error.downcast_ref::<ControlError>() {
        return Some(match error {
            ControlError::Unreachable(_) | ControlError::Silent => {
                (Code::Silent, Some("`bowline ls` shows whether it still runs"))
            }
            ControlError::Unexpected | ControlError::Refused { .. } => (Code::Other, None),
        });
    }
    if let Some(RenameError::Taken { .. }) = error.downcast_ref::<RenameError>() {
        return Some((Code::Taken, Some("choose another name, or end the session that has it")));
    }
    if let Some(error) = error.downcast_ref::<AuthError>() {
        return Some(match error {
            AuthError::Home(_) => (Code::CannotStart, Some(OWN_PLACE)),
            AuthError::BadName(_) | AuthError::BadTtl => (Code::Usage, None),
            AuthError::TooManyTokens => (Code::Other, Some("`bowline token ls` lists them, `token revoke` ends one")),
            AuthError::Io { .. } => (Code::Other, Some("check its owner and permissions, and the free space")),
            // These say themselves what to do.
            AuthError::Busy { .. }
            | AuthError::Damaged { .. }
            | AuthError::Newer { .. }
            | AuthError::NoRandom(_)
            | AuthError::NotALogin => (Code::Other, None),
        });
    }
    if error.downcast_ref::<HomeError>().is_some() {
        return Some((Code::CannotStart, Some(OWN_PLACE)));
    }
    match error.downcast_ref::<EndError>()? {
        EndError::Stuck(_) => {
            Some((Code::Silent, Some("its process may be stopped (SIGSTOP) or stuck on a dead disk")))
        }
        EndError::Elsewhere(_) | EndError::Alive | EndError::Files { .. } => Some((Code::Other, None)),
    }
}

/// The problem code, if a session process or a gateway refused.
pub(crate) fn code_of(error: &anyhow::Error) -> Option<problem::Code> {
    error.chain().find_map(|cause| match cause.downcast_ref::<ControlError>() {
        Some(ControlError::Refused { code, .. }) => Some(*code),
        Some(ControlError::Unreachable(_) | ControlError::Silent | ControlError::Unexpected) => None,
        None => cause.downcast_ref::<CallError>()?.code(),
    })
}

/// The failure of a call that only an admin's token may make.
pub(crate) fn of_admin(error: CallError) -> anyhow::Error {
    match error.code() {
        Some(problem::Code::NotAllowed) => Failure::new(Code::Other, error.to_string(), ADMIN_SCOPE).into(),
        _ => error.into(),
    }
}

/// Why there is no new session.
fn advise_on_start(code: problem::Code) -> Option<Advice> {
    Some(match code {
        problem::Code::NameTaken => (Code::Taken, Some(NAME_TAKEN)),
        problem::Code::BadCwd => {
            (Code::CannotStart, Some("give a directory that exists and can be entered with --cwd"))
        }
        problem::Code::NoProgram => (Code::CannotStart, Some("check the spelling, and PATH")),
        problem::Code::NoSpace => (Code::CannotStart, Some("free some space, or keep less output with --log-size 1M")),
        problem::Code::BadRequest | problem::Code::BadName | problem::Code::BadSize => (Code::Usage, None),
        problem::Code::UnknownSession => (Code::Unknown, Some(LIST)),
        problem::Code::Unreachable => (Code::Silent, None),
        _ => return None,
    })
}

/// Why a gateway did not do it.
fn advise_on_call(error: &CallError) -> Advice {
    match error {
        CallError::Unreachable { .. } => (Code::Silent, Some("check the URL, and that `bowline serve` runs there")),
        CallError::Untrusted { .. } => (Code::Silent, Some(TRUST)),
        CallError::NotOurs { .. } => (Code::Other, Some("check the URL and its path, and any proxy in between")),
        CallError::Refused { code, .. } => match *code {
            problem::Code::UnknownSession | problem::Code::SessionGone => (Code::Unknown, Some(LIST)),
            problem::Code::NotAuthenticated => (Code::Other, Some(GET_TOKEN)),
            problem::Code::NotAllowed => (Code::Other, Some(MORE_SCOPE)),
            problem::Code::BadHost | problem::Code::BadOrigin => {
                (Code::Other, Some("start the server with --public-url and this URL"))
            }
            problem::Code::Unreachable => (Code::Silent, Some("`bowline ls` shows whether it still runs")),
            start => advise_on_start(start).unwrap_or((Code::Other, None)),
        },
    }
}
