//! Where a namespace's bytes lie: in one set, or in stripes over several.

use crate::spec::Spec;

/// The namespaces of a drive.
#[derive(Clone, Debug)]
pub struct Namespaces {
    all: Vec<Namespace>,
    unit_bits: u32,
    set_units: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Namespace {
    bytes: u64,
    /// Where it begins among all namespaces, in bytes.
    start: u64,
    /// Its sets, and its first unit in each.
    sets: Vec<(u32, u32)>,
    /// Units of a stripe.
    stripe_units: u64,
}

/// Units that lie one behind the other in one set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The set.
    pub set: u32,
    /// The first unit.
    pub unit: u32,
    /// Number of units.
    pub units: u32,
}

impl Namespaces {
    /// Those of a drive that has been checked.
    pub fn new(spec: &Spec) -> Self {
        let unit_bytes = u64::from(spec.mapping.unit_bytes);
        let stripe_units = spec.stripe_units();
        let mut set_units = vec![0_u32; spec.sets.count as usize];
        let mut all = Vec::new();
        let mut start = 0;
        for namespace in &spec.sets.namespaces {
            let sets = namespace.sets.len() as u64;
            let bytes = spec.namespace_bytes(namespace);
            let each = (bytes / unit_bytes / sets) as u32;
            let own = namespace.sets.iter().map(|&set| {
                let first = set_units[set as usize];
                set_units[set as usize] += each;
                (set, first)
            });
            all.push(Namespace { bytes, start, sets: own.collect(), stripe_units });
            start += bytes;
        }
        Self { all, unit_bits: unit_bytes.trailing_zeros(), set_units }
    }

    /// Bytes of a namespace.
    pub fn bytes(&self, namespace: u32) -> u64 {
        self.all[namespace as usize].bytes
    }

    /// Where a namespace begins among all of them, in bytes.
    pub fn start(&self, namespace: u32) -> u64 {
        self.all[namespace as usize].start
    }

    /// Logical units of a set.
    pub fn set_units(&self, set: u32) -> u32 {
        self.set_units[set as usize]
    }

    /// Where each namespace begins in a set, by namespace; in order.
    pub fn in_set(&self, set: u32) -> impl Iterator<Item = (u32, u32)> {
        (0..).zip(&self.all).filter_map(move |(index, namespace)| {
            let own = namespace.sets.iter().find(|(one, _)| *one == set)?;
            Some((index, own.1))
        })
    }

    /// The sets that a namespace lies in.
    pub fn sets(&self, namespace: u32) -> impl Iterator<Item = u32> {
        self.all[namespace as usize].sets.iter().map(|&(set, _)| set)
    }

    /// Bytes of namespaces in a set.
    pub fn set_bytes(&self, set: u32) -> u64 {
        u64::from(self.set_units(set)) << self.unit_bits
    }

    /// The one unit that a range lies in, if it does, with its set; for namespaces of one set.
    #[inline]
    pub fn unit(&self, namespace: u32, offset: u64, length: u32) -> Option<(u32, u32)> {
        let [(set, first)] = self.all[namespace as usize].sets[..] else { return None };
        let unit = offset >> self.unit_bits;
        let end = offset + u64::from(length);
        (length > 0 && (end - 1) >> self.unit_bits == unit).then_some((set, first + unit as u32))
    }

    /// The unit that holds a byte, with its set; for namespaces of one set on flash.
    #[inline]
    pub fn first_unit(&self, namespace: u32, offset: u64) -> Option<(u32, u32)> {
        let [(set, first)] = self.all[namespace as usize].sets[..] else { return None };
        Some((set, first + (offset >> self.unit_bits) as u32))
    }

    /// The units from the one that holds byte `at` on, as many as lie together before byte `end`, which is later.
    #[inline]
    pub fn locate(&self, namespace: u32, at: u64, end: u64) -> Place {
        let namespace = &self.all[namespace as usize];
        let unit = at >> self.unit_bits;
        let units = ((end - 1) >> self.unit_bits) + 1 - unit;
        if let [(set, first)] = namespace.sets[..] {
            return Place { set, unit: first + unit as u32, units: units as u32 };
        }
        let (stripe, within) = (unit / namespace.stripe_units, unit % namespace.stripe_units);
        let sets = namespace.sets.len() as u64;
        let (set, first) = namespace.sets[(stripe % sets) as usize];
        let units = units.min(namespace.stripe_units - within);
        let unit = stripe / sets * namespace.stripe_units + within;
        Place { set, unit: first + unit as u32, units: units as u32 }
    }
}
