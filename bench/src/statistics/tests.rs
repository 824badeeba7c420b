use super::*;

/// A normal draw, as the sum of twelve even ones.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.next() as f64 / u64::MAX as f64).sum::<f64>() - 6.0
}

/// Values around zero of which each takes `share` of its neighbour along.
fn series(random: &mut Random, count: usize, share: f64) -> Vec<f64> {
    let mut last = normal(random) / (1.0 - share * share).sqrt();
    (0..count)
        .map(|_| {
            last = share * last + normal(random);
            last
        })
        .collect()
}

/// How often out of `runs` the interval holds the truth.
fn coverage(runs: usize, mut one: impl FnMut(&mut Random) -> (Interval, f64)) -> f64 {
    let mut random = Random(7);
    let held = (0..runs).filter(|_| {
        let (interval, truth) = one(&mut random);
        (interval.low..=interval.high).contains(&truth)
    });
    held.count() as f64 / runs as f64
}

#[test]
fn a_constant_series_has_no_width() {
    let constant = [5.25; 19];
    for interval in [mean(&constant).unwrap(), of_samples(&constant, |drawn| *drawn[0])] {
        assert_eq!(interval, Interval { estimate: 5.25, low: 5.25, high: 5.25 });
    }
    assert_eq!(slope(&constant), Some(Interval { estimate: 0.0, low: 0.0, high: 0.0 }));
    assert_eq!(deviation(&constant), Some(Interval { estimate: 0.0, low: 0.0, high: 0.0 }));
}

#[test]
fn a_straight_line_has_its_slope_and_no_width() {
    // Off a large base, as bytes of memory are.
    let line: Vec<f64> = (0..20).map(|i| 1.5e9 + 4096.0 * f64::from(i)).collect();
    let found = slope(&line).unwrap();
    assert!((found.estimate - 4096.0).abs() < 1e-6, "{found:?}");
    assert!(found.high - found.low < 1e-6, "{found:?}");
}

#[test]
fn a_drift_is_found_and_none_is_made_up() {
    let mut random = Random(3);
    let noise = series(&mut random, 20, 0.0);
    let drifting: Vec<f64> =
        noise.iter().enumerate().map(|(i, value)| 60.0 + 0.5 * value + 0.2 * i as f64).collect();
    let found = slope(&drifting).unwrap();
    assert!(found.low > 0.0 && (found.low..found.high).contains(&0.2), "{found:?}");
    let still = slope(&noise).unwrap();
    assert!((still.low..still.high).contains(&0.0), "{still:?}");
}

#[test]
fn intervals_of_the_mean_hold_the_truth_as_often_as_they_say() {
    for (count, share) in [(12, 0.0), (19, 0.0), (19, 0.3), (19, -0.3), (100, 0.3)] {
        let held = coverage(400, |random| (mean(&series(random, count, share)).unwrap(), 0.0));
        assert!((0.90..=0.999).contains(&held), "{count} values, {share}: {held}");
    }
}

#[test]
fn intervals_of_the_slope_hold_the_truth_as_often_as_they_say() {
    for (count, share) in [(12, 0.0), (19, 0.0), (19, 0.3), (100, 0.3)] {
        let held = coverage(400, |random| {
            let noise = series(random, count, share);
            let line: Vec<f64> =
                noise.iter().enumerate().map(|(i, value)| value + 0.5 * i as f64).collect();
            (slope(&line).unwrap(), 0.5)
        });
        assert!((0.90..=0.999).contains(&held), "{count} values, {share}: {held}");
    }
}

#[test]
fn intervals_over_samples_hold_the_truth_as_often_as_they_say() {
    for count in [5, 8] {
        // Each sample is a run of ten values around a level of its own.
        let held = coverage(300, |random| {
            let runs: Vec<Vec<f64>> = (0..count)
                .map(|_| {
                    let level = normal(random);
                    (0..10).map(|_| level + 0.3 * normal(random)).collect()
                })
                .collect();
            let figure = |drawn: &[&Vec<f64>]| {
                drawn.iter().map(|run| median(run.iter().copied())).sum::<f64>()
                    / drawn.len() as f64
            };
            (of_samples(&runs, figure), 0.0)
        });
        assert!((0.90..=0.999).contains(&held), "{count} samples: {held}");
        let held = coverage(400, |random| (deviation(&series(random, count, 0.0)).unwrap(), 1.0));
        assert!((0.92..=0.98).contains(&held), "deviation of {count}: {held}");
    }
}

#[test]
fn the_same_series_gives_the_same_interval() {
    let noise = series(&mut Random(5), 30, 0.2);
    assert_eq!(mean(&noise), mean(&noise));
    assert!(mean(&noise).unwrap().low < mean(&noise).unwrap().estimate);
}

#[test]
fn too_little_is_said_to_be_too_little() {
    assert_eq!(mean(&[]), None);
    assert_eq!(slope(&[1.0, 2.0]), None);
    assert_eq!(deviation(&[1.0]), None);
    let single = mean(&[3.0]).unwrap();
    assert!(single.estimate == 3.0 && single.low.is_infinite() && single.high.is_infinite());
    assert!(of_samples(&[3.0], |drawn| *drawn[0]).high.is_infinite());
}

#[test]
fn quantiles_of_student() {
    for (degrees, wanted) in [(1, 12.706), (15, 2.131), (16, 2.120), (30, 2.042), (120, 1.980)] {
        assert!((student_975(degrees) - wanted).abs() < 1e-3, "{degrees}");
    }
}

#[test]
fn medians() {
    assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
    assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
}
