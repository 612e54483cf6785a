// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of an execution provider.
//!
//! In: text as in `key=value,other="a,b"`. Out: keys and values, which ONNX Runtime gets unchanged.
//!
//! A value that begins with a double quote ends at the next one, so that it can contain commas; in such a value, a
//! backslash makes the next character part of the value.

use std::fmt;

use super::error::InferenceError;
use super::provider::Provider;

/// Options of an execution provider: keys and values, in the order in which the user wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderOptions(Vec<(String, String)>);

impl ProviderOptions {
    /// Reads options from text.
    ///
    /// # Errors
    /// If the text does not consist of keys and values, or if a key occurs twice.
    pub fn parse(text: &str) -> Result<Self, InferenceError> {
        let mut options: Vec<(String, String)> = Vec::new();
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
        Ok(Self(options))
    }

    /// Checks that no option is one that the element sets itself.
    ///
    /// # Errors
    /// If one is.
    pub fn check(&self, provider: Provider) -> Result<(), InferenceError> {
        for (key, _) in self.iter() {
            let reserved = reserved(provider).iter().find(|(reserved, _)| *reserved == key);
            if let Some(&(_, advice)) = reserved {
                return Err(InferenceError::Settings(format!(
                    "provider-options: {key} is not an option for users: {advice}"
                )));
            }
        }
        Ok(())
    }

    /// Returns the keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Returns whether there are no options.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Writes the keys and values for an error message.
impl fmt::Display for ProviderOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, value)) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            write!(formatter, "{separator}{key}={value}")?;
        }
        Ok(())
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

/// Returns the options that the element sets itself, each with what to do instead.
fn reserved(provider: Provider) -> &'static [(&'static str, &'static str)] {
    const DEVICE: (&str, &str) = ("device_id", "set cuda-device-id");
    const STREAM: &str = "the element has a stream, in which it also writes the model's input";
    const STREAMS: [(&str, &str); 2] =
        [("user_compute_stream", STREAM), ("has_user_compute_stream", STREAM)];
    match provider {
        Provider::Cuda => {
            &[DEVICE, STREAMS[0], STREAMS[1], ("enable_cuda_graph", "set cuda-graph")]
        }
        // A graph of TensorRT's provider keeps the addresses of one input and one set of outputs.
        Provider::TensorRt => &[
            DEVICE,
            STREAMS[0],
            STREAMS[1],
            (
                "trt_cuda_graph_enable",
                "the element alternates between two buffers of inputs and outputs, but a graph has one; leave it out, \
                 or set provider=cuda cuda-graph=on",
            ),
        ],
        Provider::Cpu | Provider::Plugin => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, String)> {
        ProviderOptions::parse(text).unwrap().0
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
            let error = ProviderOptions::parse(text).unwrap_err().to_string();
            assert!(error.ends_with(&format!("as in a=1,b=\"x,y\"; got {rest:?}")), "{error}");
        }
        let twice = ProviderOptions::parse("a=1,b=2,a=3").unwrap_err().to_string();
        assert_eq!(twice, "provider-options: a occurs twice; leave one of them out");
    }

    #[test]
    fn options_that_the_element_sets_are_errors_that_name_the_property() {
        let message = |text: &str, provider| {
            let options = ProviderOptions::parse(text).unwrap();
            options.check(provider).map_err(|error| error.to_string())
        };
        let device = "provider-options: device_id is not an option for users: set cuda-device-id";
        for provider in [Provider::Cuda, Provider::TensorRt] {
            assert_eq!(message("a=1,device_id=1", provider), Err(device.to_owned()));
            assert!(message("user_compute_stream=1", provider).is_err());
            assert_eq!(message("trt_fp16_enable=1,gpu_mem_limit=1", provider), Ok(()));
        }
        assert!(message("enable_cuda_graph=1", Provider::Cuda).is_err());
        assert!(message("trt_cuda_graph_enable=1", Provider::TensorRt).is_err());
        assert_eq!(message("device_id=1", Provider::Plugin), Ok(()));
    }
}
