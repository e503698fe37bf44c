//! The planted bugs: those in the recorder as changes of its sources, and those between it and the drives.

use longtake_chaos::adversary::Trick;

/// A bug that is planted in the recorder.
#[derive(Clone, Copy, Debug)]
pub struct Bug {
    /// Its name in the copy of the recorder.
    pub name: &'static str,
    /// What it does wrong.
    pub wrong: &'static str,
    /// The number of seeds within which the prover must find it: a few times what it needs today, because any change to what
    /// a seed chooses moves the first seed that finds the bug.
    pub seeds: u64,
    /// The changes to the recorder's sources that plant it.
    pub edits: &'static [Edit],
}

/// A change of one of the recorder's sources.
#[derive(Clone, Copy, Debug)]
pub struct Edit {
    /// The file, below `crates/recorder/src`.
    pub file: &'static str,
    /// A text that the file has exactly once.
    pub find: &'static str,
    /// What stands there instead. `PLANTED` is true while the bug is planted; otherwise the code must do what it did.
    pub replace: &'static str,
}

/// Lies of the drives to the recorder, with the seeds within which each must be found.
pub const TRICKS: [(Trick, u64); 4] = [
    (Trick::AnswersEarly, 200),
    (Trick::HidesShort, 500),
    (Trick::DropsFlushes, 200),
    (Trick::SwapsWrites, 200),
];

/// Where the short form begins to look for bugs that few seeds find: at the first that does. If that has moved, it goes round to the first
/// seed, so that a bug is found within the same seeds. The long form begins at the first for all bugs, and says how many it takes.
pub const NOT_FROM_THE_FIRST: [(&str, u64); 15] = [
    ("TrimsProtected", 29),
    ("SkipsAtTheWrap", 37),
    ("TakesWhatFollowedForIndexed", 45),
    ("ForgetsJoinedMember", 50),
    ("ForgetsReusedTime", 53),
    ("HidesOverwritten", 53),
    ("IndexesWhatAnEarlierLapLeft", 57),
    ("EndsLossesTooEarly", 61),
    ("WritesAFlowIndexIntoAReusedSegment", 77),
    ("ReusesTooEarly", 98),
    ("IndexesBeforeFlush", 499),
    ("ForgetsGroups", 1_196),
    ("WritesGoodCopyFirst", 10_464),
    ("PassesOverTheEndOfATake", 11_139),
    ("TakesForIndexedWhatParityNames", 16_161),
];

/// Bugs in the recorder.
pub const BUGS: [Bug; 48] = [
    // Which segment the ring takes next, and when it is closed.
    Bug {
        name: "ReusesTooEarly",
        wrong: "A segment is reused while its index is still to be written.",
        seeds: 500,
        edits: &[Edit {
            file: "member.rs",
            find: "if self.busy(segment) {\n                later = true;",
            replace: "if self.busy(segment) && !PLANTED {\n                later = true;",
        }],
    },
    Bug {
        name: "SkipsAtTheWrap",
        wrong: "Coming round, the ring passes over its first segment.",
        seeds: 500,
        edits: &[Edit {
            file: "member.rs",
            find: "self.next_from = (segment + 1) % self.layout.segments;",
            replace: "self.next_from = (segment + 1) % self.layout.segments;
                if PLANTED && self.next_from == 0 {
                    self.next_from = 1;
                }",
        }],
    },
    Bug {
        name: "ReusesProtected",
        wrong: "Segments are reused whether they are protected or not.",
        seeds: 500,
        edits: &[Edit {
            file: "member.rs",
            find: "Segment::Live(live) => wrap && !kept(&self.reach(segment, live)),",
            replace: "Segment::Live(live) => wrap && (PLANTED || !kept(&self.reach(segment, live))),",
        }],
    },
    Bug {
        name: "ForgetsGroups",
        wrong: "A ring takes no account of the groups that a segment's chunks belong to.",
        seeds: 2000,
        edits: &[Edit {
            file: "member.rs",
            find: "let Times { first_ns, last_ns } = self.group_times[segment as usize];",
            replace: "let Times { first_ns, last_ns } =
                    if PLANTED { Times::NONE } else { self.group_times[segment as usize] };",
        }],
    },
    Bug {
        name: "CrossesSegmentEnd",
        wrong: "A chunk may be so long that no room is left for the index.",
        seeds: 200,
        edits: &[Edit {
            file: "member.rs",
            find: "self.layout.fits(used, head.chunks.len() as u64 + extra, length + reserve)",
            replace: "if PLANTED {
                    return head.used + u64::from(length) <= self.layout.segment_bytes;
                }
                self.layout.fits(used, head.chunks.len() as u64 + extra, length + reserve)",
        }],
    },
    Bug {
        name: "IndexesBeforeFlush",
        wrong: "An index is written before its chunks are flushed.",
        seeds: 2000,
        edits: &[Edit {
            file: "member.rs",
            find: "Step::Flush(flush) if flush <= self.flushes_done =>",
            replace: "Step::Flush(flush) if PLANTED || flush <= self.flushes_done =>",
        }],
    },
    Bug {
        name: "ForgetsIndexEntry",
        wrong: "An index lacks its segment's last chunk.",
        seeds: 2000,
        edits: &[Edit {
            file: "member.rs",
            find: "let section_bytes = self.layout.segment_bytes - used;",
            replace: "let section_bytes = self.layout.segment_bytes - used;
                let mut chunks = chunks;
                if PLANTED && chunks.len() > 1 {
                    Arc::make_mut(&mut chunks).pop();
                }",
        }],
    },
    Bug {
        name: "AcknowledgesOutOfOrder",
        wrong: "A chunk is acknowledged though one before it is still being written.",
        seeds: 200,
        edits: &[Edit {
            file: "member.rs",
            find: "self.in_flight.pop_front_if(|flight| {",
            replace: "if PLANTED {
                    let done = self.in_flight.iter().position(|f| f.done == Some(Ok(())));
                    return done.and_then(|at| self.in_flight.remove(at));
                }
                self.in_flight.pop_front_if(|flight| {",
        }],
    },
    // What is trimmed.
    Bug {
        name: "TrimsProtected",
        wrong: "Segments are trimmed whether they are protected or not.",
        seeds: 500,
        edits: &[Edit {
            file: "machine/upkeep.rs",
            find: "member.to_trim(self.config.trim_ahead, &self.protected)",
            replace: "member.to_trim(self.config.trim_ahead, if PLANTED { &[] } else { &self.protected })",
        }],
    },
    Bug {
        name: "TrimsUntold",
        wrong: "Segments are trimmed before a chunk is written that says that they were given up.",
        seeds: 500,
        edits: &[Edit {
            file: "machine/upkeep.rs",
            find: "if !self.is_told(given_up) ||",
            replace: "if !(PLANTED || self.is_told(given_up)) ||",
        }],
    },
    // What the state machine counts, numbers, acknowledges and gives back.
    Bug {
        name: "ReusesNumbers",
        wrong: "The numbers behind a hole are given out again.",
        seeds: 2000,
        edits: &[
            Edit {
                file: "open.rs",
                find: "last + SEQUENCE_GAP",
                replace: "last + if PLANTED { 1 } else { SEQUENCE_GAP }",
            },
            Edit {
                file: "machine.rs",
                find: "let next_sequence = array.next_sequence.max(config.started.as_nanos() / 1000);",
                replace: "let next_sequence = match array.next_sequence {
                        next if PLANTED && next > 0 => next,
                        next => next.max(config.started.as_nanos() / 1000),
                    };",
            },
        ],
    },
    Bug {
        name: "ForgetsReusedTime",
        wrong: "A recording does not go on from the time that the ring had come to before.",
        seeds: 5000,
        edits: &[Edit {
            file: "machine.rs",
            find: "heads.filter_map(|head| head.reused_to_ns).max().unwrap_or(0)",
            replace: "heads.filter_map(|head| head.reused_to_ns).max().filter(|_| !PLANTED).unwrap_or(0)",
        }],
    },
    Bug {
        name: "CountsLossesTwice",
        wrong: "A chunk's losses are entered twice.",
        seeds: 200,
        edits: &[Edit {
            file: "machine.rs",
            find: "ledger.store(summary.stored());",
            replace: "if PLANTED {
                    ledger.add(&waiting.chunk.losses);
                }
                ledger.store(summary.stored());",
        }],
    },
    Bug {
        name: "FlushCoversTooMuch",
        wrong: "A flush is taken to cover what was acknowledged while it was under way.",
        seeds: 500,
        edits: &[Edit {
            file: "machine.rs",
            find: "let groups = std::mem::take(&mut member.flushing_groups);",
            replace: "let mut groups = std::mem::take(&mut member.flushing_groups);
                let mut count = count;
                if PLANTED {
                    count += std::mem::take(&mut member.unflushed);
                    groups.append(&mut member.unflushed_groups);
                }",
        }],
    },
    Bug {
        name: "ReleasesEarly",
        wrong: "A buffer is given back when its write is asked for.",
        seeds: 100,
        edits: &[
            Edit {
                file: "machine.rs",
                find: "if fills {",
                replace: "if PLANTED {
                        self.release(buffer);
                    }
                    if fills {",
            },
            Edit {
                file: "machine.rs",
                find: "self.release(buffer);",
                replace: "if !PLANTED {
                        self.release(buffer);
                    }",
            },
        ],
    },
    Bug {
        name: "ForgetsTheEnd",
        wrong: "The chunk that ends a take is never asked for.",
        seeds: 100,
        edits: &[Edit {
            file: "machine.rs",
            find: "self.outputs.push_back(Output::WantEnd);",
            replace: "if !PLANTED {
                    self.outputs.push_back(Output::WantEnd);
                }",
        }],
    },
    Bug {
        name: "ForgetsFailedChunks",
        wrong: "A chunk whose write failed is not written again.",
        seeds: 500,
        edits: &[Edit {
            file: "machine/parity.rs",
            find: "let chunk = ReadyChunk { buffer, summary: placed.summary, losses: Ledger::default() };",
            replace: "if PLANTED {
                    self.release(buffer);
                    return;
                }
                let chunk = ReadyChunk { buffer, summary: placed.summary, losses: Ledger::default() };",
        }],
    },
    // Parity.
    Bug {
        name: "ParityForgetsLast",
        wrong: "Parity lacks the last chunk of a group that is full.",
        seeds: 200,
        edits: &[Edit {
            file: "machine.rs",
            find: "self.outputs.push_back(Output::WriteChunk { buffer, place, record, fold, tag });",
            replace: "let fold = if PLANTED && fills { Fold::default() } else { fold };
                self.outputs.push_back(Output::WriteChunk { buffer, place, record, fold, tag });",
        }],
    },
    Bug {
        name: "ParityOutOfPlace",
        wrong: "The two parities of a group change places.",
        seeds: 200,
        edits: &[Edit {
            file: "run.rs",
            find: "let Some(parity) = parity else { continue };",
            replace: "let Some(parity) = parity else { continue };
                let place = if PLANTED { 1 - place } else { place };",
        }],
    },
    Bug {
        name: "ParityOnOwnMember",
        wrong: "Parity goes to a member that has a chunk of the same group.",
        seeds: 200,
        edits: &[Edit {
            file: "machine/parity.rs",
            find: "!group.has(*at as u16)",
            replace: "(PLANTED || !group.has(*at as u16))",
        }],
    },
    Bug {
        name: "AcknowledgesBeforeParity",
        wrong: "A group is acknowledged when its data is written and its parity asked for.",
        seeds: 500,
        edits: &[Edit {
            file: "machine/groups.rs",
            find: "matches!(p.state, State::Written(_) | State::Dropped)",
            replace: "matches!(p.state, State::Written(_) | State::Dropped)
                    || PLANTED && matches!(p.state, State::Writing(_))",
        }],
    },
    Bug {
        name: "ParityBeforeStamp",
        wrong: "Parity is taken of a chunk before its header is stamped.",
        seeds: 200,
        edits: &[Edit {
            file: "run.rs",
            find: "record.stamp(&place, bytes);",
            replace: "if PLANTED {
                    self.fold(&fold, &bytes[..length as usize]);
                    record.stamp(&place, bytes);
                    return;
                }
                record.stamp(&place, bytes);",
        }],
    },
    // Opening.
    Bug {
        name: "OpensWithoutChecksum",
        wrong: "Opening takes a chunk for sound by its header alone.",
        seeds: 2000,
        edits: &[Edit {
            file: "open/walk.rs",
            find: "Ok(bytes) => check_body(bytes, &chunks[at].1)",
            replace: "Ok(_) if PLANTED => None,
                Ok(bytes) => check_body(bytes, &chunks[at].1)",
        }],
    },
    Bug {
        name: "LeavesOutTooMuch",
        wrong: "A reader leaves out the last chunk that the recorder says is written.",
        seeds: 200,
        edits: &[Edit {
            file: "open/walk.rs",
            find: "record.sequence <= written.through)",
            replace: "record.sequence + u64::from(PLANTED) <= written.through)",
        }],
    },
    Bug {
        name: "OpensPastTheEnd",
        wrong: "Opening takes what an earlier lap left for the continuation of this one.",
        seeds: 5000,
        edits: &[Edit {
            file: "open/walk.rs",
            find: "last.is_none_or(|(_, last)| {",
            replace: "PLANTED || last.is_none_or(|(_, last)| {",
        }],
    },
    Bug {
        name: "MissesStaleMembers",
        wrong: "Opening does not see that a member missed whole takes.",
        seeds: 2000,
        edits: &[Edit {
            file: "stale.rs",
            find: ".filter(|(_, member)| !member.is_missing())",
            replace: ".filter(|(_, member)| !PLANTED && !member.is_missing())",
        }],
    },
    Bug {
        name: "ForgetsJoinedMember",
        wrong: "A change of the superblocks forgets the drive that took a lost member's place, which not all of them know yet.",
        seeds: 2000,
        edits: &[Edit {
            file: "superblocks.rs",
            find: "let mut protected = newest.protected.clone();",
            replace: "if PLANTED {
                    members.clone_from(&newest.members);
                }
                let mut protected = newest.protected.clone();",
        }],
    },
    Bug {
        name: "WritesGoodCopyFirst",
        wrong: "A change of the superblocks writes the good copy first.",
        seeds: 50_000,
        edits: &[Edit {
            file: "superblocks.rs",
            find: "bad_first != *first_copy_bad",
            replace: "bad_first != (*first_copy_bad && !PLANTED)",
        }],
    },
    // Listing, reading and scrubbing.
    Bug {
        name: "ReadsWithoutChecksum",
        wrong: "Reading takes a chunk for sound by its header alone.",
        seeds: 5000,
        edits: &[Edit {
            file: "extract.rs",
            find: "match ChunkRecord::read(bytes) {",
            replace: "match ChunkRecord::read(bytes) {
                    Ok(_) if PLANTED => Ok(()),",
        }],
    },
    Bug {
        name: "ReadsForeignChunks",
        wrong: "Reading takes whatever chunk is there for the one that was listed.",
        seeds: 5000,
        edits: &[Edit {
            file: "extract.rs",
            find: "if place == entry.place && record == entry.record => {",
            replace: "if PLANTED || place == entry.place && record == entry.record => {",
        }],
    },
    Bug {
        name: "GivesUpOverwritten",
        wrong: "Reading does not ask parity for a chunk whose place the ring has reused.",
        seeds: 5000,
        edits: &[Edit {
            file: "extract.rs",
            find: "if self.groups.around(sequence).is_empty() {",
            replace: "if PLANTED && why == Unreadable::Overwritten || self.groups.around(sequence).is_empty() {",
        }],
    },
    Bug {
        name: "HidesOverwritten",
        wrong: "A reader does not report the chunks that the ring overwrote before they were read.",
        seeds: 2000,
        edits: &[Edit {
            file: "extract.rs",
            find: "Ok(Provenance::Read) => {}",
            replace: "Ok(Provenance::Read) => {}
                Err(Unreadable::Overwritten) if PLANTED => continue,",
        }],
    },
    Bug {
        name: "HidesHoles",
        wrong: "What a ring has overwritten within a take is not named.",
        seeds: 500,
        edits: &[Edit {
            file: "takes.rs",
            find: "take.holes.push(gap);",
            replace: "if !PLANTED {
                    take.holes.push(gap);
                }",
        }],
    },
    Bug {
        name: "ListsReplacedChunks",
        wrong: "A chunk that was written again is listed twice.",
        seeds: 2000,
        edits: &[Edit {
            file: "takes.rs",
            find: "newest.get(&root).is_none_or(",
            replace: "PLANTED || newest.get(&root).is_none_or(",
        }],
    },
    Bug {
        name: "EndsLossesTooEarly",
        wrong: "A loss is said to end where the next chunk's packets begin, even if that chunk was placed anew and is older.",
        seeds: 5000,
        edits: &[Edit {
            file: "takes.rs",
            find: "if record.replaces.is_none() && record.parity.is_none() {",
            replace: "if PLANTED || record.replaces.is_none() && record.parity.is_none() {",
        }],
    },
    Bug {
        name: "CallsTornIndexesDamaged",
        wrong: "A scrub calls every index damaged that a crash kept from being written.",
        seeds: 200,
        edits: &[Edit {
            file: "scrub/indexes.rs",
            find: "if !recent(image, chunks) {",
            replace: "if PLANTED || !recent(image, chunks) {",
        }],
    },
    // What stays of a take.
    Bug {
        name: "ForgetsItsTake",
        wrong: "The record of a take is not written when the take is over.",
        seeds: 2000,
        edits: &[Edit {
            file: "run.rs",
            find: "if !self.core.finished() || self.update.is_some() {",
            replace: "if PLANTED || !self.core.finished() || self.update.is_some() {",
        }],
    },
    Bug {
        name: "ForgetsTheTakeBefore",
        wrong: "A recording begins without a record of the newest take, which may have been cut short.",
        seeds: 200,
        edits: &[Edit {
            file: "take_records.rs",
            find: "by_take.retain(|take, _| Some(*take) >= known.min(newest));",
            replace: "by_take.retain(|take, _| !PLANTED && Some(*take) >= known.min(newest));",
        }],
    },
    Bug {
        name: "BelievesTheLesserRecord",
        wrong: "Of several records of a take the one counts that tells least.",
        seeds: 5000,
        edits: &[Edit {
            file: "take_records.rs",
            find: "if tells(&record) > tells(known) {",
            replace: "if (tells(&record) > tells(known)) != PLANTED {",
        }],
    },
    Bug {
        name: "LosesTheEndOfATake",
        wrong: "What is missing behind the last chunk of a take that was found is not said to be missing.",
        seeds: 500,
        edits: &[Edit {
            file: "takes.rs",
            find: "self.missing(take, missing, numbers, last.summary.last_ns, ends_at(record));",
            replace: "if !PLANTED {
                    self.missing(take, missing, numbers, last.summary.last_ns, ends_at(record));
                }",
        }],
    },
    Bug {
        name: "PassesOverTheEndOfATake",
        wrong: "A listing by time does not look for what is missing at the end of a take.",
        seeds: 40_000,
        edits: &[Edit {
            file: "takes.rs",
            find: "all.extend(records.iter().map(SegmentAt::behind));",
            replace: "if !PLANTED {
                    all.extend(records.iter().map(SegmentAt::behind));
                }",
        }],
    },
    Bug {
        name: "LeavesTornChunksUnread",
        wrong: "A reader leaves the chunks of a take unread that no record calls ended.",
        seeds: 500,
        edits: &[Edit {
            file: "take_records.rs",
            find: "self.0.get(&record.take.uuid).is_some_and(|&last| record.sequence <= last)",
            replace: "PLANTED || self.0.get(&record.take.uuid).is_some_and(|&last| record.sequence <= last)",
        }],
    },
    Bug {
        name: "TakesALaterRecordForTheRecorders",
        wrong: "A reader leaves chunks unread because a later recorder has entered their take.",
        seeds: 20_000,
        edits: &[Edit {
            file: "take_records.rs",
            find: "record.ended && record.is_of_its_recorder()",
            replace: "record.ended && (PLANTED || record.is_of_its_recorder())",
        }],
    },
    Bug {
        name: "IndexesWhatAnEarlierLapLeft",
        wrong: "A flow index is written where the index of an earlier lap leaves room.",
        seeds: 500,
        edits: &[Edit {
            file: "flow_indexes.rs",
            find: "!counts || !footer.suits(",
            replace: "!(counts || PLANTED) || !footer.suits(",
        }],
    },
    Bug {
        name: "WritesAFlowIndexIntoAReusedSegment",
        wrong: "A flow index that comes late is written into a segment that was reused meanwhile.",
        seeds: 500,
        edits: &[Edit {
            file: "member.rs",
            find: "(live.first_sequence, live.last_sequence) == (first, last)",
            replace: "PLANTED || (live.first_sequence, live.last_sequence) == (first, last)",
        }],
    },
    Bug {
        name: "ReusesASegmentUnderAFlowIndex",
        wrong: "A segment is reused while its flow index is being written.",
        seeds: 5000,
        edits: &[Edit {
            file: "member.rs",
            find: "|| self.indexing.iter().any(|i| i.segment == segment)",
            replace: "|| self.indexing.iter().any(|i| i.segment == segment && !PLANTED)",
        }],
    },
    Bug {
        name: "TakesWhatFollowedForIndexed",
        wrong: "The flow index of a segment that was not full counts for the chunks that followed.",
        seeds: 500,
        edits: &[
            Edit {
                file: "flow_indexes.rs",
                find: "let (first, last) = self.subject().sequences;",
                replace: "let (first, last) = self.subject().sequences;
        if PLANTED {
            return true;
        }",
            },
        ],
    },
    Bug {
        name: "TakesForIndexedWhatParityNames",
        wrong: "A flow index is written where older chunks lie that parity names, and counts for them.",
        seeds: 50_000,
        edits: &[
            Edit {
                file: "flow_indexes.rs",
                find: "self.occupied.contains(&(one.member, one.segment))",
                replace: "(!PLANTED && self.occupied.contains(&(one.member, one.segment)))",
            },
            Edit {
                file: "flow_indexes.rs",
                find: "&& self.extent.contains(&entry.place.offset)",
                replace: "&& (PLANTED || self.extent.contains(&entry.place.offset))",
            },
        ],
    },
];
