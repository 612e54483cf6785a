// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables. In: rows of text. Out: aligned text, or a CSV file.

use std::fmt;
use std::path::Path;

/// Rows of text, with a heading for each column.
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes a table without rows.
    pub fn new<S: ToString>(columns: impl IntoIterator<Item = S>) -> Self {
        let columns = columns.into_iter().map(|column| column.to_string()).collect();
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row with one cell per column.
    ///
    /// # Panics
    /// Panics if the number of cells differs from the number of columns.
    pub fn row<S: ToString>(&mut self, cells: impl IntoIterator<Item = S>) {
        let cells: Vec<String> = cells.into_iter().map(|cell| cell.to_string()).collect();
        assert_eq!(cells.len(), self.columns.len(), "one cell per column");
        self.rows.push(cells);
    }

    /// Returns a table with every `step`th row and the last row.
    pub fn every(&self, step: usize) -> Self {
        let last = self.rows.len().saturating_sub(1);
        let rows = self.rows.iter().enumerate();
        let rows = rows.filter(|(i, _)| i % step == 0 || *i == last).map(|(_, row)| row.clone());
        Self { columns: self.columns.clone(), rows: rows.collect() }
    }

    /// Returns a table with the first `count` columns.
    pub fn first(&self, count: usize) -> Self {
        let first = |cells: &Vec<String>| cells[..count].to_vec();
        Self { columns: first(&self.columns), rows: self.rows.iter().map(first).collect() }
    }

    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let mut writer = csv::Writer::from_path(path)?;
        writer.write_record(&self.columns)?;
        for row in &self.rows {
            writer.write_record(row)?;
        }
        Ok(writer.flush()?)
    }
}

/// Prints aligned columns. Columns of numbers are aligned to the right.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = || std::iter::once(&self.columns).chain(&self.rows);
        let style = |column: usize| {
            let width = lines().map(|line| line[column].chars().count()).max().unwrap_or(0);
            let is_number =
                |line: &Vec<String>| line[column].starts_with(|c: char| c.is_ascii_digit());
            (width, self.rows.iter().all(is_number))
        };
        let styles: Vec<(usize, bool)> = (0..self.columns.len()).map(style).collect();
        for line in lines() {
            for (cell, &(width, is_number)) in line.iter().zip(&styles) {
                if is_number {
                    write!(f, "  {cell:>width$}")?
                } else {
                    write!(f, "  {cell:<width$}")?
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
