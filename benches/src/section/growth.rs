// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time of decode and suppression as a function of the number of candidates, and the exponent of
//! the fitting power law.

use anyhow::Result;

use super::{Bench, Section, format_us};
use crate::report::{Chart, Scale, Series, Table};
use crate::workload::{Spread, Workload};

pub const SECTION: Section =
    Section { name: "growth", about: "100 to 1,000,000 candidates, clustered and uniform", run };

const SIZES: [usize; 9] = [100, 300, 1_000, 3_000, 8_400, 30_000, 100_000, 300_000, 1_000_000];

fn run(bench: &mut Bench) -> Result<()> {
    let mut table =
        Table::new(["scene", "n", "survivors", "engine", "median us", "p90 us", "kernels us"]);
    let mut series: Vec<Series> = Vec::new();
    for spread in [Spread::Clustered, Spread::Uniform] {
        let first = series.len();
        for n in SIZES {
            let workload = Workload::scene(spread, n);
            for (i, run) in bench.engines.run(&workload, bench.budget)?.into_iter().enumerate() {
                if series.len() == first + i {
                    let name = format!("{}, {}", run.engine, spread.name());
                    series.push(Series { name, points: Vec::new() });
                }
                series[first + i].points.push((n as f64, run.times.median()));
                let times = [run.times.median(), run.times.quantile(0.9), run.device.median()]
                    .map(format_us);
                let counts = [n.to_string(), run.survivors.to_string(), run.engine.to_owned()];
                table.row([spread.name().to_owned()].into_iter().chain(counts).chain(times));
            }
        }
    }
    bench.folder.table("growth", &table)?;
    let mut fitted = Table::new(["series", "exponent", "exponent for n >= 1000"]);
    for series in &mut series {
        let all = exponent(&series.points);
        let late: Vec<_> =
            series.points.iter().filter(|point| point.0 >= 1000.0).copied().collect();
        fitted.row([series.name.clone(), format!("{all:.2}"), format!("{:.2}", exponent(&late))]);
        series.name = format!("{}: n^{all:.2}", series.name);
    }
    bench.folder.table("growth-exponents", &fitted)?;
    let chart = Chart {
        title: "Decode and suppression of n candidates".to_owned(),
        x: "candidates",
        y: "microseconds, median",
        scale: Scale::Logarithmic,
        series,
        secondary: None,
    };
    bench.folder.plot("growth", &chart)
}

/// Returns the exponent of the power law that fits the points. It is found by least squares of the
/// logarithms.
pub(super) fn exponent(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let count = logs.len() as f64;
    let (x, y) = logs.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let (x, y) = (x / count, y / count);
    let covariance: f64 = logs.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let variance: f64 = logs.iter().map(|point| (point.0 - x).powi(2)).sum();
    covariance / variance
}

#[cfg(test)]
mod tests {
    use super::exponent;

    #[test]
    fn a_power_law_has_its_exponent() {
        let points: Vec<_> = (1..9).map(f64::from).map(|x| (x, 3.0 * x.powf(1.25))).collect();
        assert!((exponent(&points) - 1.25).abs() < 1e-9);
    }
}
