// SPDX-License-Identifier: MIT OR Apache-2.0
//! `nmsbench` measures nmsfilter on this machine. In: names of sections, candidate lists. Out:
//! tables and plots.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use nmsbench::engines::Engines;
use nmsbench::gpu_time::Repeats;
use nmsbench::machine;
use nmsbench::report::{Folder, Table};
use nmsbench::section::{Bench, SECTIONS, Section};

fn usage() -> String {
    let sections =
        SECTIONS.iter().map(|section| format!("  {:<12}{}\n", section.name, section.about));
    format!(
        "nmsbench [--out FOLDER] [--quick | --once] [SECTION | LIST.csv]...\n\n\
         Measures nmsfilter in the given sections (default: all). Prints tables, and writes them as\n\
         CSV and plots as SVG to FOLDER (default: nmsbench-results). A LIST has a heading and rows\n\
         x1,y1,x2,y2,score; the section `candidates` also measures its suppression. The variable\n\
         NMSFILTER_TEST_DATA names the folder of pictures and models; sections that need a missing\n\
         file print SKIPPED. --quick measures for a tenth of the time. --once runs everything once,\n\
         and measures no GPU times: for tools that check kernels, and to see that it works.\n\nSections:\n{}",
        sections.collect::<String>()
    )
}

struct Arguments {
    folder: PathBuf,
    budget: Duration,
    repeats: Repeats,
    sections: Vec<&'static Section>,
    lists: Vec<PathBuf>,
}

fn arguments() -> Result<Arguments, String> {
    let mut parsed = Arguments {
        folder: "nmsbench-results".into(),
        budget: Duration::from_millis(250),
        repeats: Repeats::FULL,
        sections: Vec::new(),
        lists: Vec::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let section = SECTIONS.iter().find(|section| section.name == argument);
        match (argument.as_str(), section) {
            (_, Some(section)) => parsed.sections.push(section),
            ("--out", _) => {
                parsed.folder = arguments.next().ok_or("--out expects a folder")?.into()
            }
            ("--quick", _) => {
                (parsed.budget, parsed.repeats) = (parsed.budget / 10, Repeats::QUICK)
            }
            ("--once", _) => (parsed.budget, parsed.repeats) = (Duration::ZERO, Repeats::ONCE),
            ("--help" | "-h", _) => return Err(usage()),
            (list, _) if list.ends_with(".csv") => parsed.lists.push(list.into()),
            _ => return Err(format!("unknown section {argument}\n\n{}", usage())),
        }
    }
    if parsed.sections.is_empty() {
        parsed.sections = SECTIONS.iter().collect();
    }
    Ok(parsed)
}

fn run(arguments: Arguments) -> Result<()> {
    let folder = Folder::new(&arguments.folder)?;
    enable_latency_tracer(&folder);
    gst::init()?;
    gstnmsfilter::plugin_register_static()?;
    gstnmsfilterdemo::plugin_register_static()?;
    gstonnxruntime::plugin_register_static()?;
    let engines = Engines::available();
    let mut machine = Table::new(["machine", ""]);
    for line in machine::describe(&engines) {
        machine.row(line);
    }
    folder.table("machine", &machine)?;
    let Arguments { budget, repeats, lists, sections, .. } = arguments;
    let mut bench = Bench { engines, folder, budget, repeats, lists };
    let began = Instant::now();
    for (i, section) in sections.iter().enumerate() {
        let minutes = began.elapsed().as_secs() / 60;
        let seconds = began.elapsed().as_secs() % 60;
        println!(
            "\n[{minutes}:{seconds:02}] {} of {}, {}: {}",
            i + 1,
            sections.len(),
            section.name,
            section.about
        );
        (section.run)(&mut bench)?;
    }
    println!("\nTables and plots are in {}", arguments.folder.display());
    Ok(())
}

/// Enables GStreamer's latency tracer, which is configured with environment variables. Only the section `stock` needs
/// it, and GStreamer 1.28.
fn enable_latency_tracer(folder: &Folder) {
    if gst::version() < (1, 28, 0, 0) {
        return;
    }
    let file = folder.file(nmsbench::section::TRACE_FILE);
    let _ = std::fs::remove_file(&file);
    // SAFETY: no other thread exists that could access the environment.
    unsafe {
        std::env::set_var("GST_TRACERS", "latency(flags=element)");
        std::env::set_var("GST_DEBUG", "GST_TRACER:7");
        std::env::set_var("GST_DEBUG_FILE", file);
    }
}

fn main() -> ExitCode {
    // A reader such as `head`, which closes the pipe, ends the program. SAFETY: no other thread exists.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nmsbench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
