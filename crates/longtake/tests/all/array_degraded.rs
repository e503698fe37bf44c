//! Arrays that lack a member or hold damage: what a check and a scrub say, and what a rebuild gives back.

use std::fs;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use base::units::counted;
use format::pcapng::{Blocks, SECTION_HEADER};
use longtake::array::{Array, Chunk, RebuildOptions, ScrubOptions, Selection};
use longtake::{FileFormat, Remark};

use crate::harness::{Fixture, flip};

/// Packets that are extracted, and whether that is all there should be.
fn packets(array: &mut Array) -> (u64, bool) {
    let extracted = array.extract(&Selection::default(), |_| ControlFlow::Continue(()));
    let extracted = extracted.expect("it can be read");
    (extracted.packets, extracted.is_complete())
}

#[test]
fn a_missing_member_is_refused_unless_parity_or_the_caller_allows_it() {
    let array = Fixture::recorded(4_000_000, 0);
    array.remove(2);
    let error = Array::open(&array.name()).expect_err("a member is missing");
    assert!(format!("{error:#}").contains("--degraded"), "{error:#}");
    let mut opened = Array::options().degraded(true).open(&array.name()).expect("it is allowed");
    assert_eq!(opened.info().members[2].target, None);
    let (found, complete) = packets(&mut opened);
    assert!(!complete && found < array.packets && found > 0);
    let take = &opened.takes().expect("it can be read")[0];
    let told = take.ledger.stored.packets;
    assert_eq!(found + take.missing().packets, told);
    // The missing member may have had the last chunk: then nothing tells what was in it.
    assert!(told == array.packets || told < array.packets && !take.ended, "{told}: {take:?}");

    let array = Fixture::recorded(8_000_000, 1);
    array.remove(2);
    let mut opened = array.open();
    assert_eq!(packets(&mut opened), (array.packets, true));
    let checked = opened.check(|_| ()).expect("it can be read");
    assert!(checked.recovered.chunks > 0 && checked.damaged.is_empty() && checked.is_sound());
    let scrubbed = opened.scrub(&ScrubOptions::default(), |_| ()).expect("it can be read");
    assert!(!scrubbed.is_sound());
    let missing = &scrubbed.missing_members[0];
    assert_eq!((missing.member, missing.chunks), (2, missing.recoverable));
}

/// Length of a segment in bytes.
const SEGMENT: u64 = 4 << 20;

/// The comments in the section headers of what is extracted as a pcapng file.
fn comments(array: &mut Array) -> Vec<String> {
    let mut file = Vec::new();
    let all = Selection::default();
    array.extract_to(&all, FileFormat::Pcapng, &mut file).expect("it can be read");
    let blocks = Blocks::new(&file).map(|block| block.expect("it is whole"));
    let headers = blocks.filter(|block| block.kind == SECTION_HEADER);
    headers.map(|block| String::from_utf8_lossy(block.bytes).into_owned()).collect()
}

#[test]
fn a_capture_file_says_in_its_header_what_is_missing_and_at_its_end_what_could_not_be_read() {
    let nothing = "nothing of the selection was missing when the extraction began";
    let every = "it has every packet";
    // Damage in a full segment, which has an index, shows when it is read.
    let array = Fixture::recorded(60_000_000, 0);
    let mut opened = array.open();
    let [header] = &comments(&mut opened)[..] else { panic!("sections without need") };
    assert!(header.contains(nothing) && !header.contains(every), "{header}");

    let chunks = opened.contents().expect("it can be read").chunks;
    let in_full_segment = |one: &&Chunk| {
        let behind = |other: &Chunk| {
            other.place.member == one.place.member
                && other.place.offset >= one.place.offset + SEGMENT
        };
        one.record.summary.packets > 0 && chunks.iter().any(behind)
    };
    let chunk = chunks.iter().find(in_full_segment).expect("a segment is full");
    let (place, summary) = (chunk.place, chunk.record.summary);
    flip(&array.member(place.member), place.offset + u64::from(summary.length) / 2);
    let told = comments(&mut opened);
    let [header, end] = &told[..] else { panic!("the end tells nothing: {told:?}") };
    assert!(header.contains(nothing), "damage is found when it is read: {header}");
    let unread = format!("could not be read: {}", counted(summary.packets.into(), "packet"));
    assert!(end.contains(&unread) && !end.contains(every), "{end}");

    array.remove(2);
    let mut opened = Array::options().degraded(true).open(&array.name()).expect("it is allowed");
    let header = &comments(&mut opened)[0];
    assert!(header.contains("missing members: 2") && !header.contains(nothing), "{header}");
    assert!(!header.contains("parity"), "{header}");

    let array = Fixture::recorded(8_000_000, 1);
    array.remove(2);
    let header = &comments(&mut array.open())[0];
    let by_parity = "missing members: 2; parity gives back what was on them";
    assert!(header.contains(nothing) && header.contains(by_parity), "{header}");
}

#[test]
fn a_remark_names_a_target_that_was_left_out() {
    let array = Fixture::recorded(2_000_000, 1);
    fs::File::options()
        .write(true)
        .open(array.member(3))
        .and_then(|file| file.set_len(100))
        .expect("it can be cut");
    let heard: Arc<Mutex<Vec<Remark>>> = Arc::default();
    let hears = Arc::clone(&heard);
    let options = Array::options().degraded(true);
    let options = options.on_remark(move |remark| hears.lock().expect("no panic").push(remark));
    options.open(&array.name()).expect("parity makes up for it");
    let heard = heard.lock().expect("no panic");
    let cut = |remark: &Remark| remark.to_string().contains("member3 was cut short");
    assert!(heard.iter().any(cut), "{heard:?}");
}

#[test]
fn damage_is_named_and_a_scrub_that_may_repair_mends_it() {
    let array = Fixture::recorded(8_000_000, 1);
    let mut opened = array.open();
    let chunks = opened.contents().expect("it can be read").chunks;
    let chunk = chunks.iter().find(|c| c.record.summary.packets > 0).expect("something is there");
    let place = chunk.place;
    flip(&array.member(place.member), place.offset + u64::from(chunk.record.summary.length) / 2);

    let mut progress = Vec::new();
    let checked = opened.check(|p| progress.push(p)).expect("it can be read");
    assert!(!checked.is_sound());
    let damaged: Vec<_> = checked.damaged.iter().map(|c| (c.sequence, c.offset)).collect();
    assert_eq!(damaged, [(chunk.record.sequence, place.offset)]);
    assert_eq!(checked.recovered.chunks, 1);
    let last = progress.last().expect("it was called");
    assert_eq!((last.done, last.total), (checked.bytes, checked.bytes));
    assert_eq!(packets(&mut opened), (array.packets, true), "parity gives it back");

    let found = opened.scrub(&ScrubOptions::default(), |_| ()).expect("it can be read");
    assert_eq!((found.findings.len(), found.is_sound()), (1, false));
    let repair = ScrubOptions { repair: true, limit: None };
    let mended = opened.scrub(&repair, |_| ()).expect("nobody records");
    assert_eq!((mended.findings.len(), mended.is_sound()), (1, true));
    drop(opened);
    assert!(array.open().check(|_| ()).expect("it can be read").is_sound());
}

#[test]
fn a_rebuild_is_planned_then_stopped_then_continued_and_gives_the_member_back() {
    let array = Fixture::recorded(16_000_000, 1);
    array.remove(4);
    let onto = array.member(4);
    let mut opened = array.open();
    let dry_run = RebuildOptions { dry_run: true, ..RebuildOptions::default() };
    let plan = opened.plan_rebuild(4, &onto, &dry_run).expect("it can be rebuilt");
    let chunks = plan.chunks();
    assert!(chunks > 4 && !plan.resumes());
    plan.run(&AtomicBool::new(false), |_| ()).expect_err("a dry run can't be run");
    assert!(!onto.exists());

    let options = RebuildOptions::default();
    let stop = AtomicBool::new(true);
    let stopped = opened.rebuild(4, &onto, &options, &stop, |_| panic!("it must not begin"));
    stopped.expect_err("it was stopped");
    assert!(!onto.exists(), "what was created is removed");

    let stop = AtomicBool::new(false);
    let stopped = opened.rebuild(4, &onto, &options, &stop, |progress| {
        stop.store(progress.done > 0, Ordering::Relaxed);
    });
    let error = stopped.expect_err("it was stopped").to_string();
    assert!(error.contains("is no member yet"), "{error}");
    assert!(onto.exists());

    let stop = AtomicBool::new(false);
    let mut opened = array.open();
    assert!(opened.plan_rebuild(4, &onto, &options).expect("it can be rebuilt").resumes());
    let report = opened.rebuild(4, &onto, &options, &stop, |_| ()).expect("it goes on");
    assert!(report.joined && report.is_complete(), "{report:?}");
    assert_eq!(report.found_written, 1, "{report:?}");
    assert_eq!(report.chunks + report.parity_chunks + report.found_written, chunks);
    opened.refresh().expect("it is whole");
    assert!(opened.info().members.iter().all(|member| member.target.is_some()));
    assert_eq!(packets(&mut opened), (array.packets, true));
    let mut again = array.open();
    assert!(again.scrub(&ScrubOptions::default(), |_| ()).expect("it can be read").is_sound());
}

#[test]
fn only_a_missing_member_of_an_array_with_parity_can_be_rebuilt() {
    let array = Fixture::recorded(1_000_000, 1);
    let onto = array.path().join("new");
    let options = RebuildOptions::default();
    let refused = |array: &mut Array, member| {
        array
            .plan_rebuild(member, &onto, &options)
            .map(|_| ())
            .expect_err("it is refused")
            .to_string()
    };
    let mut opened = array.open();
    let error = refused(&mut opened, 9);
    assert!(error.contains("has no member 9"), "{error}");
    let error = refused(&mut opened, 1);
    assert!(error.contains("member 1 is present"), "{error}");
    array.remove(1);
    let own = array.member(0);
    let error = array.open().plan_rebuild(1, &own, &options).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("holds the superblock of member 0 of this array"), "{error}");
    let array = Fixture::recorded(1_000_000, 0);
    let error = refused(&mut array.open(), 1);
    assert!(error.contains("has no parity"), "{error}");
}
