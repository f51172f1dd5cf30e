//! A list of which only the first entries are kept, so that a hostile one costs little memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};

/// The first `MAX` entries of a list. `null` is an empty list.
#[derive(Debug)]
pub(super) struct BoundedList<T, const MAX: usize>(Vec<T>);

impl<T, const MAX: usize> BoundedList<T, MAX> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_iter(self) -> std::vec::IntoIter<T> {
        self.0.into_iter()
    }
}

impl<T, const MAX: usize> Default for BoundedList<T, MAX> {
    fn default() -> Self {
        BoundedList(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for BoundedList<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ListVisitor<T, const MAX: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for ListVisitor<T, MAX> {
            type Value = BoundedList<T, MAX>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(BoundedList::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut kept = Vec::new();
                while kept.len() < MAX {
                    match list.next_element()? {
                        Some(entry) => kept.push(entry),
                        None => return Ok(BoundedList(kept)),
                    }
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(BoundedList(kept))
            }
        }
        from.deserialize_any(ListVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r52_only_the_first_entries_of_a_list_are_kept() {
        let read = |text: &str| serde_json::from_str::<BoundedList<u32, 2>>(text).unwrap().0;
        assert_eq!(read("[1,2,3,{\"x\":[]},5]"), [1, 2]);
        assert_eq!(read("[1]"), [1]);
        assert!(read("null").is_empty());
        assert!(serde_json::from_str::<BoundedList<u32, 2>>("{}").is_err());
    }
}
