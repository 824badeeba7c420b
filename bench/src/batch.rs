//! `berth-bench batch`: many proofs of one request in one process, and what they took.
//!
//! ```text
//! read, parse -> compile, plan -> map, read parameters -> J requests in flight until N are done
//! ```
//!
//! Every request is parsed anew and every proof is verified by the prover, as in the service.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use berth::command::signal::Usr1;
use berth::config::Config;
use berth::error::{Error, Result};
use berth::files::{probe_whole, write_whole};
use berth::groth16::Stage;
use berth::memory::heap::{self, HeapBytes, ProcessBytes};
use berth::prover::setup::{self, Parameters, Ready};
use berth::prover::{Hooks, Outcome, Priority, Prover};
use clap::Args;

use crate::failure::Failure;
use crate::output::print;
use crate::recorder::Recorder;
use crate::source::{Source, SourceArgs};

mod record;
mod summary;

use summary::Summary;

#[derive(Args, Debug)]
pub struct BatchArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    /// Proofs to make
    #[arg(long, default_value_t = 20, value_parser = up_to::<1_000_000>)]
    pub count: usize,
    /// Requests in flight
    #[arg(long, default_value_t = 1, value_parser = up_to::<1024>)]
    pub concurrency: usize,
    /// Completions that are left out of the steady state; never fewer than --concurrency
    #[arg(long, default_value_t = 0)]
    pub warmup: usize,
    /// Write the record, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Reads a count of which there is at least one, and not more than memory has room for.
pub fn up_to<const MAX: usize>(text: &str) -> std::result::Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=MAX).contains(count));
    count.ok_or_else(|| format!("a number from 1 to {MAX}"))
}

/// One request that ended.
pub struct Done {
    /// In the order of submission.
    pub index: usize,
    /// From the start of the series to the submission, and to the end.
    pub began: Duration,
    pub ended: Duration,
    /// Parsing and checking, before the submission.
    pub parse: Duration,
    pub outcome: Result<Outcome>,
    /// `None` where the kernel did not say; the proof then counts as failed.
    pub memory: Option<Memory>,
}

impl Done {
    /// From the submission to the end.
    pub fn time(&self) -> Duration {
        self.ended - self.began
    }
}

/// What the process took when a request had ended.
#[derive(Clone, Copy)]
pub struct Memory {
    pub process: ProcessBytes,
    pub heap: HeapBytes,
}

impl Memory {
    fn read() -> Result<Self> {
        let told = |e: std::io::Error| Error::Host(format!("figures of the process: {e}"));
        Ok(Memory {
            process: ProcessBytes::read().map_err(told)?,
            heap: heap::heap_bytes().map_err(told)?,
        })
    }
}

/// All that a series left.
pub struct Series<'a> {
    pub args: &'a BatchArgs,
    pub ready: &'a Ready,
    pub parameters: &'a Parameters,
    /// In the order of completion.
    pub done: Vec<Done>,
    pub recorder: &'a Recorder,
    /// The most that the process ever took.
    pub peak_bytes: u64,
}

/// Runs the command; SIGUSR1 tells of its prover.
///
/// # Errors
/// What keeps a series from starting, proofs that failed, lines or a record that cannot be written.
pub fn run(args: &BatchArgs) -> Result<(), Failure> {
    // First of all: before it, the signal would end the process.
    let usr1 = Usr1::listen()?;
    if let Some(file) = &args.json {
        probe_whole(file).map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    }
    let config = Config::read()?;
    let source = Source::read(&args.source)?;
    let first = source.parse()?;
    // Before the plan, which counts what the process has already.
    let partitions = first.partitions() * args.count;
    let recorder = Arc::new(Recorder::new(EVENTS_BEYOND + partitions * EVENTS_PER_PARTITION));
    let circuit = first.circuit;
    drop(first);

    let mut ready = setup::prepare(&config, &[circuit])?;
    setup::keep_house(&ready.plan);
    let parameters = setup::find_or_make(&config, &ready, &|_, _, _| ())?;
    let events = Arc::clone(&recorder);
    let hooks = Hooks { event: Box::new(move |event| events.push(event)), ..Hooks::default() };
    let prover = setup::start(&config, &mut ready, &parameters, hooks, &|_, _, _| ())?;
    usr1.tell_of(prover.books(), &ready.plan);
    for warning in &ready.plan.warnings {
        berth::tell!("warning: {warning}");
    }
    let (done, heard) = prove_all(args, &source, &prover, &recorder)?;
    // While the arenas are there: hugetlb pages have no peak of their own.
    let peak_bytes = ProcessBytes::read().map_err(|e| format!("/proc/self/status: {e}"))?.peak();
    prover.stop();

    let series = Series {
        args,
        ready: &ready,
        parameters: &parameters,
        done,
        recorder: &recorder,
        peak_bytes,
    };
    let summary = Summary::new(&series);
    let heard = heard.and_then(|()| print(&summary.to_string()));
    if let Some(file) = &args.json {
        let record = series.record(&summary)?;
        write_whole(file, format!("{record:#}\n").as_bytes())
            .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    }
    match summary.failed {
        0 => Ok(heard?),
        failed => Err(format!("{failed} of {} proofs failed", series.done.len()).into()),
    }
}

/// Events of a slot and of a lane in one partition (a slot goes through five places), and as many
/// again for a partition that is made once more.
const EVENTS_PER_PARTITION: usize = 2 * (5 + Stage::ALL.len());
/// Room for what belongs to no partition.
const EVENTS_BEYOND: usize = 64;

/// Room that is made at once for what is known of each request.
const DONE_AT_ONCE: usize = 1 << 16;

/// Whether every line was taken. The series goes on without, for its record.
type Heard = std::result::Result<(), String>;

/// Keeps requests in flight until all are done; completions in their order.
fn prove_all(
    args: &BatchArgs,
    source: &Source,
    prover: &Prover,
    recorder: &Recorder,
) -> Result<(Vec<Done>, Heard)> {
    let submitted = Mutex::new(0);
    let done = Mutex::new((Vec::with_capacity(args.count.min(DONE_AT_ONCE)), Heard::Ok(())));
    let work = || {
        while let Some(one) = prove_one(args.count, source, prover, recorder, &submitted) {
            let mut done: MutexGuard<'_, (Vec<Done>, Heard)> = lock(&done);
            let (done, heard) = &mut *done;
            if heard.is_ok() {
                *heard = print(&(line(done.len() + 1, args.count, &one) + "\n"));
            }
            done.push(one);
            if heard.is_err() && args.json.is_none() {
                // Nobody is told of any more of them.
                *lock(&submitted) = args.count;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..args.concurrency.min(args.count) {
            if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, work) {
                *lock(&submitted) = args.count;
                return Err(Error::Host(format!("cannot make a thread for a request: {error}")));
            }
        }
        Ok(())
    })?;
    Ok(done.into_inner().unwrap_or_else(|e| e.into_inner()))
}

/// The next request, from parsing to its end; `None` once all are handed in.
fn prove_one(
    count: usize,
    source: &Source,
    prover: &Prover,
    recorder: &Recorder,
    submitted: &Mutex<usize>,
) -> Option<Done> {
    // Held until the submission: the prover then numbers requests as this does.
    let mut next = lock(submitted);
    if *next == count {
        return None;
    }
    let index = *next;
    *next += 1;
    let before = recorder.now();
    let ticket = source.parse().map(|input| {
        let began = recorder.now();
        (began, prover.submit(input, Priority::Normal))
    });
    if !matches!(ticket, Ok((_, Ok(_)))) {
        // The same bytes will not fare better, and numbers would no longer agree.
        *next = count;
    }
    drop(next);
    let (began, outcome) = match ticket {
        Ok((began, ticket)) => (began, ticket.and_then(|ticket| ticket.wait())),
        Err(error) => (recorder.now(), Err(error)),
    };
    let ended = recorder.now();
    let (memory, outcome) = match Memory::read() {
        Ok(memory) => (Some(memory), outcome),
        Err(error) => (None, outcome.and(Err(error))),
    };
    Some(Done { index, began, ended, parse: began - before, outcome, memory })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// What is said of a request that ended.
fn line(number: usize, count: usize, done: &Done) -> String {
    let seconds = shown(done.time().as_secs_f64());
    match &done.outcome {
        Ok(outcome) => format!(
            "[{number}/{count}] COMPLETED — {seconds}s (prove={} ms, queue={} ms)",
            outcome.times.prove.as_millis(),
            outcome.times.queue.as_millis()
        ),
        Err(error) => format!("[{number}/{count}] FAILED — {seconds}s: {error}"),
    }
}

/// Seconds with a tenth, and short ones with thousandths.
fn shown(seconds: f64) -> String {
    if seconds.abs() >= 10.0 { format!("{seconds:.1}") } else { format!("{seconds:.3}") }
}

#[cfg(test)]
mod tests;
