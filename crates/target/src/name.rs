//! What simulated drives are called: `sim:NAME[:CONTENTS][@NAMESPACE][*COUNT]`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::striped::StripedTarget;

/// How simulated targets begin.
const PREFIX: &str = "sim:";

/// The most drives of one kind that a target may name.
const COUNT_MAX: u32 = 1024;

/// One target: a drive, a namespace of one, or several alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimTarget {
    /// The kind of drive.
    pub model: Model,
    /// What is on it at the start.
    pub contents: Contents,
    /// The one namespace that is meant, from 1; None for all of them.
    pub namespace: Option<u32>,
    /// Number of such drives, from 1.
    pub count: u32,
}

/// Where a simulated drive's parameters come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Model {
    /// The library, by name.
    Library(String),
    /// A file of the user's own.
    File(PathBuf),
}

/// What is on a drive at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    /// Nothing.
    #[default]
    Empty,
    /// Everything, written once in order.
    Full,
    /// Everything, written twice in order without a rest: no flash is erased ahead, and a cache is full.
    Overwritten,
    /// The steady state of random writes.
    Random,
}

/// Why a text is no simulated target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// `sim:` and no name.
    Nameless,
    /// A part that means nothing.
    Part {
        /// The whole target.
        target: String,
        /// The part.
        part: String,
        /// What it may be.
        wanted: &'static str,
    },
    /// A kind of target that does not exist.
    UnknownScheme {
        /// The whole target.
        target: String,
        /// What stands before the colon.
        scheme: String,
    },
    /// A striped set, where drives are wanted by themselves.
    Set {
        /// The set.
        target: String,
    },
    /// A striped set and other targets in one command.
    SetWithOthers {
        /// The set.
        target: String,
    },
    /// Real drives and simulated ones in one command.
    Mixed {
        /// A simulated one.
        simulated: String,
        /// A real one.
        real: String,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nameless => f.write_str(
                "sim: names no drive: give sim:NAME (`longtake sim list` has the names) or sim:PATH.toml",
            ),
            Self::Part { target, part, wanted } => {
                write!(f, "{target}: '{part}' is not valid: {wanted}")
            }
            Self::UnknownScheme { target, scheme } => write!(
                f,
                "{target}: there are no '{scheme}:' targets. Give a device, a path, a simulated drive (sim:NAME) or, to measure, \
                 a striped set (raid0:, raid5:, raid6:). A file of that name is ./{target}"
            ),
            Self::Set { target } => write!(
                f,
                "{target} is a striped set, which only `longtake measure` takes: name its members by themselves. An array stripes \
                 over its members anyway (--placement), and survives losing some with --parity"
            ),
            Self::SetWithOthers { target } => write!(
                f,
                "{target} is one drive to a command, and is measured alone: leave out the other targets"
            ),
            Self::Mixed { simulated, real } => write!(
                f,
                "{simulated} is simulated and {real} is not: their clocks differ, so a command takes drives of one kind"
            ),
        }
    }
}

impl std::error::Error for NameError {}

impl SimTarget {
    /// Whether a text is meant as a simulated target.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// The simulated targets among a command's; None if all are real.
    ///
    /// # Errors
    /// [`NameError`] for the first that can't be understood, or if both kinds or a striped set are named.
    pub fn all(texts: &[String]) -> Result<Option<Vec<Self>>, NameError> {
        if let Some(target) = texts.iter().find(|text| StripedTarget::is_meant(text)) {
            return Err(NameError::Set { target: target.clone() });
        }
        if let Some((target, scheme)) = texts.iter().find_map(|t| Some((t, unknown_scheme(t)?))) {
            let (target, scheme) = (target.clone(), scheme.to_owned());
            return Err(NameError::UnknownScheme { target, scheme });
        }
        let simulated = texts.iter().find(|text| Self::is_meant(text));
        let Some(simulated) = simulated else { return Ok(None) };
        if let Some(real) = texts.iter().find(|text| !Self::is_meant(text)) {
            return Err(NameError::Mixed { simulated: simulated.clone(), real: real.clone() });
        }
        texts.iter().map(|text| text.parse()).collect::<Result<_, _>>().map(Some)
    }
}

/// The word before a target's colon if it is none that is known. It must not name a new file: whoever mistypes `sim:`
/// does not want one.
fn unknown_scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let is_word = scheme.len() > 1 && scheme.bytes().all(|b| b.is_ascii_alphanumeric());
    let unknown = is_word && !SimTarget::is_meant(text) && !Path::new(text).exists();
    unknown.then_some(scheme)
}

impl FromStr for SimTarget {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let wrong =
            |part: String, wanted| NameError::Part { target: text.to_owned(), part, wanted };
        let rest = text.strip_prefix(PREFIX).ok_or(NameError::Nameless)?;
        let (rest, count) = numbered(rest, '*');
        let (rest, namespace) = numbered(rest, '@');
        let (name, contents) = match rest.rsplit_once(':') {
            Some((name, "empty")) => (name, Contents::Empty),
            Some((name, "full")) => (name, Contents::Full),
            Some((name, "overwritten")) => (name, Contents::Overwritten),
            Some((name, "random")) => (name, Contents::Random),
            _ => (rest, Contents::Empty),
        };
        let count = count.unwrap_or(Some(1)).filter(|count| (1..=COUNT_MAX).contains(count));
        let Some(count) = count else {
            return Err(wrong(
                after(text, '*'),
                "a number of drives from 1 to 1024, as in sim:NAME*6",
            ));
        };
        let namespace = match namespace {
            None => None,
            Some(Some(number)) if number > 0 => Some(number),
            Some(_) => {
                return Err(wrong(
                    after(text, '@'),
                    "namespaces are numbered from 1, as in sim:NAME@1",
                ));
            }
        };
        if name.is_empty() {
            return Err(NameError::Nameless);
        }
        // A file's name may hold anything.
        let file = name.contains('/') || name.ends_with(".toml");
        if !file && let Some(at) = name.find([':', '@', '*']) {
            let wanted = match name.as_bytes()[at] {
                b':' => "the contents at the start are :empty, :full, :overwritten or :random",
                b'@' => "after @ goes a namespace's number, and nothing behind it but *COUNT",
                _ => "after * goes a number of drives, and nothing behind it",
            };
            return Err(wrong(name[at..].to_owned(), wanted));
        }
        let model = if file { Model::File(name.into()) } else { Model::Library(name.to_owned()) };
        Ok(Self { model, contents, namespace, count })
    }
}

/// Splits off a number behind a mark: None if there is none, Some(None) if it is too large.
fn numbered(text: &str, mark: char) -> (&str, Option<Option<u32>>) {
    match text.rsplit_once(mark) {
        Some((rest, digits))
            if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) =>
        {
            (rest, Some(digits.parse().ok()))
        }
        _ => (text, None),
    }
}

/// The last mark of its kind and what stands behind it.
fn after(text: &str, mark: char) -> String {
    text.rfind(mark).map_or_else(String::new, |at| text[at..].to_owned())
}

impl Model {
    /// The kind of drive that a name or a path means; `sim:` may stand before it.
    ///
    /// # Errors
    /// [`NameError`] if it can't be understood.
    pub fn named(text: &str) -> Result<Self, NameError> {
        let name = text.strip_prefix(PREFIX).unwrap_or(text);
        Ok(format!("{PREFIX}{name}").parse::<SimTarget>()?.model)
    }

    /// What it is called behind `sim:`.
    pub fn name(&self) -> String {
        match self {
            Self::Library(name) => name.clone(),
            Self::File(path) => path.display().to_string(),
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.name())
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "empty",
            Self::Full => "full",
            Self::Overwritten => "overwritten",
            Self::Random => "random",
        })
    }
}

impl fmt::Display for SimTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.model.fmt(f)?;
        if self.contents != Contents::Empty {
            write!(f, ":{}", self.contents)?;
        }
        if let Some(namespace) = self.namespace {
            write!(f, "@{namespace}")?;
        }
        if self.count != 1 {
            write!(f, "*{}", self.count)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str) -> SimTarget {
        let model = Model::Library(name.to_owned());
        SimTarget { model, contents: Contents::Empty, namespace: None, count: 1 }
    }

    #[test]
    fn every_part_of_a_target_is_understood_and_said_again() {
        let file = |path: &str| SimTarget { model: Model::File(path.into()), ..library("") };
        for (text, target) in [
            ("sim:ideal", library("ideal")),
            ("sim:ideal:full", SimTarget { contents: Contents::Full, ..library("ideal") }),
            (
                "sim:ideal:overwritten",
                SimTarget { contents: Contents::Overwritten, ..library("ideal") },
            ),
            ("sim:ideal@2", SimTarget { namespace: Some(2), ..library("ideal") }),
            ("sim:ideal*6", SimTarget { count: 6, ..library("ideal") }),
            (
                "sim:intel-d7-p5510-3.84tb:random@1*12",
                SimTarget {
                    contents: Contents::Random,
                    namespace: Some(1),
                    count: 12,
                    ..library("intel-d7-p5510-3.84tb")
                },
            ),
            ("sim:own.toml", file("own.toml")),
            ("sim:/tmp/a:b@c*d", file("/tmp/a:b@c*d")),
            (
                "sim:./own.toml:full*2",
                SimTarget { contents: Contents::Full, count: 2, ..file("./own.toml") },
            ),
        ] {
            assert_eq!(text.parse(), Ok(target.clone()), "{text}");
            assert_eq!(target.to_string(), text);
        }
        assert_eq!("sim:ideal:empty".parse(), Ok(library("ideal")));
    }

    #[test]
    fn what_can_not_be_understood_is_named_with_what_could() {
        for (text, words) in [
            ("sim:", "names no drive"),
            ("sim::full", "names no drive"),
            (
                "sim:ideal:fresh",
                "':fresh' is not valid: the contents at the start are :empty, :full, :overwritten or :random",
            ),
            ("sim:ideal@0", "'@0' is not valid: namespaces are numbered from 1"),
            ("sim:ideal@", "after @ goes a namespace's number"),
            ("sim:ideal@x*2", "after @ goes a namespace's number"),
            ("sim:ideal*0", "a number of drives from 1 to 1024"),
            ("sim:ideal*99999999999", "a number of drives from 1 to 1024"),
            ("sim:ideal*many", "after * goes a number of drives"),
            ("sim:ideal*2@1", "after * goes a number of drives"),
        ] {
            let error = text.parse::<SimTarget>().expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn an_unknown_kind_of_target_is_no_new_file() {
        let all = |text: &str| SimTarget::all(&[text.to_owned()]);
        for text in ["raid10:x", "nvme:0", "SIM:ideal", "Sim:ideal*2"] {
            let error = all(text).unwrap_err().to_string();
            assert!(error.contains("targets") && error.contains(&format!("./{text}")), "{error}");
        }
        for text in ["./raid0:x", "/dev/disk/by-path/pci-0000:01", "a b:c", "dir/x:y", "c:x"] {
            assert_eq!(all(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn real_and_simulated_drives_are_not_mixed() {
        let all = |texts: &[&str]| {
            SimTarget::all(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(all(&["/dev/nvme0n1", "dir/member0"]), Ok(None));
        assert_eq!(all(&["sim:a", "sim:b"]), Ok(Some(vec![library("a"), library("b")])));
        let error = all(&["/dev/nvme0n1", "sim:a"]).unwrap_err().to_string();
        assert!(error.starts_with("sim:a is simulated and /dev/nvme0n1 is not"), "{error}");
    }
}
