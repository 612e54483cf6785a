// SPDX-License-Identifier: MIT OR Apache-2.0
//! ONNX Runtime's library: where it is found, and messages if it is missing, outdated or a
//! different library.
//!
//! A process loads only one library, so each case runs in its own process.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::alone;
use crate::element::{self, file, has_onnx_runtime, library};
use crate::messages;
use crate::support::onnx::{Element, identity};
use crate::support::pipeline::{self, parse};
use crate::support::scratch::{Scratch, ScratchFile};
use crate::support::skip::skip;

/// Variable with the properties of the element in the process.
const PROPERTIES: &str = "NMSFILTER_TEST_PROPERTIES";
/// Prefix of the line with which the process prints the library that runs.
const RUNS: &str = "runs with ";
const ERROR: &str = "error: ";

/// Runs in the process that `in_process` starts. Prints which library runs a model, or the error.
#[test]
#[ignore = "run by the other tests in a process of its own"]
fn report() {
    if !alone::is_alone() {
        return;
    }
    element::init();
    let model = file(&identity([1, 3, 12, 16], Element::F32));
    let properties = std::env::var(PROPERTIES).unwrap();
    let properties = format!("model={} {properties}", model.display());
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=2 ! video/x-raw,format=RGB,width=16,height=12
           ! ortinference name=inference {properties} ! fakesink"
    ));
    let bus = gst::prelude::ElementExt::bus(&pipeline).unwrap();
    bus.set_sync_handler(|_, message| {
        if let gst::MessageView::Element(element) = message.view()
            && let Some(structure) = element.structure()
            && structure.name() == "ortinference-model"
        {
            println!("{RUNS}{}", structure.get::<String>("library").unwrap());
        }
        gst::BusSyncReply::Pass
    });
    let ended = pipeline::run(&pipeline);
    if ended.error.is_some() {
        println!("{ERROR}{}", messages::error(&properties));
        // A failed start does not influence the next start.
        assert_eq!(messages::error(&properties), messages::error(&properties));
    }
}

/// Starts a process with these properties, `ORT_DYLIB_PATH`, and the folder of a virtual
/// environment. Returns the path of the library that the process uses, or its error.
fn in_process(
    properties: &str,
    variable: Option<&Path>,
    environment: Option<&Path>,
) -> Result<String, String> {
    let value = |path: &Path| Some(OsString::from(path));
    let nothing = Scratch::new();
    let printed = alone::run(
        "libraries::report",
        &[
            (PROPERTIES, Some(OsString::from(properties))),
            ("ORT_DYLIB_PATH", variable.and_then(value)),
            ("VIRTUAL_ENV", environment.and_then(value)),
            ("CONDA_PREFIX", None),
            ("HOME", value(&nothing)),
        ],
    );
    let line = |begins: &str| {
        printed
            .stdout
            .lines()
            .find_map(|line| line.split_once(begins))
            .map(|(_, rest)| rest.to_owned())
    };
    match (line(RUNS), line(ERROR)) {
        (Some(path), None) => Ok(path),
        (None, Some(error)) => Err(error),
        other => panic!("{other:?}: {}{}", printed.stdout, printed.stderr),
    }
}

/// Makes a folder that looks like a Python package, with a link to the library.
fn package(environment: &Path, library: &Path) -> std::path::PathBuf {
    let capi = environment.join("lib/python3.99/site-packages/onnxruntime/capi");
    std::fs::create_dir_all(&capi).unwrap();
    let link = capi.join("libonnxruntime.so.1.99.0");
    std::os::unix::fs::symlink(library, &link).unwrap();
    link
}

#[test]
fn the_library_is_found_by_property_variable_or_python_environment() {
    if !has_onnx_runtime() {
        return;
    }
    let library = library().unwrap();
    let path = library.display().to_string();
    assert_eq!(in_process("", Some(&library), None), Ok(path.clone()));
    let property = format!("library={path}");
    assert_eq!(in_process(&property, None, None), Ok(path.clone()));
    let missing = Path::new("/nonexistent/libonnxruntime.so");
    assert_eq!(in_process(&property, Some(missing), None), Ok(path), "the property counts first");

    let environment = Scratch::new();
    let link = package(&environment, &library);
    let folder = link.parent().unwrap().parent().unwrap();
    let found = in_process(&format!("library={}", folder.display()), None, None);
    assert_eq!(found, Ok(link.display().to_string()), "a folder of a Python package");
    let found = in_process("", None, Some(&environment));
    // Libraries of the system are found first.
    let found = found.unwrap();
    let is_of_system = found.starts_with("/usr/") || found.starts_with("libonnxruntime.so");
    assert!(is_of_system || found == link.display().to_string(), "{found}");
}

#[test]
fn a_missing_library_is_an_error() {
    element::init();
    let found = in_process("", None, None);
    // A library that is installed for all users can be outdated.
    let Some(message) = found.err().filter(|message| !message.contains("has version")) else {
        skip("a machine where ONNX Runtime is not installed for all users");
        return;
    };
    let expected = "ONNX Runtime's library is not found; install it in a Python virtual environment (python3 -m venv \
                    onnx && . onnx/bin/activate && pip install onnxruntime, or onnxruntime-gpu for an NVIDIA GPU), \
                    or set library or ORT_DYLIB_PATH to libonnxruntime.so; these places were searched: the dynamic \
                    loader's path";
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn a_library_that_does_not_exist_is_an_error() {
    element::init();
    let missing = "/nonexistent/libonnxruntime.so";
    let by_property = in_process(&format!("library={missing}"), None, None).unwrap_err();
    let by_variable = in_process("", Some(Path::new(missing)), None).unwrap_err();
    for message in [by_property, by_variable] {
        assert!(
            message.starts_with(&format!("ONNX Runtime's library {missing:?} cannot be loaded: "))
        );
        let advice = "No such file or directory; set library or ORT_DYLIB_PATH to libonnxruntime.so of \
                      version 1.";
        assert!(message.contains(advice) && message.ends_with(" or later"), "{message}");
    }
}

#[test]
fn a_folder_without_a_library_is_an_error() {
    element::init();
    let folder = Scratch::new();
    let message = in_process(&format!("library={}", folder.display()), None, None).unwrap_err();
    assert_eq!(
        message,
        format!(
            "{:?} has no libonnxruntime.so, and neither have its subfolders capi and onnxruntime/capi; set library \
             or ORT_DYLIB_PATH to that file or its folder",
            &*folder
        )
    );
}

#[test]
fn a_file_that_is_not_a_library_is_an_error() {
    element::init();
    let text = ScratchFile::new("so", b"this is a text");
    let message = in_process(&format!("library={}", text.display()), None, None).unwrap_err();
    let expected = format!("ONNX Runtime's library {:?} cannot be loaded: ", &*text);
    assert!(message.starts_with(&expected), "{message}");
    assert!(message.contains("; set library or ORT_DYLIB_PATH to libonnxruntime.so"), "{message}");
}

/// Builds a library with the exports of ONNX Runtime: it has a version, but no functions.
fn stub(folder: &Path, source: &str) -> Option<std::path::PathBuf> {
    let (c, library) = (folder.join("stub.c"), folder.join("libonnxruntime.so"));
    std::fs::write(&c, source).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&c).status();
    if !built.is_ok_and(|status| status.success()) {
        skip("a C compiler");
        return None;
    }
    Some(library)
}

fn stub_of_version(version: &str) -> String {
    format!(
        "static const void *get_api(unsigned version) {{ return 0; }}
         static const char *get_version(void) {{ return \"{version}\"; }}
         static const struct {{ const void *(*api)(unsigned); const char *(*version)(void); }}
             base = {{ get_api, get_version }};
         const void *OrtGetApiBase(void) {{ return &base; }}"
    )
}

#[test]
fn an_old_library_is_an_error() {
    element::init();
    let folder = Scratch::new();
    let Some(library) = stub(&folder, &stub_of_version("1.10.0")) else { return };
    let message = in_process(&format!("library={}", folder.display()), None, None).unwrap_err();
    let expected = format!("ONNX Runtime's library {library:?} has version 1.10.0; install 1.");
    assert!(message.starts_with(&expected) && message.ends_with(" or later"), "{message}");
}

#[test]
fn an_old_library_in_a_python_environment_is_reported_if_there_is_no_other() {
    element::init();
    let (folder, environment) = (Scratch::new(), Scratch::new());
    let Some(library) = stub(&folder, &stub_of_version("1.10.0")) else { return };
    package(&environment, &library);
    let Err(message) = in_process("", None, Some(&environment)) else {
        skip("a machine where ONNX Runtime is not installed for all users");
        return;
    };
    assert!(message.contains("1.10.0"), "{message}");
}

#[test]
fn a_library_that_is_not_onnx_runtime_is_an_error() {
    element::init();
    let folder = Scratch::new();
    let Some(library) = stub(&folder, "int other(void) { return 1; }") else { return };
    let message = in_process(&format!("library={}", library.display()), None, None).unwrap_err();
    assert!(
        message.contains("cannot be loaded: it has no function OrtGetApiBase; set"),
        "{message}"
    );
}

#[test]
fn a_second_library_in_a_process_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    if !alone::is_alone() {
        alone::run::<&str>("libraries::a_second_library_in_a_process_is_an_error", &[]);
        return;
    }
    let first = library().unwrap();
    let model = file(&identity([1, 3, 12, 16], Element::F32));
    let run = |properties: &str| {
        parse(&format!(
            "videotestsrc num-buffers=1 ! ortinference model={} {properties} ! fakesink",
            model.display()
        ))
    };
    assert_eq!(pipeline::run(&run("")).error, None);
    let folder = Scratch::new();
    let copy = folder.join("libonnxruntime.so");
    std::fs::write(&copy, b"another library").unwrap();
    let message = messages::error(&format!("model={} library={}", model.display(), copy.display()));
    assert_eq!(
        message,
        format!(
            "the process uses ONNX Runtime from {first:?}, so {copy:?} cannot be loaded: a process can load only \
             one; leave the property library unset"
        )
    );
    // A different path to one file refers to one library.
    let link = folder.join("link.so");
    std::os::unix::fs::symlink(&first, &link).unwrap();
    assert_eq!(pipeline::run(&run(&format!("library={}", link.display()))).error, None);
    assert_eq!(pipeline::run(&run("")).error, None);
}
