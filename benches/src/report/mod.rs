//! What is shown, and what is written.

mod plot;
mod table;

pub use plot::{Chart, Scale, Series};
pub use table::Table;

use std::path::PathBuf;

use anyhow::{Context, Result};

/// The folder for CSV files and plots.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes the folder where it is not there.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        std::fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes the table as `NAME.csv`, and shows it.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn table(&self, name: &str, table: &Table) -> Result<()> {
        print!("{table}");
        self.csv(name, table)
    }

    /// Writes the table as `NAME.csv`.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn csv(&self, name: &str, table: &Table) -> Result<()> {
        let path = self.file(&format!("{name}.csv"));
        table.write(&path).with_context(|| path.display().to_string())
    }

    /// Writes the chart as `NAME.svg`.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn plot(&self, name: &str, chart: &Chart) -> Result<()> {
        let path = self.file(&format!("{name}.svg"));
        chart.write(&path).with_context(|| path.display().to_string())
    }
}
