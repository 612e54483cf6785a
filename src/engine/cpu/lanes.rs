use super::super::{Detection, Overlap, Params};

/// How many boxes are compared at a time.
const WIDTH: usize = 16;

/// Boxes in flat arrays, a lane each, padded with boxes that meet nothing.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    len: usize,
    x1: Vec<f32>,
    y1: Vec<f32>,
    x2: Vec<f32>,
    y2: Vec<f32>,
    area: Vec<f32>,
    class: Vec<u32>,
}

impl Lanes {
    pub fn clear(&mut self) {
        self.len = 0;
        for lane in [&mut self.x1, &mut self.y1, &mut self.x2, &mut self.y2, &mut self.area] {
            lane.clear();
        }
        self.class.clear();
    }

    pub fn push(&mut self, d: &Detection, params: &Params) {
        if self.len == self.class.len() {
            let padded = self.len + WIDTH;
            self.x1.resize(padded, f32::INFINITY);
            self.y1.resize(padded, f32::INFINITY);
            self.x2.resize(padded, f32::NEG_INFINITY);
            self.y2.resize(padded, f32::NEG_INFINITY);
            self.area.resize(padded, 0.0);
            self.class.resize(padded, 0);
        }
        let i = self.len;
        (self.x1[i], self.y1[i], self.x2[i], self.y2[i]) = (d.x1, d.y1, d.x2, d.y2);
        self.area[i] = area(d, params.pixel_offset);
        self.class[i] = if params.class_agnostic { 0 } else { d.class };
        self.len += 1;
    }

    /// Whether any of these boxes suppresses `d`, which all of them outrank.
    pub fn meet(&self, d: &Detection, params: &Params) -> bool {
        match (params.overlap, params.threshold_inclusive) {
            (Overlap::Iou, false) => self.any(d, params, iou, |i, limit| i > limit),
            (Overlap::Iou, true) => self.any(d, params, iou, |i, limit| i >= limit),
            (Overlap::Representative, false) => self.any(d, params, higher, |i, limit| i > limit),
            (Overlap::Representative, true) => self.any(d, params, higher, |i, limit| i >= limit),
            (Overlap::Smaller, false) => self.any(d, params, smaller, |i, limit| i > limit),
            (Overlap::Smaller, true) => self.any(d, params, smaller, |i, limit| i >= limit),
        }
    }

    fn any(
        &self,
        d: &Detection,
        params: &Params,
        whole: impl Fn(f32, f32, f32) -> f32,
        beyond: impl Fn(f32, f32) -> bool,
    ) -> bool {
        let offset = params.pixel_offset;
        let own_area = area(d, offset);
        let own_class = if params.class_agnostic { 0 } else { d.class };
        let (x1, _) = self.x1.as_chunks::<WIDTH>();
        let (y1, _) = self.y1.as_chunks::<WIDTH>();
        let (x2, _) = self.x2.as_chunks::<WIDTH>();
        let (y2, _) = self.y2.as_chunks::<WIDTH>();
        let (areas, _) = self.area.as_chunks::<WIDTH>();
        let (classes, _) = self.class.as_chunks::<WIDTH>();
        let blocks = x1.iter().zip(y1).zip(x2).zip(y2).zip(areas).zip(classes);
        for (((((x1, y1), x2), y2), areas), classes) in blocks {
            // No early exit within a block: that would keep it from being vectorised.
            let mut hit = false;
            for i in 0..WIDTH {
                let width = x2[i].min(d.x2) - x1[i].max(d.x1) + offset;
                let height = y2[i].min(d.y2) - y1[i].max(d.y1) + offset;
                let intersection = width * height;
                let limit = params.iou_threshold * whole(areas[i], own_area, intersection);
                hit |= (width > 0.0)
                    & (height > 0.0)
                    & (classes[i] == own_class)
                    & beyond(intersection, limit);
            }
            if hit {
                return true;
            }
        }
        false
    }
}

fn area(d: &Detection, offset: f32) -> f32 {
    (d.x2 - d.x1 + offset) * (d.y2 - d.y1 + offset)
}

fn iou(higher: f32, lower: f32, intersection: f32) -> f32 {
    higher + lower - intersection
}

fn higher(higher: f32, _lower: f32, _intersection: f32) -> f32 {
    higher
}

fn smaller(higher: f32, lower: f32, _intersection: f32) -> f32 {
    higher.min(lower)
}
