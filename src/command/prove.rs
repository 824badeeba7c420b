//! `berth prove`: a request in, verified bytes out.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::args::Prove;
use super::progress::Progress;
use super::signal::Usr1;
use super::{print, request};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::files::{probe_whole, write_whole};
use crate::input::class::Kind;
use crate::input::hex;
use crate::memory::heap;
use crate::plan::{Brief, size};
use crate::prover::setup::{self, Parameters, Ready};
use crate::prover::{Hooks, Outcome, Priority};
use crate::srs::find::Origin;
use crate::tell;

pub(super) const DEV_LINE: &str = "made with dev parameters: this proof is valid on no network";

/// What is known of the request once its input has been handed over.
struct Told {
    registered_proof: String,
    partitions: usize,
    non_interactive: bool,
    miner_checked: bool,
}

/// Runs the command; SIGUSR1 tells of its prover.
pub fn run(config: &Config, args: &Prove, usr1: &Usr1) -> Result<()> {
    let began = Instant::now();
    if let Some(path) = &args.out {
        probe_whole(path).map_err(|error| cannot_write(path, &error))?;
    }
    // A native witness compares every commitment as it is made; the published code would end with
    // a witness that does not hold, so it gets nothing unchecked.
    let hashes_later = !args.check && config.witness.is_native(Kind::Porep);
    let input = request::read(args.c1.as_deref(), &args.request, hashes_later)?;
    let parse = began.elapsed();
    tell!("request     {}", request::describe(&input));
    if !input.miner_checked {
        tell!("            replica id taken from the file; --miner and --sector compare it");
    }
    let told = Told {
        registered_proof: input.registered_proof.clone(),
        partitions: input.partitions(),
        non_interactive: input.non_interactive,
        miner_checked: input.miner_checked,
    };

    let progress = Progress::new();
    let show = |stage: &str, done: u64, total: u64| progress.show(stage, done, total);
    let parameters_began = Instant::now();
    let mut ready = setup::prepare(config, &[input.circuit])?;
    tell!("plan\n{}", Brief(&ready.plan).to_string().trim_end());
    setup::keep_house(&ready.plan);
    let parameters = setup::find_or_make(config, &ready, &show)?;
    progress.finish();
    for found in &parameters.found {
        tell!("parameters  {}: {}", found.origin, found.params.display());
    }
    let prover = setup::start(config, &mut ready, &parameters, Hooks::default(), &show)?;
    usr1.tell_of(prover.books(), &ready.plan);
    progress.finish();
    let parameters_time = parameters_began.elapsed();

    let outcome = prover.submit(input, Priority::Normal)?.wait()?;
    // While the arenas are there: hugetlb pages have no peak of their own.
    let peak_bytes = heap::ProcessBytes::read()
        .map_err(|e| Error::Host(format!("/proc/self/status: {e}")))?
        .peak();
    prover.stop();
    let bytes: Vec<u8> = outcome.proofs.concat();
    if let Some(path) = &args.out
        && let Err(error) = write_whole(path, &bytes)
    {
        // The work is done: the proof goes where it can still be read.
        print(&format!("{}\n", hex(&bytes)))?;
        return Err(cannot_write(path, &error));
    }
    let times = [("total", began.elapsed()), ("parse", parse), ("parameters", parameters_time)];
    let report = Report {
        told,
        ready: &ready,
        parameters: &parameters,
        outcome: &outcome,
        times,
        peak_bytes,
    };
    print(&if args.json { report.json(&bytes) } else { report.text(&bytes, args) })
}

struct Report<'a> {
    told: Told,
    ready: &'a Ready,
    parameters: &'a Parameters,
    outcome: &'a Outcome,
    times: [(&'static str, Duration); 3],
    peak_bytes: u64,
}

impl Report<'_> {
    fn dev(&self) -> bool {
        self.parameters.found.iter().any(|found| found.origin == Origin::Dev)
    }

    fn json(&self, bytes: &[u8]) -> String {
        let ms = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        let mut timings = serde_json::Map::new();
        for (name, time) in self.times {
            timings.insert(name.into(), ms(time).into());
        }
        timings.insert("witness".into(), ms(self.outcome.times.witness).into());
        timings.insert("prove".into(), ms(self.outcome.times.prove).into());
        timings.insert("verify".into(), ms(self.outcome.times.verify).into());
        let plan = &self.ready.plan;
        let record = json!({
            "verified": true,
            // Official parameters exist for sectors of networks alone, so no shape gets here.
            "submittable": !self.dev() && !self.told.non_interactive,
            "proof": hex(bytes),
            "partitions": self.told.partitions,
            "registered_proof": self.told.registered_proof,
            "miner_checked": self.told.miner_checked,
            "parameters": if self.dev() { "dev" } else { "official" },
            "backend": self.outcome.backends[0],
            "backends": self.outcome.backends,
            "redone": self.outcome.redone,
            "slots": plan.slots,
            "timings_ms": timings,
            "memory": {
                "planned_bytes": plan.total_bytes,
                "slot_bytes": plan.slot_bytes,
                "peak_bytes": self.peak_bytes,
            },
        });
        format!("{record}\n")
    }

    fn text(&self, bytes: &[u8], args: &Prove) -> String {
        let times = &self.outcome.times;
        let [total, parse, parameters] = self.times.map(|(_, time)| time.as_secs_f64());
        let mut lines = vec![format!(
            "proof       {} bytes, verified; {} partition(s) on {}",
            bytes.len(),
            self.told.partitions,
            self.outcome.backends[0]
        )];
        lines.push(match &args.out {
            Some(path) => format!("            written to {}", path.display()),
            None => hex(bytes),
        });
        lines.push(format!(
            "time        {total:.2} s: parse {parse:.2}, parameters {parameters:.2}, witness \
             {:.2}, prove {:.2}, verify {:.3}",
            times.witness.as_secs_f64(),
            times.prove.as_secs_f64(),
            times.verify.as_secs_f64()
        ));
        lines.push(format!(
            "memory      peak {} of {} planned",
            size(self.peak_bytes),
            size(self.ready.plan.total_bytes as u64)
        ));
        if self.told.non_interactive {
            lines.push(
                "note        circuit proofs of a non-interactive PoRep, each verified by itself; \
                 not submittable without aggregation"
                    .into(),
            );
        }
        if self.dev() {
            lines.push(format!("note        {DEV_LINE}"));
        }
        lines.join("\n") + "\n"
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Error {
    Error::Host(format!("cannot write {}: {error}", path.display()))
}
