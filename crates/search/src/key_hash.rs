//! The hash of a flow table: a multiplication for each eight bytes, under secret keys.
//!
//! The standard library's hash takes a third of the time that a packet has. Its protection is kept: the keys are random, so that
//! a sender can't choose packets whose flows collide.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Makes hashers with the same keys.
#[derive(Clone, Debug)]
pub struct KeyHash {
    start: u64,
    factor: u64,
}

impl Default for KeyHash {
    fn default() -> Self {
        let random = RandomState::new();
        // Odd, so that no multiplication loses a bit.
        Self { start: random.hash_one(0_u8), factor: random.hash_one(1_u8) | 1 }
    }
}

impl BuildHasher for KeyHash {
    type Hasher = KeyHasher;

    #[inline]
    fn build_hasher(&self) -> KeyHasher {
        KeyHasher { state: self.start, factor: self.factor }
    }
}

/// Takes numbers; bytes are taken eight at a time.
#[derive(Clone, Debug)]
pub struct KeyHasher {
    state: u64,
    factor: u64,
}

impl Hasher for KeyHasher {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.state ^ number) * u128::from(self.factor);
        // Every bit of the factors has a part in each bit of one of the halves.
        self.state = (product as u64) ^ ((product >> 64) as u64).rotate_left(23);
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut number = [0; 8];
            number[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(number));
        }
        self.write_u64(bytes.len() as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        let product = u128::from(self.state) * u128::from(self.factor.rotate_left(32) | 1);
        (product as u64) ^ ((product >> 64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::IpAddr;

    use super::*;
    use crate::flow::{Flow, Transport};
    use crate::flow_table::Key;

    #[test]
    fn flows_that_differ_little_spread_over_all_buckets() {
        let hash = KeyHash::default();
        let (mut low, mut high, mut whole) = (vec![0_u32; 256], vec![0_u32; 128], HashSet::new());
        for host in 0..=255_u8 {
            for port in 0..256_u16 {
                let transport = Transport::Ports { source: port, destination: 53 };
                let ends = [[10, 0, 0, host], [10, 0, 1, 1]].map(IpAddr::from);
                let found = hash.hash_one(Key::Flow(Flow::new(ends[0], ends[1], 17, transport).0));
                low[(found & 255) as usize] += 1;
                high[(found >> 57) as usize] += 1;
                whole.insert(found);
            }
        }
        assert_eq!(whole.len(), 1 << 16);
        // Means of 256 and 512: ten standard deviations are 160 and 226.
        assert!(low.iter().all(|&count| (96..=416).contains(&count)), "{low:?}");
        assert!(high.iter().all(|&count| (286..=738).contains(&count)), "{high:?}");
    }

    #[test]
    fn hosts_ports_and_bytes_that_differ_have_other_hashes() {
        let hash = KeyHash::default();
        let hosts = (0..1000_u32).map(|host| Key::Host(IpAddr::from(host.to_be_bytes())));
        let of_v6 = (0..1000_u128).map(|host| Key::Host(IpAddr::from(host.to_be_bytes())));
        let ports = (0..1000_u16).map(|port| Key::Port { protocol: 6, port: Some(port) });
        let none = [Key::Port { protocol: 6, port: None }, Key::Port { protocol: 17, port: None }];
        let all = hosts.chain(of_v6).chain(ports).chain(none).map(|key| hash.hash_one(key));
        assert_eq!(all.collect::<HashSet<_>>().len(), 3002);
        let texts = ["", "a", "b", "ab", "abcdefgh", "abcdefgh\0"].map(|text| hash.hash_one(text));
        assert_eq!(HashSet::from(texts).len(), 6);
    }
}
