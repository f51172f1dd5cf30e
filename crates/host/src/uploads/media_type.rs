//! The types of files that can be uploaded, told by their content alone: a name or a header may say anything.

/// The type of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType {
    Png,
    Jpeg,
    Gif,
    Webp,
    Pdf,
    /// UTF-8 without control characters, except those that texts have.
    Text,
}

impl MediaType {
    /// How many bytes [`MediaType::of_beginning`] needs.
    pub const BEGINNING: usize = 12;

    /// The type of a whole content; `None` if it is not accepted.
    pub fn of(content: &[u8]) -> Option<MediaType> {
        MediaType::of_beginning(content).or_else(|| is_text(content).then_some(MediaType::Text))
    }

    /// The type that the first bytes tell. Texts have none.
    pub fn of_beginning(content: &[u8]) -> Option<MediaType> {
        match content {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(MediaType::Png),
            [0xff, 0xd8, 0xff, ..] => Some(MediaType::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(MediaType::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(MediaType::Webp),
            [b'%', b'P', b'D', b'F', b'-', ..] => Some(MediaType::Pdf),
            _ => None,
        }
    }

    /// Its name in MIME.
    pub fn name(self) -> &'static str {
        match self {
            MediaType::Png => "image/png",
            MediaType::Jpeg => "image/jpeg",
            MediaType::Gif => "image/gif",
            MediaType::Webp => "image/webp",
            MediaType::Pdf => "application/pdf",
            MediaType::Text => "text/plain",
        }
    }

    pub fn is_image(self) -> bool {
        matches!(self, MediaType::Png | MediaType::Jpeg | MediaType::Gif | MediaType::Webp)
    }
}

fn is_text(content: &[u8]) -> bool {
    let is_odd = |char: char| char.is_control() && !matches!(char, '\t' | '\n' | '\r' | '\x0c' | '\x1b');
    std::str::from_utf8(content).is_ok_and(|text| !text.contains(is_odd))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r52_the_type_is_told_by_the_content_alone() {
        let cases: [(&[u8], Option<MediaType>); 26] = [
            (b"\x89PNG\r\n\x1a\n....", Some(MediaType::Png)),
            (b"\x89PNG\n\x1a\n....", None),
            (b"\xff\xd8\xff\xe0..JFIF", Some(MediaType::Jpeg)),
            (b"\xff\xd8", None),
            (b"GIF87a", Some(MediaType::Gif)),
            (b"GIF89a=1;alert(1)//", Some(MediaType::Gif)),
            (b"GIF88a", Some(MediaType::Text)),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Some(MediaType::Webp)),
            (b"RIFF\x10\0\0\0WAVEfmt ", None),
            (b"RIFF\x10\0\0\0WEB", None),
            (b"%PDF-1.7\n<html>", Some(MediaType::Pdf)),
            (b"%PDF", Some(MediaType::Text)),
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>", Some(MediaType::Text)),
            (b"<!doctype html><script>1</script>", Some(MediaType::Text)),
            ("Grüße, \u{1f600}\t\r\n\x0c\x1b[1m".as_bytes(), Some(MediaType::Text)),
            (b"\xef\xbb\xbfwith a mark", Some(MediaType::Text)),
            (b"Gr\xfc\xdfe", None),
            (b"text\0", None),
            (b"text\x08", None),
            (b"text\x7f", None),
            ("text\u{80}".as_bytes(), None),
            ("text\u{9b}1m\u{9f}".as_bytes(), None),
            ("text\u{a0}\u{ad}".as_bytes(), Some(MediaType::Text)),
            (b"\x7fELF\x02\x01\x01", None),
            (b"PK\x03\x04", None),
            (b"\xff\xfeh\0i\0", None),
        ];
        for (content, expected) in cases {
            assert_eq!(MediaType::of(content), expected, "{:?}", String::from_utf8_lossy(content));
        }
    }
}
