//! Where a stream's commands go: its drive, its region, and the pattern within.

use crate::workload::{Content, Pattern, Stream};

use super::{JobFile, shares_of_100};

impl JobFile {
    /// The drive as fio names it, with the engine that it needs.
    pub(super) fn target(&mut self, target: &str) {
        let misread = |c: char| c.is_control() || ";#$".contains(c);
        if target.starts_with("sim:") {
            self.cannot(&format!("the simulated drive {target}: put a real one here"));
            self.set("filename", "/nonexistent/drive");
        } else if target.is_empty() || target.trim() != target || target.contains(misread) {
            self.cannot(&format!(
                "the path '{target}': fio reads some of its characters as its own"
            ));
            self.set("filename", "/nonexistent/drive");
        } else {
            // A colon would begin a second file.
            self.set("filename", target.replace(':', "\\:"));
        }
        if target.starts_with("/dev/ng") {
            self.set("ioengine", "io_uring_cmd");
            self.set("cmd_type", "nvme");
            self.set("fixedbufs", 1);
            self.set("registerfiles", 1);
            // A character device refuses O_DIRECT; there is no cache to go around either.
            self.set("direct", 0);
        }
    }

    /// The region, what jobs share of it, and how places in it are drawn.
    pub(super) fn region(&mut self, stream: &Stream) {
        let from = stream.from.map(|from| from.0);
        let apart = stream.jobs > 1
            && (stream.pattern == Pattern::Sequential || stream.content == Content::Verify);
        if let Some(from) = from {
            self.set("offset", from);
        }
        let jobs = u64::from(stream.jobs);
        match stream.size {
            Some(size) if apart => self.shares(stream, size.0 / jobs),
            Some(size) => {
                let align = stream.align_bytes().max(1);
                self.set("size", size.0 / align * align);
            }
            None if apart && from.is_none_or(|from| from == 0) && jobs <= 100 => {
                self.set("size", format!("{}%", 100 / jobs));
                self.set("offset_increment", format!("{}%", 100 / jobs));
                if 100 % jobs != 0 {
                    self.cannot(&format!(
                        "1/{jobs} of the drive for each job (fio takes whole percents)"
                    ));
                }
            }
            None if apart => {
                self.cannot("jobs that start apart in a region of unknown length: give it a size");
            }
            None => {}
        }
        if apart && stream.pattern == Pattern::Sequential && stream.content != Content::Verify {
            self.cannot("going around the whole region from its own start (a fio job goes around its share)");
        }
        self.pattern(stream);
    }

    /// A share of the region for each job.
    fn shares(&mut self, stream: &Stream, share: u64) {
        let align = stream.align_bytes().max(1);
        let share = share / align * align;
        if share < stream.block.longest() {
            self.cannot(
                "jobs that start apart: a share of the region would be shorter than a block",
            );
            self.set("size", stream.size.map_or(0, |size| size.0 / align * align));
            return;
        }
        self.set("size", share);
        self.set("offset_increment", share);
    }

    fn pattern(&mut self, stream: &Stream) {
        let align = stream.align_bytes();
        match stream.pattern {
            Pattern::Sequential => {
                let odd =
                    stream.block.0.iter().any(|(size, _)| !size.0.is_multiple_of(align.max(1)));
                if stream.block.0.len() > 1 && odd {
                    self.cannot(&format!(
                        "sequential blocks of several sizes that all begin at multiples of {align} bytes"
                    ));
                }
                return;
            }
            Pattern::Random => {}
            Pattern::Settling { .. } => {
                self.cannot("an order of writes that settles a drive (fio writes anywhere)");
            }
            Pattern::Zipf { theta } => {
                // fio's formula divides by 1 - theta.
                let allowed = if theta == 1.0 { 1.000_001 } else { theta };
                if theta == 1.0 {
                    self.cannot("an exponent of exactly 1");
                }
                self.set("random_distribution", format!("zipf:{allowed}"));
                self.cannot("popularity by aligned places of this region (fio ranks blocks and scatters them by a hash)");
            }
            Pattern::Hot { space_percent, access_percent } => {
                let whole = |percent: f64| {
                    let parts = (percent * 1e4) as u32;
                    shares_of_100(&[parts.max(1), 1_000_000_u32.saturating_sub(parts).max(1)])
                };
                let (space, access) = (whole(space_percent), whole(access_percent));
                self.set(
                    "random_distribution",
                    format!("zoned:{}/{}:{}/{}", access[0], space[0], access[1], space[1]),
                );
                if space_percent.fract() != 0.0 || access_percent.fract() != 0.0 {
                    self.cannot(&format!(
                        "{access_percent} % of the commands on {space_percent} % of the space (fio takes whole percents)"
                    ));
                }
            }
        }
        self.set("blockalign", align);
    }
}

/// The hole that fio leaves behind each block of a sequence, as it follows the name of the operation: `:4096` or nothing.
pub(super) fn gap(stream: &Stream) -> String {
    let align = stream.align_bytes().max(1);
    match stream.block.0.as_slice() {
        [(size, _)] if !size.0.is_multiple_of(align) => {
            format!(":{}", size.0.next_multiple_of(align) - size.0)
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::Workload;
    use crate::fio_job::job;

    fn text(target: &str, stream: &str) -> String {
        let workload = Workload::from_toml(&format!("[[stream]]\n{stream}")).unwrap();
        job(&workload, &[target.to_owned()])
    }

    #[test]
    fn sequential_jobs_start_apart() {
        let known = text("f", "read = 1\nfrom = '1MiB'\nsize = '10MiB'\njobs = 4\nblock = '1MiB'");
        assert!(
            known.contains("offset=1048576\nsize=2097152\noffset_increment=2097152\n"),
            "{known}"
        );
        let whole = text("f", "read = 1\njobs = 4");
        assert!(whole.contains("size=25%\noffset_increment=25%\n"), "{whole}");
        let open = text("f", "read = 1\njobs = 4\nfrom = '1MiB'");
        assert!(open.contains("; not expressible in fio: jobs that start apart"), "{open}");
        let random = text("f", "read = 1\nsize = '10MiB'\njobs = 4\npattern = 'random'");
        assert!(
            random.contains("size=10485760\n") && !random.contains("offset_increment"),
            "{random}"
        );
    }

    #[test]
    fn a_step_wider_than_the_block_is_a_hole_behind_it() {
        let text = text("f", "read = 1\nblock = '4KiB'\nalign = '64KiB'");
        assert!(text.contains(&format!("rw=read:{}\n", 60 << 10)), "{text}");
    }

    #[test]
    fn paths_are_escaped_or_refused_and_passthrough_has_its_own_engine() {
        assert!(
            text("/dev/disk/by-path/pci-0000:01:00.0", "read = 1")
                .contains("pci-0000\\:01\\:00.0\n")
        );
        assert!(text("/dev/ng0n1", "read = 1").contains("ioengine=io_uring_cmd\ncmd_type=nvme\n"));
        for target in ["sim:fast", "a#b", "a;b", "${HOME}", "a\nb", " a"] {
            let text = text(target, "read = 1");
            assert!(text.contains("filename=/nonexistent/drive\n"), "{text}");
            assert!(text.contains("; not expressible in fio: "), "{text}");
        }
    }
}
