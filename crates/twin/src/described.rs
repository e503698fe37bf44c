//! A simulated drive described: its parameters with their sources, and what follows from them, as rows and as JSON.

use profile::Profile;
use serde_json::{Map, Value, json};
use ssd::Spec;
use ssd::spec::derived::{Derived, Quantity};
use ssd::spec::listed::ListedParameter;

/// A drive's parameters and what follows from them.
#[derive(Debug)]
pub struct Described<'a> {
    profile: &'a Profile,
    parameters: Vec<ListedParameter>,
    derived: Vec<Derived>,
}

impl<'a> Described<'a> {
    /// Describes the drive of a profile.
    pub fn new(profile: &'a Profile, spec: &Spec) -> Self {
        Self { profile, parameters: spec.listed(&profile.simulated), derived: spec.derived() }
    }

    /// For each parameter its name, its value with a unit, what kind of knowledge it is, and its source.
    pub fn parameter_rows(&self) -> impl Iterator<Item = [String; 4]> {
        self.parameters.iter().map(|parameter| {
            let ListedParameter { section, name, value, known_by, .. } = parameter;
            let known_by = (*known_by).to_owned();
            [format!("{section}.{name}"), value.to_string(), known_by, parameter.source()]
        })
    }

    /// What follows from the parameters, such as rates: words and a value with a unit.
    pub fn derived_rows(&self) -> impl Iterator<Item = [String; 2]> {
        self.derived
            .iter()
            .map(|Derived { words, quantity, .. }| [(*words).to_owned(), quantity.to_string()])
    }

    /// The drive as JSON: bytes, bytes a second, microseconds and counts as numbers.
    pub fn to_json(&self) -> Value {
        let parameter = |parameter: &ListedParameter| {
            json!({
                "section": parameter.section,
                "name": parameter.name,
                "value": parameter.value,
                "known_by": parameter.known_by,
                "from": parameter.origin,
                "fitted": parameter.fitted,
                "meaning": parameter.meaning,
            })
        };
        let derived = |derived: &Derived| (derived.key.to_owned(), number(derived.quantity));
        json!({
            "name": self.profile.name,
            "model": self.profile.model,
            "kind": self.profile.kind,
            "capacity_bytes": self.profile.capacity_bytes,
            "notes": self.profile.notes,
            "figures": self.profile.figures,
            "parameters": self.parameters.iter().map(parameter).collect::<Vec<_>>(),
            "derived": self.derived.iter().map(derived).collect::<Map<_, _>>(),
        })
    }
}

fn number(quantity: Quantity) -> Value {
    match quantity {
        Quantity::Bytes(count) | Quantity::Count(count) => json!(count),
        Quantity::BytesPerSecond(value) | Quantity::Microseconds(value) => json!(value),
    }
}
