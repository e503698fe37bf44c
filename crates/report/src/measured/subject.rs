//! What was measured and when: the report's title and facts.

use base::ByteSize;
use lab::run::{Run, Subject};

use crate::document::Document;

/// Title, subtitle, facts and when it was made, for runs by their labels.
pub(super) fn introduce(document: &mut Document, runs: &[(&str, &Run)]) {
    match runs {
        [] => document.title = "Nothing was measured".to_owned(),
        [(_, run)] => {
            document.title = names(run);
            document.subtitle = "What it sustains, measured".to_owned();
            facts(document, run);
        }
        _ => {
            let labels: Vec<&str> = runs.iter().map(|(label, _)| *label).collect();
            document.title = labels.join(" against ");
            document.subtitle = "Runs side by side; ratios are to the first".to_owned();
            for (label, run) in runs {
                let when =
                    when(run.started_ns).map_or_else(String::new, |when| format!(", {when}"));
                document.fact(*label, format!("{}{when}", one_line(run)));
            }
        }
    }
    let made = runs.iter().filter_map(|(_, run)| {
        let version = match run.version.as_str() {
            "" => String::new(),
            version => format!(" by longtake {version}"),
        };
        let host = run.host.as_ref().map_or_else(String::new, |host| format!(" on {host}"));
        Some(format!(
            "{} measured {}{version}{host}{}",
            names(run),
            when(run.started_ns)?,
            scheduled(run)
        ))
    });
    document.made = made.collect::<Vec<_>>().join("; ");
}

/// Behind which I/O schedulers the drives were.
fn scheduled(run: &Run) -> String {
    let mut names: Vec<&str> =
        run.subjects.iter().filter_map(|subject| subject.scheduler.as_deref()).collect();
    names.dedup();
    if names.is_empty() { String::new() } else { format!(", I/O scheduler {}", names.join(", ")) }
}

fn facts(document: &mut Document, run: &Run) {
    let several = run.subjects.len() > 1;
    for subject in &run.subjects {
        let mut fact = |label: &str, value: Option<String>| {
            let Some(value) = value.filter(|value| !value.is_empty()) else { return };
            let label =
                if several { format!("{label}, {}", subject.target) } else { label.to_owned() };
            document.fact(label, value);
        };
        if !several {
            fact("Target", Some(subject.target.clone()));
        }
        fact("Model", subject.model.clone());
        fact("Serial number", subject.serial.clone());
        fact("Firmware", subject.firmware.clone());
        fact("Capacity", Some(capacity(subject)));
        fact("Kind", Some(subject.kind.clone()));
        fact("Members", Some(subject.members.join(", ")));
        fact("Link", subject.link.clone());
        fact("I/O scheduler", subject.scheduler.clone());
    }
    if let Some(when) = when(run.started_ns) {
        document.fact("Measured", when);
    }
    if let Some(host) = &run.host {
        document.fact("Host", host.clone());
    }
}

/// The drives' models, or their targets where those aren't known.
pub(super) fn names(run: &Run) -> String {
    let name = |subject: &Subject| subject.model.clone().unwrap_or_else(|| subject.target.clone());
    let mut counted: Vec<(String, usize)> = Vec::new();
    for name in run.subjects.iter().map(name) {
        match counted.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counted.push((name, 1)),
        }
    }
    let words = |(name, count): (String, usize)| {
        if count > 1 { format!("{count} x {name}") } else { name }
    };
    let names: Vec<String> = counted.into_iter().map(words).collect();
    if names.is_empty() { "Drives that are not known".to_owned() } else { names.join(", ") }
}

fn capacity(subject: &Subject) -> String {
    format!("{} in blocks of {} B", ByteSize(subject.capacity_bytes), subject.block_bytes)
}

fn one_line(run: &Run) -> String {
    let mut line = names(run);
    if let [subject] = run.subjects.as_slice() {
        line.push_str(&format!(", {}", ByteSize(subject.capacity_bytes)));
        line.extend(subject.firmware.as_ref().map(|firmware| format!(", firmware {firmware}")));
    }
    line
}

/// `2026-11-21 13:52 UTC`; None for a run that doesn't know when it began.
pub(super) fn when(utc_ns: u64) -> Option<String> {
    if utc_ns == 0 {
        return None;
    }
    let minutes = utc_ns / 60_000_000_000;
    let (year, month, day) = date(minutes / 1_440);
    let (hour, minute) = (minutes % 1_440 / 60, minutes % 60);
    Some(format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC"))
}

/// Year, month and day of a number of days since 1970, by counting whole years and months of the Gregorian calendar.
fn date(mut days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month as u64 + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar_leap_years_included() {
        for (seconds, text) in [
            (1, "1970-01-01 00:00 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59 UTC"),
            (1_795_269_120, "2026-11-21 13:52 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(when(seconds * 1_000_000_000).unwrap(), text);
        }
        assert_eq!(when(0), None);
        assert!(when(u64::MAX).unwrap().starts_with("2554-"));
    }

    #[test]
    fn drives_of_one_model_are_counted_in_the_title() {
        let subject = |target: &str, model: Option<&str>| Subject {
            target: target.to_owned(),
            kind: "nvme".to_owned(),
            model: model.map(str::to_owned),
            serial: None,
            firmware: None,
            capacity_bytes: 1 << 30,
            block_bytes: 512,
            trim_bytes: None,
            link: None,
            scheduler: None,
            facts: None,
            members: Vec::new(),
        };
        let mut run = Run::begin("1.2.3", Vec::new());
        assert_eq!(names(&run), "Drives that are not known");
        run.subjects =
            vec![subject("/dev/a", Some("M")), subject("/dev/b", Some("M")), subject("f", None)];
        assert_eq!(names(&run), "2 x M, f");
        let mut document = Document::default();
        introduce(&mut document, &[("one", &run)]);
        assert!(document.made.ends_with("by longtake 1.2.3"), "{}", document.made);
        assert!(document.facts.iter().any(|fact| fact.label == "Capacity, /dev/b"));
    }
}
