//! What the recorder tells readers of the take under way.

use super::Recorder;
use crate::open::Written;

impl Recorder {
    /// Chunks that wait for a place: the members don't take them as fast as they come.
    pub fn chunks_waiting(&self) -> u32 {
        self.waiting.len() as u32
    }

    /// How far the take is written.
    pub fn written(&self) -> Written {
        let flights = self.members.iter().flat_map(|member| &member.in_flight);
        let mut under_way: Vec<u64> = flights.map(|flight| flight.chunk.sequence).collect();
        under_way.sort_unstable();
        let mut through = self.next_sequence.saturating_sub(1);
        while under_way.pop_if(|last| *last == through).is_some() {
            through -= 1;
        }
        let working = self.members.iter().map(|member| member.failed.is_none()).collect();
        Written { take: self.take.uuid, through, under_way, working }
    }
}
