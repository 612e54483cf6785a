// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the paper's windows from text. In: lines `x,y,side,score`. Out: their numbers in this
//! order.

use super::recording::RecordingError;

/// Numbers per line: x, y, side, score.
pub(super) const COLUMNS: usize = 4;

/// Parses lines `x,y,side,score`. Empty lines are ignored.
///
/// # Errors
/// Returns an error if a line does not consist of four numbers.
pub(super) fn parse(path: &str, text: &str) -> Result<Vec<f32>, RecordingError> {
    let mut numbers = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let before = numbers.len();
        for field in line.split(',') {
            if let Ok(number) = field.trim().parse::<f32>() {
                numbers.push(number);
            }
        }
        if numbers.len() - before != COLUMNS || line.split(',').count() != COLUMNS {
            return Err(RecordingError::Csv {
                path: path.to_owned(),
                line: i + 1,
                found: line.chars().take(80).collect(),
            });
        }
    }
    Ok(numbers)
}
