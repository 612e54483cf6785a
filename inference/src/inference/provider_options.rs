// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of an execution provider.
//!
//! In: text as in `key=value,other="a,b"`. Out: keys and values, which ONNX Runtime gets unchanged.
//!
//! A value that begins with a double quote ends at the next one, so that it can contain commas; in such a value, a
//! backslash makes the next character part of the value.

use super::error::InferenceError;

/// Options of an execution provider: keys and values, in the order in which the user wrote them.
pub type ProviderOptions = Vec<(String, String)>;

/// Reads options from text.
///
/// # Errors
/// If the text does not consist of keys and values, or if a key occurs twice.
pub fn parse(text: &str) -> Result<ProviderOptions, InferenceError> {
    let mut options = ProviderOptions::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let invalid = || {
            InferenceError::Settings(format!(
                "provider-options: expected key=value,key=value, with a value that contains \
                 commas in double quotes, as in a=1,b=\"x,y\"; got {rest:?}"
            ))
        };
        let (key, after_key) = rest.split_once('=').ok_or_else(invalid)?;
        let key = key.trim();
        let (value, after_value) = take_value(after_key.trim_start()).ok_or_else(invalid)?;
        if key.is_empty() || key.contains([',', '"']) {
            return Err(invalid());
        }
        if options.iter().any(|(other, _)| other == key) {
            return Err(InferenceError::Settings(format!(
                "provider-options: {key} occurs twice; leave one of them out"
            )));
        }
        options.push((key.to_owned(), value));
        rest = after_value.trim_start();
    }
    Ok(options)
}

/// Checks that no option of the providers CUDA and TensorRT is one that the element sets itself.
///
/// # Errors
/// If one is.
pub fn check(options: &ProviderOptions) -> Result<(), InferenceError> {
    let reserved =
        |(key, _): &(String, String)| RESERVED.iter().find(|(reserved, _)| reserved == key);
    match options.iter().find_map(reserved) {
        Some((key, advice)) => Err(InferenceError::Settings(format!(
            "provider-options: {key} is not an option for users: {advice}"
        ))),
        None => Ok(()),
    }
}

/// Splits a value from the text that begins with it. Returns the text behind the comma that ends the value; `None` if a
/// quote is missing, or if something other than a comma follows a quote.
fn take_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = text.split_once(',').unwrap_or((text, ""));
        return Some((value.trim_end().to_owned(), rest));
    };
    let mut value = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' => break,
            '\\' => value.push(characters.next()?),
            other => value.push(other),
        }
    }
    let rest = characters.as_str().trim_start();
    let rest = if rest.is_empty() { rest } else { rest.strip_prefix(',')? };
    Some((value, rest))
}

/// The options that the element sets itself, each with what to do instead.
const RESERVED: [(&str, &str); 5] = [
    ("device_id", "set cuda-device-id"),
    ("user_compute_stream", STREAM),
    ("has_user_compute_stream", STREAM),
    ("enable_cuda_graph", "set cuda-graph"),
    // A graph of TensorRT's provider keeps the addresses of one input and one set of outputs.
    (
        "trt_cuda_graph_enable",
        "the element alternates between two buffers of inputs and outputs, but a graph has one; leave it out, or set \
         provider=cuda cuda-graph=on",
    ),
];

const STREAM: &str = "the element has a stream, in which it also writes the model's input";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> ProviderOptions {
        parse(text).unwrap()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn values_are_passed_on_unchanged() {
        let text = "trt_fp16_enable=1, trt_engine_cache_path=/tmp/a b , ratio=0.50,empty=,last=x=y";
        let expected = [
            ("trt_fp16_enable", "1"),
            ("trt_engine_cache_path", "/tmp/a b"),
            ("ratio", "0.50"),
            ("empty", ""),
            ("last", "x=y"),
        ];
        assert_eq!(parsed(text), pairs(&expected));
        assert_eq!(parsed(" "), []);
    }

    #[test]
    fn a_value_in_quotes_can_contain_commas_and_quotes() {
        let text =
            r#"trt_profile_min_shapes="a:1x3,b:1x3", load_config="{\"CPU\": {\"X\": \"\\\"}}",c=3"#;
        let expected = [
            ("trt_profile_min_shapes", "a:1x3,b:1x3"),
            ("load_config", r#"{"CPU": {"X": "\"}}"#),
            ("c", "3"),
        ];
        assert_eq!(parsed(text), pairs(&expected));
    }

    #[test]
    fn text_that_cannot_be_read_is_an_error_that_shows_it() {
        let cases = [
            ("trt_fp16_enable", "trt_fp16_enable"),
            ("a=1,trt_fp16_enable,b=2", "trt_fp16_enable,b=2"),
            ("a=1,=2", "=2"),
            ("a=1,b=\"x,y", "b=\"x,y"),
            ("a=\"x\"y,b=1", "a=\"x\"y,b=1"),
        ];
        for (text, rest) in cases {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.ends_with(&format!("as in a=1,b=\"x,y\"; got {rest:?}")), "{error}");
        }
        let twice = parse("a=1,b=2,a=3").unwrap_err().to_string();
        assert_eq!(twice, "provider-options: a occurs twice; leave one of them out");
    }

    #[test]
    fn options_that_the_element_sets_are_errors_that_name_the_property() {
        let message = |text| check(&parsed(text)).map_err(|error| error.to_string());
        let device = "provider-options: device_id is not an option for users: set cuda-device-id";
        assert_eq!(message("a=1,device_id=1"), Err(device.to_owned()));
        assert!(message("user_compute_stream=1").is_err());
        assert!(message("enable_cuda_graph=1").is_err());
        assert!(message("trt_cuda_graph_enable=1").is_err());
        assert_eq!(message("trt_fp16_enable=1,gpu_mem_limit=1"), Ok(()));
    }
}
