// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of the fuzzer, which README.md explains.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use nmsfuzz::counts::Counts;
use nmsfuzz::coverage::Coverage;
use nmsfuzz::seeds;

/// Maximum time for one case.
const LIMIT: Duration = Duration::from_secs(60);

/// Maximum memory of the process.
const MOST_MEMORY: u64 = 4 << 30;

/// Minimum percentage of frames that must be decoded.
const LEAST_DECODED: u64 = 25;

const USAGE: &str = "nmsfuzz run [--seconds N] [--frames N] [--seed N] [--keep FILE]
    fuzzes for N seconds, or until N frames were pushed through nmsfilter
nmsfuzz replay FOLDER|HEX...
    runs the cases of a folder, or single ones";

struct Options {
    seconds: u64,
    frames: u64,
    seed: u64,
    /// File to which cases that take new branches are written.
    keep: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        ["run", rest @ ..] => match options(rest) {
            Some(options) => supervise(&options),
            None => usage(),
        },
        ["work", state, rest @ ..] => match options(rest) {
            Some(options) => work(Path::new(state), &options),
            None => usage(),
        },
        ["replay", cases @ ..] if !cases.is_empty() => replay(cases),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn options(arguments: &[&str]) -> Option<Options> {
    let mut options = Options { seconds: u64::MAX, frames: u64::MAX, seed: 0, keep: None };
    for pair in arguments.chunks(2) {
        let &[name, value] = pair else { return None };
        match name {
            "--seconds" => options.seconds = value.parse().ok()?,
            "--frames" => options.frames = value.parse().ok()?,
            "--seed" => options.seed = value.parse().ok()?,
            "--keep" => options.keep = Some(value.into()),
            _ => return None,
        }
    }
    Some(options)
}

fn seeds_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds")
}

/// Runs the fuzzer in a child process, so that a case that ends the process can be reported.
fn supervise(options: &Options) -> ExitCode {
    let program = std::env::current_exe().expect("this program has a path");
    let state = std::env::temp_dir().join(format!("nmsfuzz-{}.case", std::process::id()));
    let mut worker = Command::new(&program);
    worker.arg("work").arg(&state);
    for (name, value) in
        [("--seconds", options.seconds), ("--frames", options.frames), ("--seed", options.seed)]
    {
        worker.args([name, &value.to_string()]);
    }
    if let Some(keep) = &options.keep {
        worker.arg("--keep").arg(keep);
    }
    let status = worker.status().expect("this program can be run again");
    let case = fs::read_to_string(&state).unwrap_or_default();
    let _ = fs::remove_file(&state);
    if status.success() {
        return ExitCode::SUCCESS;
    }
    eprintln!("the fuzzer ended with {status}");
    let Some(case) = seeds::from_hex(&case).filter(|case| !case.is_empty()) else {
        return ExitCode::FAILURE;
    };
    let fails = |case: &[u8]| {
        let replay = Command::new(&program).arg("replay").arg(seeds::to_hex(case)).output();
        replay.is_ok_and(|output| !output.status.success())
    };
    if !fails(&case) {
        eprintln!("the case does not fail by itself: {}", seeds::to_hex(&case));
        return ExitCode::FAILURE;
    }
    let case = seeds::shrink(case, 300, fails);
    let mut hasher = DefaultHasher::new();
    case.hash(&mut hasher);
    let file = seeds_folder().join(format!("found-{:08x}.hex", hasher.finish() as u32));
    eprintln!("nmsfuzz replay {}", seeds::to_hex(&case));
    match fs::write(&file, seeds::to_hex(&case) + "\n") {
        Ok(()) => eprintln!("kept as {}", file.display()),
        Err(error) => eprintln!("{} cannot be written: {error}", file.display()),
    }
    ExitCode::FAILURE
}

/// Time when the current case began, in milliseconds; 0 if no case is running.
static BEGAN: AtomicU64 = AtomicU64::new(0);

/// Current case, for the watchdog.
static CASE: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Starts a thread that ends the process if a case takes too long.
fn watch_time(since: Instant) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let began = BEGAN.load(Ordering::SeqCst);
            let now = since.elapsed().as_millis() as u64;
            if began != 0 && u128::from(now.saturating_sub(began)) > LIMIT.as_millis() {
                let case = seeds::to_hex(&CASE.lock().unwrap());
                eprintln!("a case takes longer than {} s: {case}", LIMIT.as_secs());
                std::process::abort();
            }
        }
    });
}

fn run(case: &[u8], since: Instant, counts: &mut Counts) -> Result<(), nmsfuzz::Failure> {
    *CASE.lock().unwrap() = case.to_vec();
    BEGAN.store(since.elapsed().as_millis() as u64 + 1, Ordering::SeqCst);
    let result = nmsfuzz::run(case, counts);
    BEGAN.store(0, Ordering::SeqCst);
    result
}

fn work(state: &Path, options: &Options) -> ExitCode {
    nmsfuzz::init(&std::env::temp_dir());
    let since = Instant::now();
    watch_time(since);
    println!("seed {}", options.seed);
    let loaded = seeds::load(&seeds_folder()).unwrap_or_default();
    let mut queue: Vec<Vec<u8>> = loaded.into_iter().map(|(_, case)| case).rev().collect();
    let mut rng = Rng::with_seed(options.seed);
    let (mut counts, mut coverage, mut kept) = (Counts::default(), Coverage::default(), Vec::new());
    let mut reported = Instant::now();
    while since.elapsed().as_secs() < options.seconds && frames(&counts) < options.frames {
        let case = queue.pop().unwrap_or_else(|| seeds::make(&mut rng, &kept));
        fs::write(state, seeds::to_hex(&case)).expect("the state can be written");
        Coverage::reset();
        if let Err(failure) = run(&case, since, &mut counts) {
            eprintln!("{}", failure.0);
            return ExitCode::FAILURE;
        }
        if coverage.take() {
            kept.push(case);
        }
        if reported.elapsed().as_secs() >= 20 {
            reported = Instant::now();
            let (edges, memory) = (coverage.edges(), memory());
            println!(
                "{} s: {} frames, {edges} edges, {} cases kept, {} MiB",
                since.elapsed().as_secs(),
                frames(&counts),
                kept.len(),
                memory >> 20
            );
            if memory > MOST_MEMORY {
                eprintln!("the process uses {memory} bytes of memory");
                return ExitCode::FAILURE;
            }
        }
    }
    let _ = fs::remove_file(state);
    nmsfuzz::clean();
    if let Some(file) = &options.keep {
        let lines: String = kept.iter().map(|case| seeds::to_hex(case) + "\n").collect();
        fs::write(file, lines).expect("the kept cases can be written");
    }
    print!("{counts}");
    println!(
        "{:>12}  edges{}",
        coverage.edges(),
        if Coverage::is_there() { "" } else { " (not counted)" }
    );
    println!("{:>12}  seconds", since.elapsed().as_secs());
    if reaches_the_engines(&counts) {
        ExitCode::SUCCESS
    } else {
        eprintln!("fewer than {LEAST_DECODED} of 100 frames were decoded");
        ExitCode::FAILURE
    }
}

/// Returns the number of frames that were pushed through `nmsfilter`.
fn frames(counts: &Counts) -> u64 {
    counts.get("filter: frames")
}

fn reaches_the_engines(counts: &Counts) -> bool {
    let survivors = counts.get("filter: survivors");
    counts.get("filter: decoded") * 100 >= frames(counts) * LEAST_DECODED && survivors > 0
}

/// Returns the number of bytes of memory that the process uses.
fn memory() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

fn replay(cases: &[&str]) -> ExitCode {
    nmsfuzz::init(&std::env::temp_dir());
    let since = Instant::now();
    watch_time(since);
    let mut counts = Counts::default();
    for argument in cases {
        let path = Path::new(argument);
        let cases = if path.is_dir() {
            seeds::load(path).expect("the folder can be read")
        } else {
            match seeds::from_hex(argument) {
                Some(case) => vec![((*argument).to_owned(), case)],
                None => return usage(),
            }
        };
        for (name, case) in cases {
            if let Err(failure) = run(&case, since, &mut counts) {
                eprintln!("{name}: {}", failure.0);
                return ExitCode::FAILURE;
            }
        }
    }
    nmsfuzz::clean();
    print!("{counts}");
    ExitCode::SUCCESS
}
