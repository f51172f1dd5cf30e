//! Random requests generated from the gateway's OpenAPI description: none gets a 5xx, and each refusal has a known code.

use serde_json::{Value, json};

use super::faults::Random;
use super::gateway::World;
use super::http;

/// The number of requests for each operation.
const ROUNDS: u64 = 25;
/// Strings that are often handled badly.
const NASTY: [&str; 14] = [
    "",
    " ",
    "\0",
    "..",
    "../../etc/passwd",
    "%2e%2e",
    "-1",
    "18446744073709551616",
    "1e999",
    "NaN",
    "é\u{202e}",
    "\u{1b}]0;x\u{7}",
    "'; DROP",
    "true",
];

#[test]
fn r52_no_generated_request_causes_an_internal_error() {
    let seed = std::env::var("BOWLINE_API_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    eprintln!("BOWLINE_API_SEED={seed}");
    let world = World::with(&[], "[gateway.limits]\nlogin_rate = 100000\nattach_rate = 100000\n");
    let mut generator = Generator {
        random: Random::new(seed),
        sessions: Vec::new(),
        spec: world.call("GET", "/openapi.json", &Value::Null).json(),
    };
    let paths = generator.spec["paths"].as_object().expect("paths").clone();
    let codes = generator.spec["components"]["schemas"]["Code"]["enum"].clone();
    let codes: Vec<&str> = codes.as_array().expect("codes").iter().filter_map(Value::as_str).collect();
    let neighbour = world.shell("exec cat");
    let mut tried = 0;
    for round in 0..ROUNDS {
        generator.sessions = vec![world.shell("exec cat"), world.shell("exit 3"), "no-such-one".to_owned()];
        for (path, operations) in &paths {
            for (method, operation) in operations.as_object().expect("operations") {
                if operation["responses"].is_null() {
                    continue; // not an operation, but parameters of the path
                }
                let request = generator.request(&world, path, method, operation);
                check(&world, &request, &codes, &format!("BOWLINE_API_SEED={seed}, round {round}"));
                tried += 1;
            }
        }
        clean_up(&world, &neighbour);
    }
    assert!(tried > 10 * ROUNDS, "the description has too few operations: {tried} requests");
    let health = http::request(world.address, "GET", "/healthz", &[], b"").unwrap();
    assert_eq!(health.status, 200);
    let session = world.call("GET", &format!("/v1/sessions/{neighbour}"), &Value::Null).json();
    assert_eq!((&session["state"], &session["name"]), (&json!("running"), &Value::Null));
}

#[derive(Debug)]
struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

#[track_caller]
fn check(world: &World, request: &Request, codes: &[&str], what: &str) {
    let headers: Vec<_> = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let answer = http::request(world.address, &request.method, &request.path, &headers, &request.body);
    let answer = answer.unwrap_or_else(|error| panic!("{what}: {error} for {request:?}"));
    let shown = || format!("{what}: {} {} for {request:?}", answer.status, answer.text());
    assert!(answer.status < 500, "{}", shown());
    if answer.status >= 400 {
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{}", shown());
        let code = answer.json()["code"].as_str().unwrap_or_default().to_owned();
        assert!(codes.contains(&code.as_str()) && answer.code() == code, "{}", shown());
    }
}

/// Ends the sessions that the requests created.
fn clean_up(world: &World, neighbour: &str) {
    for session in world.call("GET", "/v1/sessions", &Value::Null).json()["sessions"].as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        if id != neighbour {
            world.call("DELETE", &format!("/v1/sessions/{id}?grace=0"), &Value::Null);
        }
    }
}

/// Generates requests from the OpenAPI description.
struct Generator {
    random: Random,
    sessions: Vec<String>,
    spec: Value,
}

impl Generator {
    fn chance(&mut self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }

    fn one_of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.random.below(all.len() as u64) as usize]
    }

    fn request(&mut self, world: &World, path: &str, method: &str, operation: &Value) -> Request {
        let mut path = path.to_owned();
        let mut query = Vec::new();
        let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        if !self.chance(8) {
            headers.push(("Authorization".to_owned(), world.bearer()));
        }
        for parameter in operation["parameters"].as_array().cloned().unwrap_or_default() {
            let parameter = self.resolve(&parameter);
            let name = parameter["name"].as_str().expect("a name").to_owned();
            let value = self.value(&parameter["schema"], 0);
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            match parameter["in"].as_str() {
                Some("path") => {
                    let known = self.random.below(self.sessions.len() as u64) as usize;
                    let value = if self.chance(3) { value } else { self.sessions[known].clone() };
                    path = path.replace(&format!("{{{name}}}"), &escape(&value));
                }
                Some("query") if !self.chance(3) => query.push(format!("{name}={}", escape(&value))),
                Some("header") if value.bytes().all(|byte| (32..127).contains(&byte)) => headers.push((name, value)),
                _ => {}
            }
        }
        if self.chance(10) {
            query.push(format!("{}={}", escape(self.one_of(&NASTY)), escape(self.one_of(&NASTY))));
        }
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        let schema = operation["requestBody"]["content"]["application/json"]["schema"].clone();
        let body = match (schema.is_null(), self.random.below(10)) {
            (true, _) => Vec::new(),
            (_, 0) => self.one_of(&["", "{", "[]", "null", "\"\\ud800\"", "{\"a\":1}x"]).as_bytes().to_vec(),
            (_, 1) => self.value(&json!({}), 0).to_string().into_bytes(),
            _ => self.value(&schema, 0).to_string().into_bytes(),
        };
        Request { method: method.to_uppercase(), path, headers, body }
    }

    /// Resolves a `$ref`.
    fn resolve(&self, schema: &Value) -> Value {
        match schema["$ref"].as_str() {
            Some(reference) => {
                let found = self.spec.pointer(reference.trim_start_matches('#'));
                self.resolve(found.unwrap_or_else(|| panic!("the reference {reference} does not resolve")))
            }
            None => schema.clone(),
        }
    }

    /// A random value. It mostly fits the schema.
    fn value(&mut self, schema: &Value, depth: u32) -> Value {
        let schema = self.resolve(schema);
        if self.chance(12) {
            return match self.random.below(6) {
                0 => Value::Null,
                1 => json!(-1),
                2 => json!(u64::MAX),
                3 => json!([[]]),
                4 => json!(1.5e300),
                _ => json!(self.one_of(&NASTY)),
            };
        }
        for choice in ["oneOf", "anyOf"] {
            if let Some(all) = schema[choice].as_array().filter(|all| !all.is_empty()) {
                let chosen = all[self.random.below(all.len() as u64) as usize].clone();
                return self.value(&chosen, depth);
            }
        }
        if let Some(all) = schema["allOf"].as_array() {
            let mut whole = json!({});
            for part in all.clone() {
                if let Value::Object(part) = self.value(&part, depth) {
                    part.into_iter().for_each(|(name, value)| whole[name] = value);
                }
            }
            return whole;
        }
        if let Some(all) = schema["enum"].as_array().filter(|all| !all.is_empty()) {
            return all[self.random.below(all.len() as u64) as usize].clone();
        }
        let kinds = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Value::String(kind) => vec![kind.clone()],
            _ => vec!["string".to_owned(), "integer".to_owned(), "object".to_owned()],
        };
        match kinds[self.random.below(kinds.len() as u64) as usize].as_str() {
            "object" if depth < 5 => self.object(&schema, depth),
            "array" if depth < 5 => {
                let items = schema["items"].clone();
                let length = self.random.below(4);
                (0..length).map(|_| self.value(&items, depth + 1)).collect()
            }
            "integer" | "number" => json!(match self.random.below(4) {
                0 => 0,
                1 => self.random.below(1 << 40),
                2 => u64::from(u32::MAX) + self.random.below(3),
                _ => self.random.below(200),
            }),
            "boolean" => json!(self.chance(2)),
            "null" => Value::Null,
            _ => json!(self.text()),
        }
    }

    fn object(&mut self, schema: &Value, depth: u32) -> Value {
        let mut object = json!({});
        for (name, property) in schema["properties"].as_object().cloned().unwrap_or_default() {
            let required = schema["required"].as_array().is_some_and(|all| all.iter().any(|one| *one == *name));
            if self.chance(if required { 15 } else { 2 }) != required {
                object[&name] = self.value(&property, depth + 1);
            }
        }
        object
    }

    fn text(&mut self) -> String {
        match self.random.below(6) {
            0 => self.one_of(&NASTY).to_owned(),
            1 => "x".repeat(self.random.below(3000) as usize),
            2 => "/".to_owned(),
            3 => "cat".to_owned(),
            4 => format!("name-{}", self.random.below(5)),
            _ => self.one_of(&["read", "write", "text", "fail", "terminal", "0", "k3v9x0q2m7aa"]).to_owned(),
        }
    }
}

/// Percent-encodes everything except letters, digits and `-_.`.
fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") }).collect()
}
