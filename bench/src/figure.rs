//! Numbers with units, rows of the table, and statistics over samples.

use std::fmt;

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) value: f64,
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

/// Formats with three significant digits; a larger number is not shortened.
pub(crate) fn short(value: f64) -> String {
    let decimals = match value.abs() {
        0.0..0.995 => 3,
        0.995..9.95 => 2,
        9.95..99.5 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// The limit that a row must stay within.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Budget {
    RatioAtLeast(f64),
    RatioAtMost(f64),
    /// Applies to Bowline's figure, in its unit.
    AtMost(f64),
    /// How much larger than the baseline's figure Bowline's may be, in its unit.
    AtMostMore(f64),
}

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) ours: Figure,
    /// The name and figure of what Bowline is compared with.
    pub(crate) baseline: Option<(String, Figure)>,
    /// Bowline's figure divided by the baseline's. Where there are several rounds, the median of their ratios.
    pub(crate) ratio: Option<f64>,
    pub(crate) budget: Option<Budget>,
    /// Whether the baseline is an alternative that a user could choose, such as tmux.
    pub(crate) is_alternative: bool,
}

impl Row {
    /// A row without a baseline and budget.
    pub(crate) fn new(what: impl Into<String>, ours: Figure) -> Row {
        Row { what: what.into(), ours, baseline: None, ratio: None, budget: None, is_alternative: false }
    }

    /// Sets the baseline, and the ratio to it.
    pub(crate) fn against(mut self, name: impl Into<String>, figure: Figure) -> Row {
        self.ratio = Some(self.ours.value / figure.value);
        self.baseline = Some((name.into(), figure));
        self
    }

    /// Sets a ratio that is not the quotient of the two figures.
    pub(crate) fn ratio(mut self, ratio: f64) -> Row {
        self.ratio = Some(ratio);
        self
    }

    pub(crate) fn budget(mut self, budget: Budget) -> Row {
        self.budget = Some(budget);
        self
    }

    /// Whether the row is within its budget; `None` without one.
    pub(crate) fn holds(&self) -> Option<bool> {
        match (self.budget?, self.ratio) {
            (Budget::RatioAtLeast(least), ratio) => Some(ratio? >= least),
            (Budget::RatioAtMost(most), ratio) => Some(ratio? <= most),
            (Budget::AtMost(most), _) => Some(self.ours.value <= most),
            (Budget::AtMostMore(most), _) => Some(self.ours.value - self.baseline.as_ref()?.1.value <= most),
        }
    }

    pub(crate) fn budget_text(&self) -> String {
        match self.budget {
            Some(Budget::RatioAtLeast(least)) => format!("ratio ≥ {least}"),
            Some(Budget::RatioAtMost(most)) => format!("ratio ≤ {most}"),
            Some(Budget::AtMost(most)) => format!("≤ {most} {}", self.ours.unit),
            Some(Budget::AtMostMore(most)) => format!("≤ + {most} {}", self.ours.unit),
            None => String::new(),
        }
    }
}

pub(crate) fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

/// The sample at quantile `q`, from 0 to 1; NaN without samples.
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
    fn holds_compares_with_the_budget() {
        let row = Row::new("speed", Figure::new(60.0, "MB/s")).against("bare", Figure::new(100.0, "MB/s"));
        assert_eq!(row.clone().budget(Budget::RatioAtLeast(0.65)).holds(), Some(false));
        assert_eq!(row.clone().budget(Budget::RatioAtMost(0.65)).holds(), Some(true));
        assert_eq!(row.clone().ratio(0.7).budget(Budget::RatioAtLeast(0.65)).holds(), Some(true));
        assert_eq!(row.clone().budget(Budget::AtMost(59.0)).holds(), Some(false));
        assert_eq!(row.holds(), None);
    }

    #[test]
    fn a_difference_is_to_the_baseline() {
        let row = Row::new("delay", Figure::new(5.5, "ms")).budget(Budget::AtMostMore(2.0));
        assert_eq!(row.holds(), None, "there is no baseline");
        assert_eq!(row.clone().against("bare", Figure::new(3.6, "ms")).holds(), Some(true));
        assert_eq!(row.clone().against("bare", Figure::new(3.4, "ms")).holds(), Some(false));
        assert_eq!(row.budget_text(), "≤ + 2 ms");
    }

    #[test]
    fn quantiles_are_samples_and_nan_without_any() {
        let samples: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!((median(&samples), quantile(&samples, 0.99)), (50.0, 99.0));
        assert!(median(&[]).is_nan());
    }
}
