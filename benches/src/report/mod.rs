// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes results: tables as text and CSV, charts as SVG.

mod plot;
mod table;

pub use plot::{Chart, Scale, Series};
pub use table::Table;

use std::path::PathBuf;

use anyhow::{Context, Result};

/// A folder for CSV files and plots.
pub struct Folder(PathBuf);

impl Folder {
    /// Opens the folder, and creates it if it does not exist.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        std::fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }

    /// Returns the path of a file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Prints the table, and writes it as `NAME.csv`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn table(&self, name: &str, table: &Table) -> Result<()> {
        print!("{table}");
        self.csv(name, table)
    }

    /// Writes the table as `NAME.csv`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn csv(&self, name: &str, table: &Table) -> Result<()> {
        let path = self.file(&format!("{name}.csv"));
        table.write(&path).with_context(|| path.display().to_string())
    }

    /// Writes the chart as `NAME.svg`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn plot(&self, name: &str, chart: &Chart) -> Result<()> {
        let path = self.file(&format!("{name}.svg"));
        chart.write(&path).with_context(|| path.display().to_string())
    }
}
