//! The parameters of a simulated drive, each with its source: `[simulated.flash]`, `channels = 8`, or
//! `channels = { is = 8, published = "where" }`. One whose value was chosen so that the simulation meets published claims names
//! them: `fitted = ["MIX-4"]`. What parameters mean is the simulation's business.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use toml::{Spanned, Value};

use crate::SourceKind;

/// The parameters of a simulated drive, in sections. Sections and names stay in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Simulated {
    sections: Vec<(String, Vec<(String, Parameter)>)>,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The value.
    pub value: Value,
    /// How it became known.
    pub kind: SourceKind,
    /// Who measured it on what, where it was published, or why it was assumed. Only what is assumed may go without.
    pub origin: String,
    /// Claims that the value was chosen to meet, such as `MIX-4`; empty if none was in view.
    pub fitted: Vec<String>,
}

/// A section's name, a parameter's in it, what is wrong.
pub(crate) struct Fault {
    pub(crate) section: String,
    pub(crate) name: String,
    pub(crate) problem: String,
}

/// What a wrong `fitted` needs.
const NAME_CLAIMS: &str = "name the claims that the value was chosen to meet, as in [\"MIX-4\"]";

impl Parameter {
    /// A value that the file's author assumed.
    pub fn assumed(value: impl Into<Value>) -> Self {
        Self {
            value: value.into(),
            kind: SourceKind::Assumed,
            origin: String::new(),
            fitted: Vec::new(),
        }
    }

    /// What makes it one that could not be written and read back.
    fn problem(&self) -> Option<String> {
        let Self { value, kind, origin, fitted } = self;
        let problem = if origin.trim().is_empty() && *kind != SourceKind::Assumed {
            format!("{kind} is empty: say who measured it on what, or where it was published")
        } else if matches!(value, Value::Table(_)) {
            "a table is no value: give a number, a word, true, false or a list".to_owned()
        } else if fitted.iter().any(|claim| claim.trim().is_empty()) {
            format!("fitted names an empty claim: {NAME_CLAIMS}")
        } else if fitted.is_empty() {
            return None;
        } else if *kind == SourceKind::Published {
            "a value that was fitted was not published as it is: say measured or assumed".to_owned()
        } else if origin.trim().is_empty() {
            format!("{kind} is empty: state next to fitted how the value was chosen")
        } else {
            return None;
        };
        Some(problem)
    }
}

impl Simulated {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// Sections with what is in them.
    pub fn sections(&self) -> impl Iterator<Item = (&str, &[(String, Parameter)])> {
        self.sections.iter().map(|(name, parameters)| (name.as_str(), parameters.as_slice()))
    }

    /// Whether there is such a section.
    pub fn has(&self, section: &str) -> bool {
        self.sections.iter().any(|(name, _)| name == section)
    }

    /// A parameter.
    pub fn get(&self, section: &str, name: &str) -> Option<&Parameter> {
        let (_, parameters) = self.sections.iter().find(|(found, _)| found == section)?;
        parameters.iter().find(|(found, _)| found == name).map(|(_, parameter)| parameter)
    }

    /// Sets a parameter: in its place if it is there, behind the others of its section if not.
    pub fn set(&mut self, section: &str, name: &str, parameter: Parameter) {
        let at =
            self.sections.iter().position(|(found, _)| found == section).unwrap_or_else(|| {
                self.sections.push((section.to_owned(), Vec::new()));
                self.sections.len() - 1
            });
        let parameters = &mut self.sections[at].1;
        match parameters.iter_mut().find(|(found, _)| found == name) {
            Some((_, old)) => *old = parameter,
            None => parameters.push((name.to_owned(), parameter)),
        }
    }

    /// Removes a parameter if it is there, and its section with the last one.
    pub fn remove(&mut self, section: &str, name: &str) {
        for (_, parameters) in self.sections.iter_mut().filter(|(found, _)| found == section) {
            parameters.retain(|(found, _)| found != name);
        }
        self.sections.retain(|(_, parameters)| !parameters.is_empty());
    }

    /// The first thing that could not be written and read back.
    pub(crate) fn fault(&self) -> Option<Fault> {
        let all = self.sections.iter().flat_map(|(section, parameters)| {
            parameters.iter().map(move |(name, parameter)| (section, name, parameter))
        });
        all.into_iter().find_map(|(section, name, parameter)| {
            let bare = |word: &str| {
                !word.is_empty()
                    && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
            };
            let problem = if !bare(section) || !bare(name) {
                "names are made of letters, digits, '-' and '_'".to_owned()
            } else {
                parameter.problem()?
            };
            Some(Fault { section: section.clone(), name: name.clone(), problem })
        })
    }

    /// As TOML: a table for each section, a line for each parameter.
    pub(crate) fn to_toml(&self) -> String {
        let mut text = String::new();
        for (section, parameters) in &self.sections {
            // Writing to a string can't fail.
            let _ = write!(text, "\n[simulated.{section}]\n");
            for (name, Parameter { value, kind, origin, fitted }) in parameters {
                let _ = if origin.is_empty() {
                    writeln!(text, "{name} = {value}")
                } else {
                    let origin = Value::from(origin.as_str());
                    let fitted = match fitted.as_slice() {
                        [] => String::new(),
                        claims => format!(", fitted = {}", Value::from(claims.to_vec())),
                    };
                    writeln!(text, "{name} = {{ is = {value}, {kind} = {origin}{fitted} }}")
                };
            }
        }
        text
    }
}

/// The sections as they stand in a text, with their places there.
#[derive(Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Placed(BTreeMap<String, BTreeMap<String, Spanned<Value>>>);

impl Placed {
    /// The parameters, in the order of the text; each one's byte in it.
    ///
    /// # Errors
    /// The first parameter that isn't one.
    #[expect(clippy::type_complexity, reason = "names with what they have")]
    pub(crate) fn read(
        self,
    ) -> Result<(Simulated, BTreeMap<(String, String), usize>), (Fault, usize)> {
        let mut all: Vec<(usize, String, String, Value)> = Vec::new();
        for (section, parameters) in self.0 {
            for (name, value) in parameters {
                all.push((value.span().start, section.clone(), name, value.into_inner()));
            }
        }
        all.sort_by_key(|(at, ..)| *at);
        let (mut simulated, mut places) = (Simulated::default(), BTreeMap::new());
        for (at, section, name, value) in all {
            match parameter(value) {
                Ok(parameter) => simulated.set(&section, &name, parameter),
                Err(problem) => return Err((Fault { section, name, problem }, at)),
            }
            places.insert((section, name), at);
        }
        Ok((simulated, places))
    }
}

fn parameter(value: Value) -> Result<Parameter, String> {
    let Value::Table(mut table) = value else { return Ok(Parameter::assumed(value)) };
    let value =
        table.remove("is").ok_or("it has no value: write { is = VALUE, SOURCE = \"...\" }")?;
    let fitted = table.remove("fitted").map(claims).transpose()?.unwrap_or_default();
    let mut sources = table.into_iter();
    let one = "give exactly one of measured, published or assumed beside 'is'";
    let (Some((key, origin)), None) = (sources.next(), sources.next()) else {
        return Err(one.to_owned());
    };
    let kind = [SourceKind::Measured, SourceKind::Published, SourceKind::Assumed]
        .into_iter()
        .find(|kind| kind.word() == key)
        .ok_or_else(|| format!("'{key}' is not known: {one}"))?;
    match origin {
        Value::String(origin) if !origin.trim().is_empty() => {
            Ok(Parameter { value, kind, origin, fitted })
        }
        _ => Err(format!(
            "{key} is no text: say who measured it on what, where it was published, or why it is assumed"
        )),
    }
}

/// The claims that a parameter's `fitted` names.
fn claims(fitted: Value) -> Result<Vec<String>, String> {
    let text = |value| if let Value::String(text) = value { Some(text) } else { None };
    let claims: Option<Vec<String>> = match fitted {
        Value::Array(values) => values.into_iter().map(text).collect(),
        _ => None,
    };
    match claims {
        None => Err(format!("fitted is no list of texts: {NAME_CLAIMS}")),
        Some(claims) if claims.is_empty() => {
            Err(format!("fitted is empty: {NAME_CLAIMS}, or leave it out"))
        }
        Some(claims) => Ok(claims),
    }
}

impl Serialize for Simulated {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.sections.len()))?;
        for (section, parameters) in &self.sections {
            let parameters: BTreeMap<&str, &Parameter> =
                parameters.iter().map(|(name, parameter)| (name.as_str(), parameter)).collect();
            map.serialize_entry(section, &parameters)?;
        }
        map.end()
    }
}

impl Serialize for Parameter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("is", &self.value)?;
        map.serialize_entry(self.kind.word(), &self.origin)?;
        if !self.fitted.is_empty() {
            map.serialize_entry("fitted", &self.fitted)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Profile, ProfileError};
    use proptest::prelude::*;

    const TEXT: &str = r#"name = "a-drive"
model = "A drive"
kind = "nvme"
capacity_bytes = 1000000000000

[figures]

[simulated.flash]
channels = { is = 8, published = "a review" }
read_us = { is = 45.5, measured = "at depth 1" }
media = "nand"

[simulated.buffer]
bytes = { is = 1048576, assumed = "typical" }

[simulated.cache]
program_us = { is = 370.0, assumed = "between two datasheets", fitted = ["REC-7", "REC-8"] }
"#;

    #[test]
    fn parameters_come_with_their_sources_in_the_order_of_the_file() {
        let simulated = Profile::from_toml(TEXT).unwrap().simulated;
        let order: Vec<String> = simulated
            .sections()
            .flat_map(|(s, names)| names.iter().map(move |(n, _)| format!("{s}.{n}")))
            .collect();
        let names =
            ["flash.channels", "flash.read_us", "flash.media", "buffer.bytes", "cache.program_us"];
        assert_eq!(order, names);
        let channels = simulated.get("flash", "channels").unwrap();
        assert_eq!(channels.value, Value::from(8));
        assert_eq!((channels.kind, channels.origin.as_str()), (SourceKind::Published, "a review"));
        assert_eq!(simulated.get("flash", "media"), Some(&Parameter::assumed("nand")));
        assert_eq!(simulated.get("flash", "planes"), None);
        assert!(simulated.has("buffer") && !simulated.has("upkeep"));
    }

    #[test]
    fn a_parameter_names_the_claims_that_it_was_fitted_to() {
        let profile = Profile::from_toml(TEXT).unwrap();
        let fitted = profile.simulated.get("cache", "program_us").unwrap();
        assert_eq!(
            (fitted.kind, fitted.origin.as_str()),
            (SourceKind::Assumed, "between two datasheets")
        );
        assert_eq!(fitted.fitted, ["REC-7", "REC-8"]);
        assert!(profile.simulated.get("flash", "read_us").unwrap().fitted.is_empty());
        let line = TEXT.lines().last().unwrap();
        assert!(profile.to_toml().unwrap().ends_with(&format!("\n{line}\n")));
        let json = Value::try_from(&profile.simulated).unwrap();
        assert_eq!(json["cache"]["program_us"]["fitted"][1], Value::from("REC-8"));
        assert_eq!(json["flash"]["read_us"].get("fitted"), None);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_field_and_line() {
        const PROGRAM: &str = "simulated.cache.program_us";
        for (wrong, right, line, field, word) in [
            ("published", "told", 9, "simulated.flash.channels", "'told' is not known"),
            (", published = \"a review\"", "", 9, "simulated.flash.channels", "exactly one"),
            ("\"at depth 1\"", "\"\"", 10, "simulated.flash.read_us", "measured is no text"),
            ("is = 45.5, ", "", 10, "simulated.flash.read_us", "no value"),
            ("\"typical\"", "5", 14, "simulated.buffer.bytes", "assumed is no text"),
            ("is = 1048576", "is = { a = 1 }", 14, "simulated.buffer.bytes", "no value"),
            ("media =", "\"me.dia\" =", 11, "simulated.flash.me.dia", "letters"),
            (", assumed", ", published = \"b\", assumed", 14, "simulated.buffer.bytes", "one of"),
            ("[\"REC-7\", \"REC-8\"]", "\"REC-7\"", 17, PROGRAM, "no list of texts"),
            ("[\"REC-7\"", "[7", 17, PROGRAM, "no list of texts"),
            ("\"REC-7\", \"REC-8\"", "", 17, PROGRAM, "leave it out"),
            ("\"REC-8\"", "\" \"", 17, PROGRAM, "an empty claim"),
            ("assumed = \"between", "published = \"between", 17, PROGRAM, "measured or assumed"),
            ("assumed = \"between two datasheets\", ", "", 17, PROGRAM, "exactly one"),
        ] {
            let error = Profile::from_toml(&TEXT.replace(wrong, right)).unwrap_err();
            let ProfileError::Field { field: found, line: at, problem } = &error else {
                panic!("{error}")
            };
            assert_eq!((found.as_str(), *at), (field, Some(line)), "{error}");
            assert!(problem.contains(word), "{error}");
        }
    }

    #[test]
    fn a_parameter_is_a_line_and_setting_one_leaves_it_where_it_is() {
        let mut profile = Profile::from_toml(TEXT).unwrap();
        profile.simulated.set("flash", "channels", Parameter::assumed(4));
        profile.simulated.set("flash", "planes", Parameter::assumed(2));
        let text = profile.to_toml().unwrap();
        let tail = &text[text.find("[simulated.flash]").unwrap()..];
        let lines: Vec<&str> = tail.lines().collect();
        assert_eq!(lines[1], "channels = 4");
        assert_eq!(lines[2], "read_us = { is = 45.5, measured = \"at depth 1\" }");
        assert_eq!(lines[4], "planes = 2");
    }

    #[test]
    fn a_parameter_without_its_source_is_not_written() {
        let mut profile = Profile::from_toml(TEXT).unwrap();
        let parameter =
            Parameter { kind: SourceKind::Measured, ..Parameter::assumed(Value::from(1)) };
        profile.simulated.set("flash", "planes", parameter);
        let error = profile.to_toml().unwrap_err();
        assert!(error.to_string().contains("simulated.flash.planes"), "{error}");
    }

    #[test]
    fn a_fitted_parameter_without_a_word_on_how_is_not_written() {
        let mut profile = Profile::from_toml(TEXT).unwrap();
        let fitted = vec!["REC-7".to_owned()];
        profile.simulated.set("flash", "planes", Parameter { fitted, ..Parameter::assumed(2) });
        let error = profile.to_toml().unwrap_err().to_string();
        assert!(
            error.contains("simulated.flash.planes") && error.contains("was chosen"),
            "{error}"
        );
    }

    fn value() -> impl Strategy<Value = Value> {
        let one = prop_oneof![
            any::<i64>().prop_map(Value::from),
            (-1e12..1e12f64).prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            "[ -~äπ\\n\"']{0,20}".prop_map(Value::from),
        ];
        one.prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-z.\" ]{1,5}", inner, 0..3)
                    .prop_map(|map| Value::from(vec![Value::Table(map.into_iter().collect())])),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_as_the_same(
            parameters in prop::collection::vec(
                (
                    "[a-z_-]{1,5}",
                    "[a-z0-9_]{1,8}",
                    value(),
                    0..3usize,
                    "[ -~äπ\\n\"']{0,20}x",
                    prop::collection::vec("[ -~ä\\n\"']{0,8}x", 0..3),
                ),
                0..8,
            ),
        ) {
            let mut profile = Profile::new("it", "Model", "nvme", 1 << 40);
            for (section, name, value, kind, origin, mut fitted) in parameters {
                let kind = [SourceKind::Assumed, SourceKind::Published, SourceKind::Measured][kind];
                if kind == SourceKind::Published {
                    fitted.clear();
                }
                profile.simulated.set(&section, &name, Parameter { value, kind, origin, fitted });
            }
            let text = profile.to_toml().unwrap();
            prop_assert_eq!(Profile::from_toml(&text).unwrap(), profile, "{}", text);
        }
    }
}
