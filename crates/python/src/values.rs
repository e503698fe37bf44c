//! Python's values as the library's, and JSON as Python's dictionaries.

use std::fmt::Display;
use std::str::FromStr;

use longtake::instant::When;
use longtake::{ByteSize, Duration, Timestamp};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde_json::Value;

/// A result: its values as JSON, and how it looks in a notebook.
pub type Shown = (String, String);

/// A value as dictionaries, lists, texts and numbers.
pub fn python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (value.to_string(),))
}

/// Dictionaries, lists, texts and numbers as a value.
pub fn json(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let text: String = value.py().import("json")?.call_method1("dumps", (value,))?.extract()?;
    serde_json::from_str(&text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A text in the library's language, of the option with this name.
pub fn parsed<T: FromStr<Err: Display>>(option: &str, text: &str) -> PyResult<T> {
    text.parse().map_err(|error| PyValueError::new_err(format!("{option}: {error}")))
}

/// A time: nanoseconds since 1970 as an integer, a datetime with a time zone, or a text as for `longtake extract --since`.
pub fn time(option: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Timestamp>> {
    let Some(value) = value else { return Ok(None) };
    if let Ok(nanos) = value.extract::<u64>() {
        return Ok(Some(Timestamp::from_nanos(nanos)));
    }
    if let Ok(text) = value.extract::<String>() {
        let when: When = parsed(option, &text)?;
        return Ok(Some(when.at(longtake::instant::now())));
    }
    if !value.hasattr("tzinfo")? {
        return Err(PyTypeError::new_err(format!(
            "{option}: expected nanoseconds, a datetime or a text such as '-10m', not {value:?}"
        )));
    }
    if value.getattr("tzinfo")?.is_none() {
        return Err(PyValueError::new_err(format!(
            "{option}: the datetime has no time zone: give it one, for example timezone.utc"
        )));
    }
    // A float of seconds would lose microseconds.
    let epoch = value.py().import("datetime")?.getattr("datetime")?.call_method1(
        "fromtimestamp",
        (0, value.py().import("datetime")?.getattr("timezone")?.getattr("utc")?),
    )?;
    let since = value.call_method1("__sub__", (epoch,))?;
    let part = |name: &str| since.getattr(name)?.extract::<i64>();
    let micros = (part("days")? * 86_400 + part("seconds")?) * 1_000_000 + part("microseconds")?;
    let nanos = u64::try_from(micros).ok().and_then(|micros| micros.checked_mul(1000));
    let nanos = nanos.ok_or_else(|| {
        PyValueError::new_err(format!("{option}: {value:?} lies before 1970 or after 2554"))
    })?;
    Ok(Some(Timestamp::from_nanos(nanos)))
}

/// A duration: seconds as a number, a timedelta, or a text such as `10s`.
pub fn duration(option: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Duration>> {
    let Some(value) = value else { return Ok(None) };
    if let Ok(text) = value.extract::<String>() {
        return parsed(option, &text).map(Some);
    }
    let seconds = match value.hasattr("total_seconds")? {
        true => value.call_method0("total_seconds")?.extract::<f64>()?,
        false => value.extract::<f64>()?,
    };
    if !(0.0..=1e9).contains(&seconds) {
        return Err(PyValueError::new_err(format!("{option}: {seconds} s is no duration")));
    }
    Ok(Some(Duration::from_secs_f64(seconds)))
}

/// A size: bytes as an integer, or a text such as `2GiB`.
pub fn size(option: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<ByteSize>> {
    let Some(value) = value else { return Ok(None) };
    match value.extract::<u64>() {
        Ok(bytes) => Ok(Some(ByteSize(bytes))),
        Err(_) => parsed(option, &value.extract::<String>()?).map(Some),
    }
}
