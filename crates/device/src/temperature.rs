//! Temperatures as the kernel shows them, of drives of any kind: NVMe by its driver, SATA where the
//! `drivetemp` module is loaded.
//!
//! They need no root, so that they still come when a process has given it up. Source: the kernel's
//! `Documentation/hwmon/sysfs-interface.rst`.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::sysfs::{attribute, is_digits, names_in};

/// A sensor's reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Temperature {
    /// What it measures, `Composite` or `Sensor 1`; None if it isn't told.
    pub label: Option<String>,
    /// Now, in degrees Celsius.
    pub celsius: i32,
    /// From which on the drive is too warm, in degrees Celsius.
    pub max_celsius: Option<i32>,
    /// From which on it is in danger, in degrees Celsius.
    pub critical_celsius: Option<i32>,
}

/// A sensor's place in sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sensor {
    folder: PathBuf,
    name: String,
}

impl Sensor {
    /// Every sensor of the device at `device`: its own folder in sysfs.
    pub fn of(device: &Path) -> Vec<Self> {
        let mut found = Vec::new();
        // A device of a class has its hwmon folders beside its attributes, others in a folder `hwmon`.
        for above in [device.to_owned(), device.join("hwmon")] {
            let names = names_in(&above).unwrap_or_default();
            let folders =
                names.iter().filter(|name| name.strip_prefix("hwmon").is_some_and(is_digits));
            for folder in folders.map(|name| above.join(name)) {
                for name in names_in(&folder).unwrap_or_default() {
                    let number = name.strip_prefix("temp").and_then(|n| n.strip_suffix("_input"));
                    if number.is_some_and(is_digits) {
                        let name = name.trim_end_matches("_input").to_owned();
                        found.push(Self { folder: folder.clone(), name });
                    }
                }
            }
        }
        found
    }

    /// Reads it; None if it has no value now (asleep, or gone).
    pub fn read(&self) -> Option<Temperature> {
        Some(Temperature {
            label: attribute(&self.folder, &format!("{}_label", self.name)),
            celsius: self.celsius("input")?,
            max_celsius: self.celsius("max"),
            critical_celsius: self.celsius("crit"),
        })
    }

    /// One of its values, which are in thousandths of a degree.
    fn celsius(&self, value: &str) -> Option<i32> {
        let thousandths: i32 =
            attribute(&self.folder, &format!("{}_{value}", self.name))?.parse().ok()?;
        Some((f64::from(thousandths) / 1000.0).round() as i32)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn sensors_are_found_in_either_place_and_read_in_whole_degrees() {
        let root = tempfile::tempdir().unwrap();
        for (below, expected) in [("nvme0/hwmon3", 42), ("sda/device/hwmon/hwmon1", 42)] {
            let folder = root.path().join(below);
            write(folder.join("temp1_input"), "41850\n");
            write(folder.join("temp1_label"), "Composite\n");
            write(folder.join("temp1_crit"), "84850\n");
            write(folder.join("temp2_input"), "-5000\n");
            write(folder.join("name"), "nvme\n");
            let device = folder
                .ancestors()
                .find(|f| f.file_name().is_some_and(|n| n == "nvme0" || n == "device"));
            let sensors = Sensor::of(device.unwrap());
            assert_eq!(sensors.len(), 2, "{below}");
            let composite = Temperature {
                label: Some("Composite".to_owned()),
                celsius: expected,
                max_celsius: None,
                critical_celsius: Some(85),
            };
            assert_eq!(sensors[0].read(), Some(composite));
            assert_eq!(sensors[1].read().map(|t| t.celsius), Some(-5));
            fs::remove_file(folder.join("temp1_input")).unwrap();
            assert_eq!(sensors[0].read(), None, "a sensor that has gone is none");
        }
    }
}
