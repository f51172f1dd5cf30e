//! Draws login links as QR codes.

use std::net::IpAddr;

use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use url::{Host, Url};

/// Draws `link` for terminals with a dark background. `None` for a link to a loopback address, which a phone cannot
/// open.
pub(crate) fn draw(link: &str) -> anyhow::Result<Option<String>> {
    if is_loopback(&Url::parse(link)?) {
        return Ok(None);
    }
    let code = QrCode::with_error_correction_level(link, qrcode::EcLevel::L)?;
    Ok(Some(code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build()))
}

fn is_loopback(link: &Url) -> bool {
    match link.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::from(ip).to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r50_a_qr_code_is_drawn_only_if_a_phone_can_open_the_link() {
        for (link, drawn) in [
            ("https://box.example/term/#login=abc", true),
            ("http://192.168.1.7:7433/#login=abc", true),
            ("http://[fd00::1]:7433/#login=abc", true),
            ("http://127.0.0.1:7433/#login=abc", false),
            ("http://[::1]:7433/#login=abc", false),
            ("http://localhost:8000/#login=abc", false),
        ] {
            assert_eq!(draw(link).unwrap().is_some(), drawn, "{link}");
        }
    }
}
