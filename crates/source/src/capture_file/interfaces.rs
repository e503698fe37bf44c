//! The interfaces of a pcapng file: which of the sink's each section's number means, how it counts time,
//! and which losses of it are already entered.

use std::collections::HashMap;

use format::Interface;

use super::INTERFACES_MAX;
use super::time::Units;
use crate::sink::{Loss, Sink};

/// All that a file has described.
#[derive(Default)]
pub(super) struct Interfaces {
    /// By the current section's numbers.
    section: Vec<Local>,
    /// Over the whole file.
    known: Vec<Known>,
    /// Place in `known` of a description and how many of the same stood before it in its section, so that
    /// two alike stay two, and one that every section repeats stays one.
    places: HashMap<(Interface, u32), usize>,
    /// How often the current section has described the same.
    repeated: HashMap<Interface, u32>,
}

/// What a packet's interface number means in the current section.
#[derive(Clone, Copy)]
pub(super) struct Local {
    /// The sink's number.
    pub(super) number: u32,
    pub(super) units: Units,
    pub(super) snap_length: u32,
    place: usize,
}

struct Known {
    number: u32,
    losses: Losses,
}

/// What is entered of an interface's losses since its counters started.
#[derive(Default)]
struct Losses {
    entered: u64,
    entered_kernel: u64,
    /// `entered` when the current section started.
    entered_before_section: u64,
    /// The last statistics block's totals and when it says that counting began.
    totals: Option<(u64, Option<u64>)>,
}

/// What an interface statistics block says: totals since the capture started.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statistics {
    pub(super) started: Option<u64>,
    pub(super) dropped_interface: u64,
    pub(super) dropped_kernel: u64,
}

impl Interfaces {
    pub(super) fn start_section(&mut self) {
        self.section.clear();
        self.repeated.clear();
        for known in &mut self.known {
            known.losses.entered_before_section = known.losses.entered;
        }
    }

    /// Adds the section's next interface and declares it unless an earlier section did. `None` if that
    /// would be too many.
    pub(super) fn add(
        &mut self,
        interface: Interface,
        units: Units,
        sink: &mut impl Sink,
    ) -> Option<()> {
        if self.section.len() >= INTERFACES_MAX {
            return None;
        }
        let snap_length = interface.snap_length;
        let repeated = self.repeated.entry(interface.clone()).or_default();
        let key = (interface, *repeated);
        *repeated += 1;
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None => {
                if self.known.len() >= INTERFACES_MAX {
                    return None;
                }
                let number = sink.interface(&key.0);
                self.known.push(Known { number, losses: Losses::default() });
                self.places.insert(key, self.known.len() - 1);
                self.known.len() - 1
            }
        };
        let number = self.known[place].number;
        self.section.push(Local { number, units, snap_length, place });
        Some(())
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<Local> {
        self.section.get(number as usize).copied()
    }

    pub(super) fn count_in_section(&self) -> usize {
        self.section.len()
    }

    pub(super) fn count(&self) -> usize {
        self.known.len()
    }

    /// Enters what a packet says was lost before it.
    pub(super) fn lost(&mut self, local: Local, packets: u64, sink: &mut impl Sink) {
        let losses = &mut self.known[local.place].losses;
        losses.entered = losses.entered.saturating_add(packets);
        sink.lost(local.number, Loss::Interface, packets, 0);
    }

    /// Enters what the totals say beyond what is entered, and returns how many packets that is. Totals
    /// that fell, or count from another start, are another capture's: what was entered before this section
    /// is not part of them.
    pub(super) fn statistics(
        &mut self,
        local: Local,
        statistics: Statistics,
        sink: &mut impl Sink,
    ) -> u64 {
        let losses = &mut self.known[local.place].losses;
        let total = statistics.dropped_interface.saturating_add(statistics.dropped_kernel);
        if let Some((last, started)) = losses.totals
            && (total < last || started != statistics.started)
        {
            losses.entered -= losses.entered_before_section;
            losses.entered_before_section = 0;
            losses.entered_kernel = 0;
        }
        losses.totals = Some((total, statistics.started));
        let owed = total.saturating_sub(losses.entered);
        let kernel = owed.min(statistics.dropped_kernel.saturating_sub(losses.entered_kernel));
        losses.entered += owed;
        losses.entered_kernel += kernel;
        for (stage, packets) in [(Loss::Interface, owed - kernel), (Loss::KernelRing, kernel)] {
            if packets > 0 {
                sink.lost(local.number, stage, packets, 0);
            }
        }
        owed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;
    use format::LinkType;

    fn interface(name: &str) -> Interface {
        Interface {
            name: name.to_owned(),
            description: String::new(),
            link_type: LinkType::ETHERNET,
            snap_length: 0,
            filter: String::new(),
            speed_bits: 0,
        }
    }

    fn with(names: &[&str], interfaces: &mut Interfaces, sink: &mut Recording) -> Vec<u32> {
        interfaces.start_section();
        for name in names {
            interfaces.add(interface(name), Units::new(6, 0), sink).unwrap();
        }
        (0..names.len()).map(|n| interfaces.get(n as u32).unwrap().number).collect()
    }

    #[test]
    fn an_interface_that_every_section_repeats_stays_one_and_two_alike_stay_two() {
        let (mut interfaces, mut sink) = (Interfaces::default(), Recording::default());
        assert_eq!(with(&["a", "a", "b"], &mut interfaces, &mut sink), [0, 1, 2]);
        assert_eq!(with(&["b", "a"], &mut interfaces, &mut sink), [2, 0]);
        assert_eq!(with(&["a", "c", "a", "a"], &mut interfaces, &mut sink), [0, 3, 1, 4]);
        assert!(interfaces.get(4).is_none());
    }

    #[test]
    fn totals_count_each_loss_once_however_often_they_are_repeated() {
        let (mut interfaces, mut sink) = (Interfaces::default(), Recording::default());
        let totals = |dropped_interface, dropped_kernel| Statistics {
            started: Some(1),
            dropped_interface,
            dropped_kernel,
        };
        with(&["a"], &mut interfaces, &mut sink);
        let a = interfaces.get(0).unwrap();
        interfaces.lost(a, 4, &mut sink);
        assert_eq!(interfaces.statistics(a, totals(5, 3), &mut sink), 4);
        assert_eq!(interfaces.statistics(a, totals(5, 3), &mut sink), 0);
        // The next section of the same capture counts on,
        with(&["a"], &mut interfaces, &mut sink);
        assert_eq!(interfaces.statistics(a, totals(7, 3), &mut sink), 2);
        assert_eq!(sink.lost(Loss::Interface) + sink.lost(Loss::KernelRing), 10);
        assert_eq!(sink.lost(Loss::KernelRing), 3);
        // and another capture from the start.
        with(&["a"], &mut interfaces, &mut sink);
        interfaces.lost(a, 20, &mut sink);
        let other = Statistics { started: Some(2), dropped_interface: 25, dropped_kernel: 0 };
        assert_eq!(interfaces.statistics(a, other, &mut sink), 5);
    }
}
