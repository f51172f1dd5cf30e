//! What an ACP agent says that it has used, in whichever place it says so.

use bowline_proto::agent::event::RunId;
use bowline_proto::agent::usage::{Context, Cost, Tokens, Usage, Used};
use serde::Deserialize;

/// The content of `usage_update`.
#[derive(Debug, Deserialize)]
pub(super) struct UsageUpdate {
    #[serde(default)]
    used: u64,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    cost: Option<Amount>,
}

#[derive(Debug, Deserialize)]
struct Amount {
    #[serde(default)]
    amount: f64,
    #[serde(default)]
    currency: String,
}

/// The part of the answer to `session/prompt` that says what the turn used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TurnUsage {
    usage: Option<TokenCount>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TokenCount {
    #[serde(alias = "input_tokens")]
    input_tokens: u64,
    #[serde(alias = "output_tokens")]
    output_tokens: u64,
    cached_read_tokens: u64,
    cached_write_tokens: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Meta {
    quota: Option<Quota>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Quota {
    token_count: Option<TokenCount>,
}

/// What was said since the last turn.
#[derive(Debug, Default)]
pub(super) struct UsageMeter {
    context: Option<Context>,
    /// In US dollars, since the program was started.
    cost: f64,
    /// How much of it was recorded.
    recorded_cost: f64,
    has_news: bool,
}

impl UsageMeter {
    pub(super) fn handle_update(&mut self, UsageUpdate { used, size, cost }: UsageUpdate) {
        self.context = Some(Context { used, size });
        if let Some(Amount { amount, .. }) = cost.filter(|cost| cost.currency == "USD") {
            self.cost = amount;
        }
        self.has_news = true;
    }

    /// What is recorded at the end of a turn, if anything is known.
    pub(super) fn take(&mut self, run: RunId, turn: TurnUsage) -> Option<Usage> {
        let count = turn.usage.or_else(|| turn.meta.and_then(|meta| meta.quota).and_then(|quota| quota.token_count));
        if count.is_none() && !self.has_news {
            return None;
        }
        let TokenCount { input_tokens, output_tokens, cached_read_tokens, cached_write_tokens } =
            count.unwrap_or_default();
        let tokens = Tokens {
            input: input_tokens,
            output: output_tokens,
            cache_read: cached_read_tokens,
            cache_write: cached_write_tokens,
        };
        // The agent's amount grows with each turn.
        let cost = (self.cost > 0.0).then(|| Cost::from(self.cost - self.recorded_cost));
        (self.recorded_cost, self.has_news) = (self.cost, false);
        Some(Usage { run: Some(run), used: Used { tokens, cost, context: self.context } })
    }
}
