//! What a figure of ours rests on: definitions, or the parameters of simulated drives, some of which were chosen with
//! published figures in view.

use serde::{Deserialize, Serialize};

/// A parameter of a simulated drive, or of a link between drives and host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedParameter {
    /// The drive's model, or the link.
    pub of: String,
    /// The parameter's name with its section: `flash.program_us`.
    pub name: String,
    /// Its value, as text.
    pub value: String,
    /// Where the value comes from: `published: datasheet`.
    pub source: String,
    /// The claims that the value was chosen to meet.
    pub fitted: Vec<String>,
    /// Whether it is another value than the library's, so that it isn't known which claims it was chosen to meet.
    #[serde(default)]
    pub changed: bool,
}

/// A parameter that was chosen to meet claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fitted {
    /// The drive's model, or the link.
    pub of: String,
    /// The parameter's name with its section.
    pub name: String,
    /// The claims; none if it isn't known whether there are any.
    pub claims: Vec<String>,
}

/// What a figure of ours rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Definitions alone: no parameter of a drive changes it.
    Arithmetic,
    /// Simulated drives. These of the parameters that it depends on were fitted, or may have been: with none of them it
    /// is a prediction.
    Simulated(Vec<Fitted>),
    /// Nothing that could be compared fairly: why.
    NotTestable(String),
}

impl Basis {
    /// Simulated drives with these parameters.
    pub fn simulated(parameters: &[UsedParameter]) -> Self {
        let maybe = |parameter: &&UsedParameter| parameter.changed || !parameter.fitted.is_empty();
        let fitted = parameters.iter().filter(maybe);
        let fitted = fitted.map(|UsedParameter { of, name, fitted, .. }| Fitted {
            of: of.clone(),
            name: name.clone(),
            claims: fitted.clone(),
        });
        Self::Simulated(fitted.collect())
    }

    /// Nothing that could be compared fairly.
    pub fn not_testable(why: impl Into<String>) -> Self {
        Self::NotTestable(why.into())
    }

    /// The same, known not to depend on these parameters. A test changes them and sees that the figure stays.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        match self {
            Self::Simulated(fitted) => {
                let depends = fitted.iter().filter(|fitted| !names.contains(&fitted.name.as_str()));
                Self::Simulated(depends.cloned().collect())
            }
            other => other.clone(),
        }
    }

    /// This and another: of the fitted parameters all.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::NotTestable(_), _) => self.clone(),
            (_, Self::NotTestable(_)) | (Self::Arithmetic, _) => other.clone(),
            (_, Self::Arithmetic) => self.clone(),
            (Self::Simulated(ours), Self::Simulated(theirs)) => {
                let more = theirs.iter().filter(|fitted| !ours.contains(fitted));
                Self::Simulated(ours.iter().chain(more).cloned().collect())
            }
        }
    }

    /// The parameters that were fitted.
    pub fn fitted(&self) -> &[Fitted] {
        match self {
            Self::Simulated(fitted) => fitted,
            Self::Arithmetic | Self::NotTestable(_) => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(of: &str, name: &str, claims: &[&str]) -> UsedParameter {
        UsedParameter {
            of: of.to_owned(),
            name: name.to_owned(),
            value: "1".to_owned(),
            source: "assumed".to_owned(),
            fitted: claims.iter().map(|&claim| claim.to_owned()).collect(),
            changed: false,
        }
    }

    #[test]
    fn a_figure_rests_on_what_was_fitted_of_all_drives_but_for_what_it_does_not_depend_on() {
        let a = Basis::simulated(&[used("a", "flash.x", &["REC-1"]), used("a", "flash.y", &[])]);
        let b =
            Basis::simulated(&[used("b", "flash.x", &["REC-2"]), used("b", "link.z", &["X-1"])]);
        let names = |basis: &Basis| {
            basis.fitted().iter().map(|f| format!("{} {}", f.of, f.name)).collect::<Vec<_>>()
        };
        assert_eq!(names(&a), ["a flash.x"]);
        assert_eq!(names(&a.and(&b)), ["a flash.x", "b flash.x", "b link.z"]);
        assert_eq!(a.and(&a), a);
        assert_eq!(names(&a.and(&b).without(&["flash.x"])), ["b link.z"]);
        assert_eq!(Basis::Arithmetic.and(&a), a);
        let not = Basis::not_testable("why");
        assert_eq!((a.and(&not), not.and(&a)), (not.clone(), not));
    }
}
