//! Longtake as a Python package: arrays are opened, listed and read, recordings are made and simulated by the library `longtake`, drives
//! are measured and fitted by `twin`, and planned with. Results are shown in notebooks as `report` draws them.
//!
//! Whatever waits for drives, packets or other threads does so without Python's lock. Packets cross in batches: as Arrow streams, or as
//! one buffer of bytes with the places of packets in it, from which Python takes views.

mod array;
mod arrow_stream;
mod batches;
mod measuring;
mod packets;
mod planning;
mod recording;
mod values;
mod watch;

use pyo3::prelude::*;

pyo3::create_exception!(
    longtake,
    LongtakeError,
    pyo3::exceptions::PyException,
    "Something could not be done. The message says what, why, and often what to do."
);

/// The extension module; `longtake/__init__.py` is what users import.
#[pymodule]
fn _longtake(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("LongtakeError", module.py().get_type::<LongtakeError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<array::Array>()?;
    module.add_class::<packets::Packets>()?;
    module.add_class::<packets::PacketIterator>()?;
    module.add_class::<recording::Recording>()?;
    module.add_function(wrap_pyfunction!(array::open, module)?)?;
    module.add_function(wrap_pyfunction!(recording::record, module)?)?;
    module.add_function(wrap_pyfunction!(planning::plan, module)?)?;
    module.add_function(wrap_pyfunction!(planning::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(planning::sweep_job, module)?)?;
    module.add_function(wrap_pyfunction!(measuring::measure, module)?)?;
    module.add_function(wrap_pyfunction!(measuring::fit, module)?)?;
    Ok(())
}

/// What Python sees of a failure: its whole chain of causes.
fn failed(error: impl std::fmt::Display) -> PyErr {
    LongtakeError::new_err(format!("{error:#}"))
}
