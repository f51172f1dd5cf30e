//! Which web app is inside. `make test` builds the real one and names it, and then this asserts it.

use bowline_gateway::WebApp;

#[test]
fn r54_the_app_that_the_build_was_given_is_inside() {
    let given = option_env!("BOWLINE_WEB_DIST").is_some_and(|given| !given.is_empty());
    assert_eq!(WebApp::inside() == WebApp::Given, given, "{} is inside", WebApp::inside().as_str());
}
