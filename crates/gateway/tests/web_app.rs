//! Checks which web app is embedded. `make test` builds the real one and passes it in `BOWLINE_WEB_DIST`.

use bowline_gateway::WebApp;

#[test]
fn r54_the_given_web_app_is_embedded() {
    let given = option_env!("BOWLINE_WEB_DIST").is_some_and(|given| !given.is_empty());
    assert_eq!(WebApp::embedded() == WebApp::Given, given, "the {} app is embedded", WebApp::embedded().as_str());
}
