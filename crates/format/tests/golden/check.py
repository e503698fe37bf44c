#!/usr/bin/env python3
"""Reads members of an array by docs/format.md and nothing else, and prints what they hold.

    check.py MEMBER...

The members are one array's, in their order.

A second reading of the specification: it shares no code with Longtake. Every checksum, length and
balance that the document promises is asserted on the way; what is printed is compared with
expected.txt, and so is what Longtake's own reader finds.
"""

import struct
import sys
import uuid

PAGE = 4096
KIB64 = 64 << 10
MIB = 1 << 20
ENTERPRISE = 32473
PRIVATE = 0x804C544B
NONE = 2**64 - 1
STAGES = ["interface", "kernel ring", "no buffer", "filtered", "device error", "array full"]


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc_table()

# What section 9 says of the field: polynomials by word.
BASIS = [
    0x0001, 0xACCA, 0x3C0E, 0x163E, 0xC582, 0xED2E, 0x914C, 0x4012,
    0x6C98, 0x10D8, 0x6A72, 0xB900, 0xFDB8, 0xFB34, 0xFF38, 0x991E,
]
POLYNOMIAL = [0]
for polynomial in BASIS:
    POLYNOMIAL += [polynomial ^ other for other in POLYNOMIAL]
assert len(set(POLYNOMIAL)) == 65536

# Filled while members are listed: chunks by member and offset, and the parity chunks among them.
CHUNKS = {}
PARITIES = []


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283


def u16(data, at):
    return struct.unpack_from("<H", data, at)[0]


def u32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def u64(data, at):
    return struct.unpack_from("<Q", data, at)[0]


def text(field):
    return field.split(b"\0")[0].decode()


class NotASection(Exception):
    pass


class Record:
    """The 440 bytes of section 2, from a section header or from an index entry."""

    def __init__(self, data):
        if data[:8] != b"LONGTAKE":
            raise NotASection("magic")
        self.kind, self.major, self.minor = u16(data, 8), u16(data, 10), u16(data, 12)
        if self.major > 1:
            raise NotASection("newer")
        self.member, self.members, zero = u16(data, 14), u16(data, 16), u16(data, 18)
        assert zero == 0
        self.header_crc, self.body_crc, self.length = u32(data, 20), u32(data, 24), u32(data, 28)
        self.array = uuid.UUID(bytes=bytes(data[32:48]))
        self.offset = u64(data, 48)
        self.own = data[56:440]


def section(data, at):
    """Checks the 512 bytes of section 2 and gives their record and the pcapng section length."""
    head = data[at : at + 512]
    if len(head) < 512 or u32(head, 0) != 0x0A0D0D0A or u32(head, 4) != 512:
        raise NotASection("header")
    if head[32:40] != b"LONGTAKE":
        raise NotASection("magic")
    if crc32c(head[:52] + bytes(4) + head[56:]) != u32(head, 52):
        raise NotASection("header checksum")
    assert u32(head, 8) == 0x1A2B3C4D and u16(head, 12) == 1 and u16(head, 14) == 0
    assert u16(head, 24) == 2989 and u16(head, 26) == 444 and u32(head, 28) == ENTERPRISE
    assert u16(head, 472) == 4 and u16(head, 474) == 27
    assert u32(head, 504) == 0 and u32(head, 508) == 512
    record = Record(head[32:472])
    assert head[476:504] == b"Longtake (media format 1.%d)\0" % record.minor
    return record, u64(head, 16)


def blocks(data, at, end):
    """Every pcapng block from `at` to `end`: offset, type, body."""
    while at < end:
        kind, length = u32(data, at), u32(data, at + 4)
        assert length >= 12 and length % 4 == 0 and at + length <= end
        assert u32(data, at + length - 4) == length
        yield at, kind, data[at + 8 : at + length - 4]
        at += length
    assert at == end


def options(data):
    found = []
    while data:
        code, length = u16(data, 0), u16(data, 2)
        if code == 0:
            break
        found.append((code, bytes(data[4 : 4 + length])))
        data = data[4 + (length + 3) // 4 * 4 :]
    return found


def private(body, kind):
    assert u32(body, 0) == ENTERPRISE and u32(body, 4) == kind
    return body[8:]


def superblock(data, offset):
    record, section_length = section(data, offset)
    assert record.kind == 1 and record.offset == offset and record.length == KIB64
    assert crc32c(data[offset + 512 : offset + KIB64]) == record.body_crc
    own = record.own
    found = {
        "generation": u64(own, 0),
        "created": u64(own, 8),
        "data_offset": u64(own, 16),
        "segment_bytes": u64(own, 24),
        "segments": u64(own, 32),
        "chunk_max": u32(own, 40),
        "chunk_min": u32(own, 44),
        "protected": u32(own, 48),
        "parity": u32(own, 52),
        "name": text(own[56:120]),
        "record": record,
    }
    assert found["parity"] <= 2 and not any(own[120:])
    end = offset + 512 + section_length
    inside = list(blocks(data, offset + 512, end))
    tables = private(inside[0][2], 1)
    assert inside[0][0] == offset + 512 and len(inside[0][2]) == KIB64 - 512 - 12
    if offset == 0:
        # At creation padding fills the space up to the data, and belongs to the section.
        assert end == found["data_offset"] == MIB
        assert len(inside) == 2 and inside[1][1] == PRIVATE
        private(inside[1][2], 3)
    else:
        assert len(inside) == 1
    rows = [tables[at : at + 64] for at in range(0, len(tables) // 64 * 64, 64)]
    members, rest = rows[: record.members], rows[record.members :]
    found["member_rows"] = [(u64(row, 0), text(row[8:])) for row in members]
    ranges = rest[: found["protected"]]
    found["ranges"] = [(u64(r, 0), u64(r, 8), u64(r, 16), text(r[24:])) for r in ranges]
    assert not any(any(row) for row in rest[found["protected"] :])
    return found


def show_superblock(found, offset):
    record = found["record"]
    print(
        f"superblock at {offset}: array {record.array} name '{found['name']}'"
        f" member {record.member} of {record.members} generation {found['generation']}"
        f" created {found['created']} data {found['data_offset']} segments {found['segments']}"
        f" of {found['segment_bytes']} chunks {found['chunk_min']} to {found['chunk_max']}"
        + (f" parity {found['parity']}" if found["parity"] else "")
    )
    assert record.minor == (1 if found["parity"] else 0)
    for capacity, identity in found["member_rows"]:
        print(f"  member of {capacity}: {identity}")
    for start, end, made, label in found["ranges"]:
        print(f"  protected {start} to {end} made {made}: {label}")


def ledger(own):
    pairs = [(u64(own, 104 + 16 * n), u64(own, 112 + 16 * n)) for n in range(10)]
    offered, stored, lost = pairs[0], pairs[1], pairs[2:]
    for which in (0, 1):
        assert offered[which] == stored[which] + sum(pair[which] for pair in lost), "balance"
    assert lost[6:] == [(0, 0), (0, 0)]
    return offered, stored, lost[:6]


def or_none(number):
    return "none" if number == NONE else str(number)


def show_chunk(record):
    own = record.own
    offered, stored, lost = ledger(own)
    flags = u16(own, 50)
    bits = ((1, "end"), (2, "plain"), (4, "loss"), (8, "parity"))
    names = [name for bit, name in bits if flags & bit]
    assert flags < 16 and not any(own[336:])
    sequence, group, of = u64(own, 32), u64(own, 272), u16(own, 286)
    assert of <= 2
    if flags & 8:
        assert u16(own, 284) < of
        assert group + u32(own, 280) < sequence
    else:
        assert not any(own[280:286])
        assert group <= sequence if of else group == 0
    told = []
    for at in range(288, 336, 6):
        back, before, on, which = struct.unpack_from("<HHBB", own, at)
        if back:
            number = sequence - back
            told.append(f"{number} of {number - before} on {on}: {which & 15} of {which >> 4}")
        else:
            assert not any(own[at:336])
    assert record.minor == (1 if flags & 8 or of or told else 0)
    print(
        f"  chunk at {record.offset} length {record.length} sequence {u64(own, 32)}"
        f" replaces {or_none(u64(own, 40))} queue {u16(own, 48)} flags [{' '.join(names)}]"
        f" take {uuid.UUID(bytes=bytes(own[:16]))} started {u64(own, 16)} from {u64(own, 24)}"
        f" sealed {u64(own, 96)} reused {or_none(u64(own, 264))} body {record.body_crc:08x}"
    )
    print(
        f"    packets {u32(own, 52)} in {u32(own, 56)} to {u32(own, 60)}"
        f" kept {u64(own, 64)} wire {u64(own, 72)} times {or_none(u64(own, 80))} to {u64(own, 88)}"
    )
    named = [f"{name} {p}/{b}" for name, (p, b) in zip(STAGES, lost) if (p, b) != (0, 0)]
    print(f"    ledger offered {offered[0]}/{offered[1]} stored {stored[0]}/{stored[1]}"
          f" lost [{', '.join(named)}]")
    if record.minor:
        print(f"    group {group} of {of} parities [{', '.join(told)}]")


def halves(data):
    return u32(data, 0) << 32 | u32(data, 4)


def chunk_body(data, record):
    """Walks and prints a chunk's blocks, and holds its record to them."""
    own, at = record.own, record.offset
    count = kept = wire = 0
    first, last = NONE, 0
    interfaces = 0
    where, described_late, padding = [], False, None
    for offset, kind, body in blocks(data, at + 512, at + record.length):
        assert padding is None, "padding is the last block"
        if kind == 1:
            described_late |= count > 0
            found = dict(options(body[8:]))
            assert found[9] == b"\x09"
            speed = struct.unpack("<Q", found[8])[0] if 8 in found else 0
            bpf = found[11][1:].decode() if 11 in found else ""
            print(
                f"    interface {interfaces}: '{found.get(2, b'').decode()}'"
                f" '{found.get(3, b'').decode()}' link type {u16(body, 0)}"
                f" snap {u32(body, 4)} speed {speed} filter '{bpf}'"
            )
            interfaces += 1
        elif kind == 6:
            number, time, length, original = u32(body, 0), halves(body[4:]), u32(body, 12), u32(body, 16)
            assert number < interfaces
            packet = body[20 : 20 + length]
            found = dict(options(body[20 + (length + 3) // 4 * 4 :]))
            dropped = struct.unpack("<Q", found.pop(4))[0] if 4 in found else 0
            others = sorted(found)
            print(
                f"    packet on {number} at {time}: {length} of {original} bytes"
                f" dropped {dropped} options {others} crc {crc32c(packet):08x}"
            )
            count += 1
            kept += length
            wire += original
            first, last = min(first, time), max(last, time)
            where.append((offset - at, offset - at + len(body) + 12))
        elif kind == 5:
            found = dict(options(body[12:]))
            number = lambda code: struct.unpack("<Q", found[code])[0]
            print(
                f"    statistics of {u32(body, 0)} at {halves(body[4:])}:"
                f" from {halves(found[2])} to {halves(found[3])} received {number(4)}"
                f" interface drops {number(5)} system drops {number(7)} delivered {number(8)}:"
                f" {found[1].decode()}"
            )
        elif u32(body, 4) == 4:
            PARITIES.append((record, body))
            padding = offset
        else:
            assert kind == PRIVATE
            assert not any(private(body, 3))
            padding = offset
    assert (count, kept, wire) == (u32(own, 52), u64(own, 64), u64(own, 72))
    CHUNKS[record.member, at] = record, data[at : at + record.length]
    if u16(own, 50) & 8:
        assert count == 0 and u32(own, 56) == u32(own, 60) == 512
        return
    assert (first, last) == (u64(own, 80), u64(own, 88))
    start, end = u32(own, 56), u32(own, 60)
    assert (start, end) == (where[0][0], where[-1][1]) if where else start == end
    # Plain: only packet blocks from the first to the last.
    assert bool(u16(own, 50) & 2) == (sum(b - a for a, b in where) == end - start)
    assert bool(u16(own, 50) & 2) != described_late


def chunk_at(data, offset, where, block):
    """The chunk whose record checks at `offset` (section 7), or None."""
    try:
        record, section_length = section(data, offset)
    except NotASection:
        return None
    if record.kind != 2 or record.offset != offset:
        return None
    if (record.array, record.member) != (where.array, where.member):
        return None
    assert record.length % PAGE == 0
    assert block["chunk_min"] <= record.length <= block["chunk_max"]
    assert section_length == record.length - 512
    return record


def walk(data, start, end, where, block):
    chunks, offset = [], start
    while offset < end:
        record = chunk_at(data, offset, where, block)
        if record is None or offset + record.length > end:
            break
        if chunks and u64(record.own, 32) <= u64(chunks[-1].own, 32):
            break
        if crc32c(data[offset + 512 : offset + record.length]) != record.body_crc:
            break
        chunks.append(record)
        offset += record.length
    return chunks


def index(data, start, end, first, where):
    """The index that counts, or None: its section's offset, footer and entries."""
    footer = data[end - 100 : end - 4]
    if footer[:8] != b"LTKINDEX" or crc32c(footer[:92]) != u32(footer, 92):
        return None
    if u64(footer, 32) != u64(first.own, 32):
        return None
    assert footer[8:24] == where.array.bytes and u16(footer, 72) == where.member
    assert not any(footer[74:92])
    count, length = u32(footer, 24), u64(footer, 64)
    entries = data[end - 100 - 440 * count : end - 100]
    assert crc32c(entries) == u32(footer, 28)
    record, section_length = section(data, end - length)
    assert record.kind == 3 and record.offset == end - length and record.body_crc == 0
    assert record.length == length and section_length == length - 512 and not any(record.own)
    [(_, kind, body)] = blocks(data, end - length + 512, end)
    assert kind == PRIVATE
    private(body, 2)
    return end - length, footer, [Record(entries[440 * n : 440 * n + 440]) for n in range(count)]


def member(path):
    with open(path, "rb") as file:
        data = file.read()
    copy_at = len(data) // PAGE * PAGE - KIB64
    first, copy = superblock(data, 0), superblock(data, copy_at)
    show_superblock(first, 0)
    show_superblock(copy, copy_at)
    block = copy if copy["generation"] > first["generation"] else first
    where = block["record"]
    assert block["member_rows"][where.member][0] == len(data)
    for number in range(block["segments"]):
        start = block["data_offset"] + number * block["segment_bytes"]
        end = start + block["segment_bytes"]
        assert end <= copy_at
        head = chunk_at(data, start, where, block)
        if head is None:
            print(f"segment {number} at {start}: empty")
            continue
        chunks = walk(data, start, end, where, block)
        found = index(data, start, end, head, where)
        print(f"segment {number} at {start}: {len(chunks)} chunks, {'closed' if found else 'open'}")
        for record in chunks:
            show_chunk(record)
            chunk_body(data, record)
        if found is None:
            continue
        offset, footer, entries = found
        assert offset == chunks[-1].offset + chunks[-1].length
        print(
            f"  index at {offset} length {u64(footer, 64)} entries {len(entries)}"
            f" sequences {u64(footer, 32)} to {u64(footer, 40)}"
            f" times {or_none(u64(footer, 48))} to {u64(footer, 56)}"
        )
        assert u64(footer, 40) == u64(chunks[-1].own, 32)
        assert u64(footer, 48) == min(u64(c.own, 80) for c in chunks)
        assert u64(footer, 56) == max(u64(c.own, 88) for c in chunks)
        assert len(entries) == len(chunks)
        for entry, chunk in zip(entries, chunks):
            assert entry.header_crc == 0
            assert (entry.offset, entry.length, entry.body_crc) == (
                chunk.offset, chunk.length, chunk.body_crc)
            assert entry.own == chunk.own


def words(data):
    """The words of section 9, as polynomials."""
    return [
        POLYNOMIAL[data[run + k] | data[run + 32 + k] << 8]
        for run in range(0, len(data), 64)
        for k in range(32)
    ]


def parity(record, body):
    """Makes a parity chunk's parity anew from the chunks that it names."""
    own = record.own
    assert u32(body, 0) == ENTERPRISE and len(body) + 12 + 512 == record.length
    group, place, of, count, zero, length = struct.unpack_from("<QHHHHI", body, 8)
    assert (group, place, of) == (u64(own, 272), u16(own, 284), u16(own, 286))
    assert zero == 0 and not any(body[28:56]) and length + 4096 == record.length
    found, table = body[56 : 56 + length], body[56 + length :]
    rows = [struct.unpack_from("<QQIHH", table, 24 * n) for n in range(count)]
    assert not any(table[24 * count :])
    assert rows[0][0] == group and length == max(row[2] for row in rows)
    assert rows == sorted(rows) and rows[-1][0] == group + u32(own, 280)
    assert len({row[3] for row in rows} | {record.member}) == count + 1
    result = [0] * (length // 2)
    times = []
    for sequence, offset, size, of_member, zero in rows:
        chunk, data = CHUNKS[of_member, offset]
        assert (u64(chunk.own, 32), chunk.length, zero) == (sequence, size, 0)
        if u64(chunk.own, 80) != NONE:
            times += [u64(chunk.own, 80), u64(chunk.own, 88)]
        if place == 1:
            result = [w << 1 ^ (0x1002D if w >> 15 else 0) for w in result]
        for at, word in enumerate(words(data)):
            result[at] ^= word
    assert (u64(own, 80), u64(own, 88)) == ((min(times), max(times)) if times else (NONE, 0))
    fits = "fits" if result == words(found) else "DOES NOT FIT"
    names = ", ".join(f"{row[0]} on {row[3]} at {row[1]}" for row in rows)
    print(f"parity {place} of {of} of group {group} in chunk {u64(own, 32)}:"
          f" {length} bytes over {names}; {fits}")


if __name__ == "__main__":
    for path in sys.argv[1:]:
        member(path)
    for found in PARITIES:
        parity(*found)
