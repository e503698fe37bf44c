//! Tables in the dialects that programs write, and the mistakes that are named.

use super::*;

/// Three seconds at 2, 2 and 1 GB/s.
fn rates(text: &str, options: &TableOptions) -> Vec<(u64, f64)> {
    let series = read(text, options).unwrap_or_else(|error| panic!("{text}: {error}"));
    series.points().iter().map(|p| (p.duration_ns / 1_000_000, p.rate() / 1e9)).collect()
}

#[track_caller]
fn is_seconds_of_2_2_1(text: &str, options: &TableOptions) {
    let found = rates(text, options);
    let expected = [(1000, 2.0), (1000, 2.0), (1000, 1.0)];
    assert_eq!(found.len(), 3, "{text}");
    for ((ms, rate), (expected_ms, expected)) in found.into_iter().zip(expected) {
        assert!(ms == expected_ms && (rate - expected).abs() < 0.001, "{text}: {ms} ms, {rate}");
    }
}

#[test]
fn every_dialect_is_read_by_what_its_head_says() {
    let none = TableOptions::default();
    for text in [
        "time [s],rate [GB/s]\n0,2\n1,2\n2,1\n",
        "\u{FEFF}Time (s);Write speed (MB/s)\r\n1;2000,0\r\n2;2000,0\r\n3;1.000,0\r\n",
        "Elapsed (ms)\tRead (MB/s)\tWrite (MB/s)\n0\t0\t2000\n1000\t0\t2000\n2000\t0\t1000\n",
        "# a remark\nSome drive, tested with care\n\n\"Seconds\",\"Bandwidth, MiB/s\"\n1,\"1907,349\"\n2,1907.349\n3,953.674\n",
        "start [ns],length [ns],bytes [B],rate [B/s]\n0,1000000000,2000000000,2000000000\n1000000000,1000000000,2000000000,2000000000\n2000000000,1000000000,1000000000,1000000000\n",
        "time,Gb/s\n0:00:01,16\n0:00:02,16\n0:00:03,8\n",
        "Written (GB);MB/s\n2;2000\n4;2000\n5;1000\n",
        "time [s],rate [GB/s]\n1,2\n2,3\n2,1\n3,1\n",
    ] {
        is_seconds_of_2_2_1(text, &none);
    }
    let percent = TableOptions { capacity_bytes: Some(5_000_000_000), ..none };
    is_seconds_of_2_2_1("Fill [%],speed [MB/s]\n40%,2000\n80,2000\n100,1000\n", &percent);
}

#[test]
fn turning_points_are_the_corners_of_a_curve() {
    let options = TableOptions { capacity_bytes: Some(10_000_000_000), ..TableOptions::default() };
    let series = read("Written (GB),MB/s\n0,2000\n4,2000\n4,1000\n10,500\n", &options).unwrap();
    assert_eq!(series.total_bytes(), 10_000_000_000);
    let at = |bytes: u64| {
        let place = series.cumulative_bytes().partition_point(|&written| written < bytes);
        series.points()[place.min(series.len() - 1)].rate() / 1e6
    };
    for (bytes, rate) in
        [(1e9, 2000.0), (3.9e9, 2000.0), (4.1e9, 992.0), (7e9, 750.0), (9.9e9, 508.0)]
    {
        assert!((at(bytes as u64) / rate - 1.0).abs() < 0.02, "{bytes}: {}", at(bytes as u64));
    }
    // Of a log with rounded places there are many lines, and those with one stamp are averaged.
    let log: String = (0..200).map(|i| format!("{},{}\n", i / 2, 100 + i % 2 * 100)).collect();
    let series = read(&format!("%,MB/s\n{log}"), &options).unwrap();
    assert!(series.rates().iter().all(|rate| (rate / 150e6 - 1.0).abs() < 0.01));
}

#[test]
fn a_last_line_at_the_end_of_the_drive_ends_the_fill() {
    let options = TableOptions { capacity_bytes: Some(10_000_000_000), ..TableOptions::default() };
    for text in ["Written (GB),MB/s\n0,2000\n4,1000\n10,1000\n", "%,MB/s\n0,2000\n40,1000\n100,7\n"]
    {
        let series = read(text, &options).unwrap();
        assert_eq!(series.total_bytes(), 10_000_000_000, "{text}");
        let rates: Vec<f64> = series.rates().iter().map(|rate| (rate / 1e6).round()).collect();
        assert_eq!(rates, [2000.0, 1000.0], "{text}");
    }
    // Before the end the last line has an interval like the others.
    let series = read("Written (GB),MB/s\n0,2000\n4,1000\n", &options).unwrap();
    assert_eq!(series.total_bytes(), 8_000_000_000);
}

#[test]
fn options_say_what_a_head_does_not() {
    let both = |time: &str, rate: &str, time_unit: &str, rate_unit: &str| TableOptions {
        time_column: Some(time.to_owned()),
        rate_column: Some(rate.to_owned()),
        time_unit: Some(time_unit.parse().unwrap()),
        rate_unit: Some(rate_unit.parse().unwrap()),
        capacity_bytes: None,
    };
    is_seconds_of_2_2_1("9,0,2\n9,1,2\n9,2,1\n", &both("2", "3", "s", "GB/s"));
    is_seconds_of_2_2_1("a;B;c\n2000;9;0\n2000;9;1\n1000;9;2\n", &both("c", "A", "s", "MB/s"));
    let units =
        TableOptions { time_column: None, rate_column: None, ..both("", "", "min", "GB/s") };
    let minutes = rates("0,2\n1,1\n", &units);
    assert_eq!(minutes, [(60_000, 2.0), (60_000, 1.0)]);
}

#[test]
fn texts_are_read_in_the_encodings_that_spreadsheets_save() {
    let text = "time [s];rate [MB/s];µ\n0;1;x\n";
    let utf16: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let big: Vec<u8> =
        [0xFE, 0xFF].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect();
    let latin: Vec<u8> = text.chars().map(|c| c as u8).collect();
    for bytes in [text.as_bytes(), &utf16, &big, &latin] {
        assert_eq!(decoded(bytes), text);
    }
}

#[test]
fn what_is_wrong_is_named_with_line_and_remedy() {
    let none = TableOptions::default();
    for (text, words) in [
        ("", "no line with two numbers"),
        ("time,rate\nnever,nothing\n", "no line with two numbers"),
        ("time [s],rate\n0,1\n1,1\n", "'rate' doesn't tell its unit: add --rate-unit"),
        ("time,MB/s\n0,1\n1,1\n", "'time' doesn't tell its unit: add --time-unit"),
        ("0,1\n1,1\n", "doesn't tell its unit"),
        (
            "a [s],b,c\n0,1,2\n1,1,2\n",
            "line 1: the rate column can't be identified among a [s] | b | c: add --rate-column",
        ),
        ("t [s],x MB/s,y MB/s\n0,1,2\n1,1,2\n", "--rate-column"),
        ("s,MB/s\n0,1\n1,fast\n", "line 3: 'fast' is no number"),
        ("s,MB/s\n0,1\n1\n", "line 3 has too few columns"),
        ("s,MB/s\n0,1\n5,1\n3,1\n", "line 4: its time lies before"),
        ("s,MB/s\n0,1\n5,-1\n", "line 3: an impossible rate"),
        ("GB written,MB/s\n1,1\n5,0\n", "line 3: an impossible rate"),
        ("s,MB/s\n0,1\n", "fewer than two lines"),
        ("h,GB/s\n0,1\n1e30,1\n", "more bytes than there are"),
        ("%,GB/s\n0,1\n10,1\n", "add --capacity"),
    ] {
        let error = read(text, &none).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn a_rate_that_is_not_there_leaves_its_time_to_the_next_line() {
    let found = rates("s,MB/s\n1,1000\n2,\n3,1000\n", &TableOptions::default());
    assert_eq!(found.iter().map(|(ms, _)| ms).sum::<u64>(), 3000);
}
