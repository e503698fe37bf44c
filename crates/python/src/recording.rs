//! A recording in a thread of its own.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use longtake::recording::{FlowIndexing, LinkType, NewArray, Placement, Producer, WhenFull};
use longtake::{Options, Timestamp, json};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;
use serde_json::Value;

use crate::{failed, values};

/// A recording that has started.
#[pyclass(frozen, module = "longtake._longtake")]
pub struct Recording {
    state: Mutex<State>,
    source: String,
    /// What Python writes into, if that is the source.
    producer: Option<Producer>,
    /// Events that wait to be taken. Locked before the state, where both are.
    events: Mutex<VecDeque<Value>>,
}

enum State {
    Running(longtake::Recording),
    /// It is over, and its account is being made.
    Ending,
    /// With its account.
    Over(Value),
    /// All drives failed at once.
    Failed(String),
}

/// Starts a recording with options by their names. Without a source, Python writes the packets, which are of this link type.
///
/// # Errors
/// If an option is unknown or wrong, or the recording can't start, in which case nothing is left behind.
#[pyfunction]
pub fn record(
    py: Python<'_>,
    source: Option<String>,
    target: &str,
    options: &Bound<'_, PyDict>,
    link_type: u16,
) -> PyResult<Recording> {
    let options = chosen(options)?;
    let producer = source.is_none().then(|| Producer::new("python", LinkType(link_type)));
    let builder = match &producer {
        Some(producer) => longtake::Recording::of_producer(producer, target),
        None => longtake::Recording::builder(source.as_deref().unwrap_or_default(), target),
    };
    let recording = py.detach(|| builder.options(options).start()).map_err(failed)?;
    let source = source.unwrap_or_else(|| "program:python".to_owned());
    let (state, events) = (Mutex::new(State::Running(recording)), Mutex::default());
    Ok(Recording { state, source, producer, events })
}

/// The library's options.
pub fn chosen(named: &Bound<'_, PyDict>) -> PyResult<Options> {
    let mut options = Options::default();
    let mut new = NewArray::default();
    for (name, value) in named.iter() {
        let name: String = name.extract()?;
        let given = Some(&value);
        let wrong = |error: PyErr| PyTypeError::new_err(format!("{name}: {error}"));
        match name.as_str() {
            "duration" => options.duration = values::duration(&name, given)?,
            "until_bytes" => options.until_bytes = values::size(&name, given)?,
            "filter" => options.filter = value.extract().map_err(wrong)?,
            "snap_length" => options.snap_bytes = value.extract().map_err(wrong)?,
            "slice" => options.slice = Some(values::parsed(&name, &value.extract::<String>()?)?),
            "cut" => options.cut = values::size(&name, given)?,
            "when_full" => options.when_full = when_full(&value.extract::<String>()?)?,
            "memory" => options.memory = size(&name, &value)?,
            "kernel_buffer" => options.kernel_buffer = size(&name, &value)?,
            "index" => options.index = index(&name, &value)?,
            "placement" => options.placement = placement(&value.extract::<String>()?)?,
            "depth" => options.depth = value.extract().map_err(wrong)?,
            "flush_interval" => {
                if let Some(interval) = values::duration(&name, given)? {
                    options.flush_interval = interval;
                }
            }
            "trim_ahead" => options.trim_ahead = value.extract().map_err(wrong)?,
            "uplink" => options.uplink = Some(values::parsed(&name, &value.extract::<String>()?)?),
            "members" => new.members = value.extract().map_err(wrong)?,
            "member_size" => new.member_size = values::size(&name, given)?,
            "segment" => new.segment = values::size(&name, given)?,
            "chunk" => new.chunk = values::size(&name, given)?,
            "parity" => new.parity = Some(value.extract().map_err(wrong)?),
            _ => return Err(PyTypeError::new_err(format!("there is no option '{name}'"))),
        }
    }
    options.new = new;
    Ok(options)
}

fn size(name: &str, value: &Bound<'_, PyAny>) -> PyResult<longtake::ByteSize> {
    values::size(name, Some(value))?
        .ok_or_else(|| PyTypeError::new_err(format!("{name}: expected a size")))
}

fn index(name: &str, value: &Bound<'_, PyAny>) -> PyResult<FlowIndexing> {
    match value.is_none() {
        true => Ok(FlowIndexing::None),
        false => values::parsed(name, &value.extract::<String>()?),
    }
}

fn when_full(text: &str) -> PyResult<WhenFull> {
    match text {
        "stop" => Ok(WhenFull::Stop),
        "wrap" => Ok(WhenFull::Wrap),
        _ => Err(PyValueError::new_err(format!("when_full: give 'stop' or 'wrap', not '{text}'"))),
    }
}

fn placement(text: &str) -> PyResult<Placement> {
    match text {
        "adaptive" => Ok(Placement::Adaptive),
        "stripe" => Ok(Placement::Stripe),
        _ => {
            let text = format!("placement: give 'adaptive' or 'stripe', not '{text}'");
            Err(PyValueError::new_err(text))
        }
    }
}

impl Recording {
    fn with<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl Recording {
    /// Where it is; None once it is over.
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let status = self.with(|state| match state {
            State::Running(recording) => json::status(recording.started(), &recording.snapshot()),
            State::Ending | State::Over(_) | State::Failed(_) => Value::Null,
        });
        values::python(py, &status)
    }

    /// What is recorded, and where.
    fn started<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let started = self.with(|state| match state {
            State::Running(recording) => json::started(recording.started(), &self.source),
            State::Ending | State::Over(_) | State::Failed(_) => Value::Null,
        });
        values::python(py, &started)
    }

    /// The next thing that has happened, if any has.
    fn next_event<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.is_empty() {
            self.with(|state| {
                if let State::Running(recording) = state {
                    events.extend(so_far(recording));
                }
            });
        }
        values::python(py, &events.pop_front().unwrap_or_default())
    }

    /// Whether it has ended by itself, or was waited for.
    fn is_over(&self) -> bool {
        self.with(|state| match state {
            State::Running(recording) => recording.is_over(),
            State::Ending => false,
            State::Over(_) | State::Failed(_) => true,
        })
    }

    /// Writes a packet or a block into it.
    fn write(&self, py: Python<'_>, data: PyBackedBytes, time_ns: Option<u64>) -> PyResult<()> {
        let Some(producer) = &self.producer else {
            return Err(PyValueError::new_err(format!(
                "this recording takes its packets from {}: to write into one, record from None",
                self.source
            )));
        };
        py.detach(|| producer.write(&data, time_ns.map(Timestamp::from_nanos))).map_err(failed)
    }

    /// Asks it to end.
    fn stop(&self) {
        self.with(|state| {
            if let State::Running(recording) = state {
                recording.stop();
            }
        });
    }

    /// The account if it is over, and None otherwise.
    fn account<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Some(recording) = self.taken() {
            // The state is not locked here: a thread that waits for it may hold Python's lock.
            let over = match py.detach(|| recording.wait()) {
                Ok(account) => State::Over(json::recorded(&account)),
                Err(error) => State::Failed(format!("{error:#}")),
            };
            *self.state.lock().unwrap_or_else(PoisonError::into_inner) = over;
        }
        let account = self.with(|state| match state {
            State::Over(account) => Ok(Some(account.clone())),
            State::Failed(error) => Err(failed(error)),
            State::Running(_) | State::Ending => Ok(None),
        })?;
        account.map(|account| values::python(py, &account)).transpose()
    }
}

/// What a recording has told since it was last asked.
fn so_far(recording: &longtake::Recording) -> impl Iterator<Item = Value> {
    recording.updates_so_far().filter_map(|update| json::update(&update, recording.started()))
}

impl Recording {
    /// Takes the recording once it is over; None before, and for all later calls. Its events stay.
    fn taken(&self) -> Option<longtake::Recording> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Ending) {
            State::Running(recording) if recording.is_over() => {
                events.extend(so_far(&recording));
                Some(recording)
            }
            other => {
                *state = other;
                None
            }
        }
    }
}
