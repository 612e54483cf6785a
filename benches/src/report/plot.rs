// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws charts. In: series of points. Out: an SVG file.

use std::path::Path;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

/// A named series of points, which is drawn as a line.
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Pairs of x and y.
    pub points: Vec<(f64, f64)>,
}

/// The scales of the axes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Both axes are linear, and y starts at 0.
    Linear,
    /// x is logarithmic with base 2, and y is linear and starts at 0.
    Doubling,
    /// Both axes are logarithmic with base 10.
    Logarithmic,
}

/// A chart of several series.
pub struct Chart {
    /// Title of the chart.
    pub title: String,
    /// Label of the x axis.
    pub x: &'static str,
    /// Label of the y axis.
    pub y: &'static str,
    /// Scales of both axes.
    pub scale: Scale,
    /// The series to draw.
    pub series: Vec<Series>,
    /// A series that is drawn in gray behind the others. It has a linear axis on the right, which
    /// is labeled with the series' name.
    pub secondary: Option<Series>,
}

const SIZE: (u32, u32) = (900, 500);

/// The palette of Okabe and Ito, whose colors remain distinguishable with color vision
/// deficiencies.
const COLORS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];
const GRAY: RGBColor = RGBColor(150, 150, 150);

/// Returns the label of a tick. It has one decimal if the value is not an integer.
fn label(value: &f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

impl Chart {
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let (x, y) = bounds(self.series.iter().flat_map(|series| &series.points));
        if !x.0.is_finite() {
            anyhow::bail!("the series have no points");
        }
        let from_zero = 0.0..y.1 * 1.2;
        let powers =
            |base: f64, (low, high): (f64, f64)| (low / 1.3..high * 1.3).log_scale().base(base);
        match self.scale {
            Scale::Linear => self.draw(path, x.0..x.1.max(x.0 + 1.0), from_zero),
            Scale::Doubling => self.draw(path, powers(2.0, x), from_zero),
            Scale::Logarithmic => self.draw(path, powers(10.0, x), powers(10.0, y)),
        }
    }

    fn draw<X, Y>(&self, path: &Path, x: X, y: Y) -> anyhow::Result<()>
    where
        X: AsRangedCoord<Value = f64> + Clone,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let area = SVGBackend::new(path, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let secondary = self.secondary.iter();
        let (_, counts) = bounds(secondary.clone().flat_map(|series| &series.points));
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .right_y_label_area_size(if self.secondary.is_some() { 60 } else { 12 })
            .build_cartesian_2d(x.clone(), y)?
            .set_secondary_coord(x, 0.0..(counts.1 * 1.2).max(1.0));
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .x_label_formatter(&label)
            .y_label_formatter(&label)
            .light_line_style(TRANSPARENT)
            .draw()?;
        for series in secondary {
            chart
                .configure_secondary_axes()
                .y_desc(&series.name)
                .y_label_formatter(&label)
                .draw()?;
            let line = LineSeries::new(series.points.iter().copied(), GRAY.stroke_width(2));
            chart.draw_secondary_series(line)?.label(&series.name).legend(swatch(GRAY));
        }
        for (series, color) in self.series.iter().zip(COLORS.into_iter().cycle()) {
            let line = LineSeries::new(series.points.iter().copied(), color.stroke_width(2));
            chart.draw_series(line)?.label(&series.name).legend(swatch(color));
            if series.points.len() < 40 {
                let dots = series.points.iter().map(|&point| Circle::new(point, 3, color.filled()));
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

/// Returns the legend's symbol for a line of this color.
fn swatch(color: RGBColor) -> impl Fn((i32, i32)) -> PathElement<(i32, i32)> {
    move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2))
}

/// Returns minimum and maximum of x, and minimum and maximum of y.
fn bounds<'a>(points: impl Iterator<Item = &'a (f64, f64)>) -> ((f64, f64), (f64, f64)) {
    let none = (f64::INFINITY, f64::NEG_INFINITY);
    let wider = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
    points.fold((none, none), |(x, y), point| (wider(x, point.0), wider(y, point.1)))
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn labels_are_as_short_as_the_numbers() {
        assert_eq!([20.0, 0.5, 0.1 + 0.2].map(|value| label(&value)), ["20", "0.5", "0.3"]);
    }
}
