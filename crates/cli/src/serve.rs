//! `longtake serve`: what was recorded, over HTTP.

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;
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
    /// Print the arrays and the address as JSON, once the service is ready.
    #[arg(long)]
    pub json: bool,
}

/// Serves until a signal ends it.
///
/// # Errors
/// If an array can't be opened, or the address can't be listened on.
pub fn serve(arguments: &ServeArguments) -> Result<ExitCode> {
    let ServeArguments { arrays, listen, json } = arguments;
    let options = Options { arrays: arrays.clone(), listen: *listen, ..Options::default() };
    let server = Server::bind(&options)?;
    let (names, url) =
        (server.arrays().collect::<Vec<_>>(), format!("http://{}/", server.address()));
    match json {
        true => printer::json_line(&json!({"event": "ready", "arrays": names, "url": url}))?,
        false => printer::text(&format!("serving {} on {url}", names.join(", ")))?,
    }
    server.run_until_signal()?;
    Ok(ExitCode::SUCCESS)
}
