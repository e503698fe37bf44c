//! Any bytes as a capture file: the reader never panics, and what it delivers is well formed, whatever
//! the file says.

use std::io::Cursor;

use base::Timestamp;
use format::{Interface, Packet};
use source::capture_file::CaptureFile;
use source::{Ended, Loss, Sink};

/// Holds the reader to what a sink may rely on.
#[derive(Default)]
struct Strict {
    interfaces: u32,
    packets: u64,
    bytes: u64,
    lost: u64,
}

impl Sink for Strict {
    fn interface(&mut self, _: &Interface) -> u32 {
        self.interfaces += 1;
        self.interfaces - 1
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        assert!(packet.interface < self.interfaces, "undeclared interface");
        assert!(packet.original_length as usize >= packet.data.len(), "shorter than its bytes");
        let mut options = packet.options;
        while let Some((head, rest)) = options.split_first_chunk::<4>() {
            let code = u16::from_le_bytes([head[0], head[1]]);
            let length = usize::from(u16::from_le_bytes([head[2], head[3]]));
            assert!(code != 0 && code != 4, "an end mark or a drop count");
            options = rest.get(length.next_multiple_of(4)..).expect("an option that is cut off");
        }
        assert!(options.is_empty(), "bytes behind the last option");
        self.packets += 1;
        self.bytes += packet.data.len() as u64;
        Ok(())
    }

    fn lost(&mut self, interface: u32, _: Loss, packets: u64, _: u64) {
        assert!(interface < self.interfaces && packets > 0);
        self.lost = self.lost.saturating_add(packets);
    }

    fn tick(&mut self, _: Timestamp) -> Result<(), Ended> {
        Ok(())
    }
}

/// Reads them.
pub fn run(bytes: &[u8]) {
    let mut sink = Strict::default();
    let file = CaptureFile::from_reader("fuzz.pcapng", Cursor::new(bytes.to_vec()));
    match file.run(&mut sink) {
        Ok(summary) => {
            assert!(summary.complete);
            assert_eq!(summary.packets, sink.packets);
            assert_eq!(summary.bytes, sink.bytes);
            assert_eq!(summary.lost_originally, sink.lost);
            assert_eq!(summary.interfaces, u64::from(sink.interfaces));
        }
        Err(error) => assert!(error.to_string().contains("fuzz.pcapng")),
    }
}
