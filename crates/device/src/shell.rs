//! Words of a command that a message suggests: quoted, so that a shell passes them on as they are.

/// A word as a POSIX shell takes it. One with control characters needs the `$'...'` of bash, zsh and POSIX.1-2024.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.:+,@%".contains(c);
    if word.chars().any(char::is_control) {
        let escape = |byte: &u8| match byte {
            b'\\' | b'\'' => format!("\\{}", char::from(*byte)),
            b' '..=b'~' => char::from(*byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        };
        format!("$'{}'", word.as_bytes().iter().map(escape).collect::<String>())
    } else if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gets_every_word_back_as_it_was() {
        let words = [
            "",
            "/dev/nvme0n1",
            "two words",
            "it's",
            "$(reboot)",
            "a\u{1b}[2J\nb'\\",
            "sim:x*6",
            "~",
            "ä\u{7}ö",
        ];
        for word in words {
            let script = format!("printf %s {}", quoted(word));
            let ran = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(ran.stdout).unwrap(), word, "{script}");
        }
        assert_eq!(quoted("/dev/loop3"), "/dev/loop3");
    }
}
