//! CRC32C (Castagnoli, polynomial 0x1EDC6F41, reflected), as iSCSI and NVMe use it.

use crc_fast::{CrcAlgorithm, Digest};

/// CRC32C of some bytes.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// CRC32C of bytes that come in pieces.
#[derive(Clone)]
pub struct Running(Digest);

impl Running {
    /// Of nothing yet.
    pub fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }
    /// Goes on with more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    /// The value so far.
    pub fn value(&self) -> u32 {
        self.0.finalize() as u32
    }
}

impl Default for Running {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Running({:08x})", self.value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_catalogue_comes_out() {
        // RFC 3720, B.4 and the CRC catalogue: check value of "123456789".
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        let mut running = Running::new();
        running.update(b"1234");
        running.update(b"56789");
        assert_eq!(running.value(), 0xE306_9283);
    }
}
