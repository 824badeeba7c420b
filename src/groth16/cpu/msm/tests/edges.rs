//! Additions of points whose coordinates are at the edges of the field. A chord needs no curve, so
//! any coordinates with different x may be tried, against blst's field functions one by one.

use blst::{blst_fp, blst_p1_affine};

use super::*;

/// p - 1 as stored words; words below p are all canonical.
const P_LESS_1: [u64; 6] = [
    0xb9feffffffffaaaa,
    0x1eabfffeb153ffff,
    0x6730d2a0f6b0f624,
    0x64774b84f38512bf,
    0x4b1ba7b6434bacd7,
    0x1a0111ea397fe69a,
];

/// Stored words at the edges of the field, of a word and of a limb of 52 bits.
fn edge_coordinates() -> Vec<blst_fp> {
    let mut words = vec![[0; 6], P_LESS_1, [u64::MAX; 6]];
    words[2][5] = P_LESS_1[5] - 1;
    for k in 0..6 {
        for word in [1, u64::MAX, P_LESS_1[k], 1 << 63] {
            let mut value = [0; 6];
            value[k] = if k == 5 { word.min(P_LESS_1[5]) } else { word };
            words.push(value);
        }
        let mut near = P_LESS_1;
        near[k] -= 1;
        words.push(near);
    }
    for bit in (0..381).filter(|bit| [0, 1, 51].contains(&(bit % 52)) && *bit < 380) {
        let mut power = [0; 6];
        power[bit / 64] = 1 << (bit % 64);
        words.push(power);
        let ones: [u64; 6] = std::array::from_fn(|k| match (bit / 64).cmp(&k) {
            std::cmp::Ordering::Greater => u64::MAX,
            std::cmp::Ordering::Equal => (1 << (bit % 64)) - 1,
            std::cmp::Ordering::Less => 0,
        });
        words.push(ones);
    }
    words.into_iter().map(|l| blst_fp { l }).collect()
}

/// The sum of two points of different x by the textbook.
fn chord(a: &blst_p1_affine, b: &blst_p1_affine) -> blst_p1_affine {
    let (mut slope, mut dx) = (blst_fp::default(), blst_fp::default());
    let mut sum = blst_p1_affine::default();
    let (s, d, x, y): (*mut _, *mut _, *mut _, *mut _) =
        (&mut slope, &mut dx, &mut sum.x, &mut sum.y);
    // SAFETY: blst reads and writes single field elements, in place as it allows.
    unsafe {
        blst::blst_fp_sub(s, &b.y, &a.y);
        blst::blst_fp_sub(d, &b.x, &a.x);
        blst::blst_fp_inverse(d, d);
        blst::blst_fp_mul(s, s, d);
        blst::blst_fp_sqr(x, s);
        blst::blst_fp_sub(x, x, &a.x);
        blst::blst_fp_sub(x, x, &b.x);
        blst::blst_fp_sub(y, &a.x, x);
        blst::blst_fp_mul(y, y, s);
        blst::blst_fp_sub(y, y, &a.y);
    }
    sum
}

#[test]
fn coordinates_at_the_edges_of_the_field() {
    let edges = edge_coordinates();
    let mut values = Values(9);
    let mut points = Vec::new();
    for x in &edges {
        for _ in 0..3 {
            points.push(blst_p1_affine { x: *x, y: edges[values.below(edges.len())] });
        }
    }
    let identity = |p: &blst_p1_affine| p.x.l == [0; 6] && p.y.l == [0; 6];
    points.retain(|point| !identity(point));
    let mut pairs = Vec::new();
    while pairs.len() < 6000 {
        let (a, b) = (values.below(points.len()), values.below(points.len()));
        if points[a].x != points[b].x {
            let sign = |negate: u64| if negate & 1 == 1 { NEGATED } else { 0 };
            let (a, b) = (a as u32 | sign(values.next()), b as u32 | sign(values.next()));
            pairs.push(Pair { a, b, out: pairs.len() as u32 });
        }
    }
    let meant = |reference: u32| {
        let mut point = points[(reference & !NEGATED) as usize];
        if reference & NEGATED != 0 {
            G1::negate(&mut point);
        }
        point
    };
    let mut bytes = vec![0; G1::pair_work_bytes(pairs.len()) + 128];
    for path in paths() {
        let work = Scratch::new(&mut bytes).take(G1::pair_work_bytes(pairs.len()) / 8);
        let mut out = vec![G1::ZERO; pairs.len()];
        curve::add_into::<G1>(path, &mut out, &points, &pairs, work);
        for (sum, pair) in out.iter().zip(&pairs) {
            let (a, b) = (meant(pair.a), meant(pair.b));
            assert_eq!(*sum, chord(&a, &b), "{path:?}: {a:x?} + {b:x?}");
        }
    }
}
