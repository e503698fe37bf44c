//! `longtake serve`: what was recorded, over HTTP.

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serve::{LISTEN, Options, Server};

use crate::printer;

/// `serve`.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Array to serve: a directory of member files, drives with commas between them, or an array's name or UUID. Give it once for
    /// each array [default: the arrays on the drives of this machine].
    #[arg(long = "array", value_name = "ARRAY")]
    pub arrays: Vec<String>,
    /// Loopback address and port to listen on; port 0 selects a free one.
    #[arg(long, value_name = "ADDR:PORT", default_value_t = LISTEN)]
    pub listen: SocketAddr,
    /// Loopback address and port where the packets of the only array are sent as PCAP-over-IP, for `tshark -i TCP@ADDR:PORT`.
    #[arg(long, value_name = "ADDR:PORT")]
    pub pcap_over_ip: Option<SocketAddr>,
    /// Print the arrays and the address as JSON, once the service is ready.
    #[arg(long)]
    pub json: bool,
}

/// Serves until a signal ends it.
///
/// # Errors
/// If an array can't be opened, or the address can't be listened on.
pub fn serve(arguments: &ServeArguments) -> Result<ExitCode> {
    let ServeArguments { arrays, listen, pcap_over_ip, json } = arguments;
    let (arrays, listen, pcap_over_ip) = (arrays.clone(), *listen, *pcap_over_ip);
    let options = Options { arrays, listen, pcap_over_ip, ..Options::default() };
    let server = Server::bind(&options)?;
    match json {
        true => printer::json_line(&server.ready_json())?,
        false => printer::text(&server.ready_text())?,
    }
    server.run_until_signal()?;
    Ok(ExitCode::SUCCESS)
}
