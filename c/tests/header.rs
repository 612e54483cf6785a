// SPDX-License-Identifier: MIT OR Apache-2.0
//! The headers are those that cbindgen makes of the sources.
//!
//! `NMSFILTER_WRITE_HEADERS=1 cargo test -p nmsfilter-c --test header` writes them.

use std::path::{Path, PathBuf};

/// A package with a header.
struct Interface {
    folder: &'static str,
    header: &'static str,
    /// The prefix of macros.
    prefix: &'static str,
    /// The sources of the header, in the order of its declarations.
    sources: &'static [&'static str],
    /// The comment at the top of the header.
    about: &'static str,
}

const CORE: Interface = Interface {
    folder: "c",
    header: "nmsfilter/nmsfilter.h",
    prefix: "NMSFILTER",
    sources: &[
        "version",
        "status",
        "filter",
        "options",
        "params",
        "tensor",
        "result",
        "device_result",
        "boxes",
    ],
    about: include_str!("../header.txt"),
};

const GST: Interface = Interface {
    folder: "c-gst",
    header: "nmsfilter/gst.h",
    prefix: "NMSFILTER_GST",
    sources: &["version", "status", "gstreamer", "model", "tensor", "region"],
    about: include_str!("../../c-gst/header.txt"),
};

impl Interface {
    fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(self.folder)
    }

    fn generate(&self) -> String {
        let mut config = cbindgen::Config::from_file(self.path().join("cbindgen.toml")).unwrap();
        config.header = Some(comment(self.about));
        config.after_includes = Some(self.version());
        let mut builder = cbindgen::Builder::new().with_config(config);
        for source in self.sources {
            builder = builder.with_src(self.path().join(format!("src/{source}.rs")));
        }
        let mut text = Vec::new();
        builder.generate().unwrap().write(&mut text);
        String::from_utf8(text).unwrap()
    }

    /// The macros of the packages' version.
    fn version(&self) -> String {
        let numbers = [
            ("MAJOR", env!("CARGO_PKG_VERSION_MAJOR")),
            ("MINOR", env!("CARGO_PKG_VERSION_MINOR")),
            ("PATCH", env!("CARGO_PKG_VERSION_PATCH")),
        ];
        let define = |(name, number)| format!("#define {}_VERSION_{name} {number}\n", self.prefix);
        let number = format!(
            "#define {0}_VERSION ({0}_VERSION_MAJOR * 10000 + {0}_VERSION_MINOR * 100 + {0}_VERSION_PATCH)",
            self.prefix
        );
        format!("\n/* The version of this header. */\n{}{number}", numbers.map(define).concat())
    }

    fn check(&self) {
        let file = self.path().join("include").join(self.header);
        let expected = self.generate();
        if std::env::var_os("NMSFILTER_WRITE_HEADERS").is_some() {
            std::fs::write(&file, &expected).unwrap();
        }
        let found = std::fs::read_to_string(&file).unwrap();
        assert!(
            found == expected,
            "{} is not what the sources give: run \
             NMSFILTER_WRITE_HEADERS=1 cargo test -p nmsfilter-c --test header",
            self.header
        );
    }
}

fn comment(text: &str) -> String {
    let lines = text.lines().map(|line| format!(" * {line}").trim_end().to_owned() + "\n");
    format!("/*\n{} */", lines.collect::<String>())
}

#[test]
fn the_header_of_the_core_is_made_of_its_sources() {
    CORE.check();
}

#[test]
fn the_header_for_gstreamer_is_made_of_its_sources() {
    GST.check();
}

#[test]
fn meson_has_the_version_of_the_packages() {
    let meson = Path::new(env!("CARGO_MANIFEST_DIR")).join("../meson.build");
    let text = std::fs::read_to_string(meson).unwrap();
    let version = text.lines().find_map(|line| line.trim().strip_prefix("version: '"));
    assert_eq!(version, Some(concat!(env!("CARGO_PKG_VERSION"), "',")));
}
