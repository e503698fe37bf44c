//! Selected packets, read as often as they are asked for.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use longtake::array::columns::Columns;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use serde_json::Value;

use crate::arrow_stream::Stream;
use crate::batches::{self, Account, Batches, Request};
use crate::{failed, values};

/// Packets of an array, which are read when they are iterated.
#[pyclass(frozen, module = "longtake._longtake")]
pub struct Packets {
    request: Request,
    columns: Columns,
    account: Account,
}

impl Packets {
    /// Those that a request selects.
    pub fn new(request: Request, columns: Columns) -> Self {
        Self { request, columns, account: Arc::new(Mutex::new(Value::Null)) }
    }

    fn read(&self, payload: bool) -> PyResult<Batches> {
        let request = Request { payload, ..self.request.clone() };
        batches::read(request, Arc::clone(&self.account)).map_err(failed)
    }
}

#[pymethods]
impl Packets {
    /// The packets as an Arrow stream, for pyarrow, polars, duckdb and pandas.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Whoever asks for another schema converts what it gets, as the protocol allows.
        let _ = requested_schema;
        let stream = Stream::new(self.read(false)?, self.columns);
        let stream = FFI_ArrowArrayStream::new(Box::new(stream));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Batches: times in nanoseconds, ends of the packets in the bytes, and the bytes. Times and ends are 64-bit numbers.
    fn batches(&self, payload: bool) -> PyResult<PacketIterator> {
        Ok(PacketIterator { batches: self.read(payload)? })
    }

    /// What came of reading the packets last, once all were read.
    #[getter]
    fn account<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let account = self.account.lock().unwrap_or_else(PoisonError::into_inner).clone();
        values::python(py, &account)
    }
}

/// Batches of packets, in order.
#[pyclass(frozen, module = "longtake._longtake")]
pub struct PacketIterator {
    batches: Batches,
}

type Parts<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pymethods]
impl PacketIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Parts<'py>>> {
        let Ok(next) = py.detach(|| self.batches.recv()) else { return Ok(None) };
        let batch = next.map_err(failed)?;
        let numbers = |numbers: &[u64]| {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
            PyBytes::new(py, &bytes)
        };
        Ok(Some((numbers(&batch.times), numbers(&batch.ends), PyBytes::new(py, &batch.data))))
    }
}
