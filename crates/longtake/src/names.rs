//! Names and labels that users give: none is cut short unsaid, and none holds control characters.

use format::superblock::{LABEL_BYTES_MAX, NAME_BYTES_MAX};

/// An array's name from the command line.
///
/// # Errors
/// If it is longer than a superblock keeps, or has control characters.
pub fn array_name(text: &str) -> Result<String, String> {
    checked(text, NAME_BYTES_MAX)
}

/// A label of a protected span.
///
/// # Errors
/// If it is longer than a superblock keeps, or has control characters.
pub fn label(text: &str) -> Result<String, String> {
    checked(text, LABEL_BYTES_MAX)
}

/// A name that is kept in a file, at any length.
///
/// # Errors
/// If it has control characters.
pub fn printable(text: &str) -> Result<String, String> {
    checked(text, usize::MAX)
}

/// The name of an array that is called after its folder: as much of it as a superblock keeps.
pub fn of_folder(name: &str) -> String {
    let mut name: String = name.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    name.truncate(name.floor_char_boundary(NAME_BYTES_MAX));
    name
}

fn checked(text: &str, bytes_max: usize) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        return Err(
            "it has control characters: use letters, digits, spaces and punctuation".to_owned()
        );
    }
    if text.len() > bytes_max {
        return Err(format!(
            "it is {} bytes long, and {bytes_max} are kept: give a shorter one",
            text.len()
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_whole_or_not_at_all() {
        let full = "\u{fc}".repeat(20);
        assert_eq!(label(&full), Ok(full.clone()));
        assert!(label(&format!("{full}x")).unwrap_err().contains("41 bytes"));
        assert!(array_name(&"x".repeat(65)).is_err());
        assert!(array_name("a\nb").unwrap_err().contains("control"));
        assert!(printable("\u{9b}2J").is_err());
    }

    #[test]
    fn a_folder_of_any_name_gives_an_array_a_name_that_is_kept_whole() {
        let name = of_folder(&format!("a\n{}", "\u{fc}".repeat(40)));
        assert_eq!(name, format!("a_{}", "\u{fc}".repeat(31)));
        assert_eq!(array_name(&name), Ok(name));
    }
}
