//! Numbers with their unit, rows of the table, and how many samples become one number.

use std::fmt;

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    /// The number.
    pub(crate) value: f64,
    /// Its unit.
    pub(crate) unit: &'static str,
}

impl Figure {
    pub(crate) fn new(value: f64, unit: &'static str) -> Figure {
        Figure { value, unit }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", short(self.value), self.unit)
    }
}

/// Three digits, or all of a larger number.
pub(crate) fn short(value: f64) -> String {
    let decimals = match value.abs() {
        0.0..0.995 => 3,
        0.995..9.95 => 2,
        9.95..99.5 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// What a row may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Budget {
    /// The ratio, at least.
    RatioAtLeast(f64),
    /// The ratio, at most.
    RatioAtMost(f64),
    /// Bowline's own figure, at most, in its unit.
    AtMost(f64),
}

/// One row of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What is measured.
    pub(crate) what: String,
    /// Bowline's figure.
    pub(crate) ours: Figure,
    /// What it is measured beside, by name.
    pub(crate) beside: Option<(String, Figure)>,
    /// Ours divided by the other, where that is not simply the quotient of the two figures: the median over rounds.
    pub(crate) ratio: Option<f64>,
    /// What it may be.
    pub(crate) budget: Option<Budget>,
    /// It compares with what a user would pick instead.
    pub(crate) instead: bool,
}

impl Row {
    /// A figure on its own.
    pub(crate) fn new(what: impl Into<String>, ours: Figure) -> Row {
        Row { what: what.into(), ours, beside: None, ratio: None, budget: None, instead: false }
    }

    /// Beside something else.
    pub(crate) fn beside(mut self, name: impl Into<String>, figure: Figure) -> Row {
        self.ratio = Some(self.ours.value / figure.value);
        self.beside = Some((name.into(), figure));
        self
    }

    /// With a ratio of its own.
    pub(crate) fn ratio(mut self, ratio: f64) -> Row {
        self.ratio = Some(ratio);
        self
    }

    /// With a budget.
    pub(crate) fn budget(mut self, budget: Budget) -> Row {
        self.budget = Some(budget);
        self
    }

    /// Whether the budget holds, if there is one.
    pub(crate) fn holds(&self) -> Option<bool> {
        match (self.budget?, self.ratio) {
            (Budget::RatioAtLeast(least), ratio) => Some(ratio? >= least),
            (Budget::RatioAtMost(most), ratio) => Some(ratio? <= most),
            (Budget::AtMost(most), _) => Some(self.ours.value <= most),
        }
    }

    /// The budget in words.
    pub(crate) fn budget_text(&self) -> String {
        match self.budget {
            Some(Budget::RatioAtLeast(least)) => format!("ratio ≥ {least}"),
            Some(Budget::RatioAtMost(most)) => format!("ratio ≤ {most}"),
            Some(Budget::AtMost(most)) => format!("≤ {most} {}", self.ours.unit),
            None => String::new(),
        }
    }
}

/// The middle of some samples.
pub(crate) fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

/// The sample below which the share `q` of all lies.
pub(crate) fn quantile(samples: &[f64], q: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len().saturating_sub(1) as f64 * q).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_hold_or_do_not() {
        let row = Row::new("speed", Figure::new(60.0, "MB/s")).beside("bare", Figure::new(100.0, "MB/s"));
        assert_eq!(row.clone().budget(Budget::RatioAtLeast(0.65)).holds(), Some(false));
        assert_eq!(row.clone().budget(Budget::RatioAtMost(0.65)).holds(), Some(true));
        assert_eq!(row.clone().ratio(0.7).budget(Budget::RatioAtLeast(0.65)).holds(), Some(true));
        assert_eq!(row.clone().budget(Budget::AtMost(59.0)).holds(), Some(false));
        assert_eq!(row.holds(), None);
    }

    #[test]
    fn quantiles_are_samples() {
        let samples: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!((median(&samples), quantile(&samples, 0.99)), (50.0, 99.0));
        assert!(median(&[]).is_nan());
    }
}
