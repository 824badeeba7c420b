//! Parts of PoRep witnesses by the published circuit code and by native code, with criterion's
//! statistics: `cargo bench -p berth-bench`. `berth-bench witness` has the figures that are quoted.

use berth::circuit::kinds;
use berth::config::WitnessMaker;
use berth::input::{C1_BYTES_MAX, PorepOptions, read_file, read_porep};
use berth::witness::Witnesses;
use blstrs::Scalar;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// The block of one challenge of 2 KiB.
fn block(criterion: &mut Criterion) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/porep-2kib.c1.json");
    let bytes = read_file(file.as_ref(), C1_BYTES_MAX).expect("a file of this repository");
    let input = read_porep(&bytes, &PorepOptions::default()).expect("it is sound");
    let compiled = kinds::compile(input.circuit).expect("a circuit of this size exists");
    let shape = compiled.shape.part(1);
    let mut wides = vec![Scalar::from(0); shape.wide_len()];
    let mut bits = vec![0; shape.word_len()];
    let mut group = criterion.benchmark_group("block of 2 KiB");
    group.throughput(Throughput::Elements(shape.aux() as u64));
    group.sample_size(10);
    for (name, maker) in [("native", WitnessMaker::Native), ("generic", WitnessMaker::Generic)] {
        let witnesses = Witnesses::new(maker);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                witnesses
                    .fill_part(&input, &compiled, 0, 1, &mut wides, &mut bits)
                    .expect("it fits the circuit");
            });
        });
    }
    group.finish();
}

criterion_group!(benches, block);
criterion_main!(benches);
