//! The record of a series, schema 1.

use berth::command::VERSION;
use berth::groth16::Stage;
use berth::srs::find::Origin;
use serde_json::{Map, Value, json};

use super::summary::Summary;
use super::{Done, Series};
use crate::host;
use crate::recorder::milliseconds;

const SCHEMA: u32 = 1;

impl Series<'_> {
    /// The whole record.
    ///
    /// # Errors
    /// A host whose files cannot be read.
    pub fn record(&self, summary: &Summary) -> Result<Value, String> {
        let plan = serde_json::to_value(&self.ready.plan).map_err(|e| e.to_string())?;
        let dev = self.parameters.found.iter().any(|found| found.origin == Origin::Dev);
        let stages = self.recorder.stages(self.done.len());
        let mut by_index: Vec<&Done> = self.done.iter().collect();
        by_index.sort_by_key(|done| done.index);
        let proofs: Vec<Value> =
            by_index.iter().map(|done| proof(done, &stages[done.index])).collect();
        let memory: Vec<Value> = self.done.iter().filter_map(sample).collect();
        Ok(json!({
            "schema": SCHEMA,
            "berth": VERSION,
            "control_build": cfg!(feature = "heap-arenas"),
            "host": host::record()?,
            "config": plan["settings"],
            "plan": plan,
            "circuit": self.ready.compiled[0].0.to_string(),
            "parameters": if dev { "dev" } else { "official" },
            "concurrency": self.args.concurrency,
            "proofs": proofs,
            "events": self.recorder.record(),
            "events_missed": self.recorder.missed(),
            "memory": memory,
            "summary": summary.record(),
        }))
    }
}

/// One request: times are from the start of the series.
fn proof(done: &Done, stages: &[std::time::Duration; Stage::ALL.len()]) -> Value {
    let mut object = json!({
        "ok": done.outcome.is_ok(),
        "began_ms": milliseconds(done.began),
        "ended_ms": milliseconds(done.ended),
        "seconds": done.time().as_secs_f64(),
        "error": null,
    });
    match &done.outcome {
        Ok(outcome) => {
            let times = &outcome.times;
            let mut stages_ms = Map::new();
            let whole = [
                ("parse", done.parse),
                ("witness", times.witness),
                ("prove", times.prove),
                ("verify", times.verify),
            ];
            let of_lanes = Stage::ALL.iter().filter(|stage| **stage != Stage::Idle);
            let of_lanes = of_lanes.map(|stage| (stage.name(), stages[*stage as usize]));
            for (name, time) in whole.into_iter().chain(of_lanes) {
                stages_ms.insert(name.into(), milliseconds(time).into());
            }
            object["queue_ms"] = milliseconds(times.queue).into();
            object["stages_ms"] = stages_ms.into();
            object["backends"] = outcome.backends.clone().into();
            object["redone"] = outcome.redone.into();
        }
        Err(error) => object["error"] = error.to_string().into(),
    }
    object
}

/// What the process took when a request had ended.
fn sample(done: &Done) -> Option<Value> {
    let memory = done.memory?;
    Some(json!({
        "proof": done.index,
        "ms": milliseconds(done.ended),
        "rss_bytes": memory.process.rss,
        "hugetlb_bytes": memory.process.hugetlb,
        "heap_allocated_bytes": memory.heap.allocated,
        "heap_resident_bytes": memory.heap.resident,
        "heap_retained_bytes": memory.heap.retained,
    }))
}
