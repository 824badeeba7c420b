//! What slots and lanes did, kept while a series runs.
//!
//! The room is made and made present before the first event, so that recording neither allocates
//! on a lane's thread nor looks like a drift of memory. What does not fit is counted.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use berth::groth16::Stage;
use berth::memory::slot::Place;
use berth::prover::{Event, What};
use serde_json::{Value, json};

/// Events with their time from the start.
pub struct Recorder {
    began: Instant,
    kept: Mutex<Kept>,
}

struct Kept {
    events: Vec<(Duration, Event)>,
    missed: u64,
}

/// The most events that room is made for: some 80 MB, beside which the proofs are to be seen.
const ROOM_MAX: usize = 1 << 20;

impl Recorder {
    /// Room for so many events, up to a million.
    pub fn new(room: usize) -> Self {
        let room = room.min(ROOM_MAX);
        let place = What::Slot { index: 0, place: Place::Home };
        let mut events = vec![(Duration::ZERO, Event { class: 0, node: 0, what: place }); room];
        events.clear();
        Recorder { began: Instant::now(), kept: Mutex::new(Kept { events, missed: 0 }) }
    }

    /// Time from the start.
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Keeps an event, if there is room.
    pub fn push(&self, event: &Event) {
        // The time is taken with the lock held, so that the list is in order.
        let mut kept = self.lock();
        if kept.events.len() == kept.events.capacity() {
            kept.missed += 1;
        } else {
            let now = self.now();
            kept.events.push((now, *event));
        }
    }

    /// Events that found no room.
    pub fn missed(&self) -> u64 {
        self.lock().missed
    }

    /// How long lanes were at each stage, for each of `requests` in the order of submission.
    pub fn stages(&self, requests: usize) -> Vec<[Duration; Stage::ALL.len()]> {
        stages(&self.lock().events, requests)
    }

    /// Every event as an object: `ms`, `class`, `node`, then `slot` and `place`, or `lane`,
    /// `stage`, `arrival` and `partition`.
    pub fn record(&self) -> Vec<Value> {
        self.lock().events.iter().map(|(at, event)| object(*at, event)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(|e| e.into_inner())
    }
}

fn stages(events: &[(Duration, Event)], requests: usize) -> Vec<[Duration; Stage::ALL.len()]> {
    let mut sums = vec![[Duration::ZERO; Stage::ALL.len()]; requests];
    // What each lane is at, since when.
    let mut lanes: Vec<Option<(Duration, Stage, u64)>> = Vec::new();
    for (at, event) in events {
        let What::Lane { lane, stage, arrival, .. } = event.what else { continue };
        if lanes.len() <= lane {
            lanes.resize(lane + 1, None);
        }
        if let Some((since, before, whose)) = lanes[lane].replace((*at, stage, arrival))
            && before != Stage::Idle
            && let Some(sum) = sums.get_mut(whose as usize)
        {
            sum[before as usize] += *at - since;
        }
    }
    sums
}

fn object(at: Duration, event: &Event) -> Value {
    let Event { class, node, what } = event;
    let ms = milliseconds(at);
    match what {
        What::Slot { index, place } => {
            let place = place_name(*place);
            json!({"ms": ms, "class": class, "node": node, "slot": index, "place": place})
        }
        What::Lane { lane, stage, arrival, partition } => json!({
            "ms": ms, "class": class, "node": node, "lane": lane, "stage": stage.name(),
            "arrival": arrival, "partition": partition,
        }),
    }
}

fn place_name(place: Place) -> &'static str {
    match place {
        Place::Home => "home",
        Place::Taken => "taken",
        Place::Filling => "filling",
        Place::Ready => "ready",
        Place::Proving => "proving",
    }
}

/// Milliseconds, to the microsecond.
pub fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(lane: usize, stage: Stage, arrival: u64) -> Event {
        Event { class: 0, node: 0, what: What::Lane { lane, stage, arrival, partition: 0 } }
    }

    #[test]
    fn what_does_not_fit_is_counted_and_nothing_grows() {
        let recorder = Recorder::new(2);
        for _ in 0..5 {
            recorder.push(&lane(0, Stage::Rows, 0));
        }
        assert_eq!((recorder.record().len(), recorder.missed()), (2, 3));
        assert_eq!(recorder.lock().events.capacity(), 2);
    }

    #[test]
    fn no_count_of_proofs_takes_more_than_there_is() {
        let recorder = Recorder::new(usize::MAX);
        assert_eq!(recorder.lock().events.capacity(), ROOM_MAX);
        assert!(ROOM_MAX * size_of::<(Duration, Event)>() < 100 << 20);
    }

    #[test]
    fn times_of_two_lanes_add_up_by_request() {
        let ms = Duration::from_millis;
        let slot = What::Slot { index: 3, place: Place::Ready };
        let events = [
            (ms(0), lane(1, Stage::Rows, 0)),
            (ms(5), lane(0, Stage::Rows, 1)),
            (ms(7), Event { class: 0, node: 0, what: slot }),
            (ms(10), lane(1, Stage::H, 0)),
            (ms(14), lane(1, Stage::Idle, 0)),
            (ms(20), lane(1, Stage::Rows, 1)),
            (ms(21), lane(0, Stage::Idle, 1)),
            (ms(30), lane(1, Stage::Idle, 1)),
        ];
        let sums = stages(&events, 2);
        let of = |request: usize, stage: Stage| sums[request][stage as usize];
        assert_eq!((of(0, Stage::Rows), of(0, Stage::H)), (ms(10), ms(4)));
        assert_eq!((of(1, Stage::Rows), of(1, Stage::H)), (ms(26), ms(0)));
        assert!(sums.iter().all(|sum| sum[Stage::Idle as usize].is_zero()));
        assert_eq!(object(ms(7), &events[2].1)["place"], "ready");
        assert_eq!(object(ms(10), &events[3].1)["stage"], "h");
    }
}
