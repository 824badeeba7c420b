//! Reading the request that a command line names.

use std::path::Path;

use super::args::{PostKind, Request};
use crate::error::{Error, Result};
use crate::input::class::Kind;

use crate::input::{
    self, C1_BYTES_MAX, Input, META_BYTES_MAX, Meta, PorepOptions, VANILLA_BYTES_MAX, read_file,
};

/// Reads and checks a request: a C1, or vanilla proofs with their public values. `hashes_later`
/// leaves the hashes of a C1 to its witness.
///
/// # Errors
/// [`Error::Input`] with the file in front of the place.
pub fn read(c1: Option<&Path>, request: &Request, hashes_later: bool) -> Result<Input> {
    let meta = request.meta.as_deref().map(|path| {
        let bytes = read_file(path, META_BYTES_MAX)?;
        Meta::parse(&bytes).map_err(|error| in_file(path, error))
    });
    let meta = meta.transpose()?;
    let by_meta = request.meta.as_deref();
    match (c1, request.kind, &request.vanilla) {
        (Some(_), _, Some(_)) => {
            Err(Error::Config("--vanilla goes with --kind, not with a C1".into()))
        }
        (Some(path), _, _) => {
            let options = PorepOptions {
                registered_proof: request.registered_proof.clone(),
                miner: request.miner,
                sector: request.sector,
                meta,
                hashes_later,
            };
            let bytes = read_file(path, C1_BYTES_MAX)?;
            input::read_porep(&bytes, &options).map_err(|error| in_either(path, by_meta, error))
        }
        (None, Some(kind), Some(path)) => {
            let meta = meta.ok_or_else(|| {
                Error::Config("--kind needs --meta FILE with the public values".into())
            })?;
            let kind = match kind {
                PostKind::Window => Kind::Window,
                PostKind::Winning => Kind::Winning,
                PostKind::Snap => Kind::Update,
            };
            let bytes = read_file(path, VANILLA_BYTES_MAX)?;
            input::read_vanilla(kind, &bytes, &meta)
                .map_err(|error| in_either(path, by_meta, error))
        }
        _ => Err(Error::Config("name a C1 file, or --kind with --vanilla and --meta".into())),
    }
}

/// Names the file that the place is in: every place in a meta file begins with its own name.
fn in_either(path: &Path, meta: Option<&Path>, error: Error) -> Error {
    let of_meta = matches!(&error, Error::Input { at, .. } if at.starts_with("meta."));
    in_file(meta.filter(|_| of_meta).unwrap_or(path), error)
}

fn in_file(path: &Path, error: Error) -> Error {
    match error {
        Error::Input { at, what } => Error::Input { at: format!("{}: {at}", path.display()), what },
        other => other,
    }
}

/// The request in one line, for people.
pub fn describe(input: &Input) -> String {
    let partitions = input.partitions();
    let plural = if partitions == 1 { "" } else { "s" };
    format!("{} ({}), {partitions} partition{plural}", input.registered_proof, input.circuit)
}
