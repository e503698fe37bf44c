//! A job file becomes the workload that fio would run, or an error that names the line.

use super::*;
use crate::quantity::Pace;
use crate::workload::{Arrival, Content, Pattern};

const BASE: &str = "[global]\nioengine=libaio\ndirect=1\nruntime=30\ntime_based\n[job]\n";

fn one(options: &str) -> Stream {
    let read = read(&format!("{BASE}{options}"), "job.fio", &["f".to_owned()]);
    read.unwrap_or_else(|error| panic!("{error}")).workload.streams.remove(0)
}

/// The lines of the problems with `options`, which begin at line 7.
fn problems(options: &str) -> String {
    read(&format!("{BASE}{options}"), "job.fio", &["f".to_owned()]).unwrap_err().to_string()
}

#[test]
fn a_common_job_becomes_a_stream() {
    let stream = one(
        "rw=randrw\nrwmixread=70\nbs=4k\niodepth=32\nnumjobs=4\nsize=1g\noffset=1m\nrate_iops=700,300\nnorandommap\nfilename=f",
    );
    assert_eq!((stream.read, stream.write, stream.depth, stream.jobs), (70, 30, 32, 4));
    assert_eq!(stream.pattern, Pattern::Random);
    assert_eq!(stream.block.to_string(), "4KiB");
    assert_eq!((stream.from, stream.size), (Some(Size(1 << 20)), Some(Size(1 << 30))));
    assert_eq!(stream.rate, Some(Pace::Commands(1000.0)));
}

#[test]
fn options_are_translated() {
    assert_eq!(one("bssplit=4k/60:64k/40").block.to_string(), "4KiB:60,64KiB:40");
    assert_eq!(one("rw=write:60k\nbs=4k").align, Some(Size(64 << 10)));
    assert_eq!(
        one("rw=randread\nrandom_distribution=zoned:80/20:20/80").pattern,
        Pattern::Hot { space_percent: 20.0, access_percent: 80.0 }
    );
    let bursts = one("thinktime=40ms\nthinktime_blocks=4\nthinktime_blocks_type=issue");
    assert_eq!((bursts.rate, bursts.arrival), (Some(Pace::Commands(100.0)), Arrival::Bursts(4)));
    assert!(one("rw=write\nsync=dsync").fua);
    assert_eq!(one("rw=write\nverify=crc32c").content, Content::Verify);
    assert_eq!(one("numjobs=4\nsize=1m\noffset_increment=1m").size, Some(Size(4 << 20)));
}

#[test]
fn what_cannot_be_done_is_named_by_file_and_line_with_a_remedy() {
    for (options, said) in [
        ("ioengine=mmap", "job.fio:7: ioengine=mmap: "),
        ("rw=read\nbsrange=4k-64k", "job.fio:8: bsrange=4k-64k: list the sizes"),
        ("bs=4k,8k\nrw=rw", "job.fio:7: bs=4k,8k: "),
        ("stonewalled=1", "job.fio:7: stonewalled=1: Longtake has no such option; remove the line"),
        ("direct=0", "job.fio:7: direct=0: "),
        ("rate_iops=500,500\nrw=randrw\nrwmixread=70", "proportion of rwmixread"),
        ("filename=/dev/other", "job.fio:7: filename=/dev/other: not one of the targets"),
        ("numjobs=4", "offset_increment"),
        ("startdelay=5", "all jobs start together"),
        ("size=${SIZE}", "variables"),
        ("iodepth=many", "not a number"),
        ("time_based=0", "time_based=1 with runtime"),
        ("[two]\nstonewall", "job.fio:8: stonewall=1: "),
        ("[two]\nruntime=5", "end together"),
        ("randseed=3\n[two]\nrandseed=4", "job.fio:9: randseed=4: all jobs of a workload share"),
        ("rate_iops=5\nthinktime=9ms", "job.fio:8: thinktime=9ms: a job with a rate"),
    ] {
        let text = problems(options);
        assert!(text.contains(said), "{options}: {text}");
    }
    let both = problems("ioengine=mmap\nloops=5");
    assert!(both.contains(":7:") && both.contains(":8:"), "all problems are listed: {both}");
}

#[test]
fn options_without_effect_stand_in_one_note() {
    let text = format!("{BASE}group_reporting\npercentile_list=50:99\n");
    let notes = read(&text, "job.fio", &["f".to_owned()]).unwrap().notes;
    let of = notes.iter().filter(|note| note.contains("change nothing here"));
    assert_eq!(
        of.collect::<Vec<_>>(),
        ["these options change nothing here: group_reporting, percentile_list"]
    );
}

#[test]
fn a_size_without_a_time_ends_a_job() {
    let read = read(
        "[a]\nsize=1m\nnumjobs=2\noffset_increment=1m\ndirect=1",
        "x/a.fio",
        &["f".to_owned()],
    );
    let workload = read.unwrap().workload;
    assert_eq!((workload.name.as_str(), workload.stop.bytes), ("a", Some(Size(2 << 20))));
}

#[test]
fn a_changed_export_is_read_by_its_options() {
    let workload = Workload::from_toml(
        "stop = { time = '10s' }\n[[stream]]\nread = 1\nblock = '4KiB'\nsize = '1MiB'\ndeadline = '1ms'\npattern = 'random'",
    )
    .unwrap();
    let targets = ["f".to_owned()];
    let text = crate::fio_job::job(&workload, &targets);
    assert_eq!(read(&text, "a.fio", &targets).unwrap().workload, workload);
    let changed = text.replace("bs=4096", "bs=8192");
    let stream = read(&changed, "a.fio", &targets).unwrap().workload.streams.remove(0);
    assert_eq!((stream.block.to_string().as_str(), stream.deadline), ("8KiB", None));
}

#[test]
fn what_longtake_does_differently_stands_in_a_note() {
    for (options, said) in [
        ("prio=3", "prioclass=2"),
        ("rw=write\nverify=crc32c\nbuffer_compress_percentage=50", "does not compress"),
        ("rw=randread", "norandommap is not set"),
        ("rw=rw", "share one sequence"),
    ] {
        let read = read(&format!("{BASE}{options}"), "job.fio", &["f".to_owned()]).unwrap();
        assert!(read.notes.iter().any(|note| note.contains(said)), "{options}: {:?}", read.notes);
    }
    let stream = Stream { name: "s".to_owned(), read: 1, ..Stream::default() };
    let mut workload = empty("job.fio");
    workload.stop.time = Some(Time(Duration::from_secs(1)));
    workload.streams.push(stream);
    let written = super::super::job(&workload, &["f".to_owned()]);
    let elsewhere = read(&written, "job.fio", &["g".to_owned()]);
    let said = match elsewhere {
        Ok(read) => read.notes.join(" "),
        Err(error) => error.to_string(),
    };
    assert!(said.contains("filename=f"), "{said}");
    assert_eq!(read(&written, "job.fio", &["f".to_owned()]).unwrap().workload, workload);
}
