//! One drive in detail, in sections, for people. What it doesn't have or wasn't asked is said in words.

use std::fmt::Display;
use std::path::Path;

use base::ByteSize;
use base::units::grouped as number;
use device::facts::{Answer, Facts, NvmeFacts};
use device::identity::Drive;
use device::link::{Link, LinkVerdict};
use device::nvme::identify::{ControllerIdentity, DeallocatedReads, NamespaceIdentity, NvmSet};
use device::nvme::log::{EnduranceGroup, PredictableLatency, SmartLog, SupportedLog, Window};
use device::nvme::ocp::{ExtendedHealth, LatencyMonitor};
use device::nvme::placement::Placement;
use serde::Serialize;

use crate::text::inline;

/// A target with its facts, several lines. `permission` says whether it may be written.
pub fn text(path: &Path, facts: Option<&Facts>, permission: &str) -> String {
    let name = path.display().to_string();
    let name = inline(&name);
    let mut page = Page { out: format!("{name}\n"), ..Page::default() };
    let Some(facts) = facts else {
        page.section("drive");
        page.row("may be written", permission);
        page.row("", "nothing is there yet, or it is no drive");
        return page.finish();
    };
    drive(&mut page, &facts.drive, permission);
    link(&mut page, facts);
    temperatures(&mut page, facts);
    if let Some(nvme) = &facts.nvme {
        controller(&mut page, &nvme.controller);
        namespace(&mut page, nvme);
        smart(&mut page, &nvme.smart);
        medium(&mut page, &nvme.extended_health, &nvme.smart);
        monitor(&mut page, &nvme.latency_monitor);
        groups(&mut page, nvme);
        logs(&mut page, &nvme.supported_logs);
    }
    page.finish()
}

/// Sections of rows: a name and a value.
#[derive(Debug, Default)]
struct Page {
    out: String,
    rows: Vec<(String, String)>,
}

impl Page {
    fn section(&mut self, title: &str) {
        self.close();
        self.out += &format!("\n  {title}\n");
    }

    fn row(&mut self, name: &str, value: impl Display) {
        self.rows.push((name.to_owned(), inline(&value.to_string()).into_owned()));
    }

    /// A row only if there is a value.
    fn maybe(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.row(name, value);
        }
    }

    /// The answer, or a row that says why there is none.
    fn answer<'a, T>(&mut self, what: &str, answer: &'a Answer<T>) -> Option<&'a T> {
        if answer.known().is_none() {
            self.row(what, answer);
        }
        answer.known()
    }

    fn close(&mut self) {
        let width = self.rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in self.rows.drain(..) {
            self.out += format!("    {name:width$}  {value}").trim_end();
            self.out += "\n";
        }
    }

    fn finish(mut self) -> String {
        self.close();
        self.out
    }
}

fn drive(page: &mut Page, drive: &Drive, permission: &str) {
    page.section("drive");
    page.row("kind", drive.kind);
    page.maybe("model", drive.model.as_ref());
    page.maybe("serial", drive.serial.as_ref());
    page.maybe("firmware", drive.firmware.as_ref());
    page.maybe("name", drive.wwid.as_ref());
    page.row("size", size(drive.size_bytes));
    page.row(
        "blocks",
        format!("{} B ({} B physical)", drive.logical_block_bytes, drive.physical_block_bytes),
    );
    page.maybe("partition of", drive.partition_of.as_ref().map(|path| path.display()));
    page.maybe("backed by", drive.backing.as_ref().map(|path| path.display()));
    if let Some(nvme) = &drive.nvme {
        page.maybe(
            "controllers",
            (!nvme.controllers.is_empty()).then(|| nvme.controllers.join(", ")),
        );
        page.maybe("subsystem", nvme.subsystem_nqn.as_ref().or(nvme.subsystem.as_ref()));
    }
    page.row("may be written", permission);
}

fn link(page: &mut Page, facts: &Facts) {
    let Some(link) = &facts.drive.link else { return };
    page.section("link");
    match *link {
        Link::Pcie { now, best, slot } => {
            page.row("now", now);
            page.row("drive's best", best);
            page.row(
                "slot's best",
                slot.map_or("not reported".to_owned(), |slot| slot.to_string()),
            );
        }
        Link::Sata { .. } => page.row("now", link),
    }
    page.maybe(
        "verdict",
        facts.link_verdict.map(|verdict| match verdict {
            LinkVerdict::Full => "as fast as the drive can",
            LinkVerdict::LimitedBySlot => {
                "limited by the slot: the drive would be faster in another"
            }
            LinkVerdict::Degraded => {
                "DEGRADED: less than drive and slot can do; look again under load, then reseat the \
                 drive and look at cable, riser and firmware"
            }
        }),
    );
}

fn temperatures(page: &mut Page, facts: &Facts) {
    if facts.temperatures.is_empty() {
        return;
    }
    page.section("temperature");
    for temperature in &facts.temperatures {
        let mut value = celsius(temperature.celsius);
        for (limit, name) in
            [(temperature.max_celsius, "warns at"), (temperature.critical_celsius, "critical at")]
        {
            // Drives fill a limit that they don't have with their number's lowest or highest value.
            if let Some(limit) = limit.filter(|limit| (-50..200).contains(limit)) {
                value += &format!(", {name} {}", celsius(limit));
            }
        }
        page.row(temperature.label.as_deref().unwrap_or("sensor"), value);
    }
}

fn controller(page: &mut Page, answer: &Answer<ControllerIdentity>) {
    page.section("controller");
    let Some(identity) = page.answer("identity", answer) else { return };
    page.maybe("specification", identity.version.as_ref().map(|v| format!("NVM Express {v}")));
    page.maybe("capacity", identity.capacity_bytes.map(size));
    page.maybe("in no namespace", identity.unallocated_bytes.filter(|&n| n > 0).map(size));
    page.row(
        "longest transfer",
        identity.transfer_max_bytes.map_or("no limit".to_owned(), |n| format!("{} KiB", n >> 10)),
    );
    page.row("volatile write cache", if identity.volatile_write_cache { "yes" } else { "no" });
    page.maybe("warns at", identity.warning_temperature_celsius.map(celsius));
    page.maybe("critical at", identity.critical_temperature_celsius.map(celsius));
    if let Some(limits) = identity.thermal_management
        && let (Some(min), Some(max)) = (limits.min_celsius, limits.max_celsius)
    {
        page.row("settable throttling point", format!("{} to {}", celsius(min), celsius(max)));
    }
    page.row("attributes", words(&identity.attributes));
    page.row("admin commands", words(&identity.admin_commands));
    page.row("commands", words(&identity.nvm_commands));
    page.row("sanitize by", words(&identity.sanitize));
    if !identity.read_recovery_levels.is_empty() {
        let levels: Vec<_> = identity.read_recovery_levels.iter().map(u8::to_string).collect();
        page.row("read recovery levels", levels.join(", "));
    }
    let power = identity.power_states.iter().filter_map(|state| state.max_milliwatts).max();
    page.maybe("greatest power", power.map(|n| format!("{:.1} W", f64::from(n) / 1e3)));
}

fn namespace(page: &mut Page, nvme: &NvmeFacts) {
    page.section("namespace");
    if let Some(identity) = page.answer("identity", &nvme.namespace) {
        known_namespace(page, identity);
    }
    if let Some(list) = page.answer("all namespaces", &nvme.active_namespaces) {
        let list: Vec<_> = list.iter().map(u32::to_string).collect();
        page.row("all namespaces", list.join(", "));
    }
}

fn known_namespace(page: &mut Page, identity: &NamespaceIdentity) {
    page.row("size", size(identity.size_bytes));
    if identity.capacity_bytes != identity.size_bytes {
        page.row("capacity", size(identity.capacity_bytes));
    }
    page.row("in use", size(identity.used_bytes));
    page.row("thin", if identity.thin_provisioned { "yes" } else { "no" });
    for (n, format) in identity.formats.iter().enumerate().filter(|(_, f)| f.block_bytes > 0) {
        let metadata = match format.metadata_bytes {
            0 => String::new(),
            n => format!(" + {n} B"),
        };
        let mark = if n == usize::from(identity.format_in_use) { ", in use" } else { "" };
        page.row(&format!("format {n}"), format!("{} B{metadata}{mark}", format.block_bytes));
    }
    page.row(
        "trimmed blocks read as",
        match identity.deallocated_reads {
            DeallocatedReads::NotReported => "not reported",
            DeallocatedReads::Zeros => "zeros",
            DeallocatedReads::Ones => "ones",
        },
    );
    page.maybe("NVM Set", identity.nvm_set_id);
    page.maybe("endurance group", identity.endurance_group_id);
    page.maybe("best not across", identity.io_boundary_bytes.map(size));
    if let Some(preferred) = identity.preferred {
        page.row(
            "writes suit",
            format!(
                "multiples of {} at multiples of {}",
                size(preferred.write_granularity_bytes),
                size(preferred.write_alignment_bytes)
            ),
        );
        page.row(
            "trims suit",
            format!(
                "multiples of {} at multiples of {}",
                size(preferred.trim_granularity_bytes),
                size(preferred.trim_alignment_bytes)
            ),
        );
        page.maybe("best write", preferred.write_best_bytes.map(size));
    }
}

fn smart(page: &mut Page, answer: &Answer<SmartLog>) {
    page.section("health");
    let Some(log) = page.answer("SMART log", answer) else { return };
    let warnings = if log.warnings.is_empty() { "none".to_owned() } else { words(&log.warnings) };
    page.row("warnings", warnings);
    page.row("life used", format!("{} %", log.percent_used));
    page.row(
        "spare",
        format!("{} % (warns below {} %)", log.spare_percent, log.spare_threshold_percent),
    );
    page.row("read", size(log.read_bytes));
    page.row("written", size(log.written_bytes));
    page.row("read commands", number(log.host_reads));
    page.row("write commands", number(log.host_writes));
    page.row("busy", format!("{} min", number(log.busy_minutes)));
    page.row("powered", format!("{} h", number(log.power_on_hours)));
    page.row(
        "power cycles",
        format!("{} ({} without notice)", number(log.power_cycles), number(log.unsafe_shutdowns)),
    );
    page.row("media errors", number(log.media_errors));
    page.row("error log entries", number(log.error_log_entries));
    page.maybe("temperature", log.temperature_celsius.map(celsius));
    page.row(
        "time above",
        format!(
            "warning {} min, critical {} min",
            log.warning_temperature_minutes, log.critical_temperature_minutes
        ),
    );
    page.row(
        "throttled",
        format!(
            "lightly {} times for {} s, heavily {} times for {} s",
            log.throttle_light_count,
            log.throttle_light_seconds,
            log.throttle_heavy_count,
            log.throttle_heavy_seconds
        ),
    );
}

/// What the medium was written over its life.
fn medium(page: &mut Page, answer: &Answer<ExtendedHealth>, smart: &Answer<SmartLog>) {
    page.section("medium (OCP log page C0h)");
    let Some(log) = page.answer("extended SMART log", answer) else { return };
    page.row("read", size(log.media_read_bytes));
    page.row("written", size(log.media_written_bytes));
    let host = smart.known().map(|smart| smart.written_bytes).filter(|&bytes| bytes > 0);
    let ratio = |host: u64| format!("{:.2}", log.media_written_bytes as f64 / host as f64);
    page.maybe("write amplification over its life", host.map(ratio));
}

/// The drive's own count of slow commands.
fn monitor(page: &mut Page, answer: &Answer<LatencyMonitor>) {
    page.section("slow commands (OCP log page C3h)");
    let Some(log) = page.answer("latency monitor", answer) else { return };
    if !log.enabled {
        page.row("latency monitor", "off");
        return;
    }
    page.row("counted for", format!("{} min", number(u64::from(log.active_minutes))));
    page.row("begins again after", format!("{} min", number(u64::from(log.window_minutes))));
    for (n, bucket) in log.active.iter().enumerate() {
        let from = log.thresholds_ms[n];
        let name = match log.thresholds_ms.get(n + 1) {
            Some(below) => format!("{from} ms to {below} ms"),
            None => format!("{from} ms or more"),
        };
        let [reads, writes, trims] =
            [bucket.reads, bucket.writes, bucket.trims].map(|count| number(u64::from(count)));
        page.row(&name, format!("{reads} reads, {writes} writes, {trims} trims"));
    }
}

fn groups(page: &mut Page, nvme: &NvmeFacts) {
    page.section("groups and placement");
    for set in page.answer("NVM Sets", &nvme.nvm_sets).into_iter().flatten() {
        page.row(&format!("NVM Set {}", set.id), nvm_set(set));
    }
    for group in page.answer("endurance groups", &nvme.endurance_groups).into_iter().flatten() {
        page.row(&format!("endurance group {}", group.id), endurance_group(group));
    }
    for placement in page.answer("data placement (FDP)", &nvme.placement).into_iter().flatten() {
        page.row(
            &format!("placement in group {}", placement.endurance_group_id),
            placed(placement),
        );
    }
    for latency in
        page.answer("predictable latency", &nvme.predictable_latency).into_iter().flatten()
    {
        page.row(&format!("latency of NVM Set {}", latency.nvm_set_id), predictable(latency));
    }
}

fn nvm_set(set: &NvmSet) -> String {
    let mut text =
        format!("{} in endurance group {}", size(set.capacity_bytes), set.endurance_group_id);
    if let Some(ns) = set.random_read_ns {
        text += &format!(", 4 KiB read {}", base::Duration::from_nanos(ns));
    }
    if let Some(bytes) = set.write_best_bytes {
        text += &format!(", best write {}", size(bytes.into()));
    }
    text
}

fn endurance_group(group: &EnduranceGroup) -> String {
    let mut text = format!("{} % used, {} % spare", group.percent_used, group.spare_percent);
    for (bytes, what) in [
        (group.written_bytes, "written by the host"),
        (group.media_written_bytes, "written to the medium"),
        (group.endurance_bytes, "rated"),
    ] {
        if let Some(bytes) = bytes {
            text += &format!(", {} {what}", size(bytes));
        }
    }
    text
}

fn placed(placement: &Placement) -> String {
    let on = match (placement.enabled, placement.configuration_in_use) {
        (Some(true), Some(n)) => format!("on, configuration {n}"),
        (Some(true), None) => "on".to_owned(),
        (Some(false), _) => "off".to_owned(),
        (None, _) => "not reported whether it is on".to_owned(),
    };
    let configurations = placement.configurations.iter().enumerate().map(|(n, c)| {
        format!(
            "; {n}: {} reclaim unit handles, {} groups, units of {}",
            c.reclaim_unit_handles,
            c.reclaim_groups,
            size(c.reclaim_unit_bytes)
        )
    });
    on + &configurations.collect::<String>()
}

fn predictable(latency: &PredictableLatency) -> String {
    match latency.window {
        Window::NotUsed => "off",
        Window::Deterministic => "in a deterministic window",
        Window::NonDeterministic => "in a non-deterministic window",
    }
    .to_owned()
}

fn logs(page: &mut Page, answer: &Answer<Vec<SupportedLog>>) {
    page.section("logs");
    let Some(list) = page.answer("supported", answer) else { return };
    for log in list {
        page.row(&format!("{:02X}h", log.id), log.name.unwrap_or("the vendor's own"));
    }
}

/// A size as drives are sold, and in bytes where that says more.
fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => ByteSize(bytes).to_string(),
        _ if bytes < 1 << 20 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => ByteSize(bytes).to_string(),
    }
}

fn celsius(degrees: i32) -> String {
    format!("{degrees} °C")
}

/// Names as the JSON has them, spaces for underscores.
fn words<T: Serialize>(names: &[T]) -> String {
    let words: Vec<_> = names
        .iter()
        .filter_map(|name| Some(serde_json::to_value(name).ok()?.as_str()?.replace('_', " ")))
        .collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_described_by_what_a_file_has() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(8192).unwrap();
        let facts = device::facts::read(file.path()).unwrap();
        let text = text(file.path(), Some(&facts), "yes");
        for said in ["kind            file", "8 KiB", "may be written  yes"] {
            assert!(text.contains(said), "{said:?} is not in {text}");
        }
        for unsaid in ["controller", "health", "link"] {
            assert!(!text.contains(unsaid), "{text}");
        }
    }

    #[test]
    fn what_a_drive_does_not_tell_is_said_in_words_and_never_as_a_number() {
        let mut page = Page::default();
        smart(&mut page, &Answer::NotTold { reason: "asking /dev/nvme0 needs root".to_owned() });
        logs(&mut page, &Answer::NotSupported);
        let text = page.finish();
        assert!(text.contains("SMART log  not reported: asking /dev/nvme0 needs root"), "{text}");
        assert!(text.contains("supported  not supported by this drive"), "{text}");
        assert!(!text.contains("0 %"), "{text}");
    }

    #[test]
    fn a_drives_own_count_of_slow_commands_is_shown_by_latency() {
        use device::nvme::ocp::Bucket;
        let bucket = |reads| Bucket { reads, writes: 2, trims: 0 };
        let monitor = LatencyMonitor {
            enabled: true,
            active_minutes: 35,
            window_minutes: 10_080,
            thresholds_ms: [5, 10, 50, 1000],
            active: [1, 2, 3, 4].map(bucket),
            last_window: [Bucket::default(); 4],
            version: 1,
        };
        let shown = |monitor| {
            let mut page = Page::default();
            super::monitor(&mut page, &Answer::Known(monitor));
            page.finish()
        };
        let text = shown(monitor);
        for said in ["10,080 min", "5 ms to 10 ms       1 reads, 2 writes", "1000 ms or more"] {
            assert!(text.contains(said), "{said:?} is not in {text}");
        }
        let off = shown(LatencyMonitor { enabled: false, ..monitor });
        assert!(off.contains("off") && !off.contains("reads"), "{off}");
    }

    #[test]
    fn what_the_medium_took_stands_beside_what_the_host_wrote() {
        let log =
            ExtendedHealth { media_written_bytes: 9_000_000, media_read_bytes: 1, version: 3 };
        let mut smart = [0; 512];
        smart[48] = 4;
        let smart = Answer::Known(SmartLog::parse(&smart));
        let mut page = Page::default();
        medium(&mut page, &Answer::Known(log), &smart);
        let text = page.finish();
        assert!(text.contains("write amplification over its life  4.39"), "{text}");
        let mut page = Page::default();
        medium(&mut page, &Answer::NotSupported, &smart);
        assert!(!page.finish().contains("amplification"));
    }

    #[test]
    fn names_read_as_words() {
        use device::nvme::identify::Attribute;
        assert_eq!(
            words(&[Attribute::NvmSets, Attribute::EnduranceGroups]),
            "nvm sets, endurance groups"
        );
        assert_eq!(words::<Attribute>(&[]), "none");
    }
}
