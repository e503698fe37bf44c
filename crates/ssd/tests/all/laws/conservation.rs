//! Laws of bytes: nothing moves more than its rate, whatever the drive and the workload, and nothing that was written vanishes.

use base::DriveId;
use longtake_ssd::spec::Media;
use longtake_ssd::{Slot, Spec, Start, Uplink};
use proptest::prelude::*;

use super::specs;
use crate::drives;
use crate::laws::work::{self, Phase, Run};

/// What 2^-24 ns of a byte's time are at the fastest link there is, about a millionth.
const STEP: f64 = 1.0 + 4e-6;

/// Seconds in which a wire of this rate moves bytes in so many parts, each rounded to the nearest nanosecond.
fn least_s(bytes: u64, bytes_per_s: f64, parts: u64) -> f64 {
    bytes as f64 / bytes_per_s / STEP - parts as f64 * 0.5e-9
}

/// Parts that bytes move in at most: mapping units (in place: pages), and two more for each command.
fn parts(spec: &Spec, bytes: u64, commands: usize) -> u64 {
    bytes / u64::from(spec.mapping.unit_bytes) + 2 * commands as u64
}

/// Bytes a second that the medium takes at most. Programs into a cache, of each of its stages, and out of it have their own times.
fn media_bytes_per_s(spec: &Spec) -> f64 {
    let flash = &spec.flash;
    let page = f64::from(flash.dies()) * f64::from(flash.planes) * f64::from(flash.page_bytes);
    let cached = spec.cache.map_or(0.0, |cache| {
        let shortest_us =
            cache.first_program_us.map_or(cache.program_us, |first| first.min(cache.program_us));
        page / (shortest_us / 1e6)
    });
    let fold_us = spec.cache.and_then(|cache| cache.fold_us).unwrap_or(flash.program_us);
    let folded = flash.program_bytes_per_s() * flash.program_us / fold_us;
    cached.max(flash.program_bytes_per_s()).max(folded)
}

fn hold_link(run: &Run, spec: &Spec, uplink: Option<Uplink>) -> Result<(), TestCaseError> {
    // From one moment at which nothing was under way to the next, so that no slack of idle time hides an excess.
    for span in &run.spans {
        let first = run.records[span.clone()].iter().map(|one| one.submitted).min();
        let last = run.records[span.clone()].iter().filter_map(|one| one.reaped).max();
        let (Some(first), Some(last)) = (first, last) else { continue };
        let seconds = last.since(first).as_secs_f64();
        let (read, written) = run.moved(span.clone());
        let hold = |what: &str, bytes: u64, bytes_per_s: f64| {
            let least = least_s(bytes, bytes_per_s, parts(spec, bytes, span.len()));
            prop_assert!(seconds >= least, "{what}: {bytes} bytes in {seconds} s, not {least}");
            Ok(())
        };
        let rate = spec.link.bytes_per_s();
        if spec.link.half_duplex() {
            hold("SATA, both directions", read + written, rate)?;
        }
        hold("link, to the host", read, rate)?;
        hold("link, from the host", written, rate)?;
        if let Some(shared) = uplink {
            hold("uplink, to the host", read, shared.read_bytes_per_s)?;
            hold("uplink, from the host", written, shared.write_bytes_per_s)?;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(specs::cases(128))]

    #[test]
    fn no_link_moves_more_than_its_rate((slot, uplink, work) in work::case(specs::any())) {
        let run = Run::of(&slot, uplink, &work);
        hold_link(&run, &slot.spec, uplink)?;
    }

    #[test]
    fn the_medium_takes_no_more_than_its_dies_and_channels_do(
        (mut slot, _, work) in work::case(specs::nand())
    ) {
        // Only an unprotected drive's flush waits for the flash; protection changes nothing about it.
        slot.spec.buffer.protected = false;
        let mut run = Run::of(&slot, None, &work);
        run.flush();
        let spec = run.bank.spec(0);
        let seconds = run.seconds();
        let taken: u64 = run.bank.health(0).sets.iter().map(|set| set.media_written_bytes).sum();
        // What the drive writes for itself, flushes don't wait for: two rounds of it may be under way.
        let program = spec.flash.program_bytes();
        let own = spec.upkeep.map_or(0, |upkeep| 2 * upkeep.bytes.div_ceil(program) * program);
        let taken = taken.saturating_sub(own) as f64;
        for (what, bytes_per_s) in
            [("dies", media_bytes_per_s(spec)), ("channels", spec.flash.channels_bytes_per_s())]
        {
            prop_assert!(taken / bytes_per_s <= seconds * STEP, "{what}: {taken} bytes in {seconds} s");
        }
    }

    #[test]
    fn what_is_written_is_on_flash_or_in_the_buffer((slot, _, work) in work::case(specs::nand())) {
        let mut run = Run::of(&slot, None, &work);
        let room = slot.spec.buffer.bytes;
        prop_assert!(run.bank.buffered_bytes(0) <= room, "{} of {room}", run.bank.buffered_bytes(0));
        let written: u64 = run.bank.health(0).sets.iter().map(|set| set.written_bytes).sum();
        let asked = run.moved(0..run.records.len()).1;
        prop_assert!(written >= asked, "{written} bytes of units for {asked} written");
        if !slot.spec.buffer.protected {
            run.flush();
            prop_assert_eq!(run.bank.buffered_bytes(0), 0, "all is on flash");
        }
        // Write amplification is 1 at least: padding, copies and upkeep come on top.
        for set in &run.bank.health(0).sets {
            prop_assert!(set.media_written_bytes >= set.written_bytes, "{set:?}");
        }
    }

    #[test]
    fn reads_move_whole_units_over_the_channels(mut spec in specs::nand(), seed: u64, depth in 1..64_usize) {
        spec.cache = None;
        let slot: Slot = work::slot_of(spec, Start::Full, seed);
        let mut run = Run::new(std::slice::from_ref(&slot), None, seed);
        let bytes = (512, 64 << 10);
        run.phase(&Phase {
            commands: 500, mix: [1, 0, 0, 0], random: true, region: (0.0, 1.0), bytes, depth, idle: None, pause_ns: 0,
        });
        run.drain();
        let unit = u64::from(slot.spec.mapping.unit_bytes);
        let moved: u64 = run.records.iter().map(|one| one.moved().0.next_multiple_of(unit)).sum();
        let seconds = run.seconds();
        let rate = slot.spec.flash.channels_bytes_per_s();
        let least = least_s(moved, rate, parts(&slot.spec, moved, 500));
        prop_assert!(seconds >= least, "{moved} bytes in {seconds} s, not {least}");
    }

    #[test]
    fn media_in_place_take_a_page_of_each_die_at_a_time((slot, uplink, work) in work::case(specs::in_place())) {
        let run = Run::of(&slot, uplink, &work);
        prop_assert_eq!(slot.spec.flash.media, Media::InPlace);
        let (read, written) = run.moved(0..run.records.len());
        let flash = &run.bank.spec(0).flash;
        let dies_bytes = f64::from(flash.dies()) * f64::from(flash.page_bytes);
        let least = (read as f64 * flash.read_us + written as f64 * flash.program_us) / dies_bytes * 1e-6;
        let seconds = run.seconds();
        // Each access' time is rounded to the nanosecond.
        prop_assert!(seconds >= least * 0.999, "{seconds} s, not {least}");
    }
}

#[test]
fn drives_behind_one_uplink_share_it_and_use_all_of_it() {
    let uplink = Uplink { read_bytes_per_s: 1.2e9, write_bytes_per_s: 0.5e9 };
    let slot = work::slot_of(drives::small(), Start::Full, 1);
    for (mix, rate) in
        [([1, 0, 0, 0], uplink.read_bytes_per_s), ([0, 1, 0, 0], uplink.write_bytes_per_s)]
    {
        let mut run = Run::new(&[slot.clone(), slot.clone(), slot.clone()], Some(uplink), 1);
        let bytes = (128 << 10, 128 << 10);
        let (region, idle) = ((0.0, 1.0), None);
        run.phase(&Phase {
            commands: 9_000,
            mix,
            random: false,
            region,
            bytes,
            depth: 48,
            idle,
            pause_ns: 0,
        });
        run.drain();
        let (read, written) = run.moved(0..run.records.len());
        let found = (read + written) as f64 / run.seconds();
        assert!((0.98..=STEP).contains(&(found / rate)), "{found} bytes a second, of {rate}");
    }
}

#[test]
fn parts_of_a_long_unaligned_write_share_no_unit() {
    let mut run = Run::new(&[work::slot_of(drives::small(), Start::Empty, 1)], None, 1);
    // Half a unit off: 1 MiB touches 257 units, the first and the last in part.
    assert!(run.submit(DriveId(0), work::write(2048, 1 << 20)));
    run.drain();
    assert_eq!(run.bank.health(0).sets[0].written_bytes, 257 * 4096);
}
