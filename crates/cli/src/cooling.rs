//! Options that put simulated drives somewhere warm, or somewhere well cooled.

use clap::Args;
use target::profiles::Surroundings;

/// Where simulated drives are put.
#[derive(Clone, Copy, Debug, Args)]
pub struct CoolingArguments {
    /// Temperature of the air at simulated drives, in degrees Celsius [default: as their files say].
    #[arg(
        long,
        value_name = "CELSIUS",
        allow_negative_numbers = true,
        help_heading = "Simulated drives",
        hide_short_help = true
    )]
    pub ambient: Option<f64>,
    /// How much warmer than the air a simulated drive gets for each watt, in kelvins [default: as its file says].
    ///
    /// A heat sink or a fan makes it smaller.
    #[arg(long, value_name = "KELVINS", help_heading = "Simulated drives", hide_short_help = true)]
    pub cooling: Option<f64>,
}

impl CoolingArguments {
    /// The place.
    pub fn place(self) -> Surroundings {
        Surroundings { ambient_c: self.ambient, kelvin_per_w: self.cooling }
    }
}
