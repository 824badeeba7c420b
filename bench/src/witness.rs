//! How fast witnesses of a PoRep are made: by the published circuit code and by native code, the
//! same parts in turn, on one core.
//!
//! A time is CPU time of the one thread, which depends little on what else the host does. Beside
//! it stand the bytes that are written and what one compression of SHA-256 with its columns takes.

use std::hint::black_box;
use std::path::{Path, PathBuf};

use berth::circuit::compiled::Compiled;
use berth::circuit::kinds;
use berth::config::WitnessMaker;
use berth::error::Error;
use berth::files::write_whole;
use berth::host::Host;
use berth::input::class::{CircuitId, Kind, SectorSize};
use berth::input::{C1_BYTES_MAX, Input, PorepOptions, Vanilla, read_file, read_porep};
use berth::witness::Witnesses;
use berth::witness::porep::bits::Bits;
use berth::witness::porep::sha256::{Block, Sha256, VARIABLE};
use berth::witness::porep::sparse;
use blstrs::Scalar;
use clap::Args;
use serde_json::{Value, json};

use crate::batch::up_to;
use crate::failure::Failure;
use crate::host::machine;
use crate::output;
use crate::pages::thread_cpu_seconds;
use crate::statistics::median;
use crate::steps::instructions;

/// Native fills for one generic one: they are that much shorter.
const NATIVE_FILLS: usize = 20;
/// A node of a 32 GiB sector, of no special place.
const NODE: u32 = 987_654_321;

#[derive(Args)]
pub struct WitnessArgs {
    /// C1 of a PoRep: its first partition is made whole
    #[arg(long, value_name = "FILE", default_value = "tests/data/porep-2kib.c1.json")]
    c1: PathBuf,
    /// Rounds of every input; the median counts
    #[arg(long, default_value_t = 5, value_parser = up_to::<1_000_000>)]
    runs: usize,
    /// Write one JSON object to this file, or to standard output for -
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Parts of a partition and what makes them.
struct Case {
    name: String,
    input: Input,
    compiled: Compiled,
    parts: std::ops::Range<usize>,
}

struct Row {
    name: String,
    aux: usize,
    bytes: usize,
    generic_seconds: f64,
    native_seconds: f64,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be read, a witness that cannot be made, a record that cannot be written.
pub fn run(args: &WitnessArgs) -> Result<(), Failure> {
    // Before this thread is pinned, which hides all other CPUs from it.
    let machine = machine();
    let host = Host::read()?;
    let cpu = host.nodes.iter().flat_map(|node| node.cores.iter().flatten()).next_back();
    if let Some(cpu) = cpu {
        berth::team::pin(*cpu);
    }
    let (generic, native) =
        (Witnesses::new(WitnessMaker::Generic), Witnesses::new(WitnessMaker::Native));
    let mut rows = Vec::new();
    // One after the other: the compiled circuit of 32 GiB is large.
    for case in [small as fn(&Path) -> Result<Case, Error>, large] {
        let case = case(&args.c1)?;
        berth::tell!("{}", case.name);
        rows.push(case.measure(args.runs, &generic, &native)?);
    }
    let compression = Compression::measure()?;
    berth::tell!("machine: {machine}; CPU time of one thread, median");
    print(&rows, &compression);
    let Some(file) = &args.json else { return Ok(()) };
    let record = json!({
        "machine": machine,
        "runs": args.runs,
        "inputs": rows.iter().map(Row::record).collect::<Vec<_>>(),
        "compression": compression.record(),
    });
    if file == Path::new("-") {
        return Ok(output::print(&format!("{record}\n"))?);
    }
    write_whole(file, format!("{record:#}\n").as_bytes())
        .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    Ok(())
}

/// The partition of a C1.
fn small(c1: &Path) -> Result<Case, Error> {
    let bytes = read_file(c1, C1_BYTES_MAX)?;
    let input = read_porep(&bytes, &PorepOptions::default())?;
    let compiled = kinds::compile(input.circuit)?;
    let parts = 0..compiled.shape.parts();
    Ok(Case { name: c1.display().to_string(), input, compiled, parts })
}

/// One block of 32 GiB out of a sector that was never sealed.
fn large(_: &Path) -> Result<Case, Error> {
    let sector = SectorSize::G32;
    let circuit = CircuitId { kind: Kind::Porep, sector };
    let vanilla = Vanilla::from(sparse::porep(sector, &[NODE], 32)?);
    vanilla.check_hashes()?;
    let input = Input {
        circuit,
        registered_proof: String::new(),
        non_interactive: false,
        miner: None,
        sector: None,
        prover_id: None,
        miner_checked: false,
        public_inputs: Vec::new(),
        vanilla,
    };
    let compiled = kinds::compile(circuit)?;
    Ok(Case { name: "one challenge of 32 GiB".into(), input, compiled, parts: 1..2 })
}

impl Case {
    fn measure(&self, runs: usize, generic: &Witnesses, native: &Witnesses) -> Result<Row, Error> {
        let mut planes: Vec<(Vec<Scalar>, Vec<u64>)> = Vec::new();
        for part in self.parts.clone() {
            let shape = self.compiled.shape.part(part);
            planes.push((vec![Scalar::from(0); shape.wide_len()], vec![0; shape.word_len()]));
        }
        let mut fill = |witnesses: &Witnesses, times: usize| -> Result<f64, Error> {
            let began = thread_cpu_seconds();
            for _ in 0..times {
                for (part, (wides, bits)) in self.parts.clone().zip(&mut planes) {
                    witnesses.fill_part(&self.input, &self.compiled, 0, part, wides, bits)?;
                }
            }
            Ok((thread_cpu_seconds() - began) / times as f64)
        };
        // Once unmeasured: pages and tables are touched, and both are seen to work.
        fill(native, 1)?;
        let (mut generics, mut natives) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            generics.push(fill(generic, 1)?);
            natives.push(fill(native, NATIVE_FILLS)?);
        }
        let bytes = planes.iter().map(|(wides, bits)| size_of_val(&**wides) + size_of_val(&**bits));
        Ok(Row {
            name: self.name.clone(),
            aux: self.parts.clone().map(|part| self.compiled.shape.part(part).aux()).sum(),
            bytes: bytes.sum(),
            generic_seconds: median(generics),
            native_seconds: median(natives),
        })
    }
}

impl Row {
    fn per_aux(&self, seconds: f64) -> f64 {
        seconds * 1e9 / self.aux as f64
    }

    fn record(&self) -> Value {
        json!({
            "input": self.name,
            "aux": self.aux,
            "generic_ns_per_aux": self.per_aux(self.generic_seconds),
            "native_ns_per_aux": self.per_aux(self.native_seconds),
            "ratio": self.generic_seconds / self.native_seconds,
            "bytes_per_aux": self.bytes as f64 / self.aux as f64,
        })
    }
}

/// A compression of SHA-256 with its columns, between others.
struct Compression {
    columns: usize,
    seconds: f64,
    instructions: Result<u64, String>,
}

impl Compression {
    fn measure() -> Result<Self, String> {
        const COUNT: usize = 1000;
        let block = Block { words: [0x1234_5678; 16], variable: [VARIABLE; 16] };
        let mut plane = vec![0u64; 1 << 19];
        let mut hash = |count: usize| {
            let (mut hash, mut bits) = (Sha256::start(), Bits::new(&mut plane));
            for _ in 0..count {
                hash.compress(&mut bits, black_box(&block));
            }
            black_box(hash.state());
            bits.count()
        };
        let columns = hash(2) - hash(1);
        hash(COUNT);
        let seconds = median((0..9).map(|_| {
            let began = thread_cpu_seconds();
            hash(COUNT);
            (thread_cpu_seconds() - began) / COUNT as f64
        }));
        let mut steps = |count| instructions(&mut || _ = hash(count));
        let instructions = steps(2).and_then(|two| Ok(two - steps(1)?));
        Ok(Compression { columns, seconds, instructions })
    }

    fn record(&self) -> Value {
        let mut record = json!({ "columns": self.columns, "ns": self.seconds * 1e9 });
        match &self.instructions {
            Ok(count) => record["instructions"] = json!(count),
            Err(why) => record["instructions_not_counted"] = json!(why),
        }
        record
    }
}

fn print(rows: &[Row], compression: &Compression) {
    berth::tell!("        aux  generic ns/aux  native ns/aux  ratio  bytes/aux  input");
    for row in rows {
        let (generic, native) = (row.generic_seconds, row.native_seconds);
        berth::tell!(
            "{:>11}  {:>14.1}  {:>13.3}  {:>5.0}  {:>9.3}  {}",
            row.aux,
            row.per_aux(generic),
            row.per_aux(native),
            generic / native,
            row.bytes as f64 / row.aux as f64,
            row.name
        );
    }
    let Compression { columns, seconds, instructions } = compression;
    let counted = match instructions {
        Ok(count) => format!("{count} instructions"),
        Err(why) => format!("instructions not counted: {why}"),
    };
    berth::tell!("a compression: {columns} columns, {:.0} ns, {counted}", seconds * 1e9);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_have_a_speed() {
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/porep-2kib.c1.json");
        let case = small(Path::new(data)).unwrap();
        let witnesses = [WitnessMaker::Generic, WitnessMaker::Native].map(Witnesses::new);
        let row = case.measure(1, &witnesses[0], &witnesses[1]).unwrap();
        let record = row.record();
        assert!(record["generic_ns_per_aux"].as_f64().unwrap() > 1.0, "{record}");
        assert!(record["native_ns_per_aux"].as_f64().unwrap() > 0.01, "{record}");
        assert!(record["ratio"].as_f64().unwrap() > 5.0, "{record}");
        // Most columns are a bit, and some are 32 bytes.
        let bytes = record["bytes_per_aux"].as_f64().unwrap();
        assert!((0.125..2.0).contains(&bytes), "{record}");
    }
}
