//! The members of an array when a take starts.

use format::parity::OVERHEAD_BYTES;
use uuid::Uuid;

use crate::member::{Keep, Member};
use crate::open::MemberImage;

/// The members of an array as they were found, each with the room that the end of a take needs.
pub(super) fn of(
    images: Vec<MemberImage>,
    array: Uuid,
    parity: u8,
    flow_indexes: bool,
) -> Vec<Member> {
    let count = images.len() as u16;
    // The chunk that ends the take goes anywhere, so each keeps room for the longest, and its parity.
    let least = images.iter().map(|m| m.layout.chunk_min).max().unwrap_or(0);
    let keep = match parity {
        0 => Keep { flow_indexes, end: least, parity: 0 },
        _ => Keep {
            flow_indexes,
            end: least + OVERHEAD_BYTES,
            parity: images.iter().map(|m| m.layout.chunk_max).min().unwrap_or(0),
        },
    };
    let reach = if parity > 0 { super::reach::of(&images) } else { Vec::new() };
    let mut members: Vec<Member> = images
        .into_iter()
        .enumerate()
        .map(|(at, image)| Member::new(image, array, at as u16, count, keep))
        .collect();
    for (member, times) in members.iter_mut().zip(reach) {
        for (segment, times) in (0u64..).zip(times) {
            member.extend_reach(segment, times);
        }
    }
    members
}
