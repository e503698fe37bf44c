//! Built with `--cfg fuzzing`: libFuzzer on the target that LONGTAKE_FUZZ names (`cargo xtask fuzz` does that). Built
//! otherwise: `longtake-fuzz TARGET FILE...` gives a target the inputs in files.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
static TARGET: std::sync::LazyLock<fn(&[u8])> = std::sync::LazyLock::new(|| {
    let name = std::env::var("LONGTAKE_FUZZ").expect("LONGTAKE_FUZZ names the target");
    longtake_fuzz::target(&name).expect("LONGTAKE_FUZZ names one of the targets").run
});

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET(bytes));

#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    let mut words = std::env::args().skip(1);
    let target = words.next().and_then(|name| longtake_fuzz::target(&name));
    let Some(target) = target else {
        eprintln!("longtake-fuzz TARGET FILE...: gives a target the inputs in files. The targets:");
        for target in longtake_fuzz::TARGETS {
            eprintln!("  {:13} {}", target.name, target.about);
        }
        return 2.into();
    };
    for path in words {
        match std::fs::read(&path) {
            Ok(bytes) => {
                eprintln!("{path}: {} bytes", bytes.len());
                (target.run)(&bytes);
            }
            Err(error) => {
                eprintln!("longtake-fuzz: reading {path}: {error}");
                return 1.into();
            }
        }
    }
    std::process::ExitCode::SUCCESS
}
