//! Prints tables whose columns are as wide as their widest cell.

use crate::print::one_line;

/// Prints the column names and then one line per row.
pub(crate) fn print<const N: usize>(head: [&str; N], rows: &[[String; N]]) {
    let rows: Vec<_> = rows.iter().map(|row| row.each_ref().map(one_line)).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(head[column].len())
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |cells: [&str; N]| {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}  "));
        println!("{}", padded.collect::<String>().trim_end());
    };
    line(head);
    rows.iter().for_each(|row| line(row.each_ref().map(String::as_str)));
}
