//! Terminal sizes, within bounds that keep the emulator safe.

use serde::{Deserialize, Serialize};

/// The emulator would loop forever on a wide character in a single column.
pub const MIN_COLS: u16 = 2;
/// With [`MAX_ROWS`], limits how much memory one resize can allocate.
pub const MAX_COLS: u16 = 1000;
pub const MIN_ROWS: u16 = 1;
pub const MAX_ROWS: u16 = 500;

/// A terminal size: 2 to 1000 columns, 1 to 500 rows.
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

/// A requested size is out of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a terminal size of {cols}x{rows} is out of range: {MIN_COLS}-{MAX_COLS} columns, {MIN_ROWS}-{MAX_ROWS} rows")]
pub struct BadSize {
    pub cols: u32,
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
    pub fn new(cols: u32, rows: u32) -> Result<Size, BadSize> {
        let bad = BadSize { cols, rows };
        let (c, r) = (u16::try_from(cols).map_err(|_| bad)?, u16::try_from(rows).map_err(|_| bad)?);
        let fits = (MIN_COLS..=MAX_COLS).contains(&c) && (MIN_ROWS..=MAX_ROWS).contains(&r);
        if fits { Ok(Size { cols: c, rows: r }) } else { Err(bad) }
    }

    /// The nearest size within the bounds.
    pub fn clamped(cols: u16, rows: u16) -> Size {
        Size { cols: cols.clamp(MIN_COLS, MAX_COLS), rows: rows.clamp(MIN_ROWS, MAX_ROWS) }
    }

    pub fn cols(self) -> u16 {
        self.cols
    }

    pub fn rows(self) -> u16 {
        self.rows
    }
}

impl Default for Size {
    /// 80 columns and 24 rows.
    fn default() -> Size {
        Size { cols: 80, rows: 24 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r52_sizes_out_of_bounds_are_refused() {
        assert!(Size::new(2, 1).is_ok());
        assert!(Size::new(1000, 500).is_ok());
        for (cols, rows) in [(0, 0), (1, 24), (80, 0), (1001, 24), (80, 501), (65_536 + 80, 24)] {
            assert_eq!(Size::new(cols, rows), Err(BadSize { cols, rows }));
        }
        assert!(serde_json::from_str::<Size>(r#"{"cols":1,"rows":24}"#).is_err());
        assert_eq!(Size::clamped(0, 9999), Size::new(2, 500).unwrap());
    }
}
