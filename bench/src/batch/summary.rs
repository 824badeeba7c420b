//! The summary of a series.
//!
//! Warm-up is apart from the steady state: the first completions, as many as there are requests in
//! flight, are left out. What a steady proof costs is the mean gap between completions, each gap
//! with the completion that ends it; how long a proof takes and what the process holds are looked
//! at for drift over their index.

use std::fmt;

use berth::plan::size;
use serde_json::{Value, json};

use super::{Series, shown};
use crate::statistics::{Interval, mean, median, slope};

/// Steady completions from which on an interval is told to people.
const INTERVAL_MIN: usize = 5;

/// What the series comes to; figures are `None` where too few proofs are left for them.
pub struct Summary {
    pub count: usize,
    pub failed: usize,
    warmup: usize,
    /// Completions after the warm-up.
    steady_count: usize,
    steady: Option<Interval>,
    first_seconds: Option<f64>,
    median_seconds: Option<f64>,
    drift_seconds: Option<Interval>,
    drift_bytes: Option<Interval>,
    peak_bytes: u64,
    planned_bytes: usize,
}

impl Summary {
    pub fn new(series: &Series<'_>) -> Self {
        let warmup = series.args.concurrency.max(series.args.warmup);
        let completed: Vec<_> = series.done.iter().filter(|done| done.outcome.is_ok()).collect();
        let seconds: Vec<f64> = completed.iter().map(|done| done.time().as_secs_f64()).collect();
        let bytes: Vec<f64> = completed
            .iter()
            .filter_map(|done| Some(done.memory?.process.current() as f64))
            .collect();
        let ends: Vec<f64> = completed.iter().map(|done| done.ended.as_secs_f64()).collect();
        let gaps: Vec<f64> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let after = |values: &[f64], skipped: usize| -> Vec<f64> {
            values.get(skipped..).unwrap_or_default().to_vec()
        };
        let steady_seconds = after(&seconds, warmup);
        Summary {
            count: series.done.len(),
            failed: series.done.len() - completed.len(),
            warmup,
            steady_count: steady_seconds.len(),
            // A gap ends with the completion after the one that it has the number of.
            steady: mean(&after(&gaps, warmup - 1)),
            first_seconds: seconds.first().copied(),
            median_seconds: (!steady_seconds.is_empty())
                .then(|| median(steady_seconds.iter().copied())),
            drift_seconds: slope(&steady_seconds),
            drift_bytes: slope(&after(&bytes, warmup)),
            peak_bytes: series.peak_bytes,
            planned_bytes: series.ready.plan.total_bytes,
        }
    }

    /// The object `summary` of the record; what is not known is null.
    pub fn record(&self) -> Value {
        let estimate = |interval: Option<Interval>| interval.map(|interval| interval.estimate);
        let ends = |interval: Option<Interval>| interval.map(|it| [it.low, it.high]);
        json!({
            "count": self.count,
            "failed": self.failed,
            "warmup": self.warmup,
            "steady_seconds_per_proof": estimate(self.steady),
            "ci95": ends(self.steady),
            "first_seconds": self.first_seconds,
            "median_seconds": self.median_seconds,
            "drift_seconds_per_proof": estimate(self.drift_seconds),
            "drift_ci95": ends(self.drift_seconds),
            "drift_bytes_per_proof": estimate(self.drift_bytes),
            "drift_bytes_ci95": ends(self.drift_bytes),
            "peak_bytes": self.peak_bytes,
            "planned_bytes": self.planned_bytes,
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let proofs = self.count - self.failed;
        writeln!(f, "proofs      {proofs} completed, {} failed", self.failed)?;
        let within = |interval: Interval, shown: &dyn Fn(f64) -> String| match self.steady_count {
            ..INTERVAL_MIN => "too few for an interval".into(),
            _ => format!("95 %: {} to {}", shown(interval.low), shown(interval.high)),
        };
        if let Some(steady) = self.steady {
            let (estimate, sure) = (shown(steady.estimate), within(steady, &shown));
            let warmup = self.warmup;
            writeln!(f, "steady      {estimate} s per proof ({sure}), without the first {warmup}")?;
        }
        if let (Some(first), Some(rest)) = (self.first_seconds, self.median_seconds) {
            writeln!(f, "first       {} s, the rest {} s (median)", shown(first), shown(rest))?;
        }
        if let Some(drift) = self.drift_seconds {
            let ms = |seconds: f64| format!("{:+.2}", seconds * 1e3);
            let sure = within(drift, &ms);
            writeln!(f, "drift       time {} ms a proof ({sure})", ms(drift.estimate))?;
        }
        if let Some(drift) = self.drift_bytes {
            let kib = |bytes: f64| format!("{:+.1}", bytes / 1024.0);
            let sure = within(drift, &kib);
            writeln!(f, "drift       memory {} KiB a proof ({sure})", kib(drift.estimate))?;
        }
        let (peak, planned) = (size(self.peak_bytes), size(self.planned_bytes as u64));
        writeln!(f, "memory      peak {peak} of {planned} planned")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(steady_count: usize) -> String {
        let interval = |estimate| Some(Interval { estimate, low: estimate - 1.0, high: 9.0 });
        let summary = Summary {
            count: steady_count + 1,
            failed: 0,
            warmup: 1,
            steady_count,
            steady: interval(2.0),
            first_seconds: Some(3.0),
            median_seconds: Some(2.0),
            drift_seconds: interval(0.001),
            drift_bytes: interval(2048.0),
            peak_bytes: 1 << 30,
            planned_bytes: 1 << 30,
        };
        summary.to_string()
    }

    #[test]
    fn both_drifts_say_of_what() {
        let text = summary(5);
        assert!(text.contains("steady      2.000 s per proof (95 %: 1.000 to 9.000), without"));
        assert!(text.contains("drift       time +1.00 ms a proof (95 %: "), "{text}");
        assert!(text.contains("drift       memory +2.0 KiB a proof (95 %: "), "{text}");
    }

    #[test]
    fn of_a_few_proofs_no_interval_is_told() {
        let text = summary(4);
        assert!(!text.contains("95 %"), "{text}");
        assert_eq!(text.matches("(too few for an interval)").count(), 3, "{text}");
    }
}
