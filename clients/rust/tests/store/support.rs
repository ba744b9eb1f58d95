//! Folders and processes of a test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// A new folder, which only its user can change, and which ends with this object.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Make a folder.
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("hushcount-test-{}-{number}", process::id()));
        fs::create_dir(&folder).unwrap();
        set_mode(&folder, 0o700);
        Self(folder)
    }

    /// The path of a file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A process that runs this test of the same program, which finds its task and this folder by `task`.
    pub(crate) fn process(&self, test: &str, task: &str) -> Command {
        let mut command = Command::new(env::current_exe().unwrap());
        let name = test.split_once("::").map_or(test, |(_, name)| name);
        command.args([name, "--exact", "--nocapture", "--test-threads=1"]);
        command.env("HUSHCOUNT_TASK", task).env("HUSHCOUNT_FOLDER", &self.0);
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Return the task of this process, and the folder for it; none in the process of the tests themselves.
pub(crate) fn task() -> Option<(String, PathBuf)> {
    Some((env::var("HUSHCOUNT_TASK").ok()?, env::var_os("HUSHCOUNT_FOLDER")?.into()))
}

/// Say something to the process of the tests: it is a line of its own.
pub(crate) fn say(what: &str) {
    println!("\nsaid {what}");
}

/// Return what a process said.
pub(crate) fn said(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| line.strip_prefix("said ")).map(str::to_owned).collect()
}

/// Set the mode of a file or folder, on systems that have modes.
pub(crate) fn set_mode(path: &Path, mode: u32) {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    #[cfg(not(unix))]
    let _ = (path, mode);
}
