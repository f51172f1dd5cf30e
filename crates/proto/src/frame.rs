//! Frames on the unix socket, and the binary payloads that every transport carries.
//!
//! A frame is the length of its payload as a big-endian u32, a kind byte (0 text, 1 binary), and the payload.
//! A binary payload is a kind byte, an offset as a big-endian u64 (for output and input only), and the data.

use crate::Offset;

/// The longest payload of a frame, in bytes; a longer one is a protocol error.
pub const MAX_PAYLOAD: usize = 1 << 20;
/// The bytes of a frame's length and kind.
pub const HEADER: usize = 5;
/// The bytes of the kind and offset of an output or input payload.
pub const BINARY_HEADER: usize = 9;

const TEXT: u8 = 0;
const BINARY: u8 = 1;

/// One message, as a transport delivers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// JSON.
    Text(&'a str),
    /// Decoded by [`Binary::decode`].
    Binary(&'a [u8]),
}

/// A binary payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary<'a> {
    /// 0x01, to the client: output, and the offset of its first byte.
    Output(Offset, &'a [u8]),
    /// 0x02, to the client: part of a snapshot.
    Snapshot(&'a [u8]),
    /// 0x03, to the server: input, and its offset in the input of this client.
    Input(Offset, &'a [u8]),
}

/// Why bytes are not a valid frame or payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length is over [`MAX_PAYLOAD`].
    #[error("a frame of {0} bytes is over the limit of {MAX_PAYLOAD}")]
    TooLong(usize),
    #[error("unknown frame kind {0}")]
    Kind(u8),
    #[error("a text frame is not UTF-8")]
    NotUtf8,
    /// A binary payload is empty, cut off, or of an unknown kind.
    #[error("a binary payload is malformed")]
    Binary,
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// True for text, false for binary.
    pub text: bool,
    /// The length of the payload in bytes, at most [`MAX_PAYLOAD`].
    pub len: usize,
}

impl Header {
    /// Decodes the header at the start of `buf`; `None` if more bytes are needed.
    pub fn decode(buf: &[u8]) -> Result<Option<Header>, FrameError> {
        let Some([len @ .., kind]) = buf.first_chunk::<HEADER>() else { return Ok(None) };
        let len = u32::from_be_bytes(*len) as usize;
        match *kind {
            _ if len > MAX_PAYLOAD => Err(FrameError::TooLong(len)),
            TEXT => Ok(Some(Header { text: true, len })),
            BINARY => Ok(Some(Header { text: false, len })),
            kind => Err(FrameError::Kind(kind)),
        }
    }
}

impl<'a> Frame<'a> {
    /// Decodes the frame at the start of `buf`, and returns it with its total length; `None` if more bytes are needed.
    pub fn decode(buf: &'a [u8]) -> Result<Option<(Frame<'a>, usize)>, FrameError> {
        let Some(Header { text, len }) = Header::decode(buf)? else { return Ok(None) };
        let Some(payload) = buf.get(HEADER..HEADER + len) else { return Ok(None) };
        let frame = match text {
            true => Frame::Text(std::str::from_utf8(payload).map_err(|_| FrameError::NotUtf8)?),
            false => Frame::Binary(payload),
        };
        Ok(Some((frame, HEADER + len)))
    }
}

impl<'a> Binary<'a> {
    pub fn decode(payload: &'a [u8]) -> Result<Binary<'a>, FrameError> {
        let (kind, rest) = payload.split_first().ok_or(FrameError::Binary)?;
        if *kind == 2 {
            return Ok(Binary::Snapshot(rest));
        }
        let (offset, bytes) = rest.split_first_chunk::<8>().ok_or(FrameError::Binary)?;
        let offset = u64::from_be_bytes(*offset);
        match kind {
            1 => Ok(Binary::Output(offset, bytes)),
            3 => Ok(Binary::Input(offset, bytes)),
            _ => Err(FrameError::Binary),
        }
    }

    /// Appends the payload to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Binary::Output(offset, bytes) => encode_at(out, 1, *offset, bytes),
            Binary::Input(offset, bytes) => encode_at(out, 3, *offset, bytes),
            Binary::Snapshot(bytes) => {
                out.push(2);
                out.extend_from_slice(bytes);
            }
        }
    }
}

fn encode_at(out: &mut Vec<u8>, kind: u8, offset: Offset, bytes: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&offset.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Appends a text frame.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put_header(out, TEXT, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// Appends a binary frame.
pub fn put_binary(out: &mut Vec<u8>, binary: &Binary<'_>) {
    let start = out.len();
    put_header(out, BINARY, 0);
    binary.encode(out);
    let len = (out.len() - start - HEADER) as u32;
    out[start..start + 4].copy_from_slice(&len.to_be_bytes());
}

/// Appends a frame with a payload that is already encoded.
pub fn put_payload(out: &mut Vec<u8>, text: bool, payload: &[u8]) {
    put_header(out, if text { TEXT } else { BINARY }, payload.len());
    out.extend_from_slice(payload);
}

/// Appends the headers for `len` bytes of output; the caller appends the bytes.
pub fn put_output_header(out: &mut Vec<u8>, from: Offset, len: usize) {
    put_header(out, BINARY, BINARY_HEADER + len);
    out.push(1);
    out.extend_from_slice(&from.to_be_bytes());
}

/// Appends a frame whose text is in several parts.
pub fn put_text_parts(out: &mut Vec<u8>, parts: &[&str]) {
    put_header(out, TEXT, parts.iter().map(|part| part.len()).sum());
    parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
}

fn put_header(out: &mut Vec<u8>, kind: u8, len: usize) {
    out.extend_from_slice(&(len as u32).to_be_bytes());
    out.push(kind);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_decode_wherever_the_stream_is_split() {
        let mut wire = Vec::new();
        put_text(&mut wire, r#"{"type":"bell"}"#);
        put_binary(&mut wire, &Binary::Output(258, b"hi"));
        put_output_header(&mut wire, 258, 2);
        wire.extend_from_slice(b"hi");
        for cut in 0..wire.len() {
            let (mut frames, mut buf, mut at) = (Vec::new(), wire[..cut].to_vec(), 0);
            for pass in 0..2 {
                while let Some((frame, used)) = Frame::decode(&buf[at..]).unwrap() {
                    frames.push(format!("{frame:?}"));
                    at += used;
                }
                if pass == 0 {
                    buf.extend_from_slice(&wire[cut..]);
                }
            }
            assert_eq!(frames.len(), 3, "cut at {cut}");
            assert_eq!(frames[1], frames[2]);
        }
    }

    #[test]
    fn r52_bad_frames_are_errors() {
        assert_eq!(Header::decode(&[0, 0, 1, 2, 1, 9]), Ok(Some(Header { text: false, len: 258 })));
        assert_eq!(Header::decode(&[0, 0, 1, 2]), Ok(None));
        assert_eq!(Frame::decode(&[0xff, 0, 0, 0, 0]), Err(FrameError::TooLong(0xff00_0000)));
        assert_eq!(Frame::decode(&[0, 0, 0, 1, 7, 0]), Err(FrameError::Kind(7)));
        assert_eq!(Frame::decode(&[0, 0, 0, 1, 0, 0xff]), Err(FrameError::NotUtf8));
        for bad in [&[][..], &[1], &[1, 0, 0], &[3, 0, 0, 0, 0, 0, 0, 0], &[9, 0, 0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(Binary::decode(bad), Err(FrameError::Binary), "{bad:?}");
        }
    }
}
