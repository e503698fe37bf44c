//! Work that Python waits for: a function of the caller's hears how far it is, and Ctrl-C ends it.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// How often Python is asked.
const EVERY: Duration = Duration::from_millis(100);

/// Watches work that is done without Python's lock.
pub struct Watch {
    progress: Option<Py<PyAny>>,
    asked: Instant,
    error: Option<PyErr>,
}

impl Watch {
    /// `progress` is called with the share that is done, 0 to 1.
    pub fn new(progress: Option<Py<PyAny>>) -> Self {
        Self { progress, asked: Instant::now(), error: None }
    }

    /// Whether the work is to go on, of which this share is done.
    pub fn at(&mut self, share: f64) -> ControlFlow<()> {
        if self.error.is_none() && self.asked.elapsed() >= EVERY {
            self.asked = Instant::now();
            self.error = Python::attach(|py| {
                py.check_signals()?;
                self.progress.as_ref().map_or(Ok(()), |heard| heard.call1(py, (share,)).map(drop))
            })
            .err();
        }
        if self.error.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// What the work has come to, or what Python raised meanwhile.
    ///
    /// # Errors
    /// The exception that ended the work, before the failure that it led to.
    pub fn finish<T>(self, result: PyResult<T>) -> PyResult<T> {
        match self.error {
            Some(error) => Err(error),
            None => result,
        }
    }
}
