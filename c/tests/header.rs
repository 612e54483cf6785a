// SPDX-License-Identifier: MIT OR Apache-2.0
//! The headers of the C interfaces and of the kernels are those that cbindgen makes of the sources.
//!
//! `NMSFILTER_WRITE_HEADERS=1 cargo test -p nmsfilter-c --test header` writes them.

use std::path::{Path, PathBuf};

use cbindgen::{Builder, Config};

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
        "frame",
        "params",
        "tensor",
        "result",
        "device_result",
        "boxes",
        "signature",
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
        let mut config = Config::from_file(self.path().join("cbindgen.toml")).unwrap();
        config.header = Some(comment(self.about));
        config.after_includes = Some(self.version());
        let sources = self.sources.iter();
        generate(config, sources.map(|source| self.path().join(format!("src/{source}.rs"))))
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
        check(&self.path().join("include").join(self.header), &self.generate());
    }
}

/// A header of the kernels: structures, enumerations and `pub` constants that Rust and CUDA C++ share.
struct Kernels {
    header: &'static str,
    /// The sources, in this repository. Modules that they declare belong to them.
    sources: &'static [&'static str],
    /// Types that kernels have as parameters, as fields or as numbers.
    types: &'static [&'static str],
    /// Types with another name in the kernels.
    renamed: &'static [(&'static str, &'static str)],
    /// `pub` constants of the sources that kernels do not use.
    excluded: &'static [&'static str],
}

const ENGINE: Kernels = Kernels {
    header: "interface_generated.cuh",
    sources: &[
        "core/src/geometry/overlap/mod.rs",
        "core/src/decoder/layout/mod.rs",
        "core/src/engine/mod.rs",
    ],
    types: &[
        "Activation",
        "Axes",
        "BoxFormat",
        "BoxTransform",
        "ByColumnParams",
        "ClassRule",
        "ColumnParams",
        "Combination",
        "Detection",
        "DeviceCounts",
        "Element",
        "KernelParams",
        "LayoutParams",
        "MaskParams",
        "MergeParams",
        "Method",
        "Overlap",
        "PlacedImage",
        "ReferenceKind",
    ],
    renamed: &[("DeviceCounts", "ResultHeader")],
    excluded: &["MAX_BINS", "MAX_IMAGES", "MAX_MASK_BYTES"],
};

const RESAMPLE: Kernels = Kernels {
    header: "resample_generated.cuh",
    sources: &[
        "src/frame/component.rs",
        "inference/src/inference/picture/frame_format.rs",
        "inference/src/inference/picture/positions.rs",
        "inference/src/inference/picture/resample_params.rs",
    ],
    types: &["ResampleParams"],
    renamed: &[],
    excluded: &[],
};

impl Kernels {
    fn check(&self) {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut config = Config {
            language: cbindgen::Language::Cxx,
            documentation_style: cbindgen::DocumentationStyle::C99,
            header: Some(format!(
                "// SPDX-License-Identifier: MIT OR Apache-2.0\n\
                 // Written by NMSFILTER_WRITE_HEADERS=1 cargo test -p nmsfilter-c --test header. Sources:\n{}",
                self.sources.iter().map(|source| format!("//   {source}\n")).collect::<String>()
            )),
            pragma_once: true,
            no_includes: true,
            includes: vec!["integers.cuh".to_owned()],
            tab_width: 4,
            ..Config::default()
        };
        // Macros, whose types follow from the numbers, since C++ has no usize.
        config.constant.allow_static_const = false;
        config.constant.allow_constexpr = false;
        config.enumeration.enum_class = false;
        config.enumeration.rename_variants = cbindgen::RenameRule::QualifiedScreamingSnakeCase;
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        config.export.include = owned(self.types);
        config.export.exclude = owned(self.excluded);
        config.export.rename =
            self.renamed.iter().map(|&(from, to)| (from.to_owned(), to.to_owned())).collect();
        let text = generate(config, self.sources.iter().map(|source| repository.join(source)));
        check(&repository.join("kernels").join(self.header), &text);
    }
}

fn generate(config: Config, sources: impl Iterator<Item = PathBuf>) -> String {
    let builder = Builder::new().with_config(config);
    let mut text = Vec::new();
    let builder = sources.fold(builder, |builder, source| builder.with_src(expanded(&source)));
    builder.generate().unwrap().write(&mut text);
    String::from_utf8(text).unwrap()
}

/// Returns a copy of the source, beside copies of its modules, in which core's macro `named!` is expanded to plain
/// enumerations: cbindgen expands no macros.
fn expanded(source: &Path) -> PathBuf {
    let folder = source.parent().unwrap().canonicalize().unwrap();
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder.strip_prefix("/").unwrap());
    expand_folder(&folder, &copy);
    copy.join(source.file_name().unwrap())
}

fn expand_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() {
            expand_folder(&path, &to);
        } else {
            std::fs::write(to, expand(&std::fs::read_to_string(path).unwrap())).unwrap();
        }
    }
}

fn expand(text: &str) -> String {
    let mut is_named = false;
    let line = |line: &str| match line {
        "named! {" => {
            is_named = true;
            String::new()
        }
        "}" if is_named => {
            is_named = false;
            String::new()
        }
        _ if is_named && line.starts_with("    pub enum") => format!("#[repr(u32)] {line}"),
        _ if is_named && line.ends_with("\",") => {
            let (value, _name) = line.split_once(" \"").unwrap();
            format!("{value},")
        }
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Compares the file with `expected`, or writes it.
fn check(file: &Path, expected: &str) {
    if std::env::var_os("NMSFILTER_WRITE_HEADERS").is_some() {
        std::fs::write(file, expected).unwrap();
    }
    let found = std::fs::read_to_string(file).unwrap();
    assert!(
        found == expected,
        "{} is not what the sources give: run \
         NMSFILTER_WRITE_HEADERS=1 cargo test -p nmsfilter-c --test header",
        file.display()
    );
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
fn the_header_of_the_engines_kernels_is_made_of_its_sources() {
    ENGINE.check();
}

#[test]
fn the_header_of_the_kernels_that_resample_is_made_of_its_sources() {
    RESAMPLE.check();
}

#[test]
fn meson_has_the_version_of_the_packages() {
    let meson = Path::new(env!("CARGO_MANIFEST_DIR")).join("../meson.build");
    let text = std::fs::read_to_string(meson).unwrap();
    let version = text.lines().find_map(|line| line.trim().strip_prefix("version: '"));
    assert_eq!(version, Some(concat!(env!("CARGO_PKG_VERSION"), "',")));
}
