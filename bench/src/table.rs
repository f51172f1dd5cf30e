//! The table of results, as Markdown or JSON.

use serde_json::{Value, json};

use crate::figure::{Row, short};
use crate::machine;
use crate::rows::Bench;

/// The results of a run.
#[derive(Debug)]
pub(crate) struct Table {
    machine: String,
    command: String,
    /// The largest share of the machine that other processes used when a measurement began.
    pub(crate) busy: f64,
    quick: bool,
    pub(crate) rows: Vec<Row>,
}

impl Table {
    pub(crate) fn new(bench: &Bench<'_>) -> Table {
        Table {
            machine: machine::describe(),
            command: std::env::args().collect::<Vec<_>>().join(" "),
            busy: 0.0,
            quick: bench.quick,
            rows: Vec::new(),
        }
    }

    pub(crate) fn is_within_budget(&self) -> bool {
        self.rows.iter().all(|row| row.holds() != Some(false))
    }

    /// The machine, the command, and warnings.
    pub(crate) fn head(&self) -> String {
        let mut head = format!("machine: {}\ncommand: {}\n", self.machine, self.command);
        if self.busy > machine::IDLE {
            head += &format!("warning: other processes used {:.0} % of this machine\n", self.busy * 100.0);
        }
        if self.quick {
            head += "warning: a quick run is too short for reliable results\n";
        }
        head
    }

    /// The table: first the rows without an alternative, then the comparisons with alternatives.
    pub(crate) fn text(&self) -> String {
        let titles = ["what", "bowline", "beside", "ratio", "budget", ""].map(String::from);
        let mut lines = vec![titles];
        for is_alternative in [false, true] {
            lines.extend(self.rows.iter().filter(|row| row.is_alternative == is_alternative).map(cells));
        }
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 6] = std::array::from_fn(width);
        let mut text = String::new();
        for (n, line) in lines.iter().enumerate() {
            let padded: Vec<String> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            text += &format!("| {} |\n", padded.join(" | "));
            if n == 0 {
                text += &format!("|{}|\n", widths.map(|width| "-".repeat(width + 2)).join("|"));
            }
        }
        text
    }

    pub(crate) fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let baseline = row
                    .baseline
                    .as_ref()
                    .map(|(name, figure)| json!({"name": name, "value": figure.value, "unit": figure.unit}));
                json!({
                    "what": row.what, "value": row.ours.value, "unit": row.ours.unit, "beside": baseline,
                    "ratio": row.ratio, "budget": row.budget.map(|_| row.budget_text()), "pass": row.holds(),
                })
            })
            .collect();
        json!({"machine": self.machine, "command": self.command, "busy": self.busy, "quick": self.quick, "rows": rows})
    }
}

/// One row, without padding.
pub(crate) fn line(row: &Row) -> String {
    format!("| {} |", cells(row).join(" | "))
}

fn cells(row: &Row) -> [String; 6] {
    let baseline = row.baseline.as_ref().map(|(name, figure)| format!("{name}: {figure}"));
    let verdict = row.holds().map_or("", |holds| if holds { "pass" } else { "FAIL" });
    [
        row.what.clone(),
        row.ours.to_string(),
        baseline.unwrap_or_default(),
        row.ratio.map(short).unwrap_or_default(),
        row.budget_text(),
        verdict.into(),
    ]
}
