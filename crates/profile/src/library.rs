//! Drive models that come with the program: what datasheets tell of them, and how they are simulated.

use std::fmt;

use crate::{Profile, nearest};

/// Each model's name and text, in alphabetical order.
const MODELS: [(&str, &str); 24] = [
    ("ideal", include_str!("../library/ideal.toml")),
    ("intel-d7-p5510-3.84tb", include_str!("../library/intel-d7-p5510-3.84tb.toml")),
    ("intel-dc-p3600-400gb", include_str!("../library/intel-dc-p3600-400gb.toml")),
    ("intel-dc-s3500-480gb", include_str!("../library/intel-dc-s3500-480gb.toml")),
    ("intel-dc-s3700-400gb", include_str!("../library/intel-dc-s3700-400gb.toml")),
    ("intel-optane-900p-480gb", include_str!("../library/intel-optane-900p-480gb.toml")),
    ("kioxia-cd8-15.36tb", include_str!("../library/kioxia-cd8-15.36tb.toml")),
    ("memblaze-4tb", include_str!("../library/memblaze-4tb.toml")),
    ("memblaze-4tb-horizontal", include_str!("../library/memblaze-4tb-horizontal.toml")),
    ("memblaze-4tb-vertical", include_str!("../library/memblaze-4tb-vertical.toml")),
    ("micron-6500-ion-30.72tb", include_str!("../library/micron-6500-ion-30.72tb.toml")),
    ("micron-6550-ion-61.44tb", include_str!("../library/micron-6550-ion-61.44tb.toml")),
    ("micron-7500-pro-15.36tb", include_str!("../library/micron-7500-pro-15.36tb.toml")),
    ("micron-9550-max-12.8tb", include_str!("../library/micron-9550-max-12.8tb.toml")),
    ("patriot-hellfire-240gb", include_str!("../library/patriot-hellfire-240gb.toml")),
    ("qlc-1tb", include_str!("../library/qlc-1tb.toml")),
    ("samsung-970-evo-plus-1tb", include_str!("../library/samsung-970-evo-plus-1tb.toml")),
    ("samsung-970-pro-512gb", include_str!("../library/samsung-970-pro-512gb.toml")),
    ("samsung-bm1743-61.44tb", include_str!("../library/samsung-bm1743-61.44tb.toml")),
    ("samsung-pm1725b-1.6tb", include_str!("../library/samsung-pm1725b-1.6tb.toml")),
    ("samsung-pm1743-15.36tb", include_str!("../library/samsung-pm1743-15.36tb.toml")),
    ("samsung-pm9d3a-7.68tb", include_str!("../library/samsung-pm9d3a-7.68tb.toml")),
    ("solidigm-d5-p5336-61.44tb", include_str!("../library/solidigm-d5-p5336-61.44tb.toml")),
    ("wd-sn861-7.68tb", include_str!("../library/wd-sn861-7.68tb.toml")),
];

/// No model has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownModel {
    /// The name.
    pub name: String,
    /// One that is like it.
    pub nearest: Option<&'static str>,
}

impl fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the library has no drive '{}'", self.name)?;
        match self.nearest {
            Some(nearest) => write!(f, "; did you mean '{nearest}'?"),
            None => write!(f, "; it has {}", names().collect::<Vec<_>>().join(", ")),
        }
    }
}

impl std::error::Error for UnknownModel {}

/// The names of the models, in alphabetical order.
pub fn names() -> impl Iterator<Item = &'static str> {
    MODELS.iter().map(|(name, _)| *name)
}

/// A model's profile.
///
/// # Errors
/// [`UnknownModel`] with the name that was probably meant.
///
/// # Panics
/// Never: a test reads every model.
pub fn get(name: &str) -> Result<Profile, UnknownModel> {
    let Some((_, text)) = MODELS.iter().find(|(known, _)| *known == name) else {
        return Err(UnknownModel { name: name.to_owned(), nearest: nearest(name, names()) });
    };
    Ok(Profile::from_toml(text).expect("every model of the library is read by a test"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parameter, SourceKind};

    #[test]
    fn every_model_is_a_profile_of_its_name_with_a_simulation() {
        for name in names() {
            let profile = get(name).unwrap();
            assert_eq!(profile.name, name);
            assert!(!profile.simulated.is_empty(), "{name}");
        }
        assert!(names().is_sorted());
    }

    #[test]
    fn every_file_of_the_library_is_in_it() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/library");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap().replace(".toml", ""))
            .collect();
        files.sort();
        assert_eq!(files, names().collect::<Vec<_>>());
    }

    #[test]
    fn every_model_reads_back_as_it_is_written() {
        for name in names() {
            let profile = get(name).unwrap();
            assert_eq!(Profile::from_toml(&profile.to_toml().unwrap()).unwrap(), profile);
        }
    }

    /// Every parameter of the drives that stand for real ones, with where it lies.
    fn parameters() -> Vec<(String, Parameter)> {
        let drives = names().filter(|name| *name != "ideal").map(|name| get(name).unwrap());
        drives
            .flat_map(|drive| {
                let sections = drive.simulated.sections().map(|(section, parameters)| {
                    let place = format!("{} {section}", drive.name);
                    let named = parameters.iter().map(move |(name, parameter)| {
                        (format!("{place}.{name}"), parameter.clone())
                    });
                    named.collect::<Vec<_>>()
                });
                sections.flatten().collect::<Vec<_>>()
            })
            .collect()
    }

    #[test]
    fn every_parameter_of_a_real_drive_has_a_source() {
        for (place, parameter) in parameters() {
            assert!(!parameter.origin.trim().is_empty(), "{place}");
        }
    }

    #[test]
    fn a_fitted_parameter_names_claims_and_is_not_called_published() {
        let is_claim = |claim: &str| {
            claim.split_once('-').is_some_and(|(group, number)| {
                group.len() == 3
                    && group.chars().all(|c| c.is_ascii_uppercase())
                    && !number.is_empty()
                    && number.chars().all(|c| c.is_ascii_digit())
            })
        };
        let mut fitted = 0;
        for (place, parameter) in parameters() {
            let Parameter { kind, origin, fitted: claims, .. } = parameter;
            assert!(claims.iter().all(|claim| is_claim(claim)), "{place}: {claims:?}");
            assert!(claims.is_empty() || kind != SourceKind::Published, "{place}");
            let says_so = origin.to_lowercase().contains("fitted");
            assert!(!says_so || !claims.is_empty(), "{place} names no claims: {origin}");
            fitted += usize::from(!claims.is_empty());
        }
        assert!(fitted > 0);
    }

    #[test]
    fn a_name_that_is_not_there_finds_the_one_that_was_meant() {
        let error = get("idael").unwrap_err();
        assert_eq!(error.nearest, Some("ideal"));
        assert!(error.to_string().contains("did you mean 'ideal'"), "{error}");
        assert_eq!(get("970-evo").unwrap_err().nearest, Some("samsung-970-evo-plus-1tb"));
        let error = get("floppy").unwrap_err();
        assert!(error.to_string().contains("it has ideal, intel"), "{error}");
    }
}
