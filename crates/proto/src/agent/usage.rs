//! What an agent uses: tokens, money, and room in its context.

use serde::{Deserialize, Serialize, Serializer};

use super::event::RunId;

/// The largest number of tokens that is written: 2^53 - 1.
const MAX_COUNT: u64 = (1 << 53) - 1;

/// What the agent has used since the last event of this kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Usage {
    /// Null if it belongs to no run.
    #[cfg_attr(test, ts(type = "string | null"))]
    pub run: Option<RunId>,
    #[serde(flatten)]
    pub used: Used,
}

/// Tokens and money, for one event or added up over a conversation.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Used {
    #[serde(default)]
    pub tokens: Tokens,
    /// In US dollars, as the agent estimates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    #[cfg_attr(test, ts(optional, type = "number"))]
    pub cost: Option<Cost>,
    /// How full the context is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub context: Option<Context>,
}

/// Numbers of tokens.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Tokens {
    /// Without those from the cache.
    #[serde(serialize_with = "write_count")]
    pub input: u64,
    #[serde(serialize_with = "write_count")]
    pub output: u64,
    /// Read from the cache.
    #[serde(serialize_with = "write_count")]
    pub cache_read: u64,
    /// Written to the cache.
    #[serde(serialize_with = "write_count")]
    pub cache_write: u64,
}

/// How full the agent's context is, in tokens.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Context {
    #[serde(serialize_with = "write_count")]
    pub used: u64,
    /// Zero if it is unknown.
    #[serde(serialize_with = "write_count")]
    pub size: u64,
}

/// Whatever an agent says: clients refuse numbers that JavaScript cannot represent exactly.
fn write_count<S: Serializer>(count: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64((*count).min(MAX_COUNT))
}

/// An amount of money: a finite number that is not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "f64", into = "f64")]
pub struct Cost(f64);

impl Eq for Cost {}

impl From<f64> for Cost {
    fn from(amount: f64) -> Cost {
        // Rounded, so that sums and differences do not end in noise.
        let rounded = (amount * 1e9).round() / 1e9;
        Cost(if rounded.is_finite() && rounded > 0.0 { rounded } else { 0.0 })
    }
}

impl From<Cost> for f64 {
    fn from(cost: Cost) -> f64 {
        cost.0
    }
}

impl Used {
    /// Adds what was used later. The context is the latest one.
    pub fn add(&mut self, later: &Used) {
        let (sum, more) = (&mut self.tokens, later.tokens);
        sum.input = sum.input.saturating_add(more.input);
        sum.output = sum.output.saturating_add(more.output);
        sum.cache_read = sum.cache_read.saturating_add(more.cache_read);
        sum.cache_write = sum.cache_write.saturating_add(more.cache_write);
        if let Some(cost) = later.cost {
            self.cost = Some(Cost::from(self.cost.map_or(0.0, f64::from) + f64::from(cost)));
        }
        self.context = later.context.or(self.context);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn usage_adds_up_and_the_context_is_the_latest() {
        let used = |json| from_value::<Usage>(json).unwrap().used;
        let mut sum = Used::default();
        sum.add(&used(json!({"run": "r0", "tokens": {"input": 3, "output": 1}, "cost": 0.1})));
        sum.add(&used(json!({"run": null, "tokens": {"input": 4, "cache_read": 2}, "cost": 0.2,
            "context": {"used": 9, "size": 100}})));
        sum.add(&used(json!({"run": "r1", "tokens": {"input": u64::MAX}})));
        assert_eq!(
            json!(sum),
            json!({"tokens": {"input": MAX_COUNT, "output": 1, "cache_read": 2, "cache_write": 0}, "cost": 0.3,
                "context": {"used": 9, "size": 100}})
        );
    }

    #[test]
    fn r52_a_cost_that_makes_no_sense_is_nothing() {
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Cost::from(bad), Cost::default());
        }
    }
}
