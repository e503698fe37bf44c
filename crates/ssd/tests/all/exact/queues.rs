//! Queues, event by event: jobs pass through servers one after another, and each server serves them one at a time in the order in
//! which they come. Nothing is computed ahead, so nothing can be computed wrongly ahead.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Picoseconds, so that no rate is rounded to what could be seen.
pub type Picoseconds = u64;

/// A stop on a job's way: a server, or nothing but time; and how long it takes there.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    pub server: Option<usize>,
    pub takes: Picoseconds,
}

#[derive(Clone, Debug)]
struct Job {
    name: usize,
    way: VecDeque<Stop>,
}

#[derive(Clone, Debug, Default)]
struct Server {
    serving: bool,
    waiting: VecDeque<Job>,
}

/// Servers and the jobs in them.
#[derive(Debug, Default)]
pub struct Queues {
    now: Picoseconds,
    servers: Vec<Server>,
    /// Jobs by where they are when their stop is over; slots are used again.
    under_way: Vec<Option<Job>>,
    free: Vec<usize>,
    /// When a stop is over, in what order that was decided, and for which slot.
    events: BinaryHeap<Reverse<(Picoseconds, u64, usize)>>,
    decided: u64,
}

impl Queues {
    pub fn new(servers: usize) -> Self {
        Self { servers: vec![Server::default(); servers], ..Self::default() }
    }

    pub fn now(&self) -> Picoseconds {
        self.now
    }

    /// Sends a job on its way now.
    pub fn send(&mut self, name: usize, way: impl IntoIterator<Item = Stop>) {
        self.arrive(Job { name, way: way.into_iter().collect() });
    }

    /// Goes on to the next job that has its whole way behind it. None if there are no jobs.
    pub fn next(&mut self) -> Option<usize> {
        while let Some(Reverse((at, _, slot))) = self.events.pop() {
            self.now = at;
            let mut job = self.under_way[slot].take().expect("an event has its job");
            self.free.push(slot);
            let left = job.way.pop_front().expect("it was at a stop");
            if let Some(server) = left.server {
                self.servers[server].serving = false;
                if let Some(next) = self.servers[server].waiting.pop_front() {
                    self.serve(next);
                }
            }
            if job.way.is_empty() {
                return Some(job.name);
            }
            self.arrive(job);
        }
        None
    }

    fn arrive(&mut self, job: Job) {
        match job.way[0].server {
            Some(server) if self.servers[server].serving => {
                self.servers[server].waiting.push_back(job);
            }
            _ => self.serve(job),
        }
    }

    fn serve(&mut self, job: Job) {
        let stop = job.way[0];
        if let Some(server) = stop.server {
            self.servers[server].serving = true;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.under_way.push(None);
            self.under_way.len() - 1
        });
        self.under_way[slot] = Some(job);
        self.events.push(Reverse((self.now + stop.takes, self.decided, slot)));
        self.decided += 1;
    }
}

#[cfg(test)]
mod tests {
    use base::Random;

    use super::*;

    const fn at(server: usize, takes: Picoseconds) -> Stop {
        Stop { server: Some(server), takes }
    }

    #[test]
    fn whoever_is_ready_first_is_served_first() {
        let mut queues = Queues::new(3);
        // Sent first, but late at the server that all three share.
        queues.send(0, [at(0, 100), at(2, 10)]);
        queues.send(1, [at(1, 20), at(2, 10)]);
        queues.send(2, [at(1, 20), at(2, 10)]);
        let done: Vec<_> =
            std::iter::from_fn(|| queues.next().map(|name| (name, queues.now()))).collect();
        assert_eq!(done, [(1, 30), (2, 50), (0, 110)]);
    }

    #[test]
    fn random_arrivals_wait_as_pollaczek_and_khinchine_say() {
        // One server with a service of s and Poisson arrivals that load it by r: the mean wait is s r / 2 (1 - r).
        let (service, load, jobs) = (1_000_000u64, 0.8, 1_000_000u32);
        let mut random = Random::new(5);
        let (mut arrival, mut arrivals) = (0, Vec::new());
        for _ in 0..jobs {
            let uniform = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
            arrival += (-(1.0 - uniform).ln() * service as f64 / load) as u64;
            arrivals.push(arrival);
        }
        let mut queues = Queues::new(1);
        for (name, &arrival) in arrivals.iter().enumerate() {
            queues.send(name, [Stop { server: None, takes: arrival }, at(0, service)]);
        }
        let mut waited = 0.0;
        while let Some(name) = queues.next() {
            waited += (queues.now() - arrivals[name] - service) as f64;
        }
        let found = waited / f64::from(jobs) / service as f64;
        let expected = load / (2.0 * (1.0 - load));
        assert!((found / expected - 1.0).abs() < 0.02, "{found} {expected}");
    }
}
