// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPU times by the number of candidates, up to a million: with all pairs compared, and with sorted candidates.

use anyhow::Result;
use gstnmsfilter::input::Tensors;
use nmsfilter_core::engine::{Cuda, Job};

use super::{Bench, Section, format_us};
use crate::gpu_time::{check, expected, time_of_all, times_of_each};
use crate::report::Table;
use crate::workload::{Spread, Workload};

pub const SECTION: Section = Section {
    name: "counts",
    about: "GPU times of 1000 to 1,000,000 candidates, by the size of the first chunk",
    run,
};

/// Sizes of the first chunk of sorted candidates. The times of each kernel are for the default size.
const FIRST_CHUNKS: [u32; 5] = [4_096, 8_192, 16_384, 32_768, 65_536];
const DEFAULT_CHUNK: u32 = 32_768;

/// More candidates take seconds if all pairs are compared.
const MOST_PAIRED: usize = 300_000;

fn run(bench: &mut Bench) -> Result<()> {
    if bench.engines.cuda().is_none() {
        println!("SKIPPED: there is no GPU for the kernels");
        return Ok(());
    }
    let mut cuda = Cuda::new(Some(0))?;
    let columns = ["spread", "n", "survivors", "all pairs us"].map(str::to_owned);
    let chunks = FIRST_CHUNKS.map(|chunk| format!("first chunk {chunk} us"));
    let mut table = Table::new(columns.into_iter().chain(chunks));
    let mut of_kernels = Table::new(["spread", "n", "kernel", "us"]);
    for spread in [Spread::Clustered, Spread::Uniform] {
        for n in [
            1_000, 2_000, 4_000, 5_000, 6_000, 8_400, 10_000, 12_000, 16_000, 20_000, 30_000,
            100_000, 300_000, 1_000_000,
        ] {
            let repeats = bench.repeats.at_most(match n {
                ..=30_000 => u32::MAX,
                30_001..=100_000 => 6,
                _ => 3,
            });
            let workload = Workload::scene(spread, n);
            let (layout, params, places) = (workload.layout(), &workload.params, workload.places());
            let expected = expected(&workload)?;
            let uploaded = bench.engines.upload(&workload)?;
            let tensors: Tensors<'_> = uploaded.iter().collect();
            let views = tensors.views();
            let mut row = [spread.name(), &n.to_string(), &expected[0].1.len().to_string()]
                .map(str::to_owned)
                .to_vec();
            if n <= MOST_PAIRED {
                cuda.sort_above(u32::MAX, DEFAULT_CHUNK);
                check(&mut cuda, &views, &workload, &expected)?;
                let kernels = cuda.kernels_of(Job::new(&views, &layout, params, &places))?;
                row.push(format_us(time_of_all(&kernels, repeats)?));
            } else {
                row.push(String::new());
            }
            for chunk in FIRST_CHUNKS {
                cuda.sort_above(0, chunk);
                check(&mut cuda, &views, &workload, &expected)?;
                let kernels = cuda.kernels_of(Job::new(&views, &layout, params, &places))?;
                row.push(format_us(time_of_all(&kernels, repeats)?));
                if chunk != DEFAULT_CHUNK {
                    continue;
                }
                for (kernel, time) in times_of_each(&kernels, repeats)?.0 {
                    let (spread, n) = (spread.name().to_owned(), n.to_string());
                    of_kernels.row([spread, n, kernel, format_us(time)]);
                }
            }
            table.row(row);
        }
    }
    bench.folder.table("counts", &table)?;
    bench.folder.csv("counts-kernels", &of_kernels)
}
