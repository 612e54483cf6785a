// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of a zone or a line on the command line.

/// Splits `NAME=A,B,C,D` into the name, which is not empty, and the numbers.
pub fn parse(text: &str) -> Option<(&str, [f64; 4])> {
    let (name, numbers) = text.split_once('=')?;
    let numbers: Result<Vec<f64>, _> = numbers.split(',').map(str::parse).collect();
    let numbers = <[f64; 4]>::try_from(numbers.ok()?).ok()?;
    (!name.is_empty()).then_some((name, numbers))
}
