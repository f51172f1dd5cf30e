//! Collects and prints the results of the checks, each with a remedy.

use std::fmt::Display;
use std::process::ExitCode;

use serde::Serialize;

use crate::print::one_line;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Grade {
    Ok,
    /// It works, but may fail later or in some setups.
    Warn,
    Fail,
}

#[derive(Debug, Serialize)]
struct Finding {
    name: &'static str,
    grade: Grade,
    #[serde(rename = "words")]
    message: String,
    /// Set unless the grade is [`Grade::Ok`].
    remedy: Option<String>,
}

/// All findings. Prints each at once, or all at the end as JSON.
#[derive(Debug)]
pub(super) struct Report {
    json: bool,
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(json: bool) -> Report {
        Report { json, findings: Vec::new() }
    }

    pub(super) fn ok(&mut self, name: &'static str, message: impl Display) {
        self.add(Finding { name, grade: Grade::Ok, message: message.to_string(), remedy: None });
    }

    pub(super) fn warn(&mut self, name: &'static str, message: impl Display, remedy: impl Display) {
        let remedy = Some(remedy.to_string());
        self.add(Finding { name, grade: Grade::Warn, message: message.to_string(), remedy });
    }

    pub(super) fn fail(&mut self, name: &'static str, message: impl Display, remedy: impl Display) {
        let remedy = Some(remedy.to_string());
        self.add(Finding { name, grade: Grade::Fail, message: message.to_string(), remedy });
    }

    fn add(&mut self, finding: Finding) {
        if !self.json {
            let grade = match finding.grade {
                Grade::Ok => "ok  ",
                Grade::Warn => "warn",
                Grade::Fail => "FAIL",
            };
            println!("{grade}  {}: {}", finding.name, one_line(&finding.message));
            if let Some(remedy) = &finding.remedy {
                println!("      {}", one_line(remedy));
            }
        }
        self.findings.push(finding);
    }

    /// Prints the summary and returns the exit code.
    pub(super) fn finish(self) -> ExitCode {
        let count = |grade: Grade| self.findings.iter().filter(|finding| finding.grade == grade).count();
        let (warned, failed) = (count(Grade::Warn), count(Grade::Fail));
        if self.json {
            println!("{}", serde_json::json!({ "ok": failed == 0, "checks": self.findings }));
        } else {
            println!("{}", summary(self.findings.len(), warned, failed));
        }
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Such as `13 checks: 2 warnings, 1 failed`.
fn summary(checks: usize, warned: usize, failed: usize) -> String {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let mut problems = Vec::new();
    if warned > 0 {
        problems.push(format!("{warned} warning{}", plural(warned)));
    }
    if failed > 0 {
        problems.push(format!("{failed} failed"));
    }
    let problems = if problems.is_empty() { "no problems".to_owned() } else { problems.join(", ") };
    format!("{checks} check{}: {problems}", plural(checks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_in_words() {
        assert_eq!(summary(13, 0, 0), "13 checks: no problems");
        assert_eq!(summary(1, 0, 1), "1 check: 1 failed");
        assert_eq!(summary(13, 2, 1), "13 checks: 2 warnings, 1 failed");
        assert_eq!(summary(13, 1, 0), "13 checks: 1 warning");
    }
}
