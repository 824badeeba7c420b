//! A prover in the test's own process, with the lane and the hooks that a test wants.
#![allow(unused)] // each test file uses its own part

use std::ffi::OsString;
use std::fs;
use std::sync::{Arc, Mutex};

use berth::circuit::compiled::Compiled;
use berth::config::Config;
use berth::error::Result;
use berth::groth16::cpu::lane::CpuLane;
use berth::groth16::verify::Proof;
use berth::groth16::{Lane, Stage, Sums};
use berth::input::class::{CircuitId, Kind};
use berth::input::{self, Input, Meta, PorepOptions, Vanilla};
use berth::memory::slot::{Ready, Slot};
use berth::plan::Plan;
use berth::prover::{Class, Crew, Hooks, Outcome, Prover, setup};
use berth::srs::read::Srs;
use berth::witness::Witnesses;

use super::common;

/// Settings for tests: the tests' dev parameters, and these.
pub fn config(settings: &[(&str, &str)]) -> Config {
    let folder = common::dev_parameters().display().to_string();
    let none = common::target().join("no-official-parameters");
    std::fs::create_dir_all(&none).unwrap();
    let none = none.display().to_string();
    let fixed = [("BERTH_DEV_PARAMETER_DIR", &*folder), ("BERTH_PARAMETER_CACHE", &*none)];
    let all = fixed.iter().chain(settings);
    Config::from_env(all.map(|(name, value)| (OsString::from(name), OsString::from(value))))
        .unwrap()
}

/// The tiny WindowPoSt request, its one partition repeated.
pub fn window(partitions: usize) -> Input {
    let mut input = post(Kind::Window, "windowpost-2kib");
    let one = input.public_inputs[0].clone();
    input.public_inputs.resize(partitions, one);
    let Vanilla::PostBase(vanilla) = &mut input.vanilla else { unreachable!("2 KiB") };
    let one = vanilla.partitions[0].clone();
    vanilla.partitions.resize(partitions, one);
    input
}

/// A PoSt request of `tests/data`.
pub fn post(kind: Kind, name: &str) -> Input {
    let read = |ending: &str| fs::read(common::data(&format!("{name}.{ending}.json"))).unwrap();
    input::read_vanilla(kind, &read("vanilla"), &Meta::parse(&read("meta")).unwrap()).unwrap()
}

/// A PoRep request of `tests/data`.
pub fn porep(name: &str) -> Input {
    input::read_porep(&fs::read(common::data(name)).unwrap(), &PorepOptions::default()).unwrap()
}

/// A lane that a test wraps around the real one.
pub struct Around<F> {
    pub lane: CpuLane,
    pub around: Arc<Mutex<F>>,
}

/// Calls the real lane.
pub type Call<'a> = dyn FnMut(&mut CpuLane, Slot<Ready>) -> Result<Sums> + 'a;

impl<F> Lane for Around<F>
where
    F: FnMut(&mut CpuLane, Slot<Ready>, &mut Call<'_>) -> Result<Sums> + Send,
{
    fn backend(&self) -> &'static str {
        "cpu"
    }

    fn bytes(&self) -> usize {
        Lane::bytes(&self.lane)
    }

    fn sums(
        &mut self,
        compiled: &Compiled,
        srs: &Srs,
        slot: Slot<Ready>,
        at: &dyn Fn(Stage),
    ) -> Result<Sums> {
        let mut call = |lane: &mut CpuLane, slot| lane.sums(compiled, srs, slot, at);
        let mut around = self.around.lock().unwrap_or_else(|e| e.into_inner());
        around(&mut self.lane, slot, &mut call)
    }
}

/// Everything that a prover is started from.
pub struct Built {
    pub plan: Plan,
    pub classes: Vec<Class>,
    pub lanes: Vec<CpuLane>,
    pub witnesses: Arc<Witnesses>,
}

pub fn build(config: &Config, id: CircuitId) -> Built {
    let mut ready = setup::prepare(config, &[id]).unwrap();
    let show = |_: &str, _, _| {};
    let parameters = setup::find_or_make(config, &ready, &show).unwrap();
    let (classes, lanes) = setup::build(config, &mut ready, &parameters, &show).unwrap();
    Built { plan: ready.plan, classes, lanes, witnesses: ready.witnesses }
}

/// The sums of the tests' WindowPoSt request, which are the same whenever they are made: for tests
/// that are not about the arithmetic.
fn remembered(lane: &mut CpuLane, slot: Slot<Ready>, call: &mut Call<'_>) -> Result<Sums> {
    static SUMS: Mutex<Option<Sums>> = Mutex::new(None);
    let mut sums = SUMS.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(sums) = *sums {
        slot.prove().release();
        return Ok(sums);
    }
    Ok(*sums.insert(call(lane, slot)?))
}

impl Built {
    /// Starts with the real lane.
    pub fn start(self, hooks: Hooks) -> Prover {
        self.start_around(hooks, |lane, slot, call| call(lane, slot))
    }

    /// Starts with a lane that computes a window request's sums once.
    pub fn start_quick(self, hooks: Hooks) -> Prover {
        self.start_around(hooks, remembered)
    }

    /// The same, with `around` called in place of that lane.
    pub fn start_quick_around<F>(self, hooks: Hooks, mut around: F) -> Prover
    where
        F: FnMut(&mut CpuLane, Slot<Ready>, &mut Call<'_>) -> Result<Sums> + Send + 'static,
    {
        self.start_around(hooks, move |lane, slot, call| {
            around(lane, slot, &mut |lane, slot| remembered(lane, slot, call))
        })
    }

    /// Starts with `around` called in place of the lane, by one lane at a time.
    pub fn start_around<F>(self, hooks: Hooks, around: F) -> Prover
    where
        F: FnMut(&mut CpuLane, Slot<Ready>, &mut Call<'_>) -> Result<Sums> + Send + 'static,
    {
        let around = Arc::new(Mutex::new(around));
        let crews = self.plan.nodes.iter().zip(self.lanes).map(|(node, lane)| Crew {
            lanes: vec![Box::new(Around { lane, around: Arc::clone(&around) })],
            synthesis_cpus: node.synthesis_cpus.iter().copied().map(Some).collect(),
        });
        Prover::start(self.classes, crews.collect(), self.witnesses, true, hooks).unwrap()
    }
}

/// Are these proofs of that request?
pub fn holds(prover: &Prover, outcome: &Outcome, input: &Input) -> bool {
    let key = &prover.classes()[0].prepared;
    outcome.proofs.len() == input.partitions()
        && outcome.proofs.iter().zip(&input.public_inputs).all(|(bytes, inputs)| {
            Proof::read(bytes, 0).is_ok_and(|proof| key.verify(&proof, inputs).unwrap())
        })
}

/// Waits until no slot is out.
pub fn come_home(prover: &Prover) {
    let began = std::time::Instant::now();
    for pool in &prover.classes()[0].pools {
        while pool.occupancy().home != pool.count() {
            assert!(began.elapsed().as_secs() < 60, "slots stay out: {:?}", pool.occupancy());
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}
