//! Names of browsers for people, made of their `User-Agent`.

/// What a browser calls itself, and what people call it. The first that occurs counts: most also name others.
const BROWSERS: [(&str, &str); 9] = [
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("FxiOS", "Firefox"),
    ("Firefox", "Firefox"),
    ("CriOS", "Chrome"),
    ("Chromium", "Chromium"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
];

/// The same for devices. Android calls itself Linux, too, and an iPhone mentions Mac OS X.
const DEVICES: [(&str, &str); 8] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Macintosh", "Mac"),
    ("Mac OS X", "Mac"),
    ("Linux", "Linux"),
];

/// A name such as `Safari on iPhone`. A `User-Agent` that names nothing known is its own name.
pub(super) fn browser_name(user_agent: &str) -> String {
    let find = |names: &[(&str, &'static str)]| {
        names.iter().find(|(own, _)| user_agent.contains(own)).map(|(_, usual)| *usual)
    };
    match (find(&BROWSERS), find(&DEVICES)) {
        (Some(browser), Some(device)) => format!("{browser} on {device}"),
        (Some(browser), None) => browser.to_owned(),
        (None, _) => user_agent.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_and_devices_are_recognised() {
        let cases = [
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
                "Chrome on Linux",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1",
                "Safari on iPhone",
            ),
            (
                "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36",
                "Chrome on Android",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0",
                "Edge on Windows",
            ),
            ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:144.0) Gecko/20100101 Firefox/144.0", "Firefox on Mac"),
            ("curl/8.14.1", "curl/8.14.1"),
        ];
        for (user_agent, name) in cases {
            assert_eq!(browser_name(user_agent), name);
        }
    }
}
