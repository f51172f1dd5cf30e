//! The description of the session that the tests use.

use bowline_proto::config::ServerConfig;
use bowline_proto::session::{Kind, SessionInfo, State, TerminalInfo};

pub(crate) fn info(config: &ServerConfig) -> SessionInfo {
    SessionInfo {
        id: "k3v9x0q2m7aa".parse().unwrap(),
        name: None,
        kind: Kind::Terminal,
        state: State::Running,
        exit: None,
        created: "2026-11-15T18:00:00Z".to_owned(),
        active: None,
        call: None,
        host: None,
        cwd: "/".to_owned(),
        title: String::new(),
        clients: 0,
        epoch: config.epoch.clone(),
        offset: 0,
        degraded: false,
        version: "0.1.0".to_owned(),
        truncated: false,
        terminal: Some(TerminalInfo { argv: vec![], size: config.size }),
        agent: None,
    }
}
