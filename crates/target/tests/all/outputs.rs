//! The name of an output becomes a file only if nothing is lost by that.

use std::fs;
use std::io::Write;

use longtake_target::output::{OutputError, Outputs, Readers};
use nix::fcntl::{FcntlArg, fcntl};

#[test]
fn an_output_that_is_not_finished_leaves_the_old_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figures.csv");
    fs::write(&path, "old").unwrap();
    let outputs = Outputs::new(true);
    let mut file = outputs.create(&path, Readers::Umask).unwrap();
    file.write_all(b"new").unwrap();
    drop(file);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    outputs.write(&path, "new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn an_input_is_recognized_behind_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let (input, other) = (folder.path().join("input"), folder.path().join("other"));
    fs::write(&input, "precious").unwrap();
    fs::hard_link(&input, &other).unwrap();
    let outputs = Outputs::new(true).reads([&input]);
    let refused = outputs.write(&other, "").unwrap_err();
    assert!(matches!(refused, OutputError::Input { .. }), "{refused}");
    assert_eq!(fs::read(&input).unwrap(), b"precious");
}

#[test]
fn what_cannot_be_made_again_gets_a_name_beside_a_file_that_must_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.pcap");
    let written = |overwrite, contents: &str, meanwhile: &dyn Fn()| {
        let mut file = Outputs::new(overwrite).create(&path, Readers::Owner).unwrap();
        file.write_all(contents.as_bytes()).unwrap();
        meanwhile();
        file.finish_beside().unwrap()
    };
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(written(false, "first", &|| ()), path);
    assert_eq!(written(true, "second", &|| ()), path);
    // A directory takes the name of a file that was to be replaced.
    let in_the_way = || {
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(folder.path().join("out-2.pcap"), "somebody's").unwrap();
    };
    assert_eq!(written(true, "third", &in_the_way), folder.path().join("out-3.pcap"));
    assert_eq!((read("out-2.pcap"), read("out-3.pcap")), ("somebody's".into(), "third".into()));
    fs::remove_dir(&path).unwrap();
    let appears = || fs::write(&path, "appeared").unwrap();
    assert_eq!(written(false, "fourth", &appears), folder.path().join("out-4.pcap"));
    assert_eq!((read("out.pcap"), read("out-4.pcap")), ("appeared".into(), "fourth".into()));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[test]
fn a_pipe_that_is_an_output_is_made_longer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    // Open for both, so that neither side waits for the other.
    let reader = fs::File::options().read(true).write(true).open(&path).unwrap();
    let room = || fcntl(&reader, FcntlArg::F_GETPIPE_SZ).unwrap();
    let before = room();
    let mut output = Outputs::default().create(&path, Readers::Owner).unwrap();
    assert!(room() > before, "{before} bytes");
    let bytes = vec![7; room() as usize];
    // The pipe takes all of it before anybody reads.
    output.write_all(&bytes).unwrap();
    // A pipe that is longer already, as only root makes one, is left as it is.
    let Ok(longer) = fcntl(&reader, FcntlArg::F_SETPIPE_SZ(room() * 2)) else { return };
    Outputs::default().create(&path, Readers::Owner).unwrap();
    assert_eq!(room(), longer);
}
