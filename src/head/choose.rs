use std::fmt;

use arrayvec::ArrayVec;

use super::{HEADS, Head, Layout, LayoutError, MAX_ROLES, Options};
use crate::tensor::Tensor;

/// A head and where in the buffer's tensors its numbers lie.
#[derive(Clone)]
pub struct Choice {
    /// The head.
    pub head: &'static dyn Head,
    /// Its layout; fields point at the tensors given to [`choose`].
    pub layout: Layout,
    /// What spoke for it.
    pub reason: Reason,
}

/// What spoke for a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The tensors bear its ids.
    Id,
    /// No known ids, but the shapes fit this head and no other.
    Shape,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "by tensor id",
            Self::Shape => "by tensor shape",
        })
    }
}

/// Why there is no head for a buffer's tensors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// A head is right by id or by `decoder`, but the tensor does not fit it.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Nothing fits.
    #[error("no tensor fits {wanted}; the buffer carries {tensors}")]
    NoFit {
        /// What was looked for.
        wanted: String,
        /// What there is.
        tensors: String,
    },
    /// More than one reading fits.
    #[error("the buffer's tensors ({tensors}) can be read as {readings}; {advice}")]
    Ambiguous {
        /// What there is.
        tensors: String,
        /// The readings.
        readings: String,
        /// How to decide.
        advice: &'static str,
    },
    /// Two tensors bear the id that a head looks for.
    #[error("two tensors have the id {id}; expected one: give each output an id of its own")]
    Duplicate {
        /// The id.
        id: String,
    },
}

/// Which tensor plays each role of a head.
type Places = ArrayVec<usize, MAX_ROLES>;

/// Finds the head for `tensors`: `wanted`, or where that is `None` the one whose ids they bear,
/// or else the only one whose shapes they fit. Of readings by shape, those that use more of the
/// tensors come first.
///
/// # Errors
/// Where no head fits, more than one does, or the right one finds a shape or type it cannot read.
pub fn choose(
    tensors: &[Tensor<'_>],
    wanted: Option<&'static dyn Head>,
    options: Options,
) -> Result<Choice, ChoiceError> {
    let heads = || HEADS.into_iter().filter(|head| wanted.is_none_or(|w| w.name() == head.name()));

    for head in heads() {
        if let Some(places) = places_by_id(tensors, head)? {
            let layout = layout(tensors, head, &places, options)?;
            return Ok(Choice { head, layout, reason: Reason::Id });
        }
    }

    let mut fits: Vec<Choice> = Vec::new();
    let mut misfits: Vec<LayoutError> = Vec::new();
    for head in heads() {
        for places in assignments(tensors.len(), head.roles().len()) {
            match layout(tensors, head, &places, options) {
                Ok(layout) => fits.push(Choice { head, layout, reason: Reason::Shape }),
                Err(error) => misfits.push(error),
            }
        }
    }
    let most = fits.iter().map(|fit| fit.head.roles().len()).max().unwrap_or(0);
    fits.retain(|fit| fit.head.roles().len() == most);

    match fits.len() {
        1 => Ok(fits.remove(0)),
        0 => Err(no_fit(tensors, wanted, misfits)),
        _ => Err(ambiguous(tensors, &fits)),
    }
}

/// The tensor for each role by its ids, or `None` where one is not there.
fn places_by_id(
    tensors: &[Tensor<'_>],
    head: &'static dyn Head,
) -> Result<Option<Places>, ChoiceError> {
    let mut places = Places::new();
    for role in head.roles() {
        let mut named = (0..tensors.len()).filter(|&i| role.ids.contains(&tensors[i].id));
        let Some(place) = named.next() else {
            return Ok(None);
        };
        if let Some(other) = named.next() {
            return Err(ChoiceError::Duplicate { id: tensors[other].id.to_owned() });
        }
        places.push(place);
    }
    Ok(Some(places))
}

/// Every way to give `roles` different tensors.
fn assignments(tensors: usize, roles: usize) -> Vec<Places> {
    let mut all = vec![Places::new()];
    for _ in 0..roles {
        all = all
            .iter()
            .flat_map(|places| {
                (0..tensors).filter(|i| !places.contains(i)).map(|i| {
                    let mut longer = places.clone();
                    longer.push(i);
                    longer
                })
            })
            .collect();
    }
    all
}

fn layout(
    tensors: &[Tensor<'_>],
    head: &'static dyn Head,
    places: &[usize],
    options: Options,
) -> Result<Layout, LayoutError> {
    let chosen: ArrayVec<&Tensor<'_>, MAX_ROLES> = places.iter().map(|&i| &tensors[i]).collect();
    Ok(head.layout(&chosen, options)?.place(places))
}

fn list(tensors: &[Tensor<'_>]) -> String {
    let all: Vec<String> = tensors.iter().map(ToString::to_string).collect();
    all.join(", ")
}

fn no_fit(
    tensors: &[Tensor<'_>],
    wanted: Option<&'static dyn Head>,
    misfits: Vec<LayoutError>,
) -> ChoiceError {
    // A batch says more than the list of what fits nothing; so does the only reading there was.
    let batch = misfits.iter().position(|error| matches!(error, LayoutError::Batch { .. }));
    let only = (misfits.len() == 1).then_some(0);
    if let Some(i) = batch.or(only) {
        return misfits[i].clone().into();
    }
    let wanted = match wanted {
        Some(head) => format!("decoder {}, which expects {}", head.name(), head.expects()),
        None => {
            let all: Vec<String> =
                HEADS.iter().map(|head| format!("{} ({})", head.name(), head.expects())).collect();
            format!("any decoder: {}", all.join("; "))
        }
    };
    ChoiceError::NoFit { wanted, tensors: list(tensors) }
}

fn ambiguous(tensors: &[Tensor<'_>], fits: &[Choice]) -> ChoiceError {
    let mut names: Vec<&str> = fits.iter().map(|fit| fit.head.name()).collect();
    names.dedup();
    let (readings, advice) = match names[..] {
        [name] => (
            format!("{name} in {} ways", fits.len()),
            "give the tensor that holds the detections an id that the decoder knows",
        ),
        _ => (names.join(" or "), "set the property decoder to the right one"),
    };
    ChoiceError::Ambiguous { tensors: list(tensors), readings, advice }
}
