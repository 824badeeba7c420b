//! Bytes that a request holds on the heap, counted from what is in it.
//!
//! The published types keep their fields to themselves, so they are walked as they are written
//! out: a sequence is a `Vec`, whose room is the sum of its elements as they lie in memory, and an
//! element is as large as its fields together. Room that a `Vec` has beyond its elements, and what
//! the allocator rounds up, are not seen; a test compares with the allocator's own counters.

use serde::ser::{
    self, Impossible, Serialize, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// Bytes of a `Vec` or a `String` itself.
const VEC_BYTES: usize = size_of::<Vec<u8>>();

/// Bytes of heap behind a value of nothing but numbers, arrays, structures, enums and `Vec`s.
pub(super) fn heap_bytes(value: &impl Serialize) -> usize {
    let mut walk = Walk { heap: 0 };
    value.serialize(&mut walk).expect("a walk over plain data meets nothing that it refuses");
    walk.heap
}

/// Visits a value; what it gives for each is the bytes of the value itself, without its heap.
struct Walk {
    heap: usize,
}

/// The elements of a `Vec`.
struct Elements<'a>(&'a mut Walk);

/// The fields of a structure, a tuple, an array or a variant.
struct Fields<'a> {
    walk: &'a mut Walk,
    bytes: usize,
    align: usize,
}

impl Fields<'_> {
    fn field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        self.bytes += size_of_val(value);
        self.align = align_of_val(value).max(self.align);
        value.serialize(&mut *self.walk)?;
        Ok(())
    }

    fn end(self) -> Result<usize, Refused> {
        // The compiler orders fields so that they leave no gap but at the end.
        Ok(self.bytes.next_multiple_of(self.align))
    }
}

impl SerializeSeq for Elements<'_> {
    type Ok = usize;
    type Error = Refused;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        // The value may be a reference to the element, so that its own size says nothing.
        let bytes = value.serialize(&mut *self.0)?;
        self.0.heap += bytes;
        Ok(())
    }

    fn end(self) -> Result<usize, Refused> {
        Ok(VEC_BYTES)
    }
}

/// The traits that differ in the name of the field alone.
macro_rules! fields {
    ($($kind:ident $method:ident($($name:ident: $type:ty)?);)*) => {
        $(
            impl $kind for Fields<'_> {
                type Ok = usize;
                type Error = Refused;

                fn $method<T: Serialize + ?Sized>(
                    &mut self,
                    $($name: $type,)?
                    value: &T,
                ) -> Result<(), Refused> {
                    self.field(value)
                }

                fn end(self) -> Result<usize, Refused> {
                    Fields::end(self)
                }
            }
        )*
    };
}

fields! {
    SerializeTuple serialize_element();
    SerializeTupleStruct serialize_field();
    SerializeTupleVariant serialize_field();
    SerializeStruct serialize_field(_name: &'static str);
    SerializeStructVariant serialize_field(_name: &'static str);
}

/// Values that are all in themselves.
macro_rules! numbers {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(
            fn $method(self, _: $type) -> Result<usize, Refused> {
                Ok(size_of::<$type>())
            }
        )*
    };
}

impl<'a> Serializer for &'a mut Walk {
    type Ok = usize;
    type Error = Refused;
    type SerializeSeq = Elements<'a>;
    type SerializeTuple = Fields<'a>;
    type SerializeTupleStruct = Fields<'a>;
    type SerializeTupleVariant = Fields<'a>;
    type SerializeMap = Impossible<usize, Refused>;
    type SerializeStruct = Fields<'a>;
    type SerializeStructVariant = Fields<'a>;

    numbers! {
        serialize_bool: bool, serialize_char: char,
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_f32: f32, serialize_f64: f64,
    }

    fn serialize_str(self, text: &str) -> Result<usize, Refused> {
        self.serialize_bytes(text.as_bytes())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<usize, Refused> {
        self.heap += bytes.len();
        Ok(VEC_BYTES)
    }

    fn serialize_none(self) -> Result<usize, Refused> {
        Ok(0)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<usize, Refused> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<usize, Refused> {
        Ok(0)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<usize, Refused> {
        Ok(0)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
    ) -> Result<usize, Refused> {
        Ok(1)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<usize, Refused> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<usize, Refused> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Elements<'a>, Refused> {
        Ok(Elements(self))
    }

    fn serialize_tuple(self, _: usize) -> Result<Fields<'a>, Refused> {
        Ok(Fields { walk: self, bytes: 0, align: 1 })
    }

    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Fields<'a>, Refused> {
        self.serialize_tuple(len)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        len: usize,
    ) -> Result<Fields<'a>, Refused> {
        self.serialize_tuple(len)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Refused> {
        Err(Refused)
    }

    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Fields<'a>, Refused> {
        self.serialize_tuple(len)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        len: usize,
    ) -> Result<Fields<'a>, Refused> {
        self.serialize_tuple(len)
    }
}

/// A map: how large its table is cannot be seen from outside.
#[derive(Debug)]
struct Refused;

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a map")
    }
}

impl std::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Serialize)]
    struct Path {
        hashes: Vec<[u8; 32]>,
        index: u32,
        leaf: Leaf,
    }

    #[derive(serde::Serialize)]
    enum Leaf {
        None,
        One([u8; 32]),
        Many { all: Vec<u64> },
    }

    #[test]
    fn the_elements_of_vectors_are_counted_as_they_lie_in_memory() {
        let path = |leaf| Path { hashes: vec![[1; 32]; 7], index: 3, leaf };
        assert_eq!(heap_bytes(&7u64), 0);
        assert_eq!(heap_bytes(&vec![1u8; 5]), 5);
        assert_eq!(heap_bytes(&vec![1u16; 5]), 10);
        assert_eq!(heap_bytes(&path(Leaf::None)), 7 * 32);
        assert_eq!(heap_bytes(&path(Leaf::Many { all: vec![1; 3] })), 7 * 32 + 24);
        let paths = vec![path(Leaf::One([0; 32])), path(Leaf::None)];
        assert_eq!(heap_bytes(&paths), 2 * (size_of::<Path>() + 7 * 32));
        let pairs = vec![(1u64, path(Leaf::None)), (2, path(Leaf::None))];
        assert_eq!(heap_bytes(&pairs), 2 * (size_of::<(u64, Path)>() + 7 * 32));
        assert_eq!(heap_bytes(&vec![vec![1u8; 5], Vec::new()]), 2 * 24 + 5);
    }
}
