//! What a series of times says, and how sure it is of that.
//!
//! Every figure is a weighted sum of the series: the mean, and the slope of the least-squares line.
//! Its 95 % interval comes from a moving-block bootstrap of what the fit leaves over: blocks of
//! about the cube root of the length, starting anywhere and going on at the front past the end, so
//! that neighbours which depend on each other stay together. The percentiles are widened by
//! Student's t for the number of blocks and for the parameters of the fit, since a short series
//! shows too little of its own spread. The draws come from a fixed seed: the same series gives the
//! same interval.

/// A figure with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// A figure that nothing is known around: from a single value.
    fn unknown(estimate: f64) -> Self {
        Interval { estimate, low: f64::NEG_INFINITY, high: f64::INFINITY }
    }
}

/// Of the draws of every bootstrap.
const SEED: u64 = 0x6265_7274_6820_3935;
const RESAMPLES: usize = 4000;
/// Of a normal distribution.
const QUANTILE_975: f64 = 1.959_964;

/// The mean of a series; `None` for an empty one.
pub fn mean(values: &[f64]) -> Option<Interval> {
    if values.is_empty() {
        return None;
    }
    let weights = vec![1.0 / values.len() as f64; values.len()];
    // Off a base, so that equal values give exactly their value.
    let estimate = values[0] + weighted(&weights, values.iter().map(|value| value - values[0]));
    let left: Vec<f64> = values.iter().map(|value| value - estimate).collect();
    Some(around(estimate, &weights, &left, 1))
}

/// The slope of the least-squares line over the index; `None` for fewer than three values.
pub fn slope(values: &[f64]) -> Option<Interval> {
    let count = values.len();
    if count < 3 {
        return None;
    }
    let middle = (count - 1) as f64 / 2.0;
    let square: f64 = (0..count).map(|i| (i as f64 - middle).powi(2)).sum();
    let weights: Vec<f64> = (0..count).map(|i| (i as f64 - middle) / square).collect();
    // The weights sum up to zero; off a large base they would only lose digits.
    let base = values[0];
    let estimate = weighted(&weights, values.iter().map(|value| value - base));
    let level = values.iter().map(|value| value - base).sum::<f64>() / count as f64;
    let left: Vec<f64> = values
        .iter()
        .enumerate()
        .map(|(i, value)| value - base - level - estimate * (i as f64 - middle))
        .collect();
    Some(around(estimate, &weights, &left, 2))
}

/// A figure of several samples, each a run of its own: samples are drawn anew as wholes, so that
/// what differs between runs counts and what they have inside stays together.
pub fn of_samples<T>(samples: &[T], figure: impl Fn(&[&T]) -> f64) -> Interval {
    let all: Vec<&T> = samples.iter().collect();
    let estimate = figure(&all);
    if samples.len() < 2 {
        return Interval::unknown(estimate);
    }
    let mut random = Random(SEED);
    let mut drawn = all.clone();
    let figures = (0..RESAMPLES).map(|_| {
        drawn.iter_mut().for_each(|place| *place = &samples[random.below(samples.len())]);
        figure(&drawn) - estimate
    });
    widened(estimate, figures.collect(), samples.len(), samples.len(), 1)
}

/// The standard deviation of independent values; the interval is that of a normal distribution.
/// `None` for fewer than two values.
pub fn deviation(values: &[f64]) -> Option<Interval> {
    let degrees = values.len().checked_sub(1).filter(|degrees| *degrees > 0)? as f64;
    let middle = values.iter().sum::<f64>() / values.len() as f64;
    let square: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    let estimate = (square / degrees).sqrt();
    // Quantiles of chi-square over its degrees of freedom, after Wilson and Hilferty.
    let spread = 2.0 / (9.0 * degrees);
    let ratio = |z: f64| (1.0 - spread + z * spread.sqrt()).max(0.0).powi(3);
    let (low, high) = (ratio(QUANTILE_975), ratio(-QUANTILE_975));
    Some(Interval { estimate, low: estimate / low.sqrt(), high: estimate / high.sqrt() })
}

/// The middle value, or the mean of the two in the middle.
///
/// # Panics
/// Without a value.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

fn weighted(weights: &[f64], values: impl Iterator<Item = f64>) -> f64 {
    weights.iter().zip(values).map(|(weight, value)| weight * value).sum()
}

/// The interval of a weighted sum, from what a fit of `parameters` left over.
fn around(estimate: f64, weights: &[f64], left: &[f64], parameters: usize) -> Interval {
    let count = left.len();
    if count <= parameters {
        return Interval::unknown(estimate);
    }
    let block = (count as f64).cbrt().round() as usize;
    let mut random = Random(SEED);
    let mut drawn = vec![0.0; count];
    let sums = (0..RESAMPLES).map(|_| {
        for piece in drawn.chunks_mut(block) {
            let start = random.below(count);
            for (offset, place) in piece.iter_mut().enumerate() {
                *place = left[(start + offset) % count];
            }
        }
        weighted(weights, drawn.iter().copied())
    });
    widened(estimate, sums.collect(), count, count / block, parameters)
}

/// The percentiles of deviations around an estimate, widened for a small sample.
fn widened(
    estimate: f64,
    mut deviations: Vec<f64>,
    count: usize,
    blocks: usize,
    parameters: usize,
) -> Interval {
    deviations.sort_by(f64::total_cmp);
    let at = |share: f64| deviations[((deviations.len() - 1) as f64 * share).round() as usize];
    let degrees = blocks.saturating_sub(parameters).max(1);
    let wider =
        student_975(degrees) / QUANTILE_975 * (count as f64 / (count - parameters) as f64).sqrt();
    Interval { estimate, low: estimate + wider * at(0.025), high: estimate + wider * at(0.975) }
}

/// The 97.5 % quantile of Student's t.
fn student_975(degrees: usize) -> f64 {
    const SMALL: [f64; 15] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131,
    ];
    // Beyond the table the two first terms of its expansion are exact to a thousandth.
    let z = QUANTILE_975;
    let many = degrees as f64;
    SMALL.get(degrees - 1).copied().unwrap_or_else(|| {
        z + (z.powi(3) + z) / (4.0 * many)
            + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * many * many)
    })
}

/// Splitmix64: enough for draws, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests;
