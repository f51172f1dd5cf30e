//! Parts of messages that a hostile agent could make very large: parsed only as far as they are kept. And parts that must
//! not decide whether a message is understood: whatever else is in their place counts as nothing.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The most entries that are kept of a list in a message; later ones are left out.
const MAX_LIST: usize = 256;

/// The first entries of a list. Anything but a list is an empty one.
#[derive(Debug)]
pub(super) struct List<T>(pub(super) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<List<T>, D::Error> {
        struct ListVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
            type Value = List<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<List<T>, A::Error> {
                let mut list = Vec::new();
                while list.len() < MAX_LIST {
                    match items.next_element()? {
                        Some(item) => list.push(item),
                        None => return Ok(List(list)),
                    }
                }
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(List(list))
            }
            fn visit_bool<E: Error>(self, _: bool) -> Result<List<T>, E> {
                Ok(List::default())
            }
            fn visit_i64<E: Error>(self, _: i64) -> Result<List<T>, E> {
                Ok(List::default())
            }
            fn visit_u64<E: Error>(self, _: u64) -> Result<List<T>, E> {
                Ok(List::default())
            }
            fn visit_f64<E: Error>(self, _: f64) -> Result<List<T>, E> {
                Ok(List::default())
            }
            fn visit_str<E: Error>(self, _: &str) -> Result<List<T>, E> {
                Ok(List::default())
            }
            fn visit_unit<E: Error>(self) -> Result<List<T>, E> {
                Ok(List::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<List<T>, A::Error> {
                while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(List::default())
            }
        }
        from.deserialize_any(ListVisitor(PhantomData))
    }
}

/// The first texts of a list. Entries that are no texts are left out.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "List<Loose>")]
pub(super) struct Texts(pub(super) Vec<String>);

impl From<List<Loose>> for Texts {
    fn from(list: List<Loose>) -> Texts {
        let text = |item| if let Loose::Text(text) = item { Some(text) } else { None };
        Texts(list.0.into_iter().filter_map(text).collect())
    }
}

/// A count; 0 if it is anything else.
pub(super) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Ok(if let Loose::Count(count) = Loose::deserialize(from)? { count } else { 0 })
}

/// A text; empty if it is anything else.
pub(super) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(if let Loose::Text(text) = Loose::deserialize(from)? { text } else { String::new() })
}

/// An object; the default if it is anything else.
pub(super) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    struct ObjectVisitor<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for ObjectVisitor<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_bool<E: Error>(self, _: bool) -> Result<T, E> {
            Ok(T::default())
        }
        fn visit_i64<E: Error>(self, _: i64) -> Result<T, E> {
            Ok(T::default())
        }
        fn visit_u64<E: Error>(self, _: u64) -> Result<T, E> {
            Ok(T::default())
        }
        fn visit_f64<E: Error>(self, _: f64) -> Result<T, E> {
            Ok(T::default())
        }
        fn visit_str<E: Error>(self, _: &str) -> Result<T, E> {
            Ok(T::default())
        }
        fn visit_unit<E: Error>(self) -> Result<T, E> {
            Ok(T::default())
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<T, A::Error> {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            Ok(T::default())
        }
        fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(fields))
        }
    }
    from.deserialize_any(ObjectVisitor(PhantomData))
}

/// A value whose kind is not certain.
#[derive(Debug)]
pub(super) enum Loose {
    Count(u64),
    Text(String),
    Other,
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Loose, D::Error> {
        struct LooseVisitor;
        impl<'de> Visitor<'de> for LooseVisitor {
            type Value = Loose;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_bool<E: Error>(self, _: bool) -> Result<Loose, E> {
                Ok(Loose::Other)
            }
            fn visit_i64<E: Error>(self, _: i64) -> Result<Loose, E> {
                Ok(Loose::Other)
            }
            fn visit_u64<E: Error>(self, count: u64) -> Result<Loose, E> {
                Ok(Loose::Count(count))
            }
            fn visit_f64<E: Error>(self, _: f64) -> Result<Loose, E> {
                Ok(Loose::Other)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Loose, E> {
                Ok(Loose::Text(text.to_owned()))
            }
            fn visit_unit<E: Error>(self) -> Result<Loose, E> {
                Ok(Loose::Other)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Loose, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Loose::Other)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Loose, A::Error> {
                while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Loose::Other)
            }
        }
        from.deserialize_any(LooseVisitor)
    }
}

/// The input of a tool that was too long to be parsed.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "IgnoredAny")]
pub(super) struct Unread;

impl From<IgnoredAny> for Unread {
    fn from(_: IgnoredAny) -> Unread {
        Unread
    }
}
