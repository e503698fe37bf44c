//! The library's values as JSON, as the program prints them with `--json`: times in UTC, sizes in bytes, durations in seconds.

use std::path::Path;

use base::{Duration, Rate, Timestamp};
use format::superblock::Protected;
use format::{Count, Ledger, Stage};
use recorder::{Event, ParityProgress};
use search::Tally;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::array::{
    CheckReport, Chunk, Completeness, Contents, CreateReport, DamagedChunk, DeleteReport,
    Description, Extracted, Flows, FoundArray, Gap, Group, IndexReport, IndexUse, Info, MemberInfo,
    MissingMember, NewMember, Order, OverwrittenPackets, RebuildPlan, RebuildReport,
    RecoveredChunks, Repair, Replayed, ScrubFinding, ScrubReport, StaleMember, Take, link_name,
};
use crate::instant::utc;
use crate::recording::{
    Account, CompleteFile, Files, IndexCounts, LinkState, Notice, Rejections, Snapshot, Started,
    Update,
};

/// Values as JSON, one after another.
fn list<T>(values: &[T], value: impl Fn(&T) -> Value) -> Value {
    values.iter().map(value).collect()
}

fn time(ns: u64) -> String {
    utc(Timestamp::from_nanos(ns))
}

/// A take with its ledger, what is on the media, and what is missing. `rejections` is what is known of packets that a filter rejected.
pub fn take(take: &Take, rejections: Rejections) -> Value {
    let packet_time = |ns: u64| (take.stored.packets > 0).then(|| time(ns));
    json!({
        "take": take.id.uuid,
        "started": utc(take.id.started),
        "first_packet": packet_time(take.first_ns),
        "last_packet": packet_time(take.last_ns),
        "state": take.state.to_string(),
        "chunks": take.chunks,
        "first_sequence": take.first_sequence,
        "last_sequence": take.last_sequence,
        "queues": take.queues,
        "on_media": take.stored,
        "captured_bytes": take.captured_bytes,
        "media_bytes": take.media_bytes,
        "parity": {"chunks": take.parity_chunks, "bytes": take.parity_bytes},
        "recovered": {
            "chunks": take.recovered_chunks,
            "packets": take.recovered.packets,
            "bytes": take.recovered.bytes,
        },
        "ledger": ledger(&take.ledger, rejections),
        "overwritten": take.overwritten,
        "missing": take.missing(),
        "gaps": list(&take.gaps, |gap| json!({
            "first_sequence": gap.first_sequence, "last_sequence": gap.last_sequence,
            "missing": gap.count, "from": time(gap.from_ns), "to": end_of(gap),
        })),
        "balances": take.balances(),
    })
}

/// An array: what it is made of, how full it is, what is protected, and how to copy a member.
pub fn array(info: &Info, contents: &Contents) -> Value {
    let members = info.members.iter().enumerate();
    let mut shown = json!({
        "array": info.uuid,
        "name": info.name,
        "created": utc(info.created),
        "generation": info.generation,
        "parity": info.parity,
        "recording": info.recording,
        "members": members.map(|(at, info)| member(at, info)).collect::<Value>(),
        "protected": list(&info.protected, protected),
        "remarks": info.remarks,
        "stale_members": list(&info.stale, stale),
        "copy": info.copy_commands(),
        "takes": contents.takes.len(),
        "chunks_total": contents.chunks.len(),
    });
    if let Some(coverage) = &contents.parity {
        shown["parity_groups"] = json!(coverage.groups);
        shown["parity_bytes"] = json!(coverage.bytes);
        shown["chunks_short_of_parity"] = json!(coverage.short_chunks);
    }
    shown
}

/// The arrays that were found. `takes` and what follows it are null for one that can't be opened.
pub fn found(arrays: &[FoundArray]) -> Value {
    list(arrays, |array| {
        let state = array.state.as_ref().ok();
        json!({
            "array": array.uuid, "name": array.name, "directory": array.directory,
            "targets": array.targets, "members": array.members,
            "present": state.map_or(array.targets.len(), |state| state.present),
            "capacity_bytes": array.capacity_bytes, "parity": array.parity,
            "error": array.state.as_ref().err(),
            "takes": state.map(|state| state.takes),
            "recording": state.map(|state| state.recording),
            "has_wrapped": state.map(|state| state.has_wrapped),
            "data_bytes": state.map(|state| state.data_bytes),
            "used_bytes": state.map(|state| state.used_bytes),
            "newest_packet": state.and_then(|state| state.newest_packet).map(utc),
        })
    })
}

/// All that is known of an array without reading its packets: what [`array()`] shows, and its drives, takes, rates and interfaces.
pub fn described(described: &Description) -> Value {
    let Description { info, drives, contents, takes } = described;
    let mut shown = array(info, contents);
    if let Some(members) = shown["members"].as_array_mut() {
        for (member, drive) in members.iter_mut().zip(drives) {
            member["drive"] = json!(drive);
        }
    }
    let details = contents.takes.iter().zip(takes);
    let details = details.map(|(of, details)| {
        let mut shown = take(of, of.rejections(&details.interfaces));
        shown["average_rate"] = json!(details.rates.map(|rates| rates.average.0));
        shown["peak_second_rate"] = json!(details.rates.map(|rates| rates.peak_second.0));
        shown["interfaces"] = list(&details.interfaces, |interface| {
            json!({
                "name": interface.name, "description": interface.description,
                "link_type": interface.link_type.0, "link": link_name(interface.link_type),
                "snap_length": interface.snap_length, "filter": interface.filter,
                "speed_bits": interface.speed_bits,
            })
        });
        shown
    });
    shown["takes"] = details.collect();
    shown["released"] = json!(contents.released.map(|released| json!({
        "sequence": released.sequence, "until": released.until.map(utc), "count": released.count,
    })));
    shown
}

/// What was deleted of an array, or would be.
pub fn deleted(report: &DeleteReport) -> Value {
    let (from, to) = report.span.map(|span| (utc(span.from), utc(span.to))).unzip();
    json!({
        "array": report.uuid, "name": report.name, "dry_run": report.dry_run,
        "takes": report.takes, "packets": report.packets, "bytes": report.bytes,
        "first_packet": from, "last_packet": to, "protected": list(&report.protected, protected),
        "members": list(&report.members, |member| json!({
            "target": member.target,
            "done": if member.is_file { "removed" } else { "superblocks erased" },
        })),
        "missing_members": report.missing, "directory": report.directory, "others": report.others,
    })
}

fn member(at: usize, member: &MemberInfo) -> Value {
    json!({
        "member": at,
        "target": member.target,
        "identity": member.identity,
        "capacity_bytes": member.capacity_bytes,
        "segments": member.segments,
        "segment_bytes": member.segment_bytes,
        "chunk_max": member.chunk_max,
        "used_bytes": member.used_bytes,
        "extents": list(&member.extents, |part| json!({"from": part.offset, "length": part.length})),
    })
}

fn protected(range: &Protected) -> Value {
    json!({"from": utc(range.from), "to": utc(range.to), "label": range.label})
}

/// A member that is out of date.
fn stale(stale: &StaleMember) -> Value {
    json!({
        "member": stale.member, "identity": stale.identity,
        "newest_packet": stale.newest_packet.map(utc), "missed_take_started": stale.missed_take_started.map(utc),
    })
}

/// A chunk: which one, where it lies, what is in it.
pub fn chunk(chunk: &Chunk) -> Value {
    let (record, place, summary) = (&chunk.record, &chunk.place, &chunk.record.summary);
    json!({
        "sequence": record.sequence, "take": record.take.uuid, "member": place.member,
        "offset": place.offset, "length": summary.length, "packets": summary.packets, "queue": summary.queue,
        "first_ns": summary.first_ns, "last_ns": summary.last_ns, "replaces": record.replaces, "end": summary.end,
        "parity_of": record.parity.map(|part| part.group),
    })
}

/// An array that was created.
pub fn created(report: &CreateReport) -> Value {
    let members = report.members.iter().enumerate();
    json!({
        "array": report.uuid, "name": report.name, "parity": report.parity, "dry_run": report.dry_run,
        "members": members.map(|(at, member)| new_member(at, member)).collect::<Value>(),
    })
}

fn new_member(at: usize, member: &NewMember) -> Value {
    json!({
        "member": at, "target": member.target, "capacity_bytes": member.capacity_bytes,
        "segments": member.segments, "segment_bytes": member.segment_bytes,
        "chunk_max": member.chunk_max, "trimmed": member.trimmed,
        "writes_bytes": member.writes_bytes, "share_of_life": member.share_of_life,
    })
}

/// What a check found.
pub fn checked(report: &CheckReport) -> Value {
    let damaged = |chunk: &DamagedChunk| {
        json!({
            "sequence": chunk.sequence, "target": chunk.target, "offset": chunk.offset,
            "packets": chunk.packets, "why": chunk.reason.to_string(),
        })
    };
    json!({
        "chunks": report.chunks, "bytes": report.bytes, "takes": report.takes,
        "missing_packets": report.missing.packets, "unbalanced_takes": report.unbalanced_takes,
        "recovered": recovered(&report.recovered),
        "stale_members": list(&report.stale, stale), "overwritten_chunks": report.overwritten_chunks,
        "damaged": list(&report.damaged, damaged),
    })
}

/// What a scrub found and repaired.
pub fn scrubbed(report: &ScrubReport) -> Value {
    let missing = |missing: &MissingMember| {
        json!({
            "member": missing.member, "identity": missing.identity, "chunks": missing.chunks,
            "recoverable": missing.recoverable,
        })
    };
    json!({
        "chunks": report.chunks, "bytes": report.bytes, "groups": report.groups, "parity": report.parity,
        "without_parity": report.without_parity, "parity_missing": report.parity_missing,
        "less_parity": report.less_parity, "missing_packets": report.missing_packets, "repair": report.repair,
        "superblocks": !report.superblocks_differ,
        "stale_members": list(&report.stale, stale), "overwritten_chunks": report.overwritten_chunks,
        "findings": list(&report.findings, finding),
        "missing_members": list(&report.missing_members, missing),
    })
}

fn finding(finding: &ScrubFinding) -> Value {
    json!({
        "member": finding.member, "target": finding.target, "offset": finding.offset,
        "length": finding.length, "sequence": finding.sequence, "take": finding.take,
        "time": utc(finding.time), "packets": finding.packets, "fault": finding.fault.to_string(),
        "damage": finding.fault.is_damage(),
        "repair": match finding.repair {
            Repair::None => "impossible",
            Repair::Possible => "possible",
            Repair::Done => "done",
            Repair::Failed => "failed",
        },
    })
}

/// What a rebuild of a member onto a target would write.
pub fn rebuild_plan(plan: &RebuildPlan<'_>, member: u16, onto: &Path) -> Value {
    json!({
        "array": plan.array(), "member": member, "onto": onto, "dry_run": true,
        "chunks": plan.chunks(), "bytes": plan.writes_bytes(), "groups_without_parity": plan.groups_without_parity(),
    })
}

/// What a rebuild of a member has written to its target.
pub fn rebuilt(array: Uuid, member: u16, onto: &Path, report: &RebuildReport) -> Value {
    json!({
        "array": array, "member": member, "onto": onto, "dry_run": false,
        "chunks": report.chunks, "bytes": report.bytes, "parity_chunks": report.parity_chunks,
        "found_written": report.found_written, "filled": report.filled,
        "groups_without_parity": report.groups_without_parity, "joined": report.joined, "segments": report.segments,
    })
}

/// What was extracted, and what could not be read.
pub fn extracted(extracted: &Extracted) -> Value {
    let Extracted { packets, bytes, read, .. } = extracted;
    json!({
        "packets": packets, "bytes": bytes,
        "missing": read.missing, "unreadable": read.unreadable.count,
        "overwritten": overwritten(&read.overwritten), "holes": list(&read.holes, hole),
        "recovered": recovered(&read.recovered),
        "stale_members": list(&read.stale, stale), "overwritten_chunks": read.overwritten_chunks,
        "index": index_use(&read.index),
        "completeness": completeness(&Completeness::of_packets(read)),
    })
}

/// How complete an answer is.
pub fn completeness(of: &Completeness) -> Value {
    json!({
        "complete": of.complete,
        "missing_members": of.members.missing, "stale_members": of.members.stale,
        "missing": of.missing, "unreadable": of.unreadable, "overwritten": of.overwritten,
        "overtaken": of.overtaken, "outdated_chunks": of.outdated_chunks,
        "overwritten_from": of.overwritten_from.map(utc), "overwritten_to": of.overwritten_to.map(utc),
    })
}

/// How flow indexes narrowed what was read.
fn index_use(used: &IndexUse) -> Value {
    json!({
        "chunks": used.chunks, "candidates": used.candidates, "not_indexed": used.not_indexed,
        "in_memory": used.in_memory,
        "condition": used.condition, "not_understood": used.not_understood, "left_out": used.left_out,
    })
}

/// What became of flow indexes.
pub fn indexed(report: &IndexReport) -> Value {
    let left_out =
        report.left_out.iter().map(|(kind, segments)| json!({"keys": kind, "segments": segments}));
    json!({
        "segments": report.segments, "indexed": report.indexed, "had": report.had,
        "not_full": report.not_full, "no_room": report.no_room, "left_out": left_out.collect::<Vec<_>>(),
        "unreadable_chunks": report.unreadable, "packets": report.packets, "bytes": report.bytes,
        "index_bytes": report.index_bytes, "elapsed_s": report.elapsed.as_secs_f64(),
    })
}

/// What was counted, with Community IDs of flows if they are wanted, and what could not be read.
pub fn flows(flows: &Flows, with_ids: bool) -> Value {
    let Flows { ranking, order, read, .. } = flows;
    let group = match ranking.group {
        Group::Flows => "flows",
        Group::Hosts => "hosts",
        Group::Ports => "ports",
    };
    let mut shown = json!({
        "group": group,
        "by": match order { Order::Bytes => "bytes", Order::Packets => "packets" },
        "found": ranking.found, "total": tally(&ranking.total), "not_listed": tally(&ranking.rest),
        "beyond_max_rows": tally(&ranking.beyond), "not_ip": tally(&ranking.not_ip),
        "complete": flows.is_complete(),
        "missing": read.missing, "unreadable": read.unreadable.count,
        "overwritten": overwritten(&read.overwritten), "holes": list(&read.holes, hole),
        "recovered": recovered(&read.recovered),
        "stale_members": list(&read.stale, stale), "overwritten_chunks": read.overwritten_chunks,
        "index": index_use(&read.index),
        "completeness": completeness(&Completeness::of_packets(read)),
    });
    shown[group] = flows.json_rows(with_ids);
    shown
}

fn tally(tally: &Tally) -> Value {
    let (first, last) = tally.span.map(|(first, last)| (utc(first), utc(last))).unzip();
    json!({"packets": tally.packets, "bytes": tally.bytes, "first": first, "last": last})
}

/// What was replayed, and what could not be read or sent.
pub fn replayed(replayed: &Replayed) -> Value {
    let Replayed { sent, read } = replayed;
    json!({
        "packets": sent.packets, "bytes": sent.bytes, "elapsed_s": sent.elapsed.as_secs_f64(),
        "late_max_s": sent.late_max.as_secs_f64(), "late_mean_s": sent.late_mean().as_secs_f64(),
        "oversize": sent.oversize, "truncated": sent.truncated, "not_udp": sent.not_udp,
        "other_link_type": sent.other_link_type, "unsent": sent.unsent,
        "unreadable": read.unreadable.count,
        "recovered": recovered(&read.recovered),
        "overwritten": overwritten(&read.overwritten), "holes": list(&read.holes, hole),
    })
}

/// What parity recovered.
fn recovered(recovered: &RecoveredChunks) -> Value {
    let RecoveredChunks { chunks, bytes, count } = recovered;
    json!({"chunks": chunks, "bytes": bytes, "packets": count.packets})
}

/// What the ring overwrote.
fn overwritten(overwritten: &OverwrittenPackets) -> Value {
    let (from, to) = overwritten.span.map(|(from, to)| (utc(from), utc(to))).unzip();
    let Count { packets, bytes } = overwritten.count;
    json!({"packets": packets, "bytes": bytes, "from": from, "to": to})
}

/// None if no chunk tells.
fn end_of(gap: &Gap) -> Option<String> {
    (gap.to_ns != u64::MAX).then(|| time(gap.to_ns))
}

fn hole(hole: &Gap) -> Value {
    json!({
        "packets": hole.count.packets, "bytes": hole.count.bytes,
        "from": time(hole.from_ns), "to": end_of(hole),
    })
}

/// A ledger. `cut` and `filtered` stand outside `lost`, because the user asked for them. `filtered` is null if rejected packets were not
/// counted.
fn ledger(ledger: &Ledger, rejections: Rejections) -> Value {
    let mut value = json!(ledger);
    if let Some(lost) = value["lost"].as_object_mut() {
        lost.remove(Stage::Filtered.key());
        lost.remove(Stage::Cut.key());
    }
    value["cut"] = json!(ledger.lost(Stage::Cut));
    value["filtered"] = match rejections {
        Rejections::NotCounted => Value::Null,
        Rejections::NoFilter | Rejections::Counted => json!(ledger.lost(Stage::Filtered)),
    };
    value
}

/// A recording that has started.
pub fn started(started: &Started, source: &str) -> Value {
    let Started { take, array, array_uuid, drives, buffers, first_sequence, .. } = started;
    match &started.file {
        Some(file) => json!({
            "event": "started", "started": utc(started.at), "file": file, "source": source,
            "buffers": buffers,
        }),
        None => json!({
            "event": "started", "take": take, "started": utc(started.at),
            "array": array, "array_uuid": array_uuid, "members": drives, "source": source,
            "buffers": buffers, "first_sequence": first_sequence,
        }),
    }
}

/// What a recording has to tell; None of what each chunk and each segment brings.
pub fn update(update: &Update, started: &Started) -> Option<Value> {
    match update {
        update if update.is_routine() => None,
        Update::Remark(remark) => Some(json!({"event": remark.key(), "text": remark.text()})),
        Update::Event(after, event) => self::event(event, started, *after),
        Update::Notice(after, notice) => Some(self::notice(notice, *after)),
    }
}

/// Something that happened in a recording, so long after the start; None of chunks that are on their media.
pub fn event(event: &Event, started: &Started, after: Duration) -> Option<Value> {
    let target = |member: &u16| started.drives.get(usize::from(*member));
    let (name, target) = match event {
        Event::Acknowledged { .. }
        | Event::Durable { .. }
        | Event::DurableChunk { .. }
        | Event::Finished => return None,
        Event::Reused { member, segment, last_ns } => {
            return Some(json!({
                "event": "reused", "member": member, "segment": segment, "last_ns": last_ns,
            }));
        }
        Event::MemberFailed { member, .. } => ("member_failed", target(member)),
        Event::TrimFailed { member, .. } => ("trim_failed", target(member)),
        Event::ArrayFull { .. } => ("array_full", None),
        Event::ParityReduced { .. } => ("parity_reduced", None),
        Event::NoMemberLeft => ("no_member_left", None),
    };
    Some(json!({
        "event": name, "target": target, "text": event.to_string(), "after_s": after.as_secs_f64(),
    }))
}

/// Loss, silence or a link's failure that begins or ends, so long after the start.
pub fn notice(notice: &Notice, after: Duration) -> Value {
    json!({"event": notice.key(), "text": notice.to_string(), "after_s": after.as_secs_f64()})
}

/// A file that is complete, so long after the start.
pub fn file(file: &CompleteFile, after: Duration) -> Value {
    let CompleteFile { path, bytes, packets } = file;
    json!({
        "event": "file", "file": path, "bytes": bytes, "packets": packets, "after_s": after.as_secs_f64(),
    })
}

/// Where a recording is. `rate` is how fast it was written of late, `rates` the same for each member, `fill` the share of its chunk
/// buffers in use.
pub fn progress(
    snapshot: &Snapshot,
    rejections: Rejections,
    (rate, rates): (Rate, &[f64]),
    fill: f64,
) -> Value {
    let members = snapshot.members.iter().zip(rates);
    let members: Value = members
        .map(|(m, rate)| json!({"written": m.written, "rate": rate, "working": m.working}))
        .collect();
    let counted = rejections != Rejections::NotCounted;
    let average = Rate::of(snapshot.written(), snapshot.elapsed);
    json!({
        "event": "progress", "after_s": snapshot.elapsed.as_secs_f64(),
        "rate": rate.0, "average_rate": average.0, "buffer_fill": fill,
        "offered_packets": snapshot.offered_packets, "lost_packets": snapshot.lost_packets,
        "truncated": snapshot.truncated, "members": members,
        "filtered_packets": counted.then(|| snapshot.filtered_packets()),
        "cut_packets": snapshot.cut_packets(),
        "ledger": ledger(&snapshot.ledger, rejections), "reused_to_ns": snapshot.reused_to_ns,
        "parity": snapshot.parity.map(parity), "link": snapshot.link.map(LinkState::key),
    })
}

/// Where a recording is, as its control socket tells. The ledger counts what was packed and placed so far.
pub fn status(started: &Started, snapshot: &Snapshot) -> Value {
    let members = snapshot.members.iter().zip(&started.drives);
    let members = members.map(|(member, target)| {
        json!({"target": target, "written": member.written, "working": member.working})
    });
    json!({
        "take": started.take, "started": utc(started.at), "after_s": snapshot.elapsed.as_secs_f64(),
        "buffers": started.buffers, "buffers_held": snapshot.buffers_held,
        "buffers_waiting": snapshot.buffers_waiting, "ledger": ledger(&snapshot.ledger, started.rejections),
        "acknowledged": snapshot.acknowledged, "durable": snapshot.durable,
        "members": members.collect::<Value>(), "written_through": snapshot.written_through, "under_way": snapshot.under_way,
        "reused_to_ns": snapshot.reused_to_ns,
        "segments_to_index": snapshot.segments_to_index, "link": snapshot.link.map(LinkState::key),
        "writes": snapshot.writes,
    })
}

/// What came of a recording.
pub fn recorded(account: &Account) -> Value {
    let mut value = json!({
        "event": "finished", "take": account.started.take,
        "after_s": account.elapsed.as_secs_f64(), "written": account.written,
        "average_rate": account.rate().0, "ledger": ledger(&account.ledger, account.started.rejections),
        "reason": account.reason.key(),
        "acknowledged": account.acknowledged, "durable": account.durable,
        "buffers": account.started.buffers, "buffers_most": account.buffers_most,
        "notes": account.notes, "simulated": account.started.simulated,
        "reused_to_ns": account.reused_to_ns, "parity": account.parity.map(parity),
        "index": account.index.map(index_counts),
    });
    if let Some(Files { complete, removed, oldest, newest }) = &account.files {
        value["files"] =
            json!({"complete": complete, "removed": removed, "oldest": oldest, "newest": newest});
        value["take"].take();
    }
    value
}

fn index_counts(counts: IndexCounts) -> Value {
    let IndexCounts { filled, indexed, chunks_left_out, bytes } = counts;
    json!({
        "segments_filled": filled, "segments_indexed": indexed, "chunks_left_out": chunks_left_out, "bytes": bytes,
    })
}

fn parity(parity: ParityProgress) -> Value {
    let ParityProgress { parity, groups, bytes, chunks_short } = parity;
    json!({"parity": parity, "groups": groups, "bytes": bytes, "chunks_short": chunks_short})
}
