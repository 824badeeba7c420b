//! The published verifiers, each in a child process of its own: they read the folder of verifying
//! keys from the environment once per process.
//!
//! The child is the test binary itself, run for one test that does nothing unless it is a child.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use bellperson::groth16::{Proof, VerifyingKey, prepare_verifying_key, verify_proof};
use blstrs::Bls12;
use filecoin_proofs::PoRepConfig;
use filecoin_proofs::constants::{SectorShape16KiB, SectorShape32KiB};
use filecoin_proofs_api::{
    ApiVersion, PublicReplicaInfo, RegisteredPoStProof, RegisteredSealProof, RegisteredUpdateProof,
    SectorId, post, seal, update,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Names the folder with the task of a child.
const TASK: &str = "BERTH_TEST_JUDGE";

/// What a verifier says of each of several proofs of one request, whose public values stand in
/// `tests/data/NAME.meta.json`; `vk` is the verifying key, under its published name.
///
/// `child` is the test that calls [`answer`], by its whole name.
pub fn judge(child: &str, kind: &str, name: &str, vk: &Path, proofs: &[&[u8]]) -> Vec<String> {
    let folder = super::common::scratch(&format!("judge-{kind}-{name}"));
    std::fs::copy(vk, folder.join(vk.file_name().unwrap())).unwrap();
    let task = json!({
        "kind": kind,
        "meta": super::common::data(&format!("{name}.meta.json")),
        "vk": vk.file_name().unwrap().to_str().unwrap(),
        "proofs": proofs,
    });
    std::fs::write(folder.join("task.json"), task.to_string()).unwrap();
    // Not by name: a build in the meantime may have replaced the file.
    let output = Command::new("/proc/self/exe")
        .args(["--exact", child, "--nocapture"])
        .env(TASK, &folder)
        .env("FIL_PROOFS_PARAMETER_CACHE", &folder)
        .current_dir(&folder)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).to_string();
    assert!(output.status.success(), "the child failed: {told}");
    let answers = std::fs::read(folder.join("answers.json"))
        .unwrap_or_else(|e| panic!("the child {child} gave no answers: {e}; {told}"));
    std::fs::remove_dir_all(&folder).unwrap();
    serde_json::from_slice(&answers).unwrap()
}

/// The child's work; nothing in a process that is no child.
pub fn answer() {
    let Some(folder) = std::env::var_os(TASK).map(PathBuf::from) else { return };
    let read =
        |path: &Path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let task = read(&folder.join("task.json"));
    let meta = Meta(read(Path::new(task["meta"].as_str().unwrap())));
    let proofs: Vec<Vec<u8>> = serde_json::from_value(task["proofs"].clone()).unwrap();
    let answers: Vec<String> = proofs
        .iter()
        .map(|proof| {
            let verified = match task["kind"].as_str().unwrap() {
                "seal" => meta.seal(proof),
                "shape" => meta.shape(proof),
                "circuits" => meta.circuits(&folder.join(task["vk"].as_str().unwrap()), proof),
                "window" => meta.window(proof),
                "winning" => meta.winning(proof),
                "snap" => meta.snap(proof),
                other => panic!("no kind {other}"),
            };
            verified.map_or_else(|error| error, |valid| valid.to_string())
        })
        .collect();
    std::fs::write(folder.join("answers.json"), json!(answers).to_string()).unwrap();
}

/// The public values of a request.
struct Meta(Value);

type Verified = Result<bool, String>;

fn told(error: impl std::fmt::Display) -> String {
    format!("{error:#}")
}

impl Meta {
    fn get<T: DeserializeOwned>(&self, key: &str) -> T {
        serde_json::from_value(self.0[key].clone()).unwrap_or_else(|e| panic!("{key}: {e}"))
    }

    fn bytes(&self, key: &str) -> [u8; 32] {
        bytes(&self.0[key])
    }

    fn sector(&self) -> SectorId {
        SectorId::from(self.get::<u64>("sector_number"))
    }

    fn seal(&self, proof: &[u8]) -> Verified {
        seal::verify_seal(
            self.get::<RegisteredSealProof>("registered_proof"),
            self.bytes("comm_r"),
            self.bytes("comm_d"),
            self.bytes("prover_id"),
            self.sector(),
            self.bytes("ticket"),
            self.bytes("seed"),
            proof,
        )
        .map_err(told)
    }

    /// The sizes for which there is no registered proof.
    fn shape(&self, proof: &[u8]) -> Verified {
        let size: u64 = self.get("sector_size");
        assert_eq!(self.get::<String>("api_version"), "1.1.0");
        let config = PoRepConfig::new_groth16(size, self.bytes("porep_id"), ApiVersion::V1_1_0);
        let verify = match size {
            16_384 => filecoin_proofs::verify_seal::<SectorShape16KiB>,
            32_768 => filecoin_proofs::verify_seal::<SectorShape32KiB>,
            other => panic!("no shape of {other} bytes"),
        };
        verify(
            &config,
            self.bytes("comm_r"),
            self.bytes("comm_d"),
            self.bytes("prover_id"),
            self.sector(),
            self.bytes("ticket"),
            self.bytes("seed"),
            proof,
        )
        .map_err(told)
    }

    /// The circuit proofs of a non-interactive PoRep, which `verify_seal` takes as an aggregate
    /// alone: each by bellperson's verifier, with the public inputs that the published crate
    /// derives. The error lists the partitions that do not verify.
    fn circuits(&self, vk: &Path, proof: &[u8]) -> Verified {
        let inputs = seal::get_seal_inputs(
            self.get::<RegisteredSealProof>("registered_proof"),
            self.bytes("comm_r"),
            self.bytes("comm_d"),
            self.bytes("prover_id"),
            self.sector(),
            self.bytes("ticket"),
            self.bytes("seed"),
        )
        .map_err(told)?;
        let key = VerifyingKey::<Bls12>::read(std::fs::File::open(vk).unwrap()).unwrap();
        let key = prepare_verifying_key(&key);
        assert_eq!(proof.len(), inputs.len() * 192);
        let mut failed = Vec::new();
        for (partition, (proof, inputs)) in proof.chunks(192).zip(&inputs).enumerate() {
            let proof = Proof::read(proof).map_err(told)?;
            if !verify_proof(&key, &proof, inputs).map_err(told)? {
                failed.push(partition);
            }
        }
        if failed.is_empty() { Ok(true) } else { Err(format!("partitions {failed:?}")) }
    }

    fn replicas(&self) -> BTreeMap<SectorId, PublicReplicaInfo> {
        let proof: RegisteredPoStProof = self.get("registered_proof");
        let sectors = self.0["sectors"].as_array().unwrap();
        let replica = |sector: &Value| {
            let number = sector["sector_number"].as_u64().unwrap();
            (number.into(), PublicReplicaInfo::new(proof, bytes(&sector["comm_r"])))
        };
        sectors.iter().map(replica).collect()
    }

    fn window(&self, proof: &[u8]) -> Verified {
        post::verify_window_post(
            &self.bytes("randomness"),
            &[(self.get("registered_proof"), proof)],
            &self.replicas(),
            self.bytes("prover_id"),
        )
        .map_err(told)
    }

    fn winning(&self, proof: &[u8]) -> Verified {
        let (randomness, prover) = (self.bytes("randomness"), self.bytes("prover_id"));
        post::verify_winning_post(&randomness, proof, &self.replicas(), prover).map_err(told)
    }

    fn snap(&self, proof: &[u8]) -> Verified {
        update::verify_empty_sector_update_proof(
            self.get::<RegisteredUpdateProof>("registered_proof"),
            proof,
            self.bytes("comm_r_old"),
            self.bytes("comm_r_new"),
            self.bytes("comm_d_new"),
        )
        .map_err(told)
    }
}

fn bytes(hex: &Value) -> [u8; 32] {
    super::common::unhex(hex.as_str().unwrap()).try_into().unwrap()
}
