//! How fast a stream asks: fio's rates are for each job and each direction, and it waits in other ways than we do.

use crate::quantity::Pace;
use crate::workload::{Arrival, Stream};

use super::{JobFile, Verbs};

/// Commands a second below which a fraction matters and bytes a second say it better.
const WHOLE_FROM: f64 = 100.0;

impl JobFile {
    /// Rate, arrival and deadline.
    pub(super) fn pace(&mut self, stream: &Stream, verbs: &Verbs) {
        if let Some(deadline) = stream.deadline {
            self.cannot(&format!(
                "counting answers later than {deadline} (fio's max_latency ends the job at the first)"
            ));
        }
        let Some(pace) = stream.rate else { return };
        let mean = stream.block.mean();
        let commands = match pace {
            Pace::Bytes(bytes) => bytes / mean,
            Pace::Commands(commands) => commands,
        } * verbs.share();
        match stream.arrival {
            Arrival::Bursts(count) => return self.bursts(count, commands),
            // fio divides by whole commands a second, and less than one ends it with a signal.
            Arrival::Poisson if self.slowest(verbs, commands) < 1.0 => {
                self.cannot("random distances at less than one command a second: these are equal");
                self.bytes(stream, verbs, commands * mean);
            }
            Arrival::Poisson => {
                self.iops(verbs, commands);
                self.set("rate_process", "poisson");
            }
            Arrival::Constant => match pace {
                Pace::Bytes(bytes) => self.bytes(stream, verbs, bytes * verbs.share()),
                Pace::Commands(_)
                    if is_whole(verbs, commands) || self.slowest(verbs, commands) >= WHOLE_FROM =>
                {
                    self.iops(verbs, commands);
                }
                Pace::Commands(_) => self.bytes(stream, verbs, commands * mean),
            },
        }
        self.cannot(
            "latency from the intended start (fio counts from when it starts a command; io_submit_mode=offload does not go with io_uring)",
        );
        if stream.jobs > 1 {
            self.cannot("jobs spread over the first distance: these all start at once");
        }
    }

    /// The rate of the rarer direction in commands a second.
    fn slowest(&self, verbs: &Verbs, commands: f64) -> f64 {
        by_direction(verbs, commands).into_iter().fold(f64::INFINITY, f64::min)
    }

    fn iops(&mut self, verbs: &Verbs, commands: f64) {
        let rates: Vec<String> = by_direction(verbs, commands)
            .iter()
            .map(|rate| rate.round().clamp(1.0, f64::from(u32::MAX)).to_string())
            .collect();
        self.set("rate_iops", rates.join(","));
        if !is_whole(verbs, commands) {
            self.cannot(&format!("{commands} commands a second (fio takes whole numbers)"));
        }
    }

    fn bytes(&mut self, stream: &Stream, verbs: &Verbs, bytes: f64) {
        let rates: Vec<String> = by_direction(verbs, bytes)
            .iter()
            .map(|rate| rate.round().clamp(1.0, i64::MAX as f64).to_string())
            .collect();
        self.set("rate", rates.join(","));
        if stream.block.0.len() > 1 && matches!(stream.rate, Some(Pace::Commands(_))) {
            self.cannot("fractions of a command a second with several block sizes: these are bytes a second");
        }
    }

    fn bursts(&mut self, count: u32, commands: f64) {
        let wait_us = (f64::from(count) / commands * 1e6).round();
        self.set("thinktime", format!("{}us", wait_us.clamp(1.0, f64::from(u32::MAX))));
        self.set("thinktime_blocks", count);
        self.set("thinktime_blocks_type", "issue");
        self.cannot("bursts at fixed instants (fio waits after each burst, so its own time is added to the distance)");
        if wait_us > f64::from(u32::MAX) {
            self.cannot(&format!("{wait_us} microseconds between bursts (fio counts in 32 bits)"));
        }
    }
}

/// A rate's parts for reads and writes, as fio lists them; one part says all directions.
fn by_direction(verbs: &Verbs, rate: f64) -> Vec<f64> {
    if verbs.read == 0 || verbs.write == 0 {
        return vec![rate];
    }
    let weight = verbs.weight() as f64;
    [verbs.read, verbs.write].map(|part| rate * f64::from(part) / weight).to_vec()
}

fn is_whole(verbs: &Verbs, commands: f64) -> bool {
    by_direction(verbs, commands)
        .iter()
        .all(|rate| (rate - rate.round()).abs() < 1e-9 * rate && *rate > 0.5)
}

#[cfg(test)]
mod tests {
    use crate::Workload;
    use crate::fio_job::job;

    fn text(stream: &str) -> String {
        let workload =
            Workload::from_toml(&format!("[[stream]]\nblock = '4KiB'\n{stream}")).unwrap();
        job(&workload, &["f".to_owned()])
    }

    #[test]
    fn a_rate_is_divided_among_the_directions() {
        for (stream, line) in [
            ("read = 7\nwrite = 3\nrate = '1000/s'", "rate_iops=700,300\n"),
            ("read = 3\nwrite = 1\nrate = '4MB/s'", "rate=3000000,1000000\n"),
            ("write = 1\nrate = '4MB/s'", "rate=4000000\n"),
            ("read = 1\nrate = '0.5/s'", "rate=2048\n"),
            ("read = 1\ntrim = 1\nrate = '50/s'", "rate_iops=25\n"),
            (
                "read = 1\nrate = '4096000B/s'\narrival = 'poisson'",
                "rate_iops=1000\nrate_process=poisson\n",
            ),
        ] {
            let text = text(stream);
            assert!(text.contains(line), "{line} not in\n{text}");
            assert!(text.contains("; not expressible in fio: latency from the intended start"));
        }
    }

    #[test]
    fn random_distances_too_long_for_fio_become_equal_ones() {
        let text = text("read = 1\nrate = '0.5/s'\narrival = 'poisson'");
        assert!(text.contains("rate=2048\n") && !text.contains("rate_process"), "{text}");
    }

    #[test]
    fn bursts_become_waits_between_blocks() {
        let text = text("read = 1\nrate = '100/s'\narrival = 'bursts:4'");
        assert!(
            text.contains("thinktime=40000us\nthinktime_blocks=4\nthinktime_blocks_type=issue\n")
        );
        assert!(!text.contains("rate="), "{text}");
    }
}
