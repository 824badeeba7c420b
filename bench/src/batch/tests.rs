use berth::groth16::PROOF_BYTES;

use super::*;

fn done(index: usize, seconds: [u64; 2], outcome: Result<Outcome>) -> Done {
    let [began, ended] = seconds.map(Duration::from_secs);
    Done { index, began, ended, parse: Duration::ZERO, outcome, memory: None }
}

fn proven(prove_ms: u64, queue_ms: u64) -> Outcome {
    let mut outcome = Outcome {
        proofs: vec![[0; PROOF_BYTES]],
        backends: vec!["cpu"],
        redone: 0,
        times: Default::default(),
    };
    outcome.times.prove = Duration::from_millis(prove_ms);
    outcome.times.queue = Duration::from_millis(queue_ms);
    outcome
}

#[test]
fn a_line_for_each_proof() {
    let good = done(0, [1, 141], Ok(proven(72_279, 1_140)));
    assert_eq!(line(3, 20, &good), "[3/20] COMPLETED — 140.0s (prove=72279 ms, queue=1140 ms)");
    let bad = done(1, [2, 4], Err(Error::Device("gone".into())));
    assert_eq!(line(4, 20, &bad), "[4/20] FAILED — 2.000s: device: gone");
}

#[test]
fn counts_are_bounded() {
    assert_eq!((up_to::<7>("1"), up_to::<7>("7")), (Ok(1), Ok(7)));
    for wrong in ["0", "8", "-1", "", "x", "18446744073709551616"] {
        assert!(up_to::<7>(wrong).is_err(), "{wrong:?}");
    }
}
