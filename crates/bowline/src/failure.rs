//! Errors as users see them: a message, a hint, and an exit code for scripts.

use bowline_proto::problem;
use std::fmt;
use std::process::ExitCode;

use bowline_client::remote::{ApiError, GatewayError, InvalidAddress};
use bowline_gateway::auth::AuthError;
use bowline_host::change_lock::ChangeLockError;
use bowline_host::control::ControlError;
use bowline_host::home::HomeError;
use bowline_host::registry::RegistryError;
use bowline_host::remove::EndError;
use bowline_host::rename::RenameError;
use bowline_host::start::StartError;
use bowline_proto::agent::approval::Answered;

pub(crate) const LIST_SESSIONS: &str = "`bowline ls` lists the sessions";
pub(crate) const SET_STATE_DIR: &str = "set BOWLINE_STATE_DIR to a directory of your own";
const CHECK_FILE: &str = "check its owner, its permissions and the free disk space";
const SESSION_STATE: &str = "`bowline ls` shows whether it is still running";
const NAME_TAKEN: &str = "attach to it, choose another --name, or replace it with --if-exists restart; \
     --if-exists return uses it if the command and the directory are the same";
/// For a certificate that is not trusted.
pub(crate) const TRUST_CERTIFICATE: &str = "the certificate must be valid for that host name and issued by an authority \
     that this machine trusts; SSL_CERT_FILE can name a file with other trusted certificates";
/// For a missing token, or one that the server does not accept.
pub(crate) const GET_TOKEN: &str = "on the server, run `bowline token create --name laptop --scope write`; set BOWLINE_TOKEN to the token that it prints";
/// For a token whose scope is not sufficient.
pub(crate) const MORE_SCOPE: &str =
    "create a token with scope write on the server: `bowline token create --name laptop --scope write`";
/// For a token whose scope is not sufficient for tokens and logins.
const ADMIN_SCOPE: &str = "create an admin token on the server: `bowline token create --name admin --scope admin`";

/// An exit code and a hint.
type Advice = (Code, Option<&'static str>);

/// The exit codes that `bowline --help` lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Other = 1,
    /// A mistake in the command line or the configuration, or an ambiguous session.
    Usage = 2,
    /// No such session or token.
    NotFound = 3,
    NameTaken = 4,
    /// The session cannot start: its program, its directory or the disk space. Or the gateway cannot: its address.
    CannotStart = 5,
    /// The session process or the server does not answer.
    Unreachable = 6,
}

/// An error as the user sees it.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// `hint` says what to do about it.
    pub(crate) fn new(code: Code, message: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), hint: Some(hint.into()) }
    }

    /// For a verb that works on this machine only, if `--server` or `BOWLINE_SERVER` names another one.
    pub(crate) fn local_only(verb: &str) -> Failure {
        let message = format!("`bowline {verb}` works only on the local machine, not on another server");
        let hint = "run it on that machine, for example over ssh, or omit --server and unset BOWLINE_SERVER";
        Failure::new(Code::Usage, message, hint)
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Prints the error to standard error and returns its exit code.
    pub(crate) fn report(&self) -> ExitCode {
        eprintln!("{self}");
        ExitCode::from(self.code as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Indented, so that no text from outside can pretend to be the hint.
        let indent = |text: &str| text.replace('\n', "\n  ");
        write!(f, "bowline: {}", indent(&self.message))?;
        self.hint.iter().try_for_each(|hint| write!(f, "\nhint: {}", indent(hint)))
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

/// Joins the error and its causes, without causes that the message already contains.
fn message(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |message, cause| match message.as_str() {
        "" => cause,
        text if text.contains(&cause) => message,
        _ => format!("{message}: {cause}"),
    })
}

/// The exit code and hint for an error of the library crates.
fn advise(error: &(dyn std::error::Error + 'static)) -> Option<Advice> {
    if let Some(error) = error.downcast_ref::<RegistryError>() {
        return Some(match error {
            RegistryError::Unknown(_) => (Code::NotFound, Some(LIST_SESSIONS)),
            RegistryError::Damaged { .. } => (Code::Other, Some("`bowline kill` with its id forgets it")),
            RegistryError::Io { .. } => (Code::Other, Some("check the owner and permissions of that directory")),
        });
    }
    match error.downcast_ref::<StartError>() {
        Some(StartError::Registry(error)) => return advise(error),
        Some(StartError::End(error)) => return advise(error),
        Some(StartError::Home(error)) if error.code() != problem::Code::NoSpace => return advise(error),
        Some(StartError::Locked(ChangeLockError::Io { .. })) => return Some((Code::CannotStart, Some(CHECK_FILE))),
        _ => {}
    }
    if let Some(error) = error.downcast_ref::<StartError>() {
        return Some(advise_on_start(error.code()).unwrap_or((Code::CannotStart, None)));
    }
    if let Some(error) = error.downcast_ref::<ApiError>() {
        return Some(advise_on_call(error));
    }
    if error.is::<InvalidAddress>() {
        return Some((Code::Usage, Some("use the URL that `bowline serve` prints, without the part from # on")));
    }
    if let Some(error) = error.downcast_ref::<GatewayError>() {
        return Some(match error {
            GatewayError::Token => (Code::Usage, Some(GET_TOKEN)),
            GatewayError::NoRoots(_) => (Code::Usage, Some("set SSL_CERT_FILE to a file of trusted certificates")),
        });
    }
    if let Some(error) = error.downcast_ref::<ControlError>() {
        return Some(match error {
            ControlError::Unreachable(_) | ControlError::TimedOut => (Code::Unreachable, Some(SESSION_STATE)),
            ControlError::Unexpected | ControlError::Refused { .. } => (Code::Other, None),
        });
    }
    if let Some(RenameError::Taken { .. }) = error.downcast_ref::<RenameError>() {
        return Some((Code::NameTaken, Some("choose another name, or end the session that has it")));
    }
    if let Some(error) = error.downcast_ref::<AuthError>() {
        return Some(match error {
            AuthError::Home(_) => (Code::CannotStart, Some(SET_STATE_DIR)),
            AuthError::BadName(_) | AuthError::BadTtl => (Code::Usage, None),
            AuthError::TooManyTokens => {
                (Code::Other, Some("`bowline token ls` lists them; `bowline token revoke` revokes one"))
            }
            AuthError::Io { .. } => (Code::Other, Some(CHECK_FILE)),
            // These messages already say what to do.
            AuthError::Busy { .. }
            | AuthError::Damaged { .. }
            | AuthError::Newer { .. }
            | AuthError::NoRandom(_)
            | AuthError::Revoked
            | AuthError::NotALogin => (Code::Other, None),
        });
    }
    if error.downcast_ref::<HomeError>().is_some() {
        return Some((Code::CannotStart, Some(SET_STATE_DIR)));
    }
    match error.downcast_ref::<EndError>()? {
        EndError::Stuck(_) => {
            Some((Code::Unreachable, Some("its process may be stopped (SIGSTOP), or waiting for a disk that hangs")))
        }
        EndError::OtherMachine(_) | EndError::Restarted | EndError::Files { .. } => Some((Code::Other, None)),
    }
}

/// The problem code, if a session process or a gateway refused the request.
pub(crate) fn problem_code(error: &anyhow::Error) -> Option<problem::Code> {
    error.chain().find_map(|cause| match cause.downcast_ref::<ControlError>() {
        Some(ControlError::Refused { code, .. }) => Some(*code),
        Some(ControlError::Unreachable(_) | ControlError::TimedOut | ControlError::Unexpected) => None,
        None => cause.downcast_ref::<ApiError>()?.code(),
    })
}

/// The problem code of a session that could not be started, here or by a gateway.
pub(crate) fn start_code(error: &anyhow::Error) -> Option<problem::Code> {
    error.downcast_ref::<StartError>().map(StartError::code).or_else(|| problem_code(error))
}

/// How an approval was answered, if that is why another answer was refused.
pub(crate) fn answered(error: &anyhow::Error) -> Option<&Answered> {
    error.chain().find_map(|cause| match (cause.downcast_ref(), cause.downcast_ref()) {
        (Some(ControlError::Refused { answered, .. }), _) => answered.as_ref(),
        (_, Some(ApiError::Refused { answered, .. })) => answered.as_ref(),
        _ => None,
    })
}

/// Converts the error of a call that needs the scope `admin`, with a hint about it.
pub(crate) fn explain_admin_call(error: ApiError) -> anyhow::Error {
    match error.code() {
        Some(problem::Code::NotAllowed) => Failure::new(Code::Other, error.to_string(), ADMIN_SCOPE).into(),
        _ => error.into(),
    }
}

/// The exit code and hint for a session that could not be started.
fn advise_on_start(code: problem::Code) -> Option<Advice> {
    Some(match code {
        problem::Code::NameTaken => (Code::NameTaken, Some(NAME_TAKEN)),
        problem::Code::BadCwd => {
            (Code::CannotStart, Some("use --cwd to name a directory that exists and that you can enter"))
        }
        problem::Code::NoProgram => (
            Code::CannotStart,
            Some("check the spelling, that it is executable and, without a path, that its directory is in PATH"),
        ),
        problem::Code::NoSpace => {
            (Code::CannotStart, Some("free some disk space, or keep less output with --log-size 1M"))
        }
        problem::Code::BadRequest | problem::Code::BadName | problem::Code::BadSize => (Code::Usage, None),
        problem::Code::NotAllowedMode => (Code::Usage, Some("`bowline agents` lists the modes that may be chosen")),
        problem::Code::UnknownSession => (Code::NotFound, Some(LIST_SESSIONS)),
        problem::Code::Unreachable => (Code::Unreachable, None),
        _ => return None,
    })
}

/// The exit code and hint for a failed call to a gateway.
fn advise_on_call(error: &ApiError) -> Advice {
    match error {
        ApiError::Unreachable { .. } => {
            (Code::Unreachable, Some("check the URL, and that `bowline serve` is running there"))
        }
        ApiError::Untrusted { .. } => (Code::Unreachable, Some(TRUST_CERTIFICATE)),
        ApiError::TooLong { .. } => (Code::Other, Some("for a screen, ask for fewer lines with --scrollback")),
        ApiError::NotBowline { .. } => (Code::Other, Some("check the URL, its path, and any proxy in between")),
        ApiError::Refused { code, .. } => match *code {
            problem::Code::UnknownSession | problem::Code::SessionGone => (Code::NotFound, Some(LIST_SESSIONS)),
            problem::Code::NotAuthenticated => (Code::Other, Some(GET_TOKEN)),
            problem::Code::NotAllowed => (Code::Other, Some(MORE_SCOPE)),
            problem::Code::BadHost | problem::Code::BadOrigin => {
                (Code::Other, Some("on the server, run `bowline serve` with this URL as --public-url"))
            }
            problem::Code::Unreachable => (Code::Unreachable, Some(SESSION_STATE)),
            start => advise_on_start(start).unwrap_or((Code::Other, None)),
        },
    }
}
