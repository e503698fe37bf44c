//! The part of a capture file that is in memory: a buffer that slides over it, as large as the largest
//! block needs and no larger than the limit.

use std::io::{self, Read};

use base::Timestamp;

use crate::clock;
use crate::readable::{Readable, TICK};
use crate::sink::Sink;

/// Bytes read at a time: small enough to stay in a core's second-level cache until it is parsed.
const READ_BYTES: usize = 256 << 10;

/// Whether the bytes asked for are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Have {
    Enough,
    /// The file ends before.
    Short,
    /// The sink wants no more.
    Stopped,
}

pub(super) struct Window {
    input: Input,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Place in the file of `start`.
    offset: u64,
    heard: Timestamp,
}

enum Input {
    Readable(Readable),
    Reader(Box<dyn Read + Send>),
}

impl Window {
    pub(super) fn over_readable(readable: Readable) -> Self {
        Self::new(Input::Readable(readable))
    }

    pub(super) fn over_reader(reader: Box<dyn Read + Send>) -> Self {
        Self::new(Input::Reader(reader))
    }

    fn new(input: Input) -> Self {
        Self {
            input,
            buffer: vec![0; READ_BYTES],
            start: 0,
            end: 0,
            offset: 0,
            heard: Timestamp::MIN,
        }
    }

    /// Whether reading never has to wait for somebody to write.
    pub(super) fn is_plain_file(&self) -> bool {
        matches!(&self.input, Input::Readable(readable) if readable.is_plain_file())
    }

    /// What is there from [`Window::offset`] on.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Gives up the first `count` bytes, which must be there.
    pub(super) fn consume(&mut self, count: usize) {
        assert!(count <= self.end - self.start, "consumed more than was there");
        self.start += count;
        self.offset += count as u64;
    }

    /// Reads until `count` bytes are there. While a pipe is silent the sink hears of the time.
    #[inline]
    pub(super) fn fill(&mut self, count: usize, sink: &mut impl Sink) -> io::Result<Have> {
        if self.end - self.start >= count { Ok(Have::Enough) } else { self.read(count, sink) }
    }

    #[cold]
    fn read(&mut self, count: usize, sink: &mut impl Sink) -> io::Result<Have> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let wanted = count.max(READ_BYTES);
        // Grown for one large block, it shrinks again behind it.
        self.buffer.resize(wanted, 0);
        self.buffer.shrink_to(wanted);
        while self.end < count {
            let space = &mut self.buffer[self.end..];
            let got = match &mut self.input {
                Input::Readable(readable) => readable.read(space, TICK)?,
                Input::Reader(reader) => match reader.read(space) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
                    other => Some(other?),
                },
            };
            match got {
                Some(0) => return Ok(Have::Short),
                Some(got) => self.end += got,
                None => {}
            }
            if self.end < count {
                let now = clock::coarse();
                if (now.since(self.heard) >= TICK || now < self.heard) && sink.tick(now).is_err() {
                    return Ok(Have::Stopped);
                }
                self.heard = now;
            }
        }
        Ok(Have::Enough)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    /// Gives a few bytes at a time, as a pipe may.
    struct Dribble(u8);

    impl Read for Dribble {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = buffer.len().min(3).min(usize::from(u8::MAX - self.0));
            for byte in &mut buffer[..count] {
                *byte = self.0;
                self.0 += 1;
            }
            Ok(count)
        }
    }

    #[test]
    fn the_window_slides_over_everything_once() {
        let mut window = Window::over_reader(Box::new(Dribble(0)));
        let mut sink = Recording::default();
        for at in 0..36u8 {
            assert_eq!(window.fill(7, &mut sink).unwrap(), Have::Enough);
            assert_eq!(window.bytes()[..7], std::array::from_fn::<u8, 7, _>(|i| at * 7 + i as u8));
            window.consume(7);
        }
        assert_eq!(window.fill(7, &mut sink).unwrap(), Have::Short);
        assert_eq!((window.bytes().len(), window.offset()), (3, 252));
    }
}
