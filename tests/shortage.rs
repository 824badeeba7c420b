//! What the host is short of, as the program meets it: pages, another tenant, locked memory, a
//! control group. Each is refused within a second with exit code 3, what is needed and what there
//! is, and nothing stays behind.

#[path = "common/cgroup.rs"]
mod cgroup;
mod common;
#[path = "common/pool.rs"]
mod pool;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use berth::host::Host;
use cgroup::Group;
use common::{json, run, window};
use pool::{Held, Pool};

const PAGE: usize = 2 << 20;
/// Nobody, on every Linux.
const PLAIN_USER: u32 = 65_534;

/// A command for the tiny request, on node 0 alone.
fn berth(command: &str, settings: &[(&str, &str)]) -> Command {
    let host = Host::read().unwrap();
    let cpus = host.nodes.iter().find(|node| node.id == 0).unwrap().cpus();
    let cpus: Vec<String> = cpus.iter().map(usize::to_string).collect();
    let mut command = window(command, &["--json"]);
    command.env("BERTH_CPUS", cpus.join(",")).envs(settings.iter().copied());
    command
}

fn prove(settings: &[(&str, &str)]) -> Command {
    berth("prove", settings)
}

fn plan() -> serde_json::Value {
    json(&mut berth("plan", &[("BERTH_HUGEPAGES", "off")]))
}

/// Sees that a run is refused, and gives the last line that it told. A machine that is busy
/// elsewhere may be slow; of three runs one is quick.
#[track_caller]
fn refused(runs: impl Fn() -> (i32, String, String)) -> String {
    let mut quickest = Duration::MAX;
    let mut last = String::new();
    for _ in 0..3 {
        let began = Instant::now();
        let (code, stdout, stderr) = runs();
        quickest = quickest.min(began.elapsed());
        assert_eq!(code, 3, "{stderr}");
        assert!(stdout.is_empty(), "no result: {stdout}");
        last = stderr.lines().last().unwrap().to_owned();
    }
    assert!(quickest < Duration::from_secs(1), "refused after {quickest:?}: {last}");
    last
}

fn run_in(group: &Group, mut command: Command) -> (i32, String, String) {
    group.hold(&mut command);
    run(&mut command)
}

/// Hugepages of 2 MiB that the request's arenas take.
fn needed_pages() -> usize {
    let plan = plan();
    let arenas = plan["arenas"].as_array().unwrap();
    let bytes = arenas.iter().map(|arena| arena["need_bytes"].as_u64().unwrap() as usize);
    bytes.map(|bytes| bytes.div_ceil(PAGE)).sum()
}

// I-09, I-11
#[test]
fn one_page_too_few_is_refused_and_the_last_one_is_enough() {
    let need = needed_pages();
    let settings = [("BERTH_HUGEPAGES", "2M"), ("BERTH_NUMA", "strict")];
    if let Some(pool) = Pool::with_free(PAGE, need - 1) {
        let told = refused(|| run(&mut prove(&settings)));
        let expected = format!("node 0: need {need} hugepages of 2 MiB, free {}", need - 1);
        assert!(told.contains(&expected), "{told}");
        assert!(told.contains("hugepages-2048kB/nr_hugepages"), "what to do: {told}");
        assert!(pool.free() >= need - 1, "all are given back");
    }
    if let Some(pool) = Pool::with_free(PAGE, need) {
        assert_eq!(json(&mut prove(&settings))["verified"], true);
        assert!(pool.free() >= need, "all are given back");
    }
}

// I-11
#[test]
fn pages_of_another_size_do_not_help() {
    if pool::free(1 << 30) > 0 {
        println!("not run: hugepages of 1 GiB are free here");
        return;
    }
    let of_1g = || refused(|| run(&mut prove(&[("BERTH_HUGEPAGES", "1G")])));
    let expected = "node 0: need 3 hugepages of 1 GiB, free 0";
    assert!(of_1g().contains(expected), "{}", of_1g());
    let need = needed_pages();
    if let Some(pool) = Pool::with_free(PAGE, need) {
        assert!(of_1g().contains(expected), "{}", of_1g());
        assert!(pool.free() >= need, "none was taken");
    }
}

/// One page less than is free. That the kernel's own refusal is no SIGBUS either is shown by
/// `tests/hugepages.rs`.
#[test]
fn a_control_group_with_a_page_too_few_refuses() {
    let need = needed_pages();
    let Some(pool) = Pool::with_free(PAGE, need) else { return };
    let Some(group) = Group::hugetlb_2m("pages") else {
        println!("not run: no control group with a hugetlb limit can be made here");
        return;
    };
    group.limit(((need - 1) * PAGE) as u64);
    let told = refused(|| run_in(&group, prove(&[("BERTH_HUGEPAGES", "2M")])));
    let expected = format!("node 0: need {need} hugepages of 2 MiB, and {} may be", need - 1);
    assert!(told.contains(&expected), "{told}");
    let bound = format!("({} is {})", group.limit_file().display(), (need - 1) * PAGE);
    assert!(told.contains(&bound), "{told}");
    assert!(pool.free() >= need, "all are given back");
}

/// Another process, which takes and releases hugepages when it is told to.
struct Tenant {
    process: libc::pid_t,
    requests: File,
    answers: File,
}

impl Tenant {
    fn new() -> Self {
        let pipe = || {
            let mut ends = [0; 2];
            // SAFETY: there is room for both ends.
            assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
            // SAFETY: both are new and nobody else's.
            ends.map(|end| unsafe { File::from_raw_fd(end) })
        };
        let ([requests_in, requests], [answers, answers_out]) = (pipe(), pipe());
        // SAFETY: the child calls nothing but mmap, munmap, read, write and _exit.
        let process = unsafe { libc::fork() };
        assert!(process >= 0, "a process can be made");
        if process == 0 {
            Self::serve(requests_in.as_raw_fd(), answers_out.as_raw_fd(), requests.as_raw_fd());
        }
        Tenant { process, requests, answers }
    }

    /// Answers each number of pages with an errno; 0 pages release what is held.
    fn serve(requests: i32, answers: i32, other_end: i32) -> ! {
        let mut held = None;
        let mut pages = 0u8;
        // SAFETY: descriptors of this process; the byte is there to read into.
        unsafe {
            // Else the end of the test would not be seen here.
            libc::close(other_end);
            while libc::read(requests, (&raw mut pages).cast(), 1) == 1 {
                held.take();
                let errno = match pages {
                    0 => 0,
                    _ => match Held::map(PAGE, pages.into(), libc::MAP_POPULATE) {
                        Ok(mapping) => {
                            held = Some(mapping);
                            0
                        }
                        Err(error) => error.raw_os_error().unwrap_or(-1),
                    },
                };
                libc::write(answers, (&raw const errno).cast(), size_of::<i32>());
            }
            libc::_exit(0)
        }
    }

    /// Takes pages in place of those that it has; an errno.
    fn take(&mut self, pages: usize) -> i32 {
        self.requests.write_all(&[u8::try_from(pages).unwrap()]).unwrap();
        let mut errno = [0; size_of::<i32>()];
        self.answers.read_exact(&mut errno).unwrap();
        i32::from_ne_bytes(errno)
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        // SAFETY: a child of ours that nobody has waited for.
        unsafe {
            libc::kill(self.process, libc::SIGKILL);
            libc::waitpid(self.process, std::ptr::null_mut(), 0);
        }
    }
}

/// A program that ran until all pages were its own, and was stopped there.
struct Started(Child);

impl Started {
    fn new(pool: &Pool, command: &mut Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut started = Started(child);
        while pool.free() > 0 {
            assert!(started.0.try_wait().unwrap().is_none(), "it ends only after it started");
            std::thread::sleep(Duration::from_micros(100));
        }
        started.signal(libc::SIGSTOP);
        started
    }

    fn signal(&self, signal: i32) {
        // SAFETY: a child of ours that nobody has waited for.
        assert_eq!(unsafe { libc::kill(self.0.id() as libc::pid_t, signal) }, 0);
    }

    /// Lets it go on to its end, and gives its standard output.
    fn finish(mut self) -> String {
        self.signal(libc::SIGCONT);
        let mut stdout = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        assert!(self.0.wait().unwrap().success());
        stdout
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// I-12
#[test]
fn whoever_comes_second_is_refused() {
    let need = needed_pages();
    let Some(pool) = Pool::with_free(PAGE, need) else { return };
    let settings = [("BERTH_HUGEPAGES", "2M"), ("BERTH_NUMA", "strict")];
    let mut tenant = Tenant::new();
    assert_eq!(tenant.take(need / 2), 0);
    let told = refused(|| run(&mut prove(&settings)));
    let expected = format!("node 0: need {need} hugepages of 2 MiB, free {}", need - need / 2);
    assert!(told.contains(&expected), "{told}");
    assert_eq!(tenant.take(0), 0);

    let started = Started::new(&pool, &mut prove(&settings));
    assert_eq!(tenant.take(1), libc::ENOMEM);
    let told = refused(|| run(&mut prove(&settings)));
    assert!(told.contains(&format!("need {need} hugepages of 2 MiB, free 0")), "{told}");
    assert!(started.finish().contains("\"verified\":true"), "the first one is not disturbed");
    assert!(pool.free() >= need, "all are given back");
    assert_eq!(tenant.take(need), 0, "and are there for others");
}

/// The request, its parameters and the program where every user may read them.
struct Open {
    folder: std::path::PathBuf,
}

impl Open {
    fn new() -> Self {
        // Makes the parameters where there are none yet. The pool belongs to other tests.
        json(&mut prove(&[("BERTH_HUGEPAGES", "off")]));
        let plan = plan();
        let params = Path::new(plan["parameters"][0]["path"].as_str().unwrap()).to_path_buf();
        let stem = params.file_stem().unwrap().to_str().unwrap().to_owned();
        let folder = std::env::temp_dir().join(format!("berth-shortage-{}", std::process::id()));
        let open = Open { folder };
        fs::create_dir_all(open.folder.join("official")).unwrap();
        let mut files = vec![Path::new(env!("CARGO_BIN_EXE_berth")).to_path_buf()];
        files.extend(
            ["vanilla", "meta"].map(|end| common::data(&format!("windowpost-2kib.{end}.json"))),
        );
        let of_key = fs::read_dir(params.parent().unwrap()).unwrap().map(|entry| entry.unwrap());
        let of_key = of_key.filter(|entry| entry.file_name().to_str().unwrap().starts_with(&stem));
        files.extend(of_key.map(|entry| entry.path()));
        for file in files {
            let copy = open.folder.join(file.file_name().unwrap());
            fs::copy(&file, &copy).unwrap();
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::set_permissions(&open.folder, fs::Permissions::from_mode(0o755)).unwrap();
        open
    }

    /// The program as a plain user who may lock 64 KiB; this process's user if it is one.
    fn prove(&self, lock: &str) -> Command {
        let mut command = Command::new(self.folder.join("berth"));
        command.args(["prove", "--json", "--kind", "window"]);
        for (option, file) in [("--vanilla", "vanilla"), ("--meta", "meta")] {
            let name = format!("windowpost-2kib.{file}.json");
            command.arg(option).arg(self.folder.join(name));
        }
        command
            .env_clear()
            .current_dir(&self.folder)
            .env("BERTH_DEV_PARAMETER_DIR", &self.folder)
            .env("BERTH_PARAMETER_CACHE", self.folder.join("official"))
            .envs([("BERTH_HUGEPAGES", "off"), ("BERTH_LOCK", lock)]);
        // SAFETY: the call has no arguments and no effect.
        if unsafe { libc::geteuid() } == 0 {
            command.uid(PLAIN_USER).gid(PLAIN_USER);
        }
        let limit = libc::rlimit { rlim_cur: 64 << 10, rlim_max: 64 << 10 };
        // SAFETY: setrlimit is async-signal-safe and the closure touches nothing else.
        unsafe {
            command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            })
        };
        command
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_plain_user_who_may_lock_little_is_warned_or_under_strict_refused() {
    let open = Open::new();
    let told = refused(|| run(&mut open.prove("strict")));
    assert!(told.contains("cannot be locked in memory: the limit is 64 KiB (65,536)"), "{told}");
    assert!(told.contains("LimitMEMLOCK") && told.contains("BERTH_LOCK=strict"), "{told}");
    let (code, stdout, stderr) = run(&mut open.prove("auto"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("\"verified\":true"), "{stdout}");
    assert!(stderr.contains("cannot be locked in memory: the limit is 64 KiB"), "{stderr}");
}

// I-01
#[test]
fn a_control_group_below_the_plan_refuses_and_lives() {
    let command = || prove(&[("BERTH_HUGEPAGES", "off")]);
    let limit = plan()["total_bytes"].as_u64().unwrap() / 2 / 4096 * 4096;
    let Some(group) = Group::new("below") else {
        println!("not run: no control group with a memory limit can be made here");
        return;
    };
    group.limit(limit);
    let told = refused(|| run_in(&group, command()));
    assert_eq!(group.kills(), 0);
    assert!(told.contains("the plan needs ") && told.contains(" and there are "), "{told}");
    let bound = format!("({} is {limit})", group.limit_file().display());
    assert!(told.contains(&bound), "{told}");
}
