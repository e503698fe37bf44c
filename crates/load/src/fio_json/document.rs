//! Finding fio's JSON in its output, and taking values out of it: what is not there is named by its path.

use std::fmt;

use serde_json::Value;

/// Why fio's output could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FioError {
    /// No line begins a JSON object.
    NoJson,
    /// The JSON ends in the middle.
    Truncated {
        /// The text's last line.
        line: usize,
    },
    /// It is not JSON.
    Syntax {
        /// Where, in the text.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// It is not fio's.
    Foreign,
    /// fio's JSON lacks a value.
    Missing {
        /// Which, as a path: `jobs[0].read.clat_ns`.
        path: String,
    },
    /// A value is of another kind than fio's.
    Kind {
        /// Which, as a path.
        path: String,
        /// What it should be.
        wanted: &'static str,
    },
}

impl fmt::Display for FioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoJson => f.write_str(
                "fio's output holds no JSON: run fio with --output-format=json+ (or json, which has no histograms)",
            ),
            Self::Truncated { line } => write!(
                f,
                "fio's JSON ends in the middle, at line {line}: fio was ended before its time or the file was not copied whole; run it again"
            ),
            Self::Syntax { line, reason } => write!(
                f,
                "fio's output is not JSON at line {line} ({reason}): write it to a separate file with --output=FILE"
            ),
            Self::Foreign => f.write_str(
                "this JSON is not fio's (it has no \"fio version\"): give the output of fio --output-format=json+",
            ),
            Self::Missing { path } if path.ends_with("_ns") => write!(
                f,
                "fio's JSON has no {path}: it was written by fio 2 or older; use fio 3.0 or later"
            ),
            Self::Missing { path } if path.starts_with("jobs") && !path.contains('.') => write!(
                f,
                "fio's JSON has no {path}: no job ran, or it was run as a client of others; run fio on the machine itself with at least one job"
            ),
            Self::Missing { path } => write!(
                f,
                "fio's JSON has no {path}: run fio 3.0 or later again with --output-format=json+"
            ),
            Self::Kind { path, wanted } => write!(
                f,
                "{path} in fio's JSON is not {wanted}: the file was changed or comes from another program; run fio again with --output-format=json+"
            ),
        }
    }
}

impl std::error::Error for FioError {}

impl FioError {
    pub(super) fn missing(path: &str) -> Self {
        Self::Missing { path: path.to_owned() }
    }
}

/// The last whole document in fio's output. Each begins with a line of `{`, and warnings may stand around them.
pub(super) fn last_document(text: &str) -> Result<Value, FioError> {
    let mut last: Option<Value> = None;
    let mut rest = text;
    while let Some(start) = start_of_object(rest) {
        let document = &rest[start..];
        let line_before = text[..text.len() - document.len()].lines().count();
        let mut values = serde_json::Deserializer::from_str(document).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                rest = &document[values.byte_offset()..];
                last = Some(value);
            }
            Some(Err(error)) if error.is_eof() => {
                return last.ok_or_else(|| FioError::Truncated { line: text.lines().count() });
            }
            Some(Err(error)) => {
                return Err(FioError::Syntax {
                    line: line_before + error.line(),
                    reason: error.to_string(),
                });
            }
            None => break,
        }
    }
    let last = last.ok_or(FioError::NoJson)?;
    if last.get("fio version").is_none() {
        return Err(FioError::Foreign);
    }
    Ok(last)
}

/// Where the first line begins that starts an object, in bytes.
fn start_of_object(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        if line[indent..].starts_with('{') {
            return Some(at + indent);
        }
        at += line.len();
    }
    None
}

/// A value and the path to it.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> Node<'a> {
    pub fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    pub fn get(&self, name: &str) -> Result<Self, FioError> {
        self.opt(name).ok_or_else(|| FioError::Missing { path: self.path_of(name) })
    }

    pub fn opt(&self, name: &str) -> Option<Self> {
        Some(Self { value: self.value.get(name)?, path: self.path_of(name) })
    }

    pub fn u64(&self) -> Result<u64, FioError> {
        self.value.as_u64().ok_or_else(|| self.kind("a whole number"))
    }

    pub fn f64(&self) -> Result<f64, FioError> {
        self.value.as_f64().ok_or_else(|| self.kind("a number"))
    }

    pub fn str(&self) -> Result<&'a str, FioError> {
        self.value.as_str().ok_or_else(|| self.kind("text"))
    }

    pub fn array(&self) -> Result<Vec<Self>, FioError> {
        let values = self.value.as_array().ok_or_else(|| self.kind("a list"))?;
        let element = |(index, value)| Self { value, path: format!("{}[{index}]", self.path) };
        Ok(values.iter().enumerate().map(element).collect())
    }

    /// An object's names and values; none if it is something else.
    pub fn entries(&self) -> Vec<(&'a str, Self)> {
        let Some(object) = self.value.as_object() else { return Vec::new() };
        object
            .iter()
            .map(|(name, value)| (name.as_str(), Self { value, path: self.path_of(name) }))
            .collect()
    }

    pub fn kind(&self, wanted: &'static str) -> FioError {
        FioError::Kind { path: self.path.clone(), wanted }
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}
