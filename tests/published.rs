//! The published verifiers accept what the program proves, as an operator runs it, and refuse the
//! bytes of another proof.

mod common;
#[path = "common/judge.rs"]
mod judge;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use berth::srs::names;
use common::{berth, data, json, scratch, unhex};

/// One proof at a time: a 2 KiB PoRep takes 1.6 GB and every CPU.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn child_that_verifies() {
    judge::answer();
}

/// Requests of one circuit: where its parameters are, and how many proofs each gives.
struct Bench {
    circuit: &'static str,
    parameters: PathBuf,
    /// The parameters go when the test ends, however it does.
    apart: bool,
    partitions: u64,
    witness: &'static str,
}

impl Drop for Bench {
    fn drop(&mut self) {
        if self.apart {
            let _ = std::fs::remove_dir_all(&self.parameters);
        }
    }
}

impl Bench {
    fn new(circuit: &'static str) -> Self {
        let parameters = common::dev_parameters();
        Bench { circuit, parameters, apart: false, partitions: 1, witness: "auto" }
    }

    fn vk(&self) -> PathBuf {
        self.parameters.join(names::vk(self.circuit.parse().unwrap()))
    }

    fn berth(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = berth(arguments);
        command.env("BERTH_DEV_PARAMETER_DIR", &self.parameters);
        command.env("BERTH_WITNESS", self.witness);
        command
    }

    /// `berth prove REQUEST --json --out F`; the bytes of F, which are those of the record.
    fn prove(&self, request: &[&str]) -> Vec<u8> {
        let folder = scratch(&format!("published-{}", self.circuit));
        let out = folder.join("proof.bin");
        let arguments = [&["prove"], request, &["--json", "--out", out.to_str().unwrap()]];
        let record = json(&mut self.berth(&arguments.concat()));
        eprintln!("{}: {} {}", self.circuit, record["timings_ms"], record["memory"]);
        assert_eq!(record["verified"], true);
        assert_eq!(record["parameters"], "dev");
        assert_eq!(record["submittable"], false, "of no network");
        assert_eq!(record["partitions"], self.partitions);
        let proof = std::fs::read(&out).unwrap();
        assert_eq!(proof.len() as u64, 192 * self.partitions);
        assert_eq!(proof, unhex(record["proof"].as_str().unwrap()), "one proof, told twice");
        std::fs::remove_dir_all(&folder).unwrap();
        proof
    }

    /// The published verifier takes the first proof of a request and refuses the others.
    fn judge(&self, kind: &str, name: &str, proof: &[u8], wrong: &[&[u8]]) {
        let proofs = [&[proof], wrong].concat();
        let answers = judge::judge("child_that_verifies", kind, name, &self.vk(), &proofs);
        assert_eq!(answers.len(), proofs.len());
        assert_eq!(answers[0], "true", "{name}");
        for answer in &answers[1..] {
            assert_eq!(answer, "false", "{name}: a wrong proof");
        }
    }
}

/// A and B of one proof with C of another: all good points, and no proof.
fn mixed(a_b: &[u8], c: &[u8]) -> Vec<u8> {
    [&a_b[..144], &c[144..192]].concat()
}

/// A proof with A and C in each other's place, where another proof would be dear.
fn swapped(proof: &[u8]) -> Vec<u8> {
    [&proof[144..192], &proof[48..144], &proof[..48]].concat()
}

fn file(name: &str) -> String {
    data(name).to_str().unwrap().to_string()
}

#[test]
fn seals_of_2_kib() {
    let _alone = alone();
    let mut bench = Bench::new("porep-2k");
    let names = ["porep-2kib", "porep-2kib-v1", "porep-2kib-synthetic"];
    let mut prove = |(name, witness): (&str, &'static str)| {
        bench.witness = witness;
        bench.prove(&[&file(&format!("{name}.c1.json")), "--miner", "1037", "--sector", "41"])
    };
    let witnesses = ["native", "generic", "auto"];
    let proofs: Vec<Vec<u8>> = names.into_iter().zip(witnesses).map(&mut prove).collect();
    for (number, name) in names.into_iter().enumerate() {
        let (proof, other) = (&proofs[number], &proofs[(number + 1) % 3]);
        bench.judge("seal", name, proof, &[other, &mixed(proof, other), &mixed(other, proof)]);
    }
}

#[test]
fn posts_of_2_kib() {
    let _alone = alone();
    for (kind, name, circuit) in
        [("window", "windowpost-2kib", "window-2k"), ("winning", "winningpost-2kib", "winning-2k")]
    {
        let bench = Bench::new(circuit);
        let request = common::vanilla(kind, name);
        let request: Vec<&str> = request.iter().map(String::as_str).collect();
        let (proof, again) = (bench.prove(&request), bench.prove(&request));
        assert_ne!(proof, again, "r and s are fresh");
        bench.judge(kind, name, &proof, &[&mixed(&proof, &again), &swapped(&again)]);
    }
}

#[test]
fn snap_deal_of_2_kib() {
    let _alone = alone();
    let bench = Bench::new("update-2k");
    let request = common::vanilla("snap", "snap-2kib");
    let request: Vec<&str> = request.iter().map(String::as_str).collect();
    let proof = bench.prove(&request);
    bench.judge("snap", "snap-2kib", &proof, &[&swapped(&proof)]);
}

#[cfg(feature = "long-tests")]
mod long {
    use super::*;

    /// Proves with parameters that are made for it and deleted after.
    fn large(circuit: &'static str, kind: &str, name: &str, request: &[&str]) {
        let _alone = alone();
        let mut bench = Bench::new(circuit);
        (bench.parameters, bench.apart) = (scratch(&format!("parameters-{circuit}")), true);
        let proof = bench.prove(request);
        bench.judge(kind, name, &proof, &[&swapped(&proof)]);
    }

    #[test]
    fn seal_of_8_mib() {
        large("porep-8m", "seal", "porep-8mib", &[&file("porep-8mib.c1.json")]);
    }

    #[test]
    fn seals_of_16_and_32_kib() {
        for (circuit, name) in [("porep-16k", "shape-16kib"), ("porep-32k", "shape-32kib")] {
            let (stacked, meta) =
                (file(&format!("{name}.stacked.json")), file(&format!("{name}.meta.json")));
            large(circuit, "shape", name, &[&stacked, "--meta", &meta]);
        }
    }

    /// Each partition is verified by itself, by us and by the published parts.
    #[test]
    fn circuit_proofs_of_a_non_interactive_porep() {
        let _alone = alone();
        let mut bench = Bench::new("porep-2k");
        bench.partitions = 13;
        let c1 = file("porep-2kib-ni.c1.json");
        let mut proof = bench.prove(&[&c1]);
        let verify = |proof: &[u8]| {
            let folder = scratch("published-ni");
            let path = folder.join("proof.bin");
            std::fs::write(&path, proof).unwrap();
            let told =
                common::run(&mut bench.berth(&["verify", &c1, path.to_str().unwrap(), "--json"]));
            std::fs::remove_dir_all(&folder).unwrap();
            (told.0, serde_json::from_str::<serde_json::Value>(&told.1).unwrap())
        };
        let (code, told) = verify(&proof);
        assert_eq!((code, &told["failed_partitions"]), (0, &serde_json::json!([])));
        let good = proof.clone();
        // Partitions 3 and 12 in each other's place.
        let (low, high) = proof.split_at_mut(12 * 192);
        low[3 * 192..4 * 192].swap_with_slice(high);
        let (code, told) = verify(&proof);
        assert_eq!((code, &told["failed_partitions"]), (6, &serde_json::json!([3, 12])));
        let ask = |proof: &[u8]| {
            let name = "porep-2kib-ni";
            judge::judge("child_that_verifies", "circuits", name, &bench.vk(), &[proof])
        };
        assert_eq!(ask(&good), ["true"]);
        assert_eq!(ask(&proof), ["partitions [3, 12]"]);
    }
}
