use std::path::Path;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

/// A line, or points, under a name.
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// x, y.
    pub points: Vec<(f64, f64)>,
}

/// A picture of series.
pub struct Chart {
    /// Above it.
    pub title: String,
    /// Below the horizontal axis.
    pub x: &'static str,
    /// Beside the vertical axis.
    pub y: &'static str,
    /// Whether both axes are logarithmic.
    pub logarithmic: bool,
    /// What it shows.
    pub series: Vec<Series>,
}

const SIZE: (u32, u32) = (900, 500);

impl Chart {
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let bounds = |of: fn(&(f64, f64)) -> f64| {
            let low = points().map(of).fold(f64::INFINITY, f64::min);
            let high = points().map(of).fold(f64::NEG_INFINITY, f64::max);
            (low, high)
        };
        let (x, y) = (bounds(|point| point.0), bounds(|point| point.1));
        if !x.0.is_finite() {
            anyhow::bail!("there is nothing to plot");
        }
        if self.logarithmic {
            let wider = |(low, high): (f64, f64)| (low / 1.3..high * 1.3).log_scale();
            self.draw(path, wider(x), wider(y))
        } else {
            self.draw(path, x.0..x.1.max(x.0 + 1.0), 0.0..y.1 * 1.1)
        }
    }

    fn draw<X, Y>(&self, path: &Path, x: X, y: Y) -> anyhow::Result<()>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let area = SVGBackend::new(path, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (i, series) in self.series.iter().enumerate() {
            let colour = Palette99::pick(i).to_rgba();
            let line = LineSeries::new(series.points.iter().copied(), colour.stroke_width(2));
            chart.draw_series(line)?.label(&series.name).legend(move |(x, y)| {
                PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2))
            });
            if series.points.len() < 40 {
                let dots =
                    series.points.iter().map(|&point| Circle::new(point, 3, colour.filled()));
                chart.draw_series(dots)?;
            }
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .draw()?;
        area.present()?;
        Ok(())
    }
}
