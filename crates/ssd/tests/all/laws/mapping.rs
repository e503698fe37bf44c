//! Laws of the translation layer: whatever is written and trimmed, its books agree, and every unit that was written is programmed.

use std::collections::HashMap;

use base::Random;
use longtake_ssd::Spec;
use longtake_ssd::ftl::{Flash, Ftl, Program, Setup};
use longtake_ssd::stripe::Stripe;
use proptest::prelude::*;

use crate::laws::specs;
use crate::laws::work::{self, Run};

/// Flash that counts.
#[derive(Debug, Default)]
pub struct Counted {
    /// Units of programs of the host's, and of all.
    pub host_units: u64,
    pub programmed_units: u64,
    /// Units that were read to be copied.
    pub copied_units: u64,
    pub erases: u64,
    stripe: Option<Stripe>,
    /// The next wordline of each block that was programmed or erased, by die and superblock.
    blocks: HashMap<(u32, u32), u32>,
}

impl Flash for Counted {
    fn program(&mut self, die: u32, program: Program) {
        let Program { superblock, wordline, .. } = program;
        let next = self.blocks.entry((die, superblock)).or_insert(0);
        assert!(wordline >= *next, "{program:?} is programmed again before its block is erased");
        *next = wordline + 1;
        let stripe = self.stripe.expect("it is known how much a program takes");
        self.host_units += u64::from(program.host_units);
        self.programmed_units += u64::from(stripe.program_units(program.slc));
    }
    fn copy(&mut self, _die: u32, _slc: bool, units: u32) {
        let stripe = self.stripe.expect("it is known how much a cell holds");
        assert!((1..=stripe.cell_units()).contains(&units), "{units} units of one cell are copied");
        self.copied_units += u64::from(units);
    }
    fn erase(&mut self, die: u32, superblock: u32) {
        self.blocks.insert((die, superblock), 0);
        self.erases += 1;
    }
    fn erase_ahead(&mut self, die: u32, superblock: u32) {
        self.erase(die, superblock);
    }
}

/// The translation layer that a drive of one set has.
pub fn ftl_of(spec: &Spec, seed: u64) -> (Ftl, Counted) {
    let stripe = Stripe::of(&spec.flash, &spec.mapping, spec.flash.dies());
    let ftl = Ftl::new(Setup {
        units: (spec.capacity_bytes / u64::from(spec.mapping.unit_bytes)) as u32,
        superblocks: spec.superblocks_of_set(),
        stripe,
        collector: spec.mapping.collector,
        reserve: spec.mapping.reserve_superblocks,
        placement: spec.placement,
        cache: spec.cache,
        unit_bytes: spec.mapping.unit_bytes,
        seed,
    });
    (ftl, Counted { stripe: Some(stripe), ..Counted::default() })
}

/// Writes, trims, pads and rests; looks at the books now and then.
fn churn(
    ftl: &mut Ftl,
    flash: &mut Counted,
    random: &mut Random,
    steps: u32,
) -> Result<(), String> {
    let units = ftl.setup().units;
    let mut at = 0;
    for step in 0..steps {
        let most = if random.one_in(8) { units / 4 } else { 64 };
        let count = (1 + random.below(u64::from(most)) as u32).min(units);
        let first = if random.one_in(3) { at } else { random.below(u64::from(units)) as u32 };
        let first = first.min(units - count);
        at = first + count;
        // Each die erases ahead at its own pace.
        for _ in 0..random.below(4) {
            ftl.erase_ahead(random.below(u64::from(ftl.setup().stripe.dies())) as u32, flash);
        }
        match random.below(40) {
            0..=3 => ftl.trim(first, count),
            4 => ftl.pad(flash),
            5 => {
                for _ in 0..random.below(20) {
                    ftl.rest(flash);
                }
            }
            _ => ftl.write(first, count, flash),
        }
        if step % 64 == 0 {
            ftl.audit()?;
        }
    }
    ftl.audit()
}

proptest! {
    #![proptest_config(specs::cases(128))]

    #[test]
    fn the_books_agree_after_any_workload(spec in specs::nand(), seed: u64) {
        let (mut ftl, mut flash) = ftl_of(&spec, seed);
        let churned = churn(&mut ftl, &mut flash, &mut Random::new(seed), 500);
        prop_assert_eq!(churned, Ok(()));
        prop_assert_eq!(flash.copied_units, ftl.done().copied, "each is read once");
    }

    #[test]
    fn the_books_agree_from_what_a_drive_begins_with(spec in specs::nand(), seed: u64, run in 1..64_u32) {
        let (mut full, mut flash) = ftl_of(&spec, seed);
        full.fill_in_order();
        prop_assert_eq!(full.audit(), Ok(()));
        prop_assert_eq!(churn(&mut full, &mut flash, &mut Random::new(seed), 100), Ok(()));
        let (mut overwritten, mut flash) = ftl_of(&spec, seed);
        overwritten.fill_in_order();
        overwritten.overwrite_in_order();
        prop_assert_eq!(overwritten.audit(), Ok(()));
        prop_assert_eq!(churn(&mut overwritten, &mut flash, &mut Random::new(seed), 100), Ok(()));
        let (mut steady, mut flash) = ftl_of(&spec, seed);
        steady.scatter(run);
        prop_assert_eq!(steady.audit(), Ok(()));
        prop_assert_eq!(churn(&mut steady, &mut flash, &mut Random::new(seed), 100), Ok(()));
    }

    #[test]
    fn the_books_of_a_drive_agree_after_any_workload((slot, uplink, work) in work::case(specs::nand())) {
        let mut run = Run::of(&slot, uplink, &work);
        prop_assert_eq!(run.bank.audit(0), Ok(()));
        run.bank.power_cut();
        prop_assert_eq!(run.bank.audit(0), Ok(()), "after a power cut");
    }

    #[test]
    fn each_die_erases_each_superblock_as_often_as_it_counts(spec in specs::nand(), seed: u64) {
        let (mut ftl, mut flash) = ftl_of(&spec, seed);
        prop_assert_eq!(churn(&mut ftl, &mut flash, &mut Random::new(seed), 300), Ok(()));
        // What some dies have begun ahead, the others go on with.
        for die in 0..ftl.setup().stripe.dies() {
            while ftl.erase_ahead(die, &mut flash) {}
        }
        prop_assert!(!ftl.is_stale());
        let counted = ftl.erases().0 * f64::from(ftl.setup().superblocks);
        let dies = f64::from(ftl.setup().stripe.dies());
        prop_assert!((flash.erases as f64 - counted * dies).abs() < 1e-3, "{} {counted}", flash.erases);
    }

    #[test]
    fn every_unit_of_the_host_is_programmed_once(spec in specs::nand(), seed: u64) {
        let (mut ftl, mut flash) = ftl_of(&spec, seed);
        prop_assert_eq!(churn(&mut ftl, &mut flash, &mut Random::new(seed), 300), Ok(()));
        prop_assert!(flash.host_units <= ftl.done().host, "{flash:?}");
        ftl.pad(&mut flash);
        let done = ftl.done();
        prop_assert_eq!(flash.host_units, done.host, "padding leaves nothing of the host's in memory");
        // Copies fill their open wordlines alone.
        let appended = done.host + done.copied + done.padding;
        let open = u64::from(ftl.setup().stripe.wordline_units(false));
        prop_assert!(
            (appended.saturating_sub(open)..=appended).contains(&flash.programmed_units),
            "{appended} units appended, {flash:?}"
        );
    }
}
