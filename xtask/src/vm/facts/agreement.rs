//! Every compared field of `longtake drives --json` and nvme-cli's JSON.
//!
//! nvme-cli shows raw values; what longtake makes of them (bytes, degrees Celsius, names of bits) is
//! worked out here a second time, from the specification.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde_json::{Value, json};

/// A namespace of which both have spoken.
#[derive(Debug)]
pub struct Namespace<'a> {
    /// Its kernel name, `nvme0n1`.
    pub name: &'a str,
    /// The controller that was asked, `nvme0`.
    pub controller: &'a str,
    /// Its identifier.
    pub id: u32,
    /// What longtake says of it.
    pub ours: &'a Value,
}

/// What agreed and what didn't.
#[derive(Debug, Default)]
pub struct Agreement {
    /// Section and field, and on how many namespaces it agreed.
    agreed: BTreeMap<(&'static str, &'static str), usize>,
    disagreed: Vec<String>,
}

const CTRATT: &[(u32, &str)] = &[
    (2, "nvm_sets"),
    (3, "read_recovery_levels"),
    (4, "endurance_groups"),
    (5, "predictable_latency_mode"),
    (7, "namespace_granularity"),
    (8, "queue_associations"),
    (11, "fixed_capacity_management"),
    (12, "variable_capacity_management"),
    (13, "delete_endurance_group"),
    (14, "delete_nvm_set"),
    (15, "extended_lba_formats"),
    (19, "flexible_data_placement"),
];
const OACS: &[(u32, &str)] = &[
    (0, "security"),
    (1, "format_nvm"),
    (2, "firmware"),
    (3, "namespace_management"),
    (4, "device_self_test"),
    (5, "directives"),
    (6, "nvme_mi"),
    (7, "virtualization_management"),
    (8, "doorbell_buffer_config"),
    (9, "get_lba_status"),
    (10, "lockdown"),
];
const ONCS: &[(u32, &str)] = &[
    (0, "compare"),
    (1, "write_uncorrectable"),
    (2, "dataset_management"),
    (3, "write_zeroes"),
    (4, "save_features"),
    (5, "reservations"),
    (6, "timestamp"),
    (7, "verify"),
    (8, "copy"),
];
const LPA: &[(u32, &str)] = &[
    (0, "smart_by_namespace"),
    (1, "command_effects"),
    (2, "extended_logs"),
    (3, "telemetry"),
    (4, "persistent_events"),
    (5, "supported_log_pages"),
];
const SANICAP: &[(u32, &str)] = &[(0, "crypto_erase"), (1, "block_erase"), (2, "overwrite")];
const WARNINGS: &[(u32, &str)] = &[
    (0, "spare_low"),
    (1, "temperature"),
    (2, "reliability_degraded"),
    (3, "read_only"),
    (4, "volatile_backup_failed"),
    (5, "persistent_memory_unreliable"),
];

impl Agreement {
    /// Identify Controller.
    pub fn controller(&mut self, namespace: &Namespace<'_>, theirs: &Value) {
        self.required(
            namespace,
            theirs,
            &[
                "tnvmcap", "unvmcap", "wctemp", "cctemp", "hctma", "mntmt", "mxtmt", "ctratt",
                "oacs", "oncs", "lpa", "sanicap", "rrls", "mdts", "ver", "psds", "sn", "mn", "fr",
                "subnqn",
            ],
        );
        let n = |key| number(theirs, key);
        let capacity = n("tnvmcap").filter(|&c| c > 0);
        let thermal = n("hctma").filter(|&h| h & 1 == 1).map(
            |_| json!({"min_celsius": celsius(n("mntmt")), "max_celsius": celsius(n("mxtmt"))}),
        );
        let version = n("ver").map(|v| format!("{}.{}.{}", v >> 16, v >> 8 & 0xFF, v & 0xFF));
        let fields = [
            ("vendor_id", json!(n("vid"))),
            ("subsystem_vendor_id", json!(n("ssvid"))),
            ("serial", text(theirs, "sn")),
            ("model", text(theirs, "mn")),
            ("firmware", text(theirs, "fr")),
            ("controller_id", json!(n("cntlid"))),
            ("version", json!(version)),
            ("subsystem_nqn", text(theirs, "subnqn")),
            ("transfer_max_exponent", json!(n("mdts"))),
            ("transfer_max_bytes", json!(n("mdts").filter(|&m| m > 0).map(|m| 4096u64 << m))),
            ("capacity_bytes", json!(capacity)),
            ("unallocated_bytes", json!(capacity.and_then(|_| n("unvmcap")))),
            ("namespace_id_max", json!(n("nn"))),
            ("volatile_write_cache", json!(n("vwc").map(|v| v & 1 == 1))),
            ("warning_temperature_celsius", celsius(n("wctemp"))),
            ("critical_temperature_celsius", celsius(n("cctemp"))),
            ("thermal_management", json!(thermal)),
            ("nvm_set_id_max", json!(n("nsetidmax"))),
            ("endurance_group_id_max", json!(n("endgidmax"))),
            ("error_log_entries_max", json!(n("elpe").map(|e| e + 1))),
            ("attributes", bits(n("ctratt"), CTRATT)),
            ("admin_commands", bits(n("oacs"), OACS)),
            ("nvm_commands", bits(n("oncs"), ONCS)),
            ("log_abilities", bits(n("lpa"), LPA)),
            ("sanitize", bits(n("sanicap"), SANICAP)),
            (
                "read_recovery_levels",
                json!((0..16).filter(|l| n("rrls").unwrap_or(0) >> l & 1 == 1).collect::<Vec<_>>()),
            ),
            ("power_states", json!(power_states(theirs))),
        ];
        self.compare(
            namespace,
            "controller",
            &namespace.ours["nvme"]["controller"]["known"],
            fields,
        );
    }

    /// Identify Namespace.
    pub fn namespace(&mut self, namespace: &Namespace<'_>, theirs: &Value) {
        self.required(
            namespace,
            theirs,
            &[
                "nvmcap", "nsfeat", "dlfeat", "flbas", "nvmsetid", "endgid", "noiob", "npwg",
                "npwa", "npdg", "npda", "nows", "lbafs",
            ],
        );
        let n = |key| number(theirs, key);
        let formats = formats(theirs);
        let flbas = n("flbas").unwrap_or(u64::MAX);
        let block = usize::try_from(flbas & 0xF)
            .ok()
            .and_then(|at| formats.get(at)?["block_bytes"].as_u64())
            .unwrap_or(0);
        let blocks = |key| json!(n(key).map(|count| count * block));
        let counted = |key| json!(n(key).map(|count| (count + 1) * block));
        let reported = |key| n(key).filter(|&count| count > 0);
        let nsfeat = n("nsfeat").unwrap_or(0);
        let preferred = (nsfeat >> 4 & 1 == 1).then(|| {
            json!({
                "write_granularity_bytes": counted("npwg"),
                "write_alignment_bytes": counted("npwa"),
                "trim_granularity_bytes": counted("npdg"),
                "trim_alignment_bytes": counted("npda"),
                "write_best_bytes": reported("nows").map(|count| (count + 1) * block),
            })
        });
        let reads = match n("dlfeat").unwrap_or(0) & 0b111 {
            1 => "zeros",
            2 => "ones",
            _ => "not_reported",
        };
        let fields = [
            ("size_bytes", blocks("nsze")),
            ("capacity_bytes", blocks("ncap")),
            ("used_bytes", blocks("nuse")),
            ("nvm_bytes", json!(reported("nvmcap"))),
            ("thin_provisioned", json!(nsfeat & 1 == 1)),
            ("deallocated_error", json!(nsfeat >> 2 & 1 == 1)),
            ("deallocated_reads", json!(reads)),
            ("write_zeroes_deallocates", json!(n("dlfeat").unwrap_or(0) >> 3 & 1 == 1)),
            ("formats", json!(formats)),
            ("format_in_use", json!(flbas & 0xF)),
            ("metadata_in_block", json!(flbas >> 4 & 1 == 1)),
            ("shared", json!(n("nmic").map(|nmic| nmic & 1 == 1))),
            ("nvm_set_id", json!(reported("nvmsetid"))),
            ("endurance_group_id", json!(reported("endgid"))),
            ("io_boundary_bytes", json!(reported("noiob").map(|count| count * block))),
            ("preferred", json!(preferred)),
        ];
        self.compare(namespace, "namespace", &namespace.ours["nvme"]["namespace"]["known"], fields);
    }

    /// The SMART log. (nvme-cli leaves out sensors that the drive doesn't have.)
    pub fn health(&mut self, namespace: &Namespace<'_>, theirs: &Value) {
        self.required(namespace, theirs, &["critical_warning", "temperature"]);
        let n = |key| number(theirs, key);
        let units = |key| json!(n(key).map(|count| count * 512_000));
        let sensors: Vec<Value> =
            (1..=8).map(|i| celsius(number(theirs, &format!("temperature_sensor_{i}")))).collect();
        let fields = [
            ("critical_warning", json!(n("critical_warning"))),
            ("warnings", bits(n("critical_warning"), WARNINGS)),
            ("temperature_celsius", celsius(n("temperature"))),
            ("sensors_celsius", json!(sensors)),
            ("spare_percent", json!(n("avail_spare"))),
            ("spare_threshold_percent", json!(n("spare_thresh"))),
            ("percent_used", json!(n("percent_used"))),
            ("read_bytes", units("data_units_read")),
            ("written_bytes", units("data_units_written")),
            ("host_reads", json!(n("host_read_commands"))),
            ("host_writes", json!(n("host_write_commands"))),
            ("busy_minutes", json!(n("controller_busy_time"))),
            ("power_cycles", json!(n("power_cycles"))),
            ("power_on_hours", json!(n("power_on_hours"))),
            ("unsafe_shutdowns", json!(n("unsafe_shutdowns"))),
            ("media_errors", json!(n("media_errors"))),
            ("error_log_entries", json!(n("num_err_log_entries"))),
            ("warning_temperature_minutes", json!(n("warning_temp_time"))),
            ("critical_temperature_minutes", json!(n("critical_comp_time"))),
            ("throttle_light_count", json!(n("thm_temp1_trans_count"))),
            ("throttle_heavy_count", json!(n("thm_temp2_trans_count"))),
            ("throttle_light_seconds", json!(n("thm_temp1_total_time"))),
            ("throttle_heavy_seconds", json!(n("thm_temp2_total_time"))),
        ];
        self.compare(namespace, "smart", &namespace.ours["nvme"]["smart"]["known"], fields);
        // The short form of the same log, by which wear and cost are told.
        let health = &namespace.ours["drive"]["wear"]["known"];
        let short = [
            ("percent_used", json!(n("percent_used"))),
            ("spare_percent", json!(n("avail_spare"))),
            ("written_bytes", units("data_units_written")),
            ("temperature_celsius", celsius(n("temperature"))),
            ("critical_warning", json!(n("critical_warning"))),
        ];
        self.compare(namespace, "wear", health, short);
    }

    /// The list of active namespaces.
    pub fn active_namespaces(&mut self, namespace: &Namespace<'_>, theirs: &Value) {
        let list: Vec<_> = theirs["nsid_list"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|entry| number(entry, "nsid"))
            .collect();
        let ours = &namespace.ours["nvme"];
        self.compare(namespace, "nvme", ours, [("active_namespaces", json!({"known": list}))]);
    }

    /// Which log pages there are.
    pub fn supported_logs(&mut self, namespace: &Namespace<'_>, theirs: Option<&Value>) {
        let ours = &namespace.ours["nvme"]["supported_logs"];
        let listed = theirs.and_then(|theirs| theirs["supported_logs"].as_array());
        let Some(listed) = listed else {
            return self.unsupported(namespace, "supported_logs", ours);
        };
        let ids: Vec<_> = listed.iter().map(|log| number(log, "lid")).collect();
        let known: Vec<_> =
            ours["known"].as_array().into_iter().flatten().map(|log| log["id"].as_u64()).collect();
        self.compare(namespace, "supported_logs", &json!({"ids": known}), [("ids", json!(ids))]);
    }

    /// The log of endurance group 1.
    pub fn endurance_group(&mut self, namespace: &Namespace<'_>, theirs: Option<&Value>) {
        let ours = &namespace.ours["nvme"]["endurance_groups"];
        let Some(theirs) = theirs else {
            return self.unsupported(namespace, "endurance_groups", ours);
        };
        let n = |key| number(theirs, key);
        let billions =
            |key| json!(n(key).filter(|&count| count > 0).map(|count| count * 1_000_000_000));
        let fields = [
            ("id", json!(1)),
            ("critical_warning", json!(n("critical_warning"))),
            ("spare_percent", json!(n("avl_spare"))),
            ("spare_threshold_percent", json!(n("avl_spare_threshold"))),
            ("percent_used", json!(n("percent_used"))),
            ("endurance_bytes", billions("endurance_estimate")),
            ("read_bytes", billions("data_units_read")),
            ("written_bytes", billions("data_units_written")),
            ("media_written_bytes", billions("mediate_write_commands")),
            ("host_reads", json!(n("host_read_cmds"))),
            ("host_writes", json!(n("host_write_cmds"))),
            ("media_errors", json!(n("media_data_integrity_err"))),
            ("error_log_entries", json!(n("num_err_info_log_entries"))),
        ];
        self.compare(namespace, "endurance_groups", &ours["known"][0], fields);
    }

    /// The list of NVM Sets.
    pub fn nvm_sets(&mut self, namespace: &Namespace<'_>, theirs: Option<&Value>) {
        let ours = &namespace.ours["nvme"]["nvm_sets"];
        let sets = theirs.and_then(|theirs| theirs["NVMSet"].as_array());
        let Some(sets) = sets.filter(|sets| !sets.is_empty()) else {
            return self.unsupported(namespace, "nvm_sets", ours);
        };
        for (at, theirs) in sets.iter().enumerate() {
            let fields = [
                ("id", json!(number(theirs, "nvmset_id"))),
                ("endurance_group_id", json!(number(theirs, "endurance_group_id"))),
                ("capacity_bytes", json!(number(theirs, "total_nvmset_cap"))),
                ("unallocated_bytes", json!(number(theirs, "unalloc_nvmset_cap"))),
            ];
            self.compare(namespace, "nvm_sets", &ours["known"][at], fields);
        }
    }

    /// Flexible data placement of endurance group 1.
    pub fn placement(
        &mut self,
        namespace: &Namespace<'_>,
        configurations: Option<&Value>,
        statistics: Option<&Value>,
    ) {
        let ours = &namespace.ours["nvme"]["placement"];
        let Some(configurations) = configurations else {
            return self.unsupported(namespace, "placement", ours);
        };
        let ours = &ours["known"][0];
        let list = configurations["configs"].as_array().or(configurations.as_array());
        for (at, theirs) in list.into_iter().flatten().enumerate() {
            let n = |key| number(theirs, key);
            let fields = [
                ("valid", json!(n("fdpa").map(|fdpa| fdpa >> 7 & 1 == 1))),
                ("reclaim_groups", json!(n("nrg"))),
                ("reclaim_unit_handles", json!(n("nruh"))),
                ("placement_handles_max", json!(n("maxpids").map(|count| count + 1))),
                ("namespaces_max", json!(n("nnss"))),
                ("reclaim_unit_bytes", json!(n("runs"))),
                ("reclaim_unit_seconds_max", json!(n("erutl").filter(|&s| s > 0))),
            ];
            self.compare(namespace, "placement", &ours["configurations"][at], fields);
        }
        if let Some(theirs) = statistics {
            let fields = [
                ("host_written_bytes", json!(number(theirs, "hbmw"))),
                ("media_written_bytes", json!(number(theirs, "mbmw"))),
                ("media_erased_bytes", json!(number(theirs, "mbe"))),
            ];
            self.compare(namespace, "placement", &ours["statistics"], fields);
        }
    }

    /// `nvme list -v`: controllers and namespaces of a subsystem.
    pub fn list(&mut self, namespace: &Namespace<'_>, theirs: &Value) {
        let drive = &namespace.ours["drive"];
        let found = find(theirs, &|value| {
            value["Controllers"].as_array().is_some_and(|list| {
                list.iter().any(|controller| controller["Controller"] == namespace.controller)
            })
        });
        let Some(subsystem) = found else {
            return self.differ(namespace, "list", "controller", "is listed", "is not listed");
        };
        let controller = find(subsystem, &|value| value["Controller"] == namespace.controller);
        let controller = controller.unwrap_or(&Value::Null);
        let listed = find(subsystem, &|value| value["NameSpace"] == namespace.name);
        let listed = listed.unwrap_or(&Value::Null);
        let fields = [
            ("serial", text(controller, "SerialNumber")),
            ("model", text(controller, "ModelNumber")),
            ("firmware", text(controller, "Firmware")),
            ("size_bytes", json!(number(listed, "PhysicalSize"))),
            ("logical_block_bytes", json!(number(listed, "SectorSize"))),
        ];
        self.compare(namespace, "drive", drive, fields);
        let id = [("id", json!(number(listed, "NSID")))];
        self.compare(namespace, "drive.nvme", &drive["nvme"], id);
        let used = json!({"bytes": namespace.ours["nvme"]["namespace"]["known"]["used_bytes"]});
        self.compare(namespace, "list", &used, [("bytes", json!(number(listed, "UsedBytes")))]);
    }

    /// `nvme list-subsys`: which subsystem a controller is in.
    pub fn subsystem(&mut self, namespace: &Namespace<'_>, theirs: &Value) {
        let found = find(theirs, &|value| {
            value["Paths"]
                .as_array()
                .is_some_and(|paths| paths.iter().any(|path| path["Name"] == namespace.controller))
        });
        let Some(subsystem) = found else {
            return self.differ(
                namespace,
                "list-subsys",
                "controller",
                "is listed",
                "is not listed",
            );
        };
        let fields = [
            ("subsystem", text(subsystem, "Name")),
            ("subsystem_nqn", text(subsystem, "NQN")),
            ("controllers", json!([namespace.controller])),
            ("id", json!(namespace.id)),
        ];
        self.compare(namespace, "drive.nvme", &namespace.ours["drive"]["nvme"], fields);
    }

    /// What was compared, a section a line.
    ///
    /// # Errors
    /// If anything disagreed.
    pub fn verdict(self) -> Result<Vec<String>> {
        if !self.disagreed.is_empty() {
            bail!(
                "{} fields disagree with nvme-cli:\n{}",
                self.disagreed.len(),
                self.disagreed.join("\n")
            );
        }
        let mut sections: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for ((section, field), count) in &self.agreed {
            sections.entry(section).or_default().push(format!("{field} x{count}"));
        }
        Ok(sections
            .into_iter()
            .map(|(section, fields)| format!("{section}: {}", fields.join(", ")))
            .collect())
    }

    fn compare<const N: usize>(
        &mut self,
        namespace: &Namespace<'_>,
        section: &'static str,
        ours: &Value,
        fields: [(&'static str, Value); N],
    ) {
        for (field, theirs) in fields {
            match ours.get(field) {
                Some(ours) if *ours == theirs => {
                    *self.agreed.entry((section, field)).or_default() += 1;
                }
                ours => {
                    let ours = ours.map_or("nothing".to_owned(), Value::to_string);
                    self.differ(namespace, section, field, &ours, &theirs.to_string());
                }
            }
        }
    }

    /// nvme-cli must have these keys: what is missing would pass for "not reported".
    fn required(&mut self, namespace: &Namespace<'_>, theirs: &Value, keys: &[&str]) {
        for key in keys.iter().filter(|key| theirs.get(**key).is_none()) {
            self.differ(namespace, "nvme-cli", key, "needs it", "has no such key");
        }
    }

    /// Both must say that the drive hasn't got it.
    fn unsupported(&mut self, namespace: &Namespace<'_>, section: &'static str, ours: &Value) {
        if ours == "not_supported" {
            *self.agreed.entry((section, "not supported")).or_default() += 1;
        } else {
            self.differ(namespace, section, "all of it", &ours.to_string(), "not supported");
        }
    }

    fn differ(
        &mut self,
        namespace: &Namespace<'_>,
        section: &str,
        field: &str,
        ours: &str,
        theirs: &str,
    ) {
        let name = namespace.name;
        self.disagreed
            .push(format!("{name} {section}.{field}: longtake {ours}, nvme-cli {theirs}"));
    }
}

/// A number, which nvme-cli also writes as text when it has more than 64 bits.
fn number(json: &Value, key: &str) -> Option<u64> {
    match &json[key] {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.replace(',', "").parse().ok(),
        _ => None,
    }
}

fn text(json: &Value, key: &str) -> Value {
    let text = json[key].as_str().map(str::trim);
    json!(text.filter(|text| !text.is_empty()))
}

/// The power states of a controller that has them.
fn power_states(controller: &Value) -> Vec<Value> {
    let states = controller["psds"].as_array().into_iter().flatten();
    states
        .map(|state| {
            // In 0.01 W, or in 0.0001 W.
            let flags = number(state, "flags").unwrap_or(0);
            json!({
                "max_milliwatts": number(state, "max_power").filter(|&p| p > 0)
                    .map(|p| if flags & 1 == 1 { p / 10 } else { p * 10 }),
                "operational": flags & 2 == 0,
                "entry_us": number(state, "entry_lat").filter(|&t| t > 0),
                "exit_us": number(state, "exit_lat").filter(|&t| t > 0),
            })
        })
        .collect()
}

/// The block formats of a namespace.
fn formats(namespace: &Value) -> Vec<Value> {
    let formats = namespace["lbafs"].as_array().into_iter().flatten();
    formats
        .map(|format| {
            json!({
                "block_bytes": number(format, "ds").map(|ds| if ds == 0 { 0 } else { 1u64 << ds }),
                "metadata_bytes": number(format, "ms"),
                "relative_performance": number(format, "rp"),
            })
        })
        .collect()
}

/// Kelvins as degrees Celsius; 0 is "not reported".
fn celsius(kelvin: Option<u64>) -> Value {
    json!(kelvin.filter(|&k| k > 0).map(|k| k as i64 - 273))
}

fn bits(value: Option<u64>, names: &[(u32, &str)]) -> Value {
    let value = value.unwrap_or(0);
    let set = names.iter().filter(|(bit, _)| value >> bit & 1 == 1).map(|(_, name)| *name);
    json!(set.collect::<Vec<_>>())
}

/// The first value that is as wanted, the value itself or anywhere in it: the lists of nvme-cli differ in
/// their outer layers by version.
fn find<'a>(json: &'a Value, wanted: &dyn Fn(&Value) -> bool) -> Option<&'a Value> {
    if json.is_object() && wanted(json) {
        return Some(json);
    }
    match json {
        Value::Array(list) => list.iter().find_map(|value| find(value, wanted)),
        Value::Object(map) => map.values().find_map(|value| find(value, wanted)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace(ours: &Value) -> Namespace<'_> {
        Namespace { name: "nvme0n1", controller: "nvme0", id: 1, ours }
    }

    #[test]
    fn a_field_that_differs_or_is_missing_fails_the_verdict() {
        let ours = json!({"nvme": {"active_namespaces": {"known": [1, 2]}}});
        let theirs = json!({"nsid_list": [{"nsid": 1}, {"nsid": 2}]});
        let mut agreement = Agreement::default();
        agreement.active_namespaces(&namespace(&ours), &theirs);
        let shown = agreement.verdict().unwrap();
        assert_eq!(shown, ["nvme: active_namespaces x1"]);

        for ours in [json!({"nvme": {"active_namespaces": {"known": [1]}}}), json!({})] {
            let mut agreement = Agreement::default();
            agreement.active_namespaces(&namespace(&ours), &theirs);
            let error = agreement.verdict().unwrap_err().to_string();
            assert!(error.contains("nvme0n1 nvme.active_namespaces"), "{error}");
        }
    }

    #[test]
    fn a_key_that_nvme_cli_lacks_does_not_pass_for_a_value_that_is_not_reported() {
        let ours = json!({});
        let mut agreement = Agreement::default();
        agreement.required(&namespace(&ours), &json!({"tnvmcap": 0}), &["tnvmcap", "wctemp"]);
        let error = agreement.verdict().unwrap_err().to_string();
        assert!(error.contains("wctemp") && !error.contains("tnvmcap"), "{error}");
    }

    #[test]
    fn a_log_that_only_one_side_reads_is_a_disagreement() {
        let read = json!({"nvme": {"nvm_sets": {"known": []}}});
        let none = json!({"nvme": {"nvm_sets": "not_supported"}});
        for (ours, agrees) in [(&read, false), (&none, true)] {
            let mut agreement = Agreement::default();
            agreement.nvm_sets(&namespace(ours), None);
            assert_eq!(agreement.verdict().is_ok(), agrees);
        }
    }

    #[test]
    fn numbers_beyond_64_bits_come_as_text() {
        let json = json!({"a": "12,345", "b": 7, "c": "many"});
        assert_eq!(
            ["a", "b", "c", "d"].map(|key| number(&json, key)),
            [Some(12_345), Some(7), None, None]
        );
    }
}
