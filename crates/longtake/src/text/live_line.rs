//! The line that shows a recording under way: how full, for how long still, how fast, what is lost.

use base::units::grouped;
use base::{ByteSize, Duration, Timestamp};

use crate::instant::utc;
use crate::recording::{LinkState, Rejections, Snapshot, Started};

/// Columns that the line takes at most.
pub const COLUMNS_MAX: usize = 100;

/// What members have written in an interval, in bytes a second.
pub fn rates(before: &[u64], snapshot: &Snapshot, interval: Duration) -> Vec<f64> {
    let seconds = interval.as_secs_f64().max(1e-9);
    let before = before.iter().copied().chain(std::iter::repeat(0));
    let written = snapshot.members.iter().map(|member| member.written);
    written.zip(before).map(|(now, before)| now.saturating_sub(before) as f64 / seconds).collect()
}

/// The line. `rates` are those of the members.
pub fn line(started: &Started, snapshot: &Snapshot, rates: &[f64], truncated: u64) -> String {
    let total: f64 = rates.iter().sum();
    let mut parts = vec![snapshot.elapsed.to_string(), rate(total)];
    // Without a limit there is nothing to fill.
    if started.capacity.total_bytes > 0 {
        parts.push(fill(started, snapshot, total));
    }
    let buffers = 100.0 * f64::from(snapshot.buffers_held) / f64::from(started.buffers.max(1));
    parts.push(format!("buffers {buffers:.0} %"));
    parts.push(format!("lost {}", grouped(snapshot.lost_packets)));
    if let Some(link) = snapshot.link {
        parts.push(match link {
            LinkState::Up => "link up".to_owned(),
            LinkState::NoCarrier => "NO CARRIER".to_owned(),
            LinkState::Down => "LINK DOWN".to_owned(),
        });
    }
    match started.rejections {
        Rejections::Counted => {
            parts.push(format!("filtered {}", grouped(snapshot.filtered_packets())));
        }
        Rejections::NoFilter | Rejections::NotCounted => {}
    }
    if snapshot.cut_packets() > 0 {
        parts.push(format!("cut {}", grouped(snapshot.cut_packets())));
    }
    if truncated > 0 {
        parts.push(format!("truncated {}", grouped(truncated)));
    }
    let failed = snapshot.members.iter().filter(|member| !member.working).count();
    if failed > 0 {
        parts.push(format!("{failed} FAILED"));
    }
    let working = snapshot.members.iter().zip(rates).filter(|(member, _)| member.working);
    let slowest = working.map(|(_, rate)| *rate).fold(f64::INFINITY, f64::min);
    if snapshot.members.len() > 1 && slowest.is_finite() {
        parts.push(format!("slowest member {}", rate(slowest)));
    }
    // What comes last matters least.
    while parts.len() > 1 && parts.join("  ").chars().count() > COLUMNS_MAX {
        parts.pop();
    }
    parts.join("  ")
}

/// How full the array is and how long that lasts, or since when a ring has everything.
fn fill(started: &Started, snapshot: &Snapshot, rate: f64) -> String {
    if snapshot.reused_to_ns > 0 {
        let since = utc(Timestamp::from_nanos(snapshot.reused_to_ns));
        let time = since.split_once('T').map_or(since.as_str(), |(_, time)| time);
        return format!("nothing missing since {}", time.get(..8).unwrap_or(time));
    }
    let written = snapshot.written();
    let percent = 100.0 * started.capacity.fill(written);
    if rate < 1.0 {
        return format!("{percent:.0} % full");
    }
    let left = started.capacity.left(written) as f64 / rate;
    // A year is as good as never.
    match left < 31_536_000.0 {
        true => format!("{percent:.0} % full, {} left", Duration::from_secs_f64(left)),
        false => format!("{percent:.0} % full"),
    }
}

fn rate(bytes: f64) -> String {
    format!("{}/s", ByteSize(bytes as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Capacity, MemberSnapshot};
    use format::Stage;

    fn started() -> Started {
        Started {
            take: Default::default(),
            at: Timestamp::from_nanos(0),
            first_sequence: 0,
            array: "array".to_owned(),
            array_uuid: Default::default(),
            drives: vec!["a".to_owned(), "b".to_owned()],
            buffers: 100,
            simulated: false,
            rejections: Rejections::Counted,
            capacity: Capacity { total_bytes: 10_000_000_000, free_bytes: 10_000_000_000 },
            file: None,
        }
    }

    fn snapshot(written: [u64; 2]) -> Snapshot {
        let member = |written| MemberSnapshot { written, rate: 11e12, working: true };
        Snapshot {
            elapsed: Duration::from_secs(5),
            members: written.map(member).to_vec(),
            buffers_held: 7,
            lost_packets: 3,
            ..Snapshot::default()
        }
    }

    #[test]
    fn members_figures_are_bytes_written_in_the_interval_and_not_estimates() {
        let rates = rates(
            &[500_000_000, 0],
            &snapshot([1_500_000_000, 500_000_000]),
            Duration::from_secs(2),
        );
        assert_eq!(rates, [500e6, 250e6]);
    }

    #[test]
    fn the_line_says_fill_time_left_rate_loss_and_what_was_filtered() {
        let snapshot = snapshot([1_500_000_000, 500_000_000]);
        let line = line(&started(), &snapshot, &[600e6, 400e6], 0);
        assert_eq!(
            line,
            "5.00 s  1.00 GB/s  20 % full, 8.00 s left  buffers 7 %  lost 3  filtered 0  slowest member 400 MB/s"
        );
        assert!(line.len() <= COLUMNS_MAX);
    }

    #[test]
    fn the_line_says_how_many_packets_were_cut_if_any_were() {
        let mut snapshot = snapshot([1_500_000_000, 500_000_000]);
        snapshot.lost_by_stage[Stage::Cut.index()] = 1234;
        let line = line(&started(), &snapshot, &[600e6, 400e6], 0);
        assert!(line.contains("lost 3  filtered 0  cut 1,234"), "{line}");
    }

    #[test]
    fn the_line_shows_the_link_of_an_interface() {
        for (link, words) in [
            (Some(LinkState::Up), "lost 3  link up  "),
            (Some(LinkState::NoCarrier), "lost 3  NO CARRIER  "),
            (Some(LinkState::Down), "lost 3  LINK DOWN  "),
            (None, "lost 3  filtered 0"),
        ] {
            let snapshot = Snapshot { link, ..snapshot([1_500_000_000, 500_000_000]) };
            let line = line(&started(), &snapshot, &[600e6, 400e6], 0);
            assert!(line.contains(words), "{line}");
        }
    }

    #[test]
    fn a_wrapped_ring_says_since_when_nothing_is_missing() {
        let snapshot = Snapshot { reused_to_ns: 3_661_000_000_000, ..snapshot([1, 1]) };
        let line = line(&started(), &snapshot, &[1.0, 1.0], 0);
        assert!(line.contains("nothing missing since 01:01:01"), "{line}");
        assert!(!line.contains("left"), "{line}");
    }

    #[test]
    fn the_line_never_takes_more_than_a_hundred_columns() {
        let mut snapshot = snapshot([u64::MAX / 4; 2]);
        snapshot.lost_packets = u64::MAX;
        snapshot.lost_by_stage = [u64::MAX; Stage::ALL.len()];
        let line = line(&started(), &snapshot, &[9.99e11; 2], u64::MAX);
        assert!(line.chars().count() <= COLUMNS_MAX, "{line}");
        assert!(line.contains("lost"), "{line}");
    }
}
