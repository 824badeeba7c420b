//! `berth plan`: what would be mapped, placed and started, and why.

use std::path::Path;

use serde_json::{Value, json};

use super::args::Plan;
use super::{print, request};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::input::class::CircuitId;
use crate::prover::setup;
use crate::srs::find::Search;

/// A value of --circuit, which takes all names that follow it.
fn circuit(name: &str) -> Result<CircuitId> {
    name.parse().map_err(|error| match Path::new(name).is_file() {
        true => Error::Config(format!(
            "{name} is a file, and --circuit takes every name after it: give a C1 or --circuit, \
             not both"
        )),
        false => error,
    })
}

/// Runs the command; nothing is mapped. A plan that this host cannot hold is printed all the same,
/// and then refused.
pub fn run(config: &Config, args: &Plan) -> Result<()> {
    let mut ids: Vec<CircuitId> = if args.circuit.is_empty() {
        vec![request::read(args.c1.as_deref(), &args.request, false)?.circuit]
    } else {
        args.circuit.iter().map(|name| circuit(name)).collect::<Result<_>>()?
    };
    ids.sort_unstable();
    ids.dedup();
    let ready = setup::prepare(config, &ids)?;
    let mut parameters = Vec::new();
    for id in ids {
        parameters.push(match setup::search(config, id)? {
            Search::Found(found) => {
                json!({"circuit": id.to_string(), "origin": found.origin.to_string(),
                       "path": found.params.display().to_string()})
            }
            Search::Missing(missing) => {
                let remedy = if setup::may_make_dev(config, id) {
                    "; `berth prove` would make dev parameters first"
                } else {
                    ""
                };
                json!({"circuit": id.to_string(), "origin": "missing", "remedy": remedy,
                       "files": missing.files.iter().map(|f| f.display().to_string())
                           .collect::<Vec<_>>()})
            }
        });
    }
    if args.json {
        let mut record = serde_json::to_value(&ready.plan).expect("a plan is plain data");
        record["parameters"] = Value::Array(parameters);
        print(&format!("{record}\n"))?;
        return ready.plan.admit();
    }
    let mut text = ready.plan.to_string();
    for entry in &parameters {
        let field = |key: &str| entry[key].as_str().unwrap_or_default();
        let list = |key: &str| {
            let values: Vec<&str> =
                entry[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            values.join(", ")
        };
        let what = match field("origin") {
            "missing" => format!("missing: {}{}", list("files"), field("remedy")),
            origin => format!("{} ({origin})", field("path")),
        };
        text.push_str(&format!("parameters  {}: {what}\n", field("circuit")));
    }
    print(&text)?;
    ready.plan.admit()
}
