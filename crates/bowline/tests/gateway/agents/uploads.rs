//! Uploads, and prompts that attach them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::super::gateway::{World, signal};
use super::super::http::{self, Response};
use super::{assert_each_run_ends_once, until, world, world_with};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nnot much of an image";

impl World {
    fn download(&self, session: &str, id: &str) -> Response {
        self.call("GET", &format!("/v1/sessions/{session}/uploads/{id}"), &Value::Null)
    }

    /// Sends the head of an upload and then this body, as far as the gateway takes it. Returns the response.
    fn upload_raw(&self, session: &str, head: &str, body: &[u8]) -> Response {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let path = format!("/v1/sessions/{session}/uploads/a.txt");
        let (host, bearer) = (self.address, self.bearer());
        let start = format!(
            "PUT {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: {bearer}\r\nConnection: close\r\n{head}\r\n\r\n"
        );
        stream.write_all(start.as_bytes()).unwrap();
        // The gateway may refuse it, and close the connection, before it has all of it.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        http::parse(&answer).expect("a response")
    }
}

#[test]
fn r32_an_upload_is_attached_to_a_prompt_and_can_be_fetched() {
    let world = world_with(&[("FAKE_AGENT_LOG", "received")]);
    let id = world.agent();
    let stored = world.upload_as(&world.token, &id, "a%20photo%20%F0%9F%98%80.PNG", PNG);
    assert_eq!(stored.status, 201, "{}", stored.text());
    let reply = stored.json();
    assert_eq!(
        (&reply["name"], &reply["type"], &reply["bytes"]),
        (&json!("a photo \u{1f600}.PNG"), &json!("image/png"), &json!(PNG.len()))
    );
    let image = reply["id"].as_str().unwrap();
    assert!(image.ends_with("-a-photo.png"), "{image}");
    let again = world.upload_as(&world.token, &id, "a%20photo%20%F0%9F%98%80.PNG", PNG);
    assert_eq!((again.status, again.json()), (200, reply.clone()), "a repeat is the same upload");
    let notes = world.upload(&id, "notes.md", b"# Notes");
    let paper = world.upload(&id, "paper.pdf", b"%PDF-1.7");
    // An attachment that is named twice is attached once.
    let run = world.prompt_with(&id, "a", "echo-blocks", &[image, &notes, &paper, image]);
    assert_eq!(world.complete(&id, &run)["success"], true);
    let folder = world.session_dir(&id).join("uploads");
    let uri = |id: &str| format!("file://{}/{id}", folder.display());
    let base64 = PNG.len().div_ceil(3) * 4;
    let (text, link) = (uri(&notes), uri(&paper));
    let said =
        format!("text image:image/png:{base64} resource:text/plain:{text}:7 resource_link:application/pdf:{link}\n");
    assert_eq!(world.said(&id, &run), said);
    assert_eq!(world.events_of(&id, "prompt")[0]["attachments"], json!([image, notes, paper]));
    let repeated = json!({"type": "prompt", "text": "echo-blocks", "attachments": [image, notes, paper, image]});
    let repeated = world.command(&id, "a", &repeated);
    assert_eq!((repeated.status, &repeated.json()["status"]), (200, &json!("duplicate")));
    let other = world.command(&id, "a", &json!({"type": "prompt", "text": "echo-blocks", "attachments": [image]}));
    assert_eq!((other.status, other.code()), (409, "id_reused"));
    // A prompt may be nothing but an attachment.
    let alone = world.prompt_with(&id, "b", "", &[image]);
    assert_eq!(world.complete(&id, &alone)["success"], true);
    let received = std::fs::read_to_string(world.file("received")).unwrap();
    let last: Value = serde_json::from_str(received.lines().last().unwrap()).unwrap();
    assert_eq!(last["params"]["prompt"].as_array().unwrap().len(), 1, "no empty text: {last}");
}

#[test]
fn r49_a_fetched_upload_runs_nothing_in_a_browser() {
    let world = world();
    let id = world.agent();
    let reader = world.new_token("reader", "read");
    for (name, content, media_type, disposition) in [
        ("a.png", PNG, "image/png", "inline; filename=\"a.png\""),
        ("a.gif", b"GIF89a<script>".as_slice(), "image/gif", "inline; filename=\"a.gif\""),
        ("a.pdf", b"%PDF-1.7", "application/pdf", "attachment; filename=\"a.pdf\""),
        ("a.html", b"<script>1</script>", "text/plain; charset=utf-8", "attachment; filename=\"a.html.txt\""),
        ("a.svg", b"<svg onload='x()'/>", "text/plain; charset=utf-8", "attachment; filename=\"a.svg.txt\""),
    ] {
        let upload = world.upload(&id, name, content);
        let path = format!("/v1/sessions/{id}/uploads/{upload}");
        let fetched = world.call_as(&reader, "GET", &path, &Value::Null);
        assert_eq!((fetched.status, fetched.body.as_slice()), (200, content), "{name}");
        assert_eq!(fetched.header("content-type"), Some(media_type));
        assert_eq!(fetched.header("content-disposition"), Some(disposition));
        assert_eq!(fetched.header("x-content-type-options"), Some("nosniff"));
        let policy = fetched.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"), "{policy}");
    }
    for unknown in ["0123456789abcdef-a.png", "..%2Fmeta.json", "%2e%2e", ".lock", "a.png"] {
        let refused = world.download(&id, unknown);
        assert_eq!((refused.status, refused.code()), (404, "not_found"), "{unknown}");
    }
    let linked = "0123456789abcdef-link.txt";
    std::os::unix::fs::symlink("/etc/passwd", world.session_dir(&id).join("uploads").join(linked)).unwrap();
    assert_eq!(world.download(&id, linked).code(), "not_found", "a link is not followed");
    let refused = world.command(&id, "x", &json!({"type": "prompt", "text": "x", "attachments": [linked]}));
    assert_eq!((refused.status, refused.code()), (404, "not_found"));
    let headers = [("Authorization", world.bearer()), ("Origin", "http://evil.example".to_owned())];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let path = format!("/v1/sessions/{id}/uploads/a.png");
    let foreign = http::request(world.address, "PUT", &path, &headers, PNG).unwrap();
    assert_eq!((foreign.status, foreign.code()), (403, "bad_origin"));
}

#[test]
fn r52_what_cannot_be_uploaded_or_attached_is_refused() {
    let world = world();
    let id = world.agent();
    let (terminal, reader) = (world.shell("exec cat"), world.new_token("reader", "read"));
    let refusal = |session: &str, name: &str, content: &[u8]| {
        let refused = world.upload_as(&world.token, session, name, content);
        (refused.status, refused.code().to_owned())
    };
    let expect = |status: u16, code: &str| (status, code.to_owned());
    assert_eq!(refusal(&id, "a.png", b"\0\x01binary"), expect(415, "bad_type"));
    assert_eq!(refusal(&id, "a.txt", b"Gr\xfc\xdfe"), expect(415, "bad_type"));
    assert_eq!(refusal(&id, "a.png", b""), expect(400, "bad_request"));
    assert_eq!(refusal(&id, "a%2Fb.png", PNG), expect(400, "bad_request"));
    assert_eq!(refusal(&id, "a%0Ab.png", PNG), expect(400, "bad_request"));
    assert_eq!(refusal(&id, &"n".repeat(256), PNG), expect(400, "bad_request"));
    assert_eq!(refusal(&id, "%ff.png", PNG), expect(400, "bad_name"));
    assert_eq!(refusal(&terminal, "a.png", PNG), expect(400, "bad_request"));
    assert_eq!(refusal("nothing-like-it", "a.png", PNG), expect(404, "unknown_session"));
    assert_eq!(world.upload_as(&reader, &id, "a.png", PNG).status, 403);
    let declared = world.upload_raw(&id, "Content-Length: 10485761", b"");
    assert_eq!((declared.status, declared.code()), (413, "too_large"), "before anything of it was sent");
    let chunk = [b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"].concat();
    let undeclared = world.upload_raw(&id, "Transfer-Encoding: chunked", &chunk.repeat(161));
    assert_eq!((undeclared.status, undeclared.code()), (413, "too_large"));
    // A client that sends the whole of it first sees the refusal, and not a broken connection.
    let whole = vec![b'x'; 30 << 20];
    for (session, refused) in [(&id, expect(413, "too_large")), (&terminal, expect(400, "bad_request"))] {
        assert_eq!(refusal(session, "a.txt", &whole), refused);
    }
    assert!(!world.session_dir(&id).join("uploads").exists(), "nothing was stored");

    let largest = vec![b'x'; 10 << 20];
    let ids: Vec<String> =
        ["a", "b", "c"].iter().map(|name| world.upload(&id, &format!("{name}.txt"), &largest)).collect();
    let refuse = |attachments: Value| {
        let refused = world.command(&id, "x", &json!({"type": "prompt", "text": "x", "attachments": attachments}));
        (refused.status, refused.code().to_owned(), refused.text())
    };
    let (status, code, text) = refuse(json!(["0123456789abcdef-a.png"]));
    assert!(status == 404 && code == "not_found" && text.contains("0123456789abcdef-a.png"), "{status} {text}");
    assert_eq!(refuse(json!(["../meta.json"])).0, 404);
    assert_eq!(refuse(json!(ids)).0, 413, "30 MiB");
    let many: Vec<String> = (0..17).map(|n| format!("{n:016x}-a.txt")).collect();
    assert_eq!(refuse(json!(many)).0, 413);
    assert_eq!(refuse(json!("a")).0, 400);
    assert!(world.events_of(&id, "prompt").is_empty());

    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?keep=true"), &Value::Null).status, 204);
    let meta = world.session_dir(&id).join("meta.json");
    let mut changed: Value = serde_json::from_slice(&std::fs::read(&meta).unwrap()).unwrap();
    changed["host"] = json!("far-away");
    std::fs::write(&meta, changed.to_string()).unwrap();
    assert_eq!(refusal(&id, "a.png", PNG), expect(403, "not_allowed"), "a session of another machine");
    assert_eq!(world.download(&id, &ids[0]).body.len(), largest.len(), "whose files can be read");
}

/// Whatever dies between an upload and its prompt, the agent gets the file.
#[test]
fn r37_an_upload_survives_the_gateway_the_agent_and_the_session_process() {
    let mut world = world_with(&[("FAKE_AGENT_STATE", "conversations")]);
    let id = world.agent();
    let image = world.upload(&id, "shot.png", PNG);
    let expect = |world: &World, command: &str| {
        let run = world.prompt_with(&id, command, "echo-blocks", &[&image]);
        assert_eq!(world.complete(&id, &run)["success"], true);
        assert!(world.said(&id, &run).starts_with("text image:image/png:"), "{}", world.said(&id, &run));
    };
    world.kill_gateway();
    world.start_gateway();
    expect(&world, "a");
    // The agent dies. The next prompt, with its attachment, waits until it runs again.
    world.run_prompt(&id, "b", &["signal KILL"]);
    expect(&world, "c");
    signal(world.session_pid(&id), Signal::KILL);
    until("the session is lost", || world.describe(&id)["state"] == "lost");
    let more = world.upload(&id, "more.txt", b"uploaded to a lost session");
    assert_eq!(world.download(&id, &more).body, b"uploaded to a lost session");
    assert_eq!(world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({})).status, 200);
    expect(&world, "d");
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}?keep=true"), &Value::Null).status, 204);
    world.upload(&id, "last.txt", b"uploaded to an exited session");
    assert_eq!(world.call("POST", &format!("/v1/sessions/{id}/restart"), &json!({})).status, 200);
    expect(&world, "e");
    assert_each_run_ends_once(&world.journal(&id));
    assert_eq!(world.call("DELETE", &format!("/v1/sessions/{id}"), &Value::Null).status, 204);
    assert!(!world.session_dir(&id).exists(), "a forgotten session keeps no uploads");
    assert_eq!(world.upload_as(&world.token, &id, "late.txt", b"late").code(), "unknown_session");
}

#[test]
fn r34_an_attachment_that_is_gone_is_noticed_and_the_prompt_goes_without_it() {
    let world = world();
    let id = world.agent();
    let (working, go) = (world.file("working"), world.file("go"));
    world.prompt(&id, "a", &[&format!("touch {working}"), &format!("wait {go}")]);
    until("the first run is in the agent", || Path::new(&working).exists());
    let (kept, gone) = (world.upload(&id, "kept.png", PNG), world.upload(&id, "gone.txt", b"gone"));
    let run = world.prompt_with(&id, "b", "echo-blocks", &[&gone, &kept]);
    std::fs::remove_file(world.session_dir(&id).join("uploads").join(&gone)).unwrap();
    std::fs::write(&go, "").unwrap();
    assert_eq!(world.complete(&id, &run)["success"], true);
    assert!(world.said(&id, &run).starts_with("text image:image/png:"), "{}", world.said(&id, &run));
    assert!(!world.said(&id, &run).contains("resource"));
    let notices = world.events_of(&id, "notice");
    let is_meant = |notice: &Value| notice["level"] == "warning" && notice["text"].as_str().unwrap().contains(&gone);
    assert!(notices.iter().any(is_meant), "{notices:?}");
}

/// The agent prints while it is sent a prompt of 27 MB. It would wait for ever if that was not read before the prompt is
/// written.
#[test]
fn r52_a_long_prompt_and_a_talking_agent_do_not_wait_for_each_other() {
    let world = world();
    let id = world.agent();
    let images: Vec<String> = ["a.png", "b.png"]
        .iter()
        .map(|name| world.upload(&id, name, &[PNG, &vec![7; (10 << 20) - PNG.len()]].concat()))
        .collect();
    let images: Vec<&str> = images.iter().map(String::as_str).collect();
    for n in 0..3 {
        world.prompt(&id, &format!("a{n}"), &[&format!("late {}", "x".repeat(200_000))]);
        let run = world.prompt_with(&id, &format!("b{n}"), "echo-blocks", &images);
        assert_eq!(world.complete(&id, &run)["success"], true);
        // What the agent says late comes before it.
        let said = world.said(&id, &run).trim_start_matches('x').to_owned();
        assert_eq!(said, "text image:image/png:13981016 image:image/png:13981016\n");
    }
    assert_each_run_ends_once(&world.journal(&id));
    until("the session process gives the memory back", || {
        super::super::hostile::memory(world.session_pid(&id)) < 96 << 20
    });
}

#[test]
fn r42_a_prompt_that_the_agent_does_not_read_can_be_aborted() {
    let world = world();
    let id = world.agent();
    world.run_prompt(&id, "a", &["say ready"]);
    let image = world.upload(&id, "a.png", &[PNG, &vec![7; 5 << 20]].concat());
    let record: Value = serde_json::from_slice(&std::fs::read(world.session_dir(&id).join("agent")).unwrap()).unwrap();
    signal(record["pid"].as_u64().unwrap() as u32, Signal::STOP);
    let run = world.prompt_with(&id, "b", "say never", &[&image]);
    let has_started = || world.events_of(&id, "run_started").iter().any(|event| event["run"] == run.as_str());
    until("the agent was sent the prompt", has_started);
    world.abort(&id, "c", &run);
    assert_eq!(world.complete(&id, &run)["aborted"], true);
    let other = world.agent();
    assert_eq!(world.run_prompt(&other, "a", &["say hi"])["success"], true);
    assert_each_run_ends_once(&world.journal(&id));
}
