//! The table: each build's figures over its processes, with 95 % intervals.

use std::fmt;

use serde_json::{Value, json};

use crate::statistics::{Interval, deviation, median, of_samples};

/// One process.
pub struct Run {
    /// What it wrote, without the events.
    pub record: Value,
    first: f64,
    /// Of the steady proofs, in the order of completion.
    seconds: Vec<f64>,
    drift: f64,
    peak_bytes: f64,
}

impl Run {
    /// Takes the figures out of a record.
    ///
    /// # Errors
    /// A record that lacks one, or too few proofs for a drift.
    pub fn read(record: Value, concurrency: usize) -> Result<Self, String> {
        let proofs = record["proofs"].as_array().ok_or("a record without proofs")?;
        let mut ended: Vec<(f64, f64)> = proofs
            .iter()
            .filter_map(|proof| Some((proof["ended_ms"].as_f64()?, proof["seconds"].as_f64()?)))
            .collect();
        ended.sort_by(|a, b| a.0.total_cmp(&b.0));
        let seconds: Vec<f64> =
            ended.iter().skip(concurrency).map(|(_, seconds)| *seconds).collect();
        let summary = &record["summary"];
        let drift = summary["drift_seconds_per_proof"]
            .as_f64()
            .ok_or("too few proofs for a drift: --count is at least --concurrency and 3 more")?;
        let peak_bytes = summary["peak_bytes"].as_f64().ok_or("a summary without peak_bytes")?;
        Ok(Run { first: ended[0].1, seconds, drift, peak_bytes, record })
    }

    fn median(&self) -> f64 {
        median(self.seconds.iter().copied())
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "first {:.3} s, then {:.3} s, drift {:+.2} ms a proof, peak {:.1} MiB",
            self.first,
            self.median(),
            self.drift * 1e3,
            self.peak_bytes / MIB
        )
    }
}

const MIB: f64 = (1 << 20) as f64;

/// Every row with one cell for each build.
pub struct Table {
    builds: Vec<String>,
    rows: Vec<(&'static str, Vec<Option<Interval>>)>,
}

impl Table {
    pub fn new(names: &[&str], runs: &[Vec<Run>]) -> Self {
        let row = |figure: &dyn Fn(&[&Run]) -> f64| -> Vec<Option<Interval>> {
            runs.iter().map(|runs| Some(of_samples(runs, figure))).collect()
        };
        let mean = |drawn: &[&Run], figure: &dyn Fn(&Run) -> f64| {
            drawn.iter().map(|run| figure(run)).sum::<f64>() / drawn.len() as f64
        };
        let spread = |runs: &Vec<Run>| {
            deviation(&runs.iter().map(|run| run.median() * 1e3).collect::<Vec<_>>())
        };
        let against = |runs: &Vec<Run>, base: &Vec<Run>| {
            // Rounds are drawn, so that what the machine did in a round falls on both.
            let pairs: Vec<(&Run, &Run)> = runs.iter().zip(base).collect();
            Some(of_samples(&pairs, |drawn| {
                let own: Vec<&Run> = drawn.iter().map(|pair| pair.0).collect();
                let base: Vec<&Run> = drawn.iter().map(|pair| pair.1).collect();
                pooled(&own) / pooled(&base)
            }))
        };
        let rows = vec![
            ("seconds per proof, median", row(&pooled)),
            ("  against arenas", runs.iter().map(|own| against(own, &runs[0])).collect()),
            ("spread of processes, sd in ms", runs.iter().map(spread).collect()),
            ("drift within, ms a proof", row(&|drawn| mean(drawn, &|run| run.drift * 1e3))),
            (
                "first proof over the rest",
                row(&|drawn| median(drawn.iter().map(|run| run.first / run.median()))),
            ),
            (
                "peak memory, MiB",
                row(&|drawn| median(drawn.iter().map(|run| run.peak_bytes / MIB))),
            ),
        ];
        Table { builds: names.iter().map(|name| (*name).to_string()).collect(), rows }
    }

    /// Rows as objects: `what`, then for each build its estimate and interval.
    pub fn record(&self) -> Value {
        let rows = self.rows.iter().map(|(what, cells)| {
            let cells = self.builds.iter().zip(cells).map(|(build, cell)| {
                json!({
                    "build": build,
                    "estimate": cell.map(|cell| cell.estimate),
                    "ci95": cell.map(|cell| [cell.low, cell.high]),
                })
            });
            json!({"what": what.trim(), "cells": cells.collect::<Vec<_>>()})
        });
        rows.collect()
    }
}

/// The median of all steady proofs of some processes.
fn pooled(runs: &[&Run]) -> f64 {
    median(runs.iter().flat_map(|run| run.seconds.iter().copied()))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<30}", "95 % intervals")?;
        for build in &self.builds {
            write!(f, " {build:>30}")?;
        }
        writeln!(f)?;
        for (what, cells) in &self.rows {
            write!(f, "{what:<30}")?;
            for cell in cells {
                let text = cell.map_or("-".into(), |Interval { estimate, low, high }| {
                    format!("{estimate:.3} ({low:.3} to {high:.3})")
                });
                write!(f, " {text:>30}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seconds: &[f64], drift: f64) -> Value {
        // In the order of submission; the last submitted ends first.
        let count = seconds.len();
        let proofs = seconds
            .iter()
            .enumerate()
            .rev()
            .map(|(i, seconds)| json!({"ended_ms": i, "seconds": seconds}));
        let summary = json!({
            "drift_seconds_per_proof": (count > 3).then_some(drift),
            "peak_bytes": 3 << 20,
        });
        json!({"proofs": proofs.collect::<Vec<_>>(), "summary": summary})
    }

    fn runs(level: f64) -> Vec<Run> {
        (0..4)
            .map(|i| {
                let own = level + 0.001 * f64::from(i);
                Run::read(record(&[own * 1.5, own, own, own], 0.002), 1).unwrap()
            })
            .collect()
    }

    #[test]
    fn rows_of_two_builds() {
        let table = Table::new(&["arenas", "heap"], &[runs(1.0), runs(1.2)]);
        let cell = |row: usize, build: usize| table.rows[row].1[build].unwrap();
        assert!((cell(0, 0).estimate - 1.0015).abs() < 1e-9);
        assert!((cell(0, 1).estimate - 1.2015).abs() < 1e-9);
        let ratio = cell(1, 1);
        assert!(ratio.low > 1.19 && ratio.high < 1.21 && cell(1, 0).estimate == 1.0, "{ratio:?}");
        assert!((cell(2, 0).estimate - 1.291).abs() < 0.001, "{:?}", cell(2, 0));
        assert!((cell(3, 0).estimate - 2.0).abs() < 1e-9 && cell(3, 0).high < 2.001);
        assert!((cell(4, 1).estimate - 1.5).abs() < 1e-9);
        assert_eq!(cell(5, 0), Interval { estimate: 3.0, low: 3.0, high: 3.0 });
        assert!(
            table.to_string().contains("heap") && table.record()[1]["what"] == "against arenas"
        );
    }

    #[test]
    fn too_few_proofs_are_refused() {
        assert!(Run::read(record(&[1.0, 1.0, 1.0], 0.0), 1).is_err());
        assert!(Run::read(json!({}), 1).is_err());
    }
}
