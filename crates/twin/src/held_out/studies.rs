//! The studies: which figures of each document drives are fitted to, and where the values of the other parameters come from
//! that the library's drives have fitted.

use lab::published::Group;

/// How the drives of one document are set up before their other figures are predicted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Study {
    /// Parameters that are set without a figure of the document in view.
    pub(super) starts: &'static [Start],
    /// Parameters that are fitted, each to one figure.
    pub(super) fits: &'static [Fit],
}

/// A parameter that is set from another source than the document's figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    /// The drives' names in the library.
    pub(super) models: &'static [&'static str],
    /// Section and name.
    pub(super) parameter: (&'static str, &'static str),
    /// Its value.
    pub(super) value: StartValue,
    /// Where the value comes from.
    pub(super) source: &'static str,
    /// Claims of the document that the source is one of; empty in most cases.
    pub(super) claims: &'static [&'static str],
}

/// The value of a parameter that is not fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum StartValue {
    /// This number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// None: the drive does without.
    LeftOut,
}

/// A parameter that is fitted to one figure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    /// The drives' names in the library.
    pub(super) models: &'static [&'static str],
    /// Section and name.
    pub(super) parameter: (&'static str, &'static str),
    /// Where the search begins.
    pub(super) from: f64,
    /// The least and the greatest value that the search may take.
    pub(super) within: (f64, f64),
    /// Whether the figure rises with the parameter; if not, it falls.
    pub(super) rises: bool,
    /// The figure's claim.
    pub(super) claim: &'static str,
    /// What the claim's figure is, as the claim's row names it.
    pub(super) figure: &'static str,
    /// Figures that say the same again, by claim and what they are: no predictions either.
    pub(super) again: &'static [(&'static str, &'static str)],
}

const EVO_PLUS: &[&str] = &["samsung-970-evo-plus-1tb"];
const PM1725B: &[&str] = &["samsung-pm1725b-1.6tb"];
const OPTANE: &[&str] = &["intel-optane-900p-480gb"];
const P3600: &[&str] = &["intel-dc-p3600-400gb"];
const S3700: &[&str] = &["intel-dc-s3700-400gb"];
const S3500: &[&str] = &["intel-dc-s3500-480gb"];
const HELLFIRE: &[&str] = &["patriot-hellfire-240gb"];
const MEMBLAZE: &[&str] = &["memblaze-4tb", "memblaze-4tb-horizontal", "memblaze-4tb-vertical"];

/// The study of a document.
pub(super) const fn of(group: Group) -> Study {
    match group {
        Group::Rec => REC,
        Group::Qos => QOS,
        Group::Str => STR,
        Group::Lnk => LNK,
        Group::Mix => MIX,
    }
}

const fn number(
    models: &'static [&'static str],
    parameter: (&'static str, &'static str),
    value: f64,
    source: &'static str,
) -> Start {
    Start { models, parameter, value: StartValue::Number(value), source, claims: &[] }
}

const fn left_out(
    models: &'static [&'static str],
    parameter: (&'static str, &'static str),
    source: &'static str,
) -> Start {
    Start { models, parameter, value: StartValue::LeftOut, source, claims: &[] }
}

const REC: Study = Study {
    starts: &[
        number(
            EVO_PLUS,
            ("cache", "shrink_from"),
            0.89,
            "below this fill the drive has three times 36 GB of free TLC",
        ),
        number(EVO_PLUS, ("cache", "shrink_to"), 1.0, "a full drive has no free TLC"),
        left_out(PM1725B, ("upkeep", "every_bytes"), "no source but the white paper's dips"),
        left_out(PM1725B, ("upkeep", "bytes"), "no source but the white paper's dips"),
        number(
            OPTANE,
            ("flash", "program_us"),
            8.15,
            "35 dies write the 2.2 GB/s that the white paper quotes from the datasheet",
        ),
    ],
    fits: &[
        Fit {
            models: EVO_PLUS,
            parameter: ("cache", "program_us"),
            from: 318.0,
            within: (100.0, 1000.0),
            rises: false,
            claim: "REC-7",
            figure: "into the cache",
            again: &[],
        },
        Fit {
            models: PM1725B,
            parameter: ("flash", "program_us"),
            from: 1573.0,
            within: (500.0, 4000.0),
            rises: false,
            claim: "REC-9",
            figure: "most of the time",
            again: &[],
        },
    ],
};

const QOS: Study = Study {
    starts: &[
        Start {
            models: MEMBLAZE,
            parameter: ("controller", "read_iops"),
            value: StartValue::Number(1e6),
            source: "the million that the talk gives NVMe drives in general",
            claims: &["QOS-2"],
        },
        number(MEMBLAZE, ("link", "lanes"), 4.0, "as most drives of its time"),
        number(MEMBLAZE, ("flash", "channels"), 8.0, "the middle of the talk's 4, 8 and 10"),
        number(
            MEMBLAZE,
            ("flash", "dies_per_channel"),
            8.0,
            "the middle of the talk's 4, 8 and 10",
        ),
        number(
            MEMBLAZE,
            ("flash", "read_us"),
            49.0,
            "the middle of the 58 to 40 us published for TLC (ISSCC)",
        ),
        number(
            MEMBLAZE,
            ("flash", "erase_us"),
            3500.0,
            "AERO, ASPLOS 2024: an erase of 3D TLC takes 3.5 ms or more",
        ),
        number(MEMBLAZE, ("flash", "channel_mb_s"), 480.0, "533 MT/s, nine tenths of them data"),
        Start {
            models: MEMBLAZE,
            parameter: ("flash", "suspend_erases"),
            value: StartValue::Flag(true),
            source: "where programs are suspended, erases can be",
            claims: &[],
        },
    ],
    fits: &[
        Fit {
            models: MEMBLAZE,
            parameter: ("controller", "read_us"),
            from: 20.0,
            within: (1.0, 100.0),
            rises: true,
            claim: "QOS-4",
            figure: "a read of 4 KiB alone",
            again: &[],
        },
        Fit {
            models: MEMBLAZE,
            parameter: ("controller", "write_us"),
            from: 10.0,
            within: (1.0, 40.0),
            rises: true,
            claim: "QOS-4",
            figure: "a write of 4 KiB alone",
            again: &[],
        },
        Fit {
            models: MEMBLAZE,
            parameter: ("flash", "suspend_us"),
            from: 50.0,
            within: (5.0, 400.0),
            rises: true,
            claim: "QOS-7",
            figure: "mean read latency without sets",
            again: &[],
        },
        Fit {
            models: MEMBLAZE,
            parameter: ("flash", "program_us"),
            from: 1500.0,
            within: (500.0, 5000.0),
            rises: false,
            claim: "QOS-11",
            figure: "without sets, 32 reads under way",
            again: &[],
        },
    ],
};

const STR: Study = Study {
    starts: &[number(
        S3700,
        ("flash", "read_us"),
        62.5,
        "the middle of the 50 to 75 us published for MT29F64G08CBAAA",
    )],
    fits: &[
        Fit {
            models: P3600,
            parameter: ("flash", "read_us"),
            from: 100.0,
            within: (20.0, 200.0),
            rises: false,
            claim: "STR-3",
            figure: "512 KB, NVMe",
            again: &[
                ("STR-4", "streams of 4 MB/s, at 512 KB"),
                ("STR-4", "streams of 1.5 MB/s, at 512 KB"),
            ],
        },
        Fit {
            models: P3600,
            parameter: ("flash", "channel_mb_s"),
            from: 140.0,
            within: (60.0, 400.0),
            rises: true,
            claim: "STR-3",
            figure: "8 MB, NVMe",
            again: &[],
        },
        Fit {
            models: P3600,
            parameter: ("flash", "program_us"),
            from: 1600.0,
            within: (800.0, 5000.0),
            rises: false,
            claim: "STR-7",
            figure: "P3600 write",
            again: &[],
        },
        Fit {
            models: S3700,
            parameter: ("controller", "read_us"),
            from: 50.0,
            within: (5.0, 500.0),
            rises: true,
            claim: "STR-3",
            figure: "512 KB, NVMe over SATA",
            again: &[],
        },
        Fit {
            models: S3700,
            parameter: ("link", "efficiency"),
            from: 0.833,
            within: (0.5, 0.98),
            rises: true,
            claim: "STR-7",
            figure: "S3700 read",
            again: &[],
        },
        Fit {
            models: S3700,
            parameter: ("flash", "program_us"),
            from: 1300.0,
            within: (600.0, 5000.0),
            rises: false,
            claim: "STR-7",
            figure: "S3700 write",
            again: &[],
        },
    ],
};

const LNK: Study = Study {
    starts: &[number(
        HELLFIRE,
        ("controller", "read_iops"),
        210e3,
        "as many as the maker gives writes of the family",
    )],
    fits: &[Fit {
        models: HELLFIRE,
        parameter: ("link", "efficiency"),
        from: 0.89,
        within: (0.5, 0.98),
        rises: true,
        claim: "LNK-2",
        figure: "sequential read on 1.x x1",
        again: &[("LNK-1", "a lane of 1.x, usable")],
    }],
};

const MIX: Study = Study {
    starts: &[number(S3500, ("flash", "program_us"), 1600.0, "published for MT29F128G08CBECB")],
    fits: &[
        Fit {
            models: S3500,
            parameter: ("flash", "read_us"),
            from: 100.0,
            within: (30.0, 300.0),
            rises: false,
            claim: "MIX-4",
            figure: "4 KB, 100 % read",
            again: &[],
        },
        Fit {
            models: S3500,
            parameter: ("controller", "write_iops"),
            from: 40e3,
            within: (10e3, 200e3),
            rises: true,
            claim: "MIX-4",
            figure: "4 KB, 5/95",
            again: &[],
        },
    ],
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use profile::{Value, library};

    use super::*;

    /// A drive's parameter: model, section, name.
    type Place = (&'static str, &'static str, &'static str);

    fn places(study: &Study) -> Vec<Place> {
        let starts = study.starts.iter().map(|start| (start.models, start.parameter));
        let fits = study.fits.iter().map(|fit| (fit.models, fit.parameter));
        let all = starts.chain(fits).flat_map(|(models, (section, name))| {
            models.iter().map(move |&model| (model, section, name))
        });
        all.collect()
    }

    #[test]
    fn every_fitted_parameter_of_the_librarys_drives_is_set_by_exactly_one_line_of_its_document() {
        for group in Group::ALL {
            let study = of(group);
            let places = places(&study);
            let once: BTreeSet<Place> = places.iter().copied().collect();
            assert_eq!(once.len(), places.len(), "{group}: {places:?}");
            let models: BTreeSet<&str> = places.iter().map(|place| place.0).collect();
            for model in models {
                let drive = library::get(model).unwrap();
                for (section, parameters) in drive.simulated.sections() {
                    for (name, parameter) in parameters {
                        let set =
                            once.iter().any(|place| *place == (model, section, name.as_str()));
                        assert_eq!(set, !parameter.fitted.is_empty(), "{model} {section}.{name}");
                    }
                }
            }
        }
        // No fitted drive is left out.
        let studied: BTreeSet<&str> =
            Group::ALL.iter().flat_map(|&group| places(&of(group))).map(|place| place.0).collect();
        for model in library::names() {
            let drive = library::get(model).unwrap();
            let mut parameters = drive.simulated.sections().flat_map(|(_, all)| all);
            let fitted = parameters.any(|(_, parameter)| !parameter.fitted.is_empty());
            assert_eq!(fitted, studied.contains(model), "{model}");
        }
    }

    #[test]
    fn searches_begin_within_their_range_at_values_that_the_drive_can_have() {
        for fit in Group::ALL.iter().flat_map(|&group| of(group).fits) {
            let (least, greatest) = fit.within;
            assert!(0.0 < least && least < fit.from && fit.from < greatest, "{fit:?}");
            for model in fit.models {
                let (section, name) = fit.parameter;
                let drive = library::get(model).unwrap();
                let value = &drive.simulated.get(section, name).unwrap().value;
                assert!(matches!(value, Value::Integer(_) | Value::Float(_)), "{fit:?}");
            }
        }
    }
}
