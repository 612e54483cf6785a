// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of the element's properties.

use serde_json::value::RawValue;

use crate::settings;

settings! {
/// The values of the properties.
pub(super) struct Settings {
    source: Option<String>; "Source", ready,
        "Text for the field source of each line, such as the URI of the camera (unset: lines have no source)";
    tags: Option<String>; "Tags", ready,
        "JSON object for the field tags of each line (unset or empty: lines have no tags)";
    add_empty_results: bool = true; "Add empty results", ready,
        "Whether a frame without detections has a line, or an entry in the line of its batch";
    deepstream_version: Option<String>; "DeepStream version", ready,
        "Version of DeepStream, such as 7.1, whose structures the metadata has; other sizes of structures are an \
         error (unset: the version that DeepStream's libraries report or, if that is unknown, a known version with \
         structures of equal sizes)";
}
}

impl Settings {
    /// Returns the tags as a single line; `None` if they are unset or empty.
    ///
    /// # Errors
    /// If the tags are not a JSON object.
    pub fn tags(&self) -> Result<Option<Box<RawValue>>, String> {
        let Some(text) = self.tags.as_ref().filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let wrong = |why: &str| {
            format!(
                "tags: expected a JSON object, such as {{\"camera\":\"north\"}}, got {text:?}: {why}"
            )
        };
        // In JSON, line feeds can only occur between tokens, so they may be replaced by spaces.
        let line = text.trim().replace(['\n', '\r'], " ");
        let tags = RawValue::from_string(line)
            .map_err(|error| wrong(&format!("it is not valid JSON ({error})")))?;
        if tags.get().starts_with('{') {
            Ok(Some(tags))
        } else {
            Err(wrong("it is JSON of another type"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(text: &str) -> Result<Option<String>, String> {
        let settings = Settings { tags: Some(text.to_owned()), ..Settings::default() };
        let tags = settings.tags().map_err(|error| error.to_string())?;
        Ok(tags.map(|tags| tags.get().to_owned()))
    }

    #[test]
    fn tags_are_a_json_object_with_its_digits_in_one_line() {
        let found = tags("\n{\r\n\"latitude\": 52.5200080000000000001 }\n").unwrap();
        assert_eq!(found.as_deref(), Some("{  \"latitude\": 52.5200080000000000001 }"));
        assert_eq!(tags(""), Ok(None));
        for text in ["[1]", "north", "{\"a\":1", "{} {}", "7", "{\"a\":\"\n\"}\n{}"] {
            let error = tags(text).unwrap_err();
            assert!(error.starts_with("tags: expected a JSON object, such as "), "{error}");
            assert!(error.contains(&format!("got {text:?}")), "{error}");
        }
    }
}
