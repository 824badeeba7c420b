//! Sums of boolean columns against sums point by point.

use super::*;

/// Runs of given lengths in words with random bits and masks.
struct TestRuns {
    bits: Vec<Vec<u64>>,
    mask: Vec<Vec<u64>>,
    rank: Vec<Vec<u32>>,
    first: Vec<usize>,
    points: usize,
}

impl TestRuns {
    fn new(values: &mut Values, words: &[usize], bits: fn(&mut Values) -> u64) -> Self {
        let mut runs =
            TestRuns { bits: vec![], mask: vec![], rank: vec![], first: vec![], points: 0 };
        for &count in words {
            runs.first.push(runs.points);
            runs.bits.push((0..count).map(|_| bits(values)).collect());
            runs.mask.push((0..count).map(|_| values.next() | values.next()).collect());
            let mut below = 0;
            let mut rank = Vec::new();
            for mask in &runs.mask[runs.mask.len() - 1] {
                rank.push(below);
                below += mask.count_ones();
            }
            runs.rank.push(rank);
            runs.points += below as usize;
        }
        runs
    }

    /// Whether each point counts, column by column.
    fn chosen(&self) -> Vec<bool> {
        let columns = |words: &[Vec<u64>]| -> Vec<bool> {
            words.iter().flatten().flat_map(|w| (0..64).map(move |b| w >> b & 1 == 1)).collect()
        };
        let (bits, mask) = (columns(&self.bits), columns(&self.mask));
        bits.into_iter().zip(mask).filter(|(_, mask)| *mask).map(|(bit, _)| bit).collect()
    }
}

impl BoolRuns for TestRuns {
    fn count(&self) -> usize {
        self.bits.len()
    }

    fn run(&self, run: usize) -> BoolRun<'_> {
        BoolRun {
            bits: &self.bits[run],
            mask: &self.mask[run],
            rank: &self.rank[run],
            first: self.first[run],
        }
    }
}

#[test]
fn sums_of_boolean_columns() {
    let mut values = Values(8);
    let kinds: [fn(&mut Values) -> u64; 3] = [|v| v.next(), |_| 0, |_| u64::MAX];
    for words in [&[][..], &[0], &[1], &[3, 0, 1, 90], &[2100, 5]] {
        for bits in kinds {
            let runs = TestRuns::new(&mut values, words, bits);
            let points = points_g1(&mut values, runs.points);
            let chosen = runs.chosen();
            let want: G1Projective = points
                .iter()
                .zip(&chosen)
                .filter(|(_, on)| **on)
                .map(|(p, _)| G1Projective::from(p))
                .sum();
            for threads in [1, 3] {
                let mut scratch = vec![0xa5; scratch_bytes(threads, runs.points)];
                for path in paths() {
                    let area = Scratch::new(&mut scratch);
                    let got = super::super::sums::sum::<G1>(
                        path,
                        &team(threads),
                        raw_g1(&points),
                        &runs,
                        area,
                    );
                    assert_eq!(g1(got), want, "{words:?} {path:?} {threads} threads");
                }
            }
        }
    }
    let runs = TestRuns::new(&mut values, &[3, 90], kinds[0]);
    let points = points_g2(&mut values, runs.points);
    let want: G2Projective = points
        .iter()
        .zip(runs.chosen())
        .filter(|(_, on)| *on)
        .map(|(p, _)| G2Projective::from(p))
        .sum();
    let mut scratch = vec![0xa5; scratch_bytes(2, runs.points)];
    assert_eq!(sum_g2(&team(2), &points, &runs, &mut scratch), want);
}
