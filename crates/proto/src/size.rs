//! The size of a terminal, and the bounds that keep the emulator safe.

use serde::{Deserialize, Serialize};

/// Fewest columns: the emulator loops for ever on a wide character in one column.
pub const MIN_COLS: u16 = 2;
/// Most columns: with [`MAX_ROWS`], what one hostile resize may cost in memory.
pub const MAX_COLS: u16 = 1000;
/// Fewest rows.
pub const MIN_ROWS: u16 = 1;
/// Most rows.
pub const MAX_ROWS: u16 = 500;

/// Columns and rows of a terminal, always within the bounds of this module.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(try_from = "RawSize")]
pub struct Size {
    #[cfg_attr(feature = "openapi", schema(minimum = 2, maximum = 1000))]
    cols: u16,
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 500))]
    rows: u16,
}

/// The size that was asked for is outside what a terminal may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a terminal has {MIN_COLS}-{MAX_COLS} columns and {MIN_ROWS}-{MAX_ROWS} rows, not {cols} x {rows}")]
pub struct BadSize {
    /// The columns asked for.
    pub cols: u32,
    /// The rows asked for.
    pub rows: u32,
}

#[derive(Deserialize)]
struct RawSize {
    cols: u32,
    rows: u32,
}

impl TryFrom<RawSize> for Size {
    type Error = BadSize;
    fn try_from(raw: RawSize) -> Result<Self, BadSize> {
        Size::new(raw.cols, raw.rows)
    }
}

impl Size {
    /// A size within the bounds, or the reason why not.
    pub fn new(cols: u32, rows: u32) -> Result<Size, BadSize> {
        let bad = BadSize { cols, rows };
        let (c, r) = (u16::try_from(cols).map_err(|_| bad)?, u16::try_from(rows).map_err(|_| bad)?);
        let fits = (MIN_COLS..=MAX_COLS).contains(&c) && (MIN_ROWS..=MAX_ROWS).contains(&r);
        if fits { Ok(Size { cols: c, rows: r }) } else { Err(bad) }
    }

    /// The nearest size within the bounds, for a terminal whose own size is out of them.
    pub fn clamped(cols: u16, rows: u16) -> Size {
        Size { cols: cols.clamp(MIN_COLS, MAX_COLS), rows: rows.clamp(MIN_ROWS, MAX_ROWS) }
    }

    /// Columns.
    pub fn cols(self) -> u16 {
        self.cols
    }

    /// Rows.
    pub fn rows(self) -> u16 {
        self.rows
    }
}

impl Default for Size {
    /// 80 columns, 24 rows: what a terminal is when nobody says otherwise.
    fn default() -> Size {
        Size { cols: 80, rows: 24 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r52_absurd_sizes_are_refused() {
        assert!(Size::new(2, 1).is_ok());
        assert!(Size::new(1000, 500).is_ok());
        for (cols, rows) in [(0, 0), (1, 24), (80, 0), (1001, 24), (80, 501), (65_536 + 80, 24)] {
            assert_eq!(Size::new(cols, rows), Err(BadSize { cols, rows }));
        }
        assert!(serde_json::from_str::<Size>(r#"{"cols":1,"rows":24}"#).is_err());
        assert_eq!(Size::clamped(0, 9999), Size::new(2, 500).unwrap());
    }
}
