//! `berth`: argv to command; the only place that exits.

fn main() {}
