//! Plays the transcript of a [`Position`].

use bowline_proto::follow::Position;
use serde_json::{Value, from_value, json};

pub(crate) fn play(config: &Value, steps: &[Value]) -> Vec<Value> {
    let cursor = config.get("cursor").map(|cursor| from_value(cursor.clone()).unwrap());
    let mut position = Position::new(cursor);
    steps.iter().map(|step| apply(&mut position, &step["do"])).collect()
}

fn apply(position: &mut Position, action: &Value) -> Value {
    let (verb, argument) = action.as_object().unwrap().iter().next().unwrap();
    let field = |name: &str| argument[name].clone();
    let result = match verb.as_str() {
        "verdict" => {
            let (verdict, epoch) = (from_value(field("verdict")).unwrap(), from_value(field("epoch")).unwrap());
            position.handle_verdict(verdict, &epoch, field("offset").as_u64().unwrap())
        }
        "record" => position.handle_record(&from_value(argument.clone()).unwrap()),
        other => panic!("no such step: {other}"),
    };
    let mut then = json!({"cursor": position.cursor()});
    if let Err(reason) = result {
        then["error"] = json!(reason);
    }
    then
}
