// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses lists of numbers in properties: `0,1`, a number per channel, or any number of them.

use crate::inference::error::InferenceError;

/// A number per channel, in the order red, green, blue, independent of the order in the model.
pub type PerChannel = [f64; 3];

/// Parses the two numbers of `range`.
///
/// # Errors
/// If `text` is not two different finite numbers.
pub fn range(text: &str) -> Result<[f64; 2], InferenceError> {
    let wanted = || {
        InferenceError::Settings(format!(
            "range: expected two different numbers, the values of black and white, as in 0,1; got \
             {text}"
        ))
    };
    match *numbers(text).ok_or_else(wanted)? {
        [low, high] if low != high => Ok([low, high]),
        _ => Err(wanted()),
    }
}

/// Parses a property such as `mean`: one number for all channels, or a number per channel.
///
/// # Errors
/// If `text` is neither one nor three finite numbers, or if `accepts` rejects one of them. The message describes
/// the accepted numbers with the text `wanted`.
pub fn per_channel(
    property: &str,
    text: &str,
    wanted: &str,
    accepts: impl Fn(f64) -> bool,
) -> Result<PerChannel, InferenceError> {
    let found = numbers(text).filter(|numbers| numbers.iter().all(|&number| accepts(number)));
    match found.as_deref() {
        Some(&[all]) => Ok([all; 3]),
        Some(&[red, green, blue]) => Ok([red, green, blue]),
        _ => Err(InferenceError::Settings(format!(
            "{property}: expected one {wanted}, or three for red, green and blue as in \
             0.485,0.456,0.406; got {text}"
        ))),
    }
}

/// Parses finite numbers that are separated by commas; `None` if `text` has another form.
pub fn numbers(text: &str) -> Option<Vec<f64>> {
    let number = |part: &str| part.trim().parse().ok().filter(|number: &f64| number.is_finite());
    text.split(',').map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_two_different_numbers() {
        assert_eq!(range("-1, 1").unwrap(), [-1.0, 1.0]);
        for text in ["", "1", "1,1", "0,1,2", "0,nan", "a,b"] {
            let message = range(text).unwrap_err().to_string();
            assert!(message.contains("range: expected two different numbers"), "{message}");
        }
    }

    #[test]
    fn one_number_is_for_all_channels() {
        assert_eq!(per_channel("mean", "127", "number", |_| true).unwrap(), [127.0; 3]);
        assert_eq!(per_channel("mean", "1,2,3", "number", |_| true).unwrap(), [1.0, 2.0, 3.0]);
        let positive = |std: f64| std > 0.0;
        let result = per_channel("std", "1,0,1", "number greater than 0", positive);
        let message = result.unwrap_err().to_string();
        let expected = "std: expected one number greater than 0, or three";
        assert!(message.starts_with(expected), "{message}");
    }
}
