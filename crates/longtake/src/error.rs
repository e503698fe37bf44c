//! Why something could not be done.

use std::error::Error as StdError;
use std::fmt;

/// Why something could not be done: what was attempted, and by [`source`](StdError::source) what stood in the way.
#[derive(Debug)]
pub struct Error(anyhow::Error);

/// What the library's calls come to.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() { write!(f, "{:#}", self.0) } else { write!(f, "{}", self.0) }
    }
}

impl Error {
    /// The error of this type that it is, or that stood in its way, if there is one.
    pub fn downcast_ref<E: StdError + Send + Sync + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.chain().nth(1)
    }
}

impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Self {
        Self(error)
    }
}
