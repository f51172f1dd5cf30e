//! What was found: a line each, with what to do.

use std::fmt::Display;
use std::process::ExitCode;

use serde::Serialize;

/// How good something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Grade {
    Ok,
    /// It works, and may not for long or not everywhere.
    Warn,
    Fail,
}

#[derive(Debug, Serialize)]
struct Finding {
    name: &'static str,
    grade: Grade,
    words: String,
    remedy: Option<String>,
}

/// All findings, told as they come.
#[derive(Debug)]
pub(super) struct Report {
    json: bool,
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(json: bool) -> Report {
        Report { json, findings: Vec::new() }
    }

    /// All is well.
    pub(super) fn ok(&mut self, name: &'static str, words: impl Display) {
        self.add(Finding { name, grade: Grade::Ok, words: words.to_string(), remedy: None });
    }

    /// It works, and may not for long or not everywhere.
    pub(super) fn warn(&mut self, name: &'static str, words: impl Display, remedy: impl Display) {
        let remedy = Some(remedy.to_string());
        self.add(Finding { name, grade: Grade::Warn, words: words.to_string(), remedy });
    }

    /// It does not work.
    pub(super) fn fail(&mut self, name: &'static str, words: impl Display, remedy: impl Display) {
        let remedy = Some(remedy.to_string());
        self.add(Finding { name, grade: Grade::Fail, words: words.to_string(), remedy });
    }

    fn add(&mut self, finding: Finding) {
        if !self.json {
            let grade = match finding.grade {
                Grade::Ok => "ok  ",
                Grade::Warn => "warn",
                Grade::Fail => "FAIL",
            };
            println!("{grade}  {}: {}", finding.name, finding.words);
            if let Some(remedy) = &finding.remedy {
                println!("      {remedy}");
            }
        }
        self.findings.push(finding);
    }

    /// The last word, and the exit code.
    pub(super) fn finish(self) -> ExitCode {
        let count = |grade: Grade| self.findings.iter().filter(|finding| finding.grade == grade).count();
        let (warned, failed) = (count(Grade::Warn), count(Grade::Fail));
        if self.json {
            println!("{}", serde_json::json!({ "ok": failed == 0, "checks": self.findings }));
        } else {
            println!("{} checks; warnings: {warned}; failures: {failed}", self.findings.len());
        }
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
