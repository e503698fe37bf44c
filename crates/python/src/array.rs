//! An array: its takes, ledgers, flows and packets.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use longtake::array::columns::{Columns, PACKETS_MAX, Payload};
use longtake::array::{FlowOptions, OutputFormat};
use longtake::{ByteSize, Selection, json};
use pyo3::exceptions::{PyFileExistsError, PyValueError};
use pyo3::prelude::*;
use serde_json::Value;
use target::output::{Outputs, Readers};

use crate::batches::Request;
use crate::packets::Packets;
use crate::{failed, values};

/// Buffers for chunks that are read ahead: as many as are used.
const READ_MEMORY: ByteSize = ByteSize(40 << 20);

/// An array that was opened for reading.
#[pyclass(frozen, module = "longtake._longtake")]
pub struct Array {
    name: String,
    degraded: bool,
    opened: Mutex<longtake::Array>,
}

/// Opens an array.
///
/// # Errors
/// As the library's.
#[pyfunction]
pub fn open(py: Python<'_>, name: String, degraded: bool) -> PyResult<Array> {
    let options = longtake::Array::options().degraded(degraded).memory(READ_MEMORY);
    let opened = py.detach(|| options.open(&name));
    Ok(Array { opened: Mutex::new(opened.map_err(failed)?), name, degraded })
}

impl Array {
    fn opened(&self) -> MutexGuard<'_, longtake::Array> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the array as it is now, without Python's lock.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        ask: impl FnOnce(&mut longtake::Array) -> longtake::Result<Value> + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        let answer = py.detach(|| {
            let mut array = self.opened();
            array.refresh()?;
            ask(&mut array)
        });
        values::python(py, &answer.map_err(failed)?)
    }
}

/// Which packets are read, as Python names it.
#[derive(FromPyObject)]
struct Chosen<'py> {
    #[pyo3(item)]
    since: Option<Bound<'py, PyAny>>,
    #[pyo3(item)]
    until: Option<Bound<'py, PyAny>>,
    #[pyo3(item)]
    filter: String,
    #[pyo3(item)]
    take: Option<String>,
    #[pyo3(item)]
    community_ids: Vec<String>,
}

impl Chosen<'_> {
    fn selection(&self) -> PyResult<Selection> {
        let ids = self.community_ids.iter().map(|id| values::parsed("community_ids", id));
        Ok(Selection {
            since: values::time("since", self.since.as_ref())?,
            until: values::time("until", self.until.as_ref())?,
            filter: self.filter.clone(),
            take: self.take.clone(),
            community_ids: ids.collect::<PyResult<_>>()?,
            ..Selection::default()
        })
    }
}

#[pymethods]
impl Array {
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, |array| Ok(json::described(&array.describe()?)))
    }

    fn takes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, |array| {
            let takes = array.takes()?;
            let rejections = array.rejections(&takes)?;
            Ok(takes.iter().zip(rejections).map(|(take, of)| json::take(take, of)).collect())
        })
    }

    fn ledger<'py>(&self, py: Python<'py>, take: String) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, |array| {
            let take = array.ledger(&take)?;
            let rejections = array.rejections(std::slice::from_ref(&take))?[0];
            Ok(json::take(&take, rejections))
        })
    }

    fn flows<'py>(
        &self,
        py: Python<'py>,
        chosen: Chosen<'py>,
        group: &str,
        by: &str,
        top: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let selection = chosen.selection()?;
        let group = values::parsed("group", group)?;
        let order = values::parsed("by", by)?;
        let options = FlowOptions { group, order, top, ..FlowOptions::default() };
        self.ask(py, move |array| {
            let selected = array.select(&selection)?;
            Ok(json::flows(&selected.flows(&options, |_| ControlFlow::Continue(()))?, true))
        })
    }

    fn packets(
        &self,
        chosen: Chosen<'_>,
        payload: &Bound<'_, PyAny>,
        flow: bool,
        batch_size: i64,
    ) -> PyResult<Packets> {
        let Some(batch_size) =
            usize::try_from(batch_size).ok().filter(|n| (1..=PACKETS_MAX).contains(n))
        else {
            let text = format!("batch_size: give 1 to {PACKETS_MAX} packets, not {batch_size}");
            return Err(PyValueError::new_err(text));
        };
        let payload = match payload.extract::<bool>() {
            Ok(true) => Payload::Binary,
            Ok(false) => Payload::Absent,
            Err(_) if payload.extract::<String>().is_ok_and(|text| text == "view") => Payload::View,
            Err(_) => return Err(PyValueError::new_err("payload: give True, False or 'view'")),
        };
        let request = Request {
            array: self.name.clone(),
            degraded: self.degraded,
            seen: self.opened().seen(),
            selection: chosen.selection()?,
            payload: false,
            batch_size,
        };
        Ok(Packets::new(request, Columns { payload, flow, dictionary: true }))
    }

    /// Writes packets to a file, in the format that its name says.
    fn extract_to<'py>(
        &self,
        py: Python<'py>,
        chosen: Chosen<'py>,
        path: PathBuf,
        format: Option<String>,
        flow: bool,
        overwrite: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let selection = chosen.selection()?;
        if path.exists() && !overwrite {
            let text =
                format!("{} is there already: pass overwrite=True to replace it", path.display());
            return Err(PyFileExistsError::new_err(text));
        }
        let format = match format {
            Some(name) => name.parse().map(|format: OutputFormat| format.for_file(&path)),
            None => OutputFormat::of(&path),
        };
        let format = format.and_then(|format| format.with_flow(flow));
        let format = format.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let members = target::array::resolve(&self.name).map_err(failed)?;
        let outputs = Outputs::new(overwrite).reads(&members);
        let answer = py.detach(|| -> Result<Value, PyErr> {
            let mut array = self.opened();
            array.refresh().map_err(failed)?;
            let selected = array.select(&selection).map_err(failed)?;
            let file = outputs.create(&path, Readers::Owner).map_err(failed)?;
            let mut file = file.directly().map_err(failed)?;
            let written = selected.write_to(format, &mut file, |_| ControlFlow::Continue(()));
            let extracted = written.map_err(failed)?;
            file.finish().map_err(failed)?;
            Ok(json::extracted(&extracted))
        });
        values::python(py, &answer?)
    }
}
