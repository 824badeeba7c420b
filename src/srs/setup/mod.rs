//! Dev setup: Groth16 parameters for a compiled circuit, made locally for trying and testing.
//!
//! The formulas are those of bellperson's `groth16/generator.rs`; with u, v and w the column
//! polynomials of A, B and C at tau, t = tau^m - 1:
//!
//! ```text
//! a = u g1    b_g1 = v g1    b_g2 = v g2    h_i = tau^i t / delta g1
//! ic, l = (beta u + alpha v + w) / gamma, / delta g1
//! ```
//!
//! Memory: 32 bytes x (rows + inputs + 2 x columns), a window table of 48 MiB, then 96 MiB while
//! `b_g2` is made, and less than 2 MB per thread. PoRep of 2 KiB: 0.4 GB; 32 GiB: 13 GB.

mod columns;
mod multiples;
mod waste;

use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use group::prime::PrimeCurveAffine;

use super::find::{Found, Origin, pair};
use super::key::VerifyingKey;
use super::layout::{Counts, Section};
use super::marker::Marker;
use super::order::{Order, UNIT};
use super::{file_error, io_error, names};
use crate::circuit::compiled::{Compiled, QueryName};
use crate::error::{Error, Result};
use crate::files::{free_bytes, write_whole};
use crate::input::class::CircuitId;
use crate::plan::size;
use crate::team::Team;
use crate::tell;
use columns::{Columns, Matrix, add_sums, lagrange, vanishing, zero_columns};
use multiples::{Output, Table};
pub use waste::Waste;

/// Is there room for a file that takes minutes to make? What it is to replace stands beside it
/// until the end.
fn room_for(id: CircuitId, directory: &Path, need_bytes: u64) -> Result<()> {
    let free = free_bytes(directory).map_err(|e| file_error(directory, e.to_string()))?;
    if free >= need_bytes {
        return Ok(());
    }
    Err(Error::Host(format!(
        "dev parameters of {id} need {} in {}, and {} are free there; BERTH_DEV_PARAMETER_DIR \
         names another folder",
        size(need_bytes),
        directory.display(),
        size(free)
    )))
}

/// Makes dev parameters of a circuit in a directory, which is made if need be: the marker first,
/// then `.vk`, then `.params`, each under a temporary name, synced and renamed. Where another
/// process makes parameters in the directory it waits. A whole set that is there, with the
/// circuit's counts, is kept unless `anew`; a file without the marker is never replaced: it may
/// be official.
///
/// `progress` is called with points done and points in all, from any thread of the team.
///
/// # Errors
/// [`Error::Parameters`] when the directory does not take the files; [`Error::Host`] without
/// random numbers, or room for the files.
pub fn make_dev(
    id: CircuitId,
    compiled: &Compiled,
    directory: &Path,
    anew: bool,
    team: &Team,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Found> {
    std::fs::create_dir_all(directory)
        .map_err(|e| io_error(directory, "cannot make the directory", &e))?;
    let _lock = lock(directory)?;
    let counts = Counts::of(compiled);
    let found = pair(id, Origin::Dev, directory);
    let there = [&found.params, &found.vk].map(|path| path.symlink_metadata().is_ok());
    if there.contains(&true) {
        let file = if there[0] { &found.params } else { &found.vk };
        let marker = Marker::read(directory, id).map_err(|error| {
            let what =
                "lies here without the marker of dev parameters, so it is kept and none are made";
            file_error(file, format!("{what} ({error})"))
        })?;
        if there == [true; 2] && marker.counts == counts && !anew {
            return Ok(found);
        }
    }
    room_for(id, directory, counts.params_bytes())?;
    Marker::new(id, counts).write(directory, id)?;
    let part = directory.join(names::stem(id) + ".params.part");
    let made = Waste::random().and_then(|waste| {
        let generators = (G1Affine::generator(), G2Affine::generator());
        let key = write_params(compiled, waste, generators, &part, team, progress)?;
        // Never an old `.params` beside the new `.vk`.
        if found.params.symlink_metadata().is_ok() {
            std::fs::remove_file(&found.params)
                .map_err(|e| io_error(&found.params, "cannot be replaced", &e))?;
        }
        write_whole(&found.vk, &key.to_bytes())
            .map_err(|e| io_error(&found.vk, "cannot be written", &e))?;
        std::fs::rename(&part, &found.params)
            .and_then(|()| File::open(directory)?.sync_all())
            .map_err(|e| io_error(&found.params, "cannot be put in place", &e))
    });
    if made.is_err() {
        // The first error is the one to report; a leftover is overwritten next time.
        let _ = std::fs::remove_file(&part);
    }
    made.map(|()| found)
}

/// Locks a directory against other processes that make parameters in it, until dropped.
fn lock(directory: &Path) -> Result<File> {
    use std::os::fd::AsRawFd;
    let file = File::open(directory).map_err(|e| io_error(directory, "cannot be opened", &e))?;
    let mut how = libc::LOCK_EX | libc::LOCK_NB;
    loop {
        // SAFETY: the descriptor is open; flock touches no memory.
        if unsafe { libc::flock(file.as_raw_fd(), how) } == 0 {
            return Ok(file);
        }
        if how & libc::LOCK_NB != 0 {
            how = libc::LOCK_EX;
            if std::io::Error::last_os_error().kind() == std::io::ErrorKind::WouldBlock {
                let directory = directory.display();
                tell!("parameters  another program makes some in {directory}; waiting for it");
            }
            continue;
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(file_error(directory, format!("cannot be locked: {error}")));
        }
    }
}

/// Writes and syncs a parameter file with given secrets and generators, and returns the
/// verifying key. With equal secrets the file is bellperson's, byte for byte. Not for use on any
/// network: whoever ran this could have kept the secrets.
///
/// # Errors
/// [`Error::Parameters`] when the file cannot be written or a variable is in no constraint.
pub fn write_params(
    compiled: &Compiled,
    waste: Waste,
    (g1, g2): (G1Affine, G2Affine),
    path: &Path,
    team: &Team,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<VerifyingKey> {
    let counts = Counts::of(compiled);
    let file = File::create(path).map_err(|e| io_error(path, "cannot be made", &e))?;
    file.set_len(counts.params_bytes())
        .map_err(|e| io_error(path, "cannot be given its length", &e))?;
    let done = AtomicU64::new(0);
    let out = Output { file: &file, path, counts: &counts, team, progress, done };
    let table = Table::new(g1, counts.h + counts.l + counts.a + counts.b, team);
    let setup = Setup { compiled, waste: &waste, table: &table, out: &out };
    setup.write_h()?;
    let ic = setup.write_queries(g2)?;
    let key = setup.key(g1, g2, ic);
    out.write(&key.to_bytes(), 0)?;
    file.sync_all().map_err(|e| io_error(path, "cannot be synced", &e))?;
    Ok(key)
}

struct Setup<'a> {
    compiled: &'a Compiled,
    waste: &'a Waste,
    table: &'a Table<G1Affine>,
    out: &'a Output<'a>,
}

impl Setup<'_> {
    fn write_h(&self) -> Result<()> {
        let (waste, log) = (self.waste, self.compiled.shape.log_domain());
        let scale = vanishing(waste.tau, log) * inverse(waste.delta)?;
        let count = self.out.counts.h as usize;
        self.out.section(Section::H, self.table, count.div_ceil(UNIT), |unit, scalars| {
            let first = unit * UNIT;
            let mut power = waste.tau.pow_vartime([first as u64]) * scale;
            for _ in first..(first + UNIT).min(count) {
                scalars.push(power);
                power *= waste.tau;
            }
            first
        })
    }

    /// All sections but `h`; returns the points of `ic`. Holds two scalars per column: the sums
    /// of one matrix, and `beta u + alpha v + w` as it grows.
    fn write_queries(&self, g2: G2Affine) -> Result<Vec<G1Affine>> {
        let (compiled, waste, team) = (self.compiled, self.waste, self.out.team);
        let shape = &compiled.shape;
        let rows = shape.rows() + shape.inputs();
        let mut basis = lagrange(waste.tau, shape.log_domain(), rows, team)?;
        let mut grown = zero_columns(compiled);
        add_sums(compiled, Matrix::A, &basis, &mut grown, team);
        self.write_query(Section::A, QueryName::A, &grown, Scalar::ONE, self.table)?;
        for column in grown.iter_mut().flatten() {
            *column *= waste.beta;
        }
        let mut sums = zero_columns(compiled);
        add_sums(compiled, Matrix::B, &basis, &mut sums, team);
        self.write_query(Section::BG1, QueryName::B, &sums, Scalar::ONE, self.table)?;
        let table = Table::new(g2, self.out.counts.b, team);
        self.write_query(Section::BG2, QueryName::B, &sums, Scalar::ONE, &table)?;
        drop(table);
        for (column, sum) in grown.iter_mut().flatten().zip(sums.iter().flatten()) {
            *column += waste.alpha * sum;
        }
        add_sums(compiled, Matrix::C, &basis, &mut grown, team);
        self.write_query(Section::L, QueryName::L, &grown, inverse(waste.delta)?, self.table)?;
        let ic = self.ic(&grown)?;
        waste::wipe(&mut basis);
        grown.iter_mut().chain(&mut sums).for_each(|columns| waste::wipe(columns));
        Ok(ic)
    }

    fn write_query<P: super::points::Point>(
        &self,
        section: Section,
        name: QueryName,
        columns: &Columns,
        scale: Scalar,
        table: &Table<P>,
    ) -> Result<()> {
        let order = Order::new(self.compiled, name);
        self.out.section(section, table, order.units(), |unit, scalars| {
            order.walk(unit, |column, _| {
                scalars.push(columns[column.part][column.column] * scale);
            });
            order.points(unit).start
        })
    }

    /// The inputs' points, in global order.
    fn ic(&self, grown: &Columns) -> Result<Vec<G1Affine>> {
        let shape = &self.compiled.shape;
        let scale = inverse(self.waste.gamma)?;
        let scalars: Vec<Scalar> = grown
            .iter()
            .enumerate()
            .flat_map(|(part, columns)| &columns[..shape.part(part).inputs])
            .map(|column| *column * scale)
            .collect();
        let mut points = Vec::new();
        self.table
            .multiply(&scalars, &mut points)
            .map_err(|at| Error::Parameters(format!("ic[{at}] would be the point at infinity")))?;
        Ok(points)
    }

    fn key(&self, g1: G1Affine, g2: G2Affine, ic: Vec<G1Affine>) -> VerifyingKey {
        let waste = self.waste;
        VerifyingKey {
            alpha_g1: (g1 * waste.alpha).into(),
            beta_g1: (g1 * waste.beta).into(),
            beta_g2: (g2 * waste.beta).into(),
            gamma_g2: (g2 * waste.gamma).into(),
            delta_g1: (g1 * waste.delta).into(),
            delta_g2: (g2 * waste.delta).into(),
            ic,
        }
    }
}

fn inverse(secret: Scalar) -> Result<Scalar> {
    Option::from(secret.invert())
        .ok_or_else(|| Error::Parameters("a secret of the setup is zero".to_string()))
}

#[cfg(test)]
mod tests;
