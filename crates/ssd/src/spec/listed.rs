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
    /// Claims that the value was chosen to meet; empty if none was in view.
    pub fitted: Vec<String>,
    /// What it means, with its unit.
    pub meaning: Option<&'static str>,
}

impl ListedParameter {
    /// Where the value comes from, in words: the claims that it was fitted to, and its origin.
    pub fn source(&self) -> String {
        if self.fitted.is_empty() {
            return self.origin.clone();
        }
        format!("fitted to {}: {}", self.fitted.join(", "), self.origin)
    }
}

impl Spec {
    /// Every parameter, defaults too. `given` are those of the drive's profile.
    pub fn listed(&self, given: &Simulated) -> Vec<ListedParameter> {
        let mut listed = Vec::new();
        for (section, parameters) in self.to_parameters().sections() {
            for (name, Parameter { value, .. }) in parameters {
                let (known_by, origin, fitted) = match given.get(section, name) {
                    None => ("default", String::new(), Vec::new()),
                    Some(Parameter { kind, origin, fitted, .. }) => {
                        (kind.word(), origin.clone(), fitted.clone())
                    }
                };
                let is_it = |known: &&super::parameters::Known| {
                    known.section == section && known.name == name
                };
                let meaning = PARAMETERS.iter().find(is_it).map(|known| known.meaning);
                listed.push(ListedParameter {
                    section: section.to_owned(),
                    name: name.clone(),
                    value: value.clone(),
                    known_by,
                    origin,
                    fitted,
                    meaning,
                });
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

    #[test]
    fn a_fitted_parameter_is_listed_with_the_claims() {
        let mut profile = library::get("ideal").unwrap();
        let value = profile.simulated.get("flash", "read_us").unwrap().value.clone();
        let fitted = ["MIX-3", "MIX-4"].map(str::to_owned).to_vec();
        let origin = "115 us at most are published".to_owned();
        let parameter = Parameter { origin, fitted: fitted.clone(), ..Parameter::assumed(value) };
        profile.simulated.set("flash", "read_us", parameter);
        let listed = Spec::from_profile(&profile).unwrap().listed(&profile.simulated);
        let of = |name| listed.iter().find(|one| one.section == "flash" && one.name == name);
        let read = of("read_us").unwrap();
        assert_eq!((read.known_by, &read.fitted), ("assumed", &fitted));
        assert_eq!(read.source(), "fitted to MIX-3, MIX-4: 115 us at most are published");
        let channels = of("channels").unwrap();
        assert!(channels.fitted.is_empty());
        assert_eq!(channels.source(), channels.origin);
    }
}
