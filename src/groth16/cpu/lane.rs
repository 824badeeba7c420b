//! The CPU lane: rows, quotient and sums of one partition in one arena.
//!
//! ```text
//! | table | a: max(domain, wides) scalars | b: domain | c: domain | rest |
//!                                         |  scratch of the sums, once h is in a  |
//! ```
//!
//! The coefficients of h, and after them the wide scalars of each query, lie in `a`; b and c are
//! free by then and are what the sums work in.

use blstrs::{G1Affine, G1Projective, Scalar};

use super::msm::{self, BoolRun, BoolRuns};
use super::ntt::Domain;
use super::quotient::quotient;
use super::rows;
use crate::circuit::compiled::{Compiled, QueryName, Selection};
use crate::circuit::shape::Witness;
use crate::error::Result;
use crate::groth16::{Lane, Stage, Sums};
use crate::memory::arena::{Arena, piece_bytes};
use crate::memory::heap;
use crate::memory::slot::{Ready, Slot};
use crate::srs::read::Srs;
use crate::team::Team;

/// Lengths of the pieces of a lane for one circuit.
struct Pieces {
    table: usize,
    domain: usize,
    /// Scalars of `a`: the domain, or the wide columns where they are more.
    a: usize,
    /// Bytes of what the sums work in: `b`, `c` and what they need beyond them.
    scratch: usize,
}

impl Pieces {
    fn new(compiled: &Compiled, threads: usize) -> Self {
        let shape = &compiled.shape;
        let domain = shape.domain();
        let queries =
            [QueryName::L, QueryName::A, QueryName::B].map(|name| compiled.query_len(name));
        let wides = queries.iter().map(|(_, wides)| *wides).max().unwrap_or(0);
        let points = queries.iter().map(|(bits, wides)| bits.max(wides)).max().map_or(0, |n| *n);
        let least = msm::scratch_bytes(threads, points.max(domain));
        Pieces {
            table: Domain::table_len(shape.log_domain(), threads),
            domain,
            a: domain.max(wides),
            scratch: least.max(2 * piece_bytes::<Scalar>(domain)),
        }
    }

    fn bytes(&self) -> usize {
        piece_bytes::<Scalar>(self.table)
            + piece_bytes::<Scalar>(self.a)
            + piece_bytes::<u8>(self.scratch)
    }
}

/// The workspace and the threads of the CPU backend.
pub struct CpuLane {
    team: Team,
    arena: Arena,
}

impl CpuLane {
    /// Bytes of arena that a lane of `threads` threads needs for a circuit.
    pub fn bytes(compiled: &Compiled, threads: usize) -> usize {
        Pieces::new(compiled, threads).bytes()
    }

    /// A lane over an arena of at least [`CpuLane::bytes`] for each circuit that it will meet. It
    /// closes the heap for the threads of the team.
    pub fn new(team: Team, arena: Arena) -> Self {
        team.run(&|_| heap::close_thread());
        CpuLane { team, arena }
    }

    /// The threads that do the work.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// The five sums of a filled witness.
    ///
    /// # Errors
    /// [`Error::Device`](crate::error::Error::Device) when the quotient's self-check fails.
    pub fn sums_of(
        &mut self,
        compiled: &Compiled,
        srs: &Srs,
        witness: Witness<'_>,
        at: &dyn Fn(Stage),
    ) -> Result<Sums> {
        let team = &self.team;
        let pieces = Pieces::new(compiled, team.len());
        let mut carve = self.arena.carve();
        let table = carve.take::<Scalar>(pieces.table);
        let a = carve.take::<Scalar>(pieces.a);
        let scratch = carve.take::<u8>(pieces.scratch);

        let domain = pieces.domain;
        let shape = &compiled.shape;
        {
            let mut carve = Halves { rest: &mut *scratch };
            let (b, c) = (carve.take(domain), carve.take(domain));
            let a = &mut a[..domain];
            at(Stage::Rows);
            rows::evaluate(team, compiled, witness, a, b);
            let mut transform = Domain::new(shape.log_domain(), table, team.len());
            at(Stage::Quotient);
            quotient(team, &mut transform, a, b, c)?;
        }
        at(Stage::H);
        let points = srs.h();
        let h = msm::msm_g1(team, points, &a[..points.len()], scratch);
        let mut query = Query { team, compiled, witness, scalars: a, scratch };
        at(Stage::L);
        let l = query.sum_g1(QueryName::L, srs.l_bits(), srs.l_wides());
        at(Stage::A);
        let a = query.sum_g1(QueryName::A, srs.a_bits(), srs.a_wides());
        at(Stage::BG1);
        let b_g1 = query.sum_g1(QueryName::B, srs.b_g1_bits(), srs.b_g1_wides());
        at(Stage::BG2);
        // The wide scalars of B are still there.
        let bits = Runs { compiled, witness, name: QueryName::B };
        let b_g2 = msm::sum_g2(team, srs.b_g2_bits(), &bits, query.scratch)
            + msm::msm_g2(
                team,
                srs.b_g2_wides(),
                &query.scalars[..srs.b_g2_wides().len()],
                query.scratch,
            );
        Ok(Sums { h, l, a, b_g1, b_g2 })
    }
}

impl Lane for CpuLane {
    fn backend(&self) -> &'static str {
        "cpu"
    }

    fn bytes(&self) -> usize {
        self.arena.bytes()
    }

    fn sums(
        &mut self,
        compiled: &Compiled,
        srs: &Srs,
        slot: Slot<Ready>,
        at: &dyn Fn(Stage),
    ) -> Result<Sums> {
        #[cfg(feature = "heap-arenas")]
        self.arena.renew()?;
        let slot = slot.prove();
        let sums = self.sums_of(compiled, srs, slot.witness(), at);
        slot.release();
        sums
    }
}

/// Cuts aligned runs of scalars off a piece of the arena.
struct Halves<'a> {
    rest: &'a mut [u8],
}

impl<'a> Halves<'a> {
    fn take(&mut self, len: usize) -> &'a mut [Scalar] {
        let bytes = piece_bytes::<Scalar>(len);
        let (head, rest) = std::mem::take(&mut self.rest).split_at_mut(bytes);
        self.rest = rest;
        // SAFETY: every pattern of bytes is a Scalar (four 64-bit limbs); align_to_mut keeps to
        // the bounds, and the piece is aligned, so that nothing is left over in front.
        let (front, scalars, _) = unsafe { head.align_to_mut::<Scalar>() };
        assert!(front.is_empty(), "pieces of an arena are aligned");
        &mut scalars[..len]
    }
}

/// The sums of one query after another.
struct Query<'a> {
    team: &'a Team,
    compiled: &'a Compiled,
    witness: Witness<'a>,
    scalars: &'a mut [Scalar],
    scratch: &'a mut [u8],
}

impl Query<'_> {
    fn sum_g1(&mut self, name: QueryName, bits: &[G1Affine], wides: &[G1Affine]) -> G1Projective {
        gather(self.compiled, self.witness, name, &mut self.scalars[..wides.len()]);
        let runs = Runs { compiled: self.compiled, witness: self.witness, name };
        msm::sum_g1(self.team, bits, &runs, self.scratch)
            + msm::msm_g1(self.team, wides, &self.scalars[..wides.len()], self.scratch)
    }
}

/// Copies the wide values of a query, in the order of its points.
fn gather(compiled: &Compiled, witness: Witness<'_>, name: QueryName, out: &mut [Scalar]) {
    let shape = &compiled.shape;
    let mut next = out.iter_mut();
    for part in 0..shape.parts() {
        let base = shape.wide_base(part);
        let wides = &witness.wides[base..base + shape.part(part).wide_len()];
        for (position, value) in chosen(&compiled.part(part).query(name).wides, wides) {
            *next.next().unwrap_or_else(|| panic!("wide {position} has no place")) = *value;
        }
    }
    assert!(next.next().is_none(), "every wide point of a query has a scalar");
}

/// The values at the chosen positions, with their positions.
fn chosen<'a, T>(
    selection: &'a Selection,
    values: &'a [T],
) -> impl Iterator<Item = (usize, &'a T)> {
    values.iter().enumerate().filter(|(position, _)| selection.contains(*position))
}

/// The boolean columns of a query, part by part.
struct Runs<'a> {
    compiled: &'a Compiled,
    witness: Witness<'a>,
    name: QueryName,
}

impl BoolRuns for Runs<'_> {
    fn count(&self) -> usize {
        self.compiled.shape.parts()
    }

    fn run(&self, part: usize) -> BoolRun<'_> {
        let shape = &self.compiled.shape;
        let selection = &self.compiled.part(part).query(self.name).bits;
        let base = shape.word_base(part);
        BoolRun {
            bits: &self.witness.bits[base..base + selection.words.len()],
            mask: &selection.words,
            rank: &selection.rank,
            first: self.compiled.query_first(self.name, part).0,
        }
    }
}
