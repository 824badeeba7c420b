//! The small values that every encoding is made of: 32 bytes, field elements, bounded lists.
//!
//! They read from JSON (arrays of integers) and from bincode (raw bytes) alike, and they refuse at
//! the place of the fault: the caller's path or offset then points at it.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use blstrs::Scalar;
use ff::PrimeField;
use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};

/// The order r of the scalar field, little endian.
const ORDER: [u8; 32] = [
    0x01, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x5b, 0xfe, 0xff, 0x02, 0xa4, 0xbd, 0x53,
    0x05, 0xd8, 0xa1, 0x09, 0x08, 0xd8, 0x39, 0x33, 0x48, 0x7d, 0x9d, 0x29, 0x53, 0xa7, 0xed, 0x73,
];

/// True if the bytes, little endian, are below the order of the scalar field.
pub(crate) fn is_canonical(bytes: &[u8; 32]) -> bool {
    bytes.iter().rev().lt(ORDER.iter().rev())
}

/// The field element of canonical little-endian bytes.
pub(crate) fn scalar(bytes: &[u8; 32]) -> Scalar {
    Scalar::from_repr_vartime(*bytes).expect("only canonical bytes come here")
}

/// Lower-case hexadecimal, byte order as stored.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 32 bytes of no further meaning: ticket, seed, prover id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes32(pub [u8; 32]);

/// 32 bytes that are a canonical field element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dom(pub [u8; 32]);

impl Dom {
    pub fn is_zero(&self) -> bool {
        self.0 == [0; 32]
    }
}

struct ThirtyTwo;

impl<'de> Visitor<'de> for ThirtyTwo {
    type Value = [u8; 32];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of 32 bytes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<[u8; 32], A::Error> {
        let mut bytes = [0; 32];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = items.next_element()?.ok_or_else(|| A::Error::invalid_length(i, &self))?;
        }
        Ok(bytes)
    }
}

impl<'de> Deserialize<'de> for Bytes32 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_tuple(32, ThirtyTwo).map(Bytes32)
    }
}

impl<'de> Deserialize<'de> for Dom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = deserializer.deserialize_tuple(32, ThirtyTwo)?;
        if !is_canonical(&bytes) {
            return Err(D::Error::custom("not a canonical field element"));
        }
        Ok(Dom(bytes))
    }
}

/// A list that refuses its entry number `MAX`, so that no input makes it grow past what a proof
/// can hold.
pub(crate) struct List<T, const MAX: usize>(pub Vec<T>);

impl<T, const MAX: usize> std::ops::Deref for List<T, MAX> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for List<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Items::<T, MAX>(PhantomData))
    }
}

struct Items<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Items<T, MAX> {
    type Value = List<T, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX} entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let hint = items.size_hint().unwrap_or(0);
        if hint > MAX {
            return Err(A::Error::invalid_length(hint, &self));
        }
        let mut list = Vec::with_capacity(hint);
        while let Some(item) = items.next_element()? {
            if list.len() == MAX {
                return Err(A::Error::custom(format!("more than {MAX} entries")));
            }
            list.push(item);
        }
        Ok(List(list))
    }
}

/// Text, borrowed from the input where it holds no escapes.
#[derive(serde::Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// For optional fields: absent is `None`, but `null` is an error like any other wrong value.
pub(crate) fn some<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_ends_at_the_order() {
        let mut below = ORDER;
        below[0] = 0;
        assert!(is_canonical(&below) && !is_canonical(&ORDER));
        assert!(is_canonical(&[0; 32]) && !is_canonical(&[0xff; 32]));
        assert_eq!(scalar(&below), -Scalar::from(1));
        assert!(bool::from(Scalar::from_repr(ORDER).is_none()));
    }

    #[test]
    fn bounded_lists_refuse_one_more() {
        assert_eq!(serde_json::from_str::<List<u8, 3>>("[1,2,3]").unwrap().len(), 3);
        let error = serde_json::from_str::<List<u8, 3>>("[1,2,3,4]").err().unwrap();
        assert!(error.to_string().contains("more than 3 entries"));
        let huge = u64::MAX.to_le_bytes();
        assert!(bincode::deserialize::<List<u8, 3>>(&huge).is_err());
    }
}
