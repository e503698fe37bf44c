//! A drive's parameters as a list, each with where its value comes from.

use profile::{Parameter, Simulated, Value};

use super::Spec;
use super::parameters::PARAMETERS;

/// A parameter and where its value comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedParameter {
    /// Its section: `flash`.
    pub section: String,
    /// Its name there: `channels`.
    pub name: String,
    /// The value.
    pub value: Value,
    /// How the value became known: `measured`, `published`, `assumed` or `default`.
    pub known_by: &'static str,
    /// Where it was measured or published; empty for a default.
    pub origin: String,
    /// What it means, with its unit.
    pub meaning: Option<&'static str>,
}

impl Spec {
    /// Every parameter, defaults too. `given` are those of the drive's profile.
    pub fn listed(&self, given: &Simulated) -> Vec<ListedParameter> {
        let mut listed = Vec::new();
        for (section, parameters) in self.to_parameters().sections() {
            for (name, Parameter { value, .. }) in parameters {
                let (known_by, origin) = match given.get(section, name) {
                    None => ("default", String::new()),
                    Some(Parameter { kind, origin, .. }) => (kind.word(), origin.clone()),
                };
                let is_it = |known: &&super::parameters::Known| {
                    known.section == section && known.name == name
                };
                let meaning = PARAMETERS.iter().find(is_it).map(|known| known.meaning);
                let (section, name, value) = (section.to_owned(), name.clone(), value.clone());
                listed.push(ListedParameter { section, name, value, known_by, origin, meaning });
            }
        }
        listed
    }

    /// Adds the parameters that are not given yet, each with the value that it has by default.
    pub fn fill_in(&self, given: &mut Simulated) {
        for (section, parameters) in self.to_parameters().sections() {
            for (name, parameter) in parameters {
                if given.get(section, name).is_none() {
                    given.set(section, name, parameter.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use profile::library;

    use super::*;

    #[test]
    fn what_a_profile_leaves_out_is_listed_as_a_default_and_can_be_filled_in() {
        let mut profile = library::get("ideal").unwrap();
        let spec = Spec::from_profile(&profile).unwrap();
        let defaults = |given: &Simulated| {
            spec.listed(given).iter().filter(|listed| listed.known_by == "default").count()
        };
        assert!(defaults(&profile.simulated) > 0);
        assert!(spec.listed(&profile.simulated).iter().all(|listed| listed.meaning.is_some()));
        spec.fill_in(&mut profile.simulated);
        assert_eq!(defaults(&profile.simulated), 0);
        assert_eq!(Spec::from_profile(&profile).unwrap(), spec);
    }
}
