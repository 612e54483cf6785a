// SPDX-License-Identifier: MIT OR Apache-2.0
//! The crate's table of DeepStream's structures agrees with the transcription of each version, and
//! with NVIDIA's headers.
//!
//! Each table is written as assertions in C, which are compiled together with the structures.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use gstnmsfilter::deepstream::layout::{
    DATA_TYPES, FIELDS, FRAME_META, LABEL_SIZE, LAYOUTS, MAX_DIMS, OBJECT_META, StructureLayout,
    TENSOR_OUTPUT_META, UNTRACKED_OBJECT_ID, USER_META, Version, element_type,
};
use gstnmsfilter::deepstream::region::{REGIONS, ROI};

use crate::libraries::{VERSIONS, nvidia_headers};
use crate::support::project;
use crate::support::scratch::ScratchFile;

/// Writes the assertions for a table.
fn assertions(layout: &StructureLayout) -> String {
    let mut program = String::from("#include \"headers.h\"\n");
    let mut equal = |theirs: &str, ours: u64| {
        writeln!(
            program,
            "_Static_assert({theirs} == {ours}u, \"{theirs}: the crate's table has {ours}\");"
        )
        .unwrap();
    };
    assert!(FIELDS.len() > 50, "{} fields", FIELDS.len());
    let (tensor, object) = ("NvDsInferTensorMeta", "NvDsObjectMeta");
    let own = [
        (tensor, "maintain_aspect_ratio", layout.maintain_aspect_ratio.map(|it| it.offset)),
        (tensor, "symmetric_padding", layout.symmetric_padding.map(|it| it.offset)),
        ("NvOSD_RectParams", "rotation_angle", layout.rotation_angle.map(|it| it.offset)),
        (object, "mask_params", Some(layout.object_mask.offset)),
        (object, "text_params", Some(layout.object_text.offset)),
        (object, "obj_label", Some(layout.object_label.offset)),
        (object, "obj_user_meta_list", Some(layout.object_user_metas.offset)),
    ];
    let own = own.into_iter().filter_map(|(structure, name, at)| Some((structure, name, at?)));
    let all = FIELDS.iter().flat_map(|&(structure, names, offset, size)| {
        let size = size / names.len();
        (0..).zip(names).map(move |(index, &name)| (structure, name, offset + index * size))
    });
    for (structure, name, offset) in all.chain(own) {
        equal(&format!("offsetof({structure}, {name})"), offset as u64);
    }
    for (name, number) in [
        ("NVDS_FRAME_META", FRAME_META),
        ("NVDS_OBJ_META", OBJECT_META),
        ("NVDS_USER_META", USER_META),
        ("NVDSINFER_TENSOR_OUTPUT_META", TENSOR_OUTPUT_META),
    ] {
        equal(name, number as u64);
    }
    for (structure, size) in [
        ("NvDsObjectMeta", layout.sizes.object),
        ("NvDsFrameMeta", layout.sizes.frame),
        ("NvDsUserMeta", layout.sizes.user),
    ] {
        equal(&format!("sizeof({structure})"), size.into());
    }
    equal("MAX_LABEL_SIZE", LABEL_SIZE as u64);
    equal("NVDSINFER_MAX_DIMS", MAX_DIMS as u64);
    equal("sizeof(((NvDsObjectMeta *)0)->obj_label)", LABEL_SIZE as u64);
    equal("UNTRACKED_OBJECT_ID", UNTRACKED_OBJECT_ID);
    equal("sizeof(NvBufSurface)", layout.surface_size as u64);
    equal("sizeof(NvBufSurfaceParams)", layout.surface_params_size as u64);
    if let Some(regions) = &layout.regions {
        for (name, offset) in [
            ("roi", ROI.offset),
            ("frame_meta", regions.frame.offset),
            ("scale_ratio_x", regions.scale_ratio.offset),
            ("scale_ratio_y", regions.scale_ratio.offset + 8),
            ("offset_left", regions.offset.offset),
            ("offset_top", regions.offset.offset + 8),
            ("roi_user_meta_list", regions.user_metas.offset),
            ("object_meta", regions.object.offset),
        ] {
            equal(&format!("offsetof(NvDsRoiMeta, {name})"), offset as u64);
        }
        equal("sizeof(NvDsRoiMeta)", regions.size as u64);
        equal("NVDS_PREPROCESS_BATCH_META", regions.batch_meta as u64);
    }
    if let Some(roi_meta) = layout.roi_meta {
        equal("NVDS_ROI_META", roi_meta as u64);
    }
    for (number, (name, expected)) in (0..).zip(DATA_TYPES) {
        // Constants that exist since 7.1 or 8.0 only.
        let first = match name {
            "INT64" => Version::new(7, 1),
            "UINT8" => Version::new(8, 0),
            _ => Version::new(6, 0),
        };
        if layout.first >= first {
            equal(name, number);
        }
        assert_eq!(element_type(number as i32), expected);
    }
    program
}

fn flags(packages: &[&str]) -> Vec<String> {
    let output = Command::new("pkg-config").arg("--cflags").args(packages).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
}

/// Compiles a program with the transcription of a version, or with NVIDIA's headers.
fn compile(program: &str, structures: Structures<'_>) -> Result<(), String> {
    let file = ScratchFile::new("c", program.as_bytes());
    let mut command = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()));
    command.args(["-std=c11", "-fsyntax-only", "-I"]);
    command.arg(project::path("tests/deepstream/standin"));
    match structures {
        Structures::Of(version) => {
            command.arg(format!("-DDEEPSTREAM={version}")).args(flags(&["gstreamer-1.0"]));
        }
        Structures::Nvidia(headers) => {
            command.args(["-DNVIDIA_HEADERS", "-isystem"]).arg(headers);
            let packages = ["gstreamer-1.0", "gstreamer-base-1.0", "gstreamer-video-1.0"];
            command.args(flags(&packages));
        }
    }
    let output = command.arg(&*file).output().unwrap();
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[derive(Clone, Copy)]
enum Structures<'a> {
    Of(u32),
    Nvidia(&'a Path),
}

fn version_of(number: u32) -> Version {
    Version::new(number / 10, number % 10)
}

#[test]
fn the_table_agrees_with_the_transcription_of_every_version() {
    for number in VERSIONS {
        let layout = StructureLayout::for_version(version_of(number)).unwrap();
        let compiled = compile(&assertions(layout), Structures::Of(number));
        compiled.unwrap_or_else(|messages| panic!("{number}: {messages}"));
    }
    for layout in &LAYOUTS {
        for end in [layout.first, layout.last] {
            assert!(VERSIONS.contains(&(end.major * 10 + end.minor)), "{end}");
        }
    }
}

#[test]
fn the_table_of_9_1_agrees_with_nvidias_headers() {
    let Some(headers) = nvidia_headers() else { return };
    let layout = StructureLayout::for_version(Version::new(9, 1)).unwrap();
    let compiled = compile(&assertions(layout), Structures::Nvidia(&headers));
    compiled.unwrap_or_else(|messages| panic!("{messages}"));
}

/// The vector of regions is C++. Its first two words are the addresses of its first element and of its end.
#[test]
fn the_vector_of_regions_agrees_with_nvidias_header() {
    let Some(headers) = nvidia_headers() else { return };
    let program = format!(
        "#include <cstddef>\n#include <vector>\n#include \"gstnvdsmeta.h\"\n\
         #include \"nvdspreprocess_meta.h\"\n\
         static_assert(offsetof(GstNvDsPreProcessBatchMeta, roi_vector) == {REGIONS}, \"roi_vector\");\n\
         int main() {{\n\
             std::vector<NvDsRoiMeta> all(3);\n\
             auto *words = reinterpret_cast<NvDsRoiMeta **>(&all);\n\
             return words[0] == all.data() && words[1] == all.data() + 3 ? 0 : 1;\n\
         }}\n"
    );
    let file = ScratchFile::new("cpp", program.as_bytes());
    let run = file.with_extension("run");
    let mut compiler = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned()));
    compiler.args(["-std=c++17", "-w", "-isystem"]).arg(&headers);
    let packages = ["gstreamer-1.0", "gstreamer-base-1.0", "gstreamer-video-1.0"];
    compiler.args(flags(&packages)).arg("-o").arg(&run).arg(&*file);
    let output = compiler.output().expect("there is a C++ compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let status = Command::new(&run).status();
    // Removed before the result is checked, so that no file is left.
    std::fs::remove_file(&run).unwrap();
    assert!(status.unwrap().success());
}

/// Installations of DeepStream contain NVIDIA's headers of other versions.
/// `NMSFILTER_DEEPSTREAM_HEADERS` has their folders, separated by colons, such as
/// `/opt/nvidia/deepstream/deepstream/sources/includes`.
#[test]
#[ignore = "needs NMSFILTER_DEEPSTREAM_HEADERS"]
fn the_table_agrees_with_nvidias_headers_of_other_versions() {
    let Some(folders) = std::env::var_os("NMSFILTER_DEEPSTREAM_HEADERS") else { return };
    for folder in std::env::split_paths(&folders) {
        let text = std::fs::read_to_string(folder.join("nvds_version.h")).unwrap();
        let number = |name: &str| {
            let line =
                text.lines().find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name));
            line.unwrap().trim().parse::<u32>().unwrap()
        };
        let version = Version::new(number("NVDS_VERSION_MAJOR"), number("NVDS_VERSION_MINOR"));
        let layout = StructureLayout::for_version(version).unwrap();
        let compiled = compile(&assertions(layout), Structures::Nvidia(&folder));
        compiled.unwrap_or_else(|messages| panic!("{version}: {messages}"));
        println!("{version}: {}", folder.display());
    }
}

/// A wrong assertion is reported for the transcription and for NVIDIA's headers.
#[test]
fn a_wrong_table_does_not_compile() {
    let wrong = assertions(StructureLayout::for_version(Version::new(9, 1)).unwrap());
    let messages = compile(&wrong, Structures::Of(80)).unwrap_err();
    for field in ["text_params", "obj_label", "rotation_angle"] {
        assert!(messages.contains(field), "{messages}");
    }
    let Some(headers) = nvidia_headers() else { return };
    let wrong = assertions(StructureLayout::for_version(Version::new(8, 0)).unwrap());
    let messages = compile(&wrong, Structures::Nvidia(&headers)).unwrap_err();
    assert!(messages.contains("obj_label) == 336"), "{messages}");
}

/// The table says that a version lacks these members.
#[test]
fn structures_lack_the_members_of_later_versions() {
    let has = |number, structure: &str, member: &str| {
        let program =
            format!("#include \"headers.h\"\nsize_t offset = offsetof({structure}, {member});\n");
        compile(&program, Structures::Of(number)).is_ok()
    };
    let mut absent = 0;
    for number in VERSIONS {
        let layout = StructureLayout::for_version(version_of(number)).unwrap();
        let tensor = "NvDsInferTensorMeta";
        for (structure, member, is_there) in [
            (tensor, "maintain_aspect_ratio", layout.maintain_aspect_ratio.is_some()),
            (tensor, "symmetric_padding", layout.symmetric_padding.is_some()),
            ("NvOSD_RectParams", "rotation_angle", layout.rotation_angle.is_some()),
        ] {
            assert_eq!(has(number, structure, member), is_there, "{number} {member}");
            absent += usize::from(!is_there);
        }
        let program = "#include \"headers.h\"\nint type = NVDS_ROI_META;\n";
        let compiled = compile(program, Structures::Of(number));
        assert_eq!(compiled.is_ok(), layout.roi_meta.is_some(), "{number}: NVDS_ROI_META");
    }
    assert_eq!(absent, 1 + 6 + 8);
}
