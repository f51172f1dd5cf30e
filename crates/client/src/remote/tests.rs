//! Tests against a scripted gateway.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bowline_proto::close::{CloseClass, ConnectionEnd, PermanentFailure, classify};
use bowline_proto::frame::{Binary, Frame, MAX_PAYLOAD};
use bowline_proto::message::ClientMessage;
use bowline_proto::problem::Code;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use tungstenite::handshake::server::{Request, Response};
use tungstenite::protocol::CloseFrame;
use tungstenite::{Message, WebSocket};

use super::api::{ApiError, ApiRequest, MAX_RESPONSE};
use super::gateway::Gateway;
use super::trust::TrustedRoots;
use super::{Address, RemoteDialer};
use crate::transport::{Dialer, Transport};

/// Longer than any wait should take, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);
const TOKEN: &str = "bwl_secret";

/// Runs a server for one connection on a thread. Returns the gateway to dial, which has a path prefix.
fn serve(server: impl FnOnce(TcpStream) + Send + 'static) -> (Gateway, JoinHandle<()>) {
    let (address, thread) = listen("http", server);
    (Gateway::new(address, TOKEN).unwrap(), thread)
}

fn listen(scheme: &str, server: impl FnOnce(TcpStream) + Send + 'static) -> (Address, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("{scheme}://localhost:{}/under", listener.local_addr().unwrap().port());
    let thread = std::thread::spawn(move || server(listener.accept().unwrap().0));
    (url.parse().unwrap(), thread)
}

/// Responds to one request with these bytes.
fn respond(response: &str) -> impl FnOnce(TcpStream) + Send + 'static {
    let response = response.to_owned();
    move |mut stream| {
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
            request.push(byte[0]);
        }
        stream.write_all(response.as_bytes()).unwrap();
    }
}

/// Accepts the upgrade as the gateway does, and checks the request.
#[expect(clippy::result_large_err, reason = "the signature is the library's")]
fn accept<S: Read + Write>(stream: S) -> WebSocket<S> {
    let check = |request: &Request, mut response: Response| {
        assert_eq!(request.uri().path(), "/under/v1/sessions/aaaaaaaaaaaa/attach");
        assert_eq!(request.headers()["Authorization"], format!("Bearer {TOKEN}"));
        assert!(request.headers().get("Origin").is_none(), "only browsers send it");
        let protocol = request.headers()["Sec-WebSocket-Protocol"].clone();
        assert_eq!(protocol, "bowline.v1");
        response.headers_mut().insert("Sec-WebSocket-Protocol", protocol);
        Ok(response)
    };
    tungstenite::accept_hdr(stream, check).unwrap_or_else(|_| panic!("the upgrade failed"))
}

fn dial(gateway: &Gateway) -> Box<dyn Transport> {
    RemoteDialer::new(gateway.clone(), &"aaaaaaaaaaaa".parse().unwrap()).dial(false).unwrap()
}

/// The frames of a connection, and how it ended.
struct Transcript {
    frames: Vec<String>,
    closed: ConnectionEnd,
    refusal: Option<String>,
}

/// Reads as the viewer does until the connection ends, or until `done`.
fn read(transport: &mut dyn Transport, done: impl Fn(&[String], &dyn Transport) -> bool) -> Option<Transcript> {
    let deadline = Instant::now() + TIMEOUT;
    let mut frames = Vec::new();
    while !done(&frames, transport) {
        assert!(Instant::now() < deadline, "timed out after {frames:?}");
        let flags = PollFlags::IN | if transport.wants_write() { PollFlags::OUT } else { PollFlags::empty() };
        let _ = poll(&mut [PollFd::new(&transport.fd(), flags)], Some(&Timespec { tv_sec: 0, tv_nsec: 20_000_000 }));
        let got = transport.receive(&mut |frame| frames.push(describe(frame)));
        if let Err(closed) = got.and_then(|()| transport.flush()) {
            return Some(Transcript { frames, closed, refusal: transport.refusal().map(str::to_owned) });
        }
    }
    None
}

fn describe(frame: Frame<'_>) -> String {
    match frame {
        Frame::Text(text) => text.to_owned(),
        Frame::Binary(bytes) => format!("{} bytes", bytes.len()),
    }
}

fn read_to_end(gateway: &Gateway) -> Transcript {
    read(&mut *dial(gateway), |_, _| false).unwrap()
}

#[test]
fn r1_a_refused_upgrade_reports_its_status_its_origin_and_when_to_retry() {
    let refusals = [
        (
            "404 Not Found\r\nBowline-Code: unknown_session\r\nContent-Length: 22\r\n\r\n{\"detail\":\"not there\"}",
            404,
            true,
            None,
        ),
        ("404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, false, None),
        ("401 Unauthorized\r\nBowline-Code: not_authenticated\r\nContent-Length: 0\r\n\r\n", 401, true, None),
        ("429 Too Many\r\nBowline-Code: too_many\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", 429, true, Some(7)),
        ("302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n", 302, false, None),
        ("502 Bad Gateway\r\nContent-Length: 5\r\n\r\n<html", 502, false, None),
    ];
    for (text, status, from_gateway, after) in refusals {
        let (gateway, thread) = serve(respond(&format!("HTTP/1.1 {text}")));
        let ended = read_to_end(&gateway);
        assert_eq!(
            ended.closed,
            ConnectionEnd::Refused { status, from_gateway, retry_after: after.map(Duration::from_secs) }
        );
        assert_eq!(ended.refusal.as_deref(), (status == 404 && from_gateway).then_some("not there"));
        let permanent = matches!(classify(&ended.closed), CloseClass::Permanent(PermanentFailure::Unknown));
        assert_eq!(permanent, status == 404 && from_gateway, "{text}");
        thread.join().unwrap();
    }
}

#[test]
fn frames_go_both_ways_and_leaving_closes_with_1000() {
    let (gateway, thread) = serve(|stream| {
        let mut socket = accept(stream);
        assert_eq!(socket.read().unwrap(), Message::text(r#"{"type":"repaint"}"#));
        let mut input = Vec::new();
        Binary::Input(7, b"keys").encode(&mut input);
        assert_eq!(socket.read().unwrap(), Message::binary(input));
        socket.send(Message::text("{}")).unwrap();
        socket.send(Message::binary(vec![2; MAX_PAYLOAD])).unwrap();
        let Message::Close(Some(frame)) = socket.read().unwrap() else { panic!("no close") };
        assert_eq!(u16::from(frame.code), 1000);
        while socket.read().is_ok() {}
    });
    let mut transport = dial(&gateway);
    assert!(read(&mut *transport, |_, transport| transport.is_open()).is_none());
    transport.send(&ClientMessage::Repaint);
    transport.send_input(7, b"keys");
    transport.flush().unwrap();
    let whole = format!("{MAX_PAYLOAD} bytes");
    assert!(read(&mut *transport, |frames, _| frames == ["{}", &whole]).is_none());
    transport.send(&ClientMessage::Leave);
    transport.flush().unwrap();
    read(&mut *transport, |_, _| false).unwrap();
    thread.join().unwrap();
}

#[test]
fn close_codes_arrive_with_their_reason_after_earlier_messages() {
    for (code, reason) in [(4401, "revoked"), (4429, "retry_after=3"), (1001, ""), (1000, "")] {
        let (gateway, thread) = serve(move |stream| {
            let mut socket = accept(stream);
            socket.send(Message::text("last message")).unwrap();
            socket.close(Some(CloseFrame { code: code.into(), reason: reason.into() })).unwrap();
            while socket.read().is_ok() {}
        });
        let ended = read_to_end(&gateway);
        assert_eq!(ended.frames, ["last message"]);
        assert_eq!(ended.closed, ConnectionEnd::Code { code, reason: reason.to_owned(), done: false });
        thread.join().unwrap();
    }
    let (gateway, thread) = serve(|stream| {
        let mut socket = accept(stream);
        socket.close(None).unwrap();
        while socket.read().is_ok() {}
    });
    assert_eq!(read_to_end(&gateway).closed, ConnectionEnd::Code { code: 1005, reason: String::new(), done: false });
    thread.join().unwrap();
}

#[test]
fn r9_a_cut_inside_a_frame_yields_the_whole_frames_before_it_and_no_more() {
    for frame in [&b"\x81\x05whole\x82\x7e\x01\x00half"[..], b"\x81\x05whole\x82", b"\x81\x05whole"] {
        let (gateway, thread) = serve(move |stream| {
            let mut socket = accept(stream);
            socket.get_mut().write_all(frame).unwrap();
        });
        let ended = read_to_end(&gateway);
        assert_eq!((ended.frames, ended.closed), (vec!["whole".to_owned()], ConnectionEnd::Failed));
        thread.join().unwrap();
    }
}

#[test]
fn r52_a_message_over_the_limit_ends_the_connection() {
    let (gateway, thread) = serve(|stream| {
        let mut socket = accept(stream);
        let _ = socket.send(Message::binary(vec![1; MAX_PAYLOAD + 1]));
        while socket.read().is_ok() {}
    });
    let ended = read_to_end(&gateway);
    assert_eq!((ended.frames.len(), ended.closed), (0, ConnectionEnd::Failed));
    thread.join().unwrap();
}

#[test]
fn a_server_that_never_answers_does_not_block_the_viewer() {
    let (gateway, thread) = serve(|mut stream| while stream.read(&mut [0; 4096]).is_ok_and(|n| n > 0) {});
    let mut transport = dial(&gateway);
    for _ in 0..3 {
        assert_eq!(transport.receive(&mut |_| panic!("unexpected frame")), Ok(()));
        assert!(!transport.is_open() && !transport.wants_write() && !transport.has_room());
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&transport.fd(), PollFlags::IN)], Some(&now)), Ok(0));
    }
    drop(transport);
    drop(thread); // ends at the dial's deadline
}

#[test]
fn r50_tls_requires_a_certificate_that_the_machine_trusts() {
    for trusted in [true, false] {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        let (address, thread) = listen("https", move |tcp| {
            let mut stream = StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), tcp);
            if !trusted {
                assert!(
                    stream.read(&mut [0; 64]).is_err(),
                    "nothing, least of all the token, is sent to an untrusted server"
                );
                return;
            }
            let mut socket = accept(stream);
            for _ in 0..20 {
                socket.send(Message::binary(vec![1; 100_000])).unwrap();
            }
            assert_eq!(socket.read().unwrap(), Message::text(r#"{"type":"repaint"}"#));
            while socket.read().is_ok() {}
        });
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let root = if trusted { made.cert } else { other.cert };
        let trust = TrustedRoots { roots: vec![root.der().clone()] };
        let gateway = Gateway::trusting(address, TOKEN, Some(&trust)).unwrap();
        let mut transport = dial(&gateway);
        let ended = read(&mut *transport, |frames, _| frames.len() == 20);
        if let Some(ended) = ended {
            assert_eq!((trusted, ended.closed), (false, ConnectionEnd::Failed));
        } else {
            transport.send(&ClientMessage::Repaint);
            transport.flush().unwrap();
        }
        drop(transport);
        thread.join().unwrap();
    }
}

#[test]
fn a_gateways_refusal_a_proxys_page_and_no_response_are_different_errors() {
    let get =
        |gateway: &Gateway| gateway.send(&ApiRequest::get("/v1/sessions")).and_then(|answer| answer.json::<Value>());
    let (gateway, thread) = serve(respond("HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"sessions\":[]}"));
    assert_eq!(get(&gateway).unwrap()["sessions"], Value::Array(Vec::new()));
    thread.join().unwrap();
    let refusal = "HTTP/1.1 404 Not Found\r\nBowline-Code: unknown_session\r\nContent-Length: 22\r\n\r\n{\"detail\":\"not there\"}";
    let (gateway, thread) = serve(respond(refusal));
    let error = get(&gateway).unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), (Some(Code::UnknownSession), "not there"));
    thread.join().unwrap();
    for page in
        ["HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<htm"]
    {
        let (gateway, thread) = serve(respond(page));
        let error = get(&gateway).unwrap_err();
        assert!(matches!(error, ApiError::NotBowline { .. }), "{error}");
        assert!(error.to_string().contains("is not Bowline"), "{error}");
        thread.join().unwrap();
    }
    let (gateway, thread) = serve(drop);
    assert!(matches!(get(&gateway), Err(ApiError::Unreachable { .. })));
    thread.join().unwrap();
    let refused = get(&gateway).unwrap_err();
    assert!(refused.is_transient() && refused.to_string().contains("refused"), "{refused}");
}

#[test]
fn r49_a_token_is_never_printed_and_cannot_inject_headers() {
    let gateway = |token: &str| Gateway::new("http://localhost:1".parse().unwrap(), token);
    assert_eq!(format!("{:?}", gateway(TOKEN).unwrap()), "Gateway(http://localhost:1)");
    for bad in ["", "two words", "line\r\nHost: evil", "ü"] {
        assert!(gateway(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_response_that_is_too_long_is_an_error_and_not_cut_off() {
    for (length, fits) in [(MAX_RESPONSE, true), (MAX_RESPONSE + 1, false)] {
        let (gateway, thread) = serve(move |mut stream| {
            respond(&format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"))(stream.try_clone().unwrap());
            // The client may hang up once it has read enough.
            let _ = std::io::copy(&mut std::io::repeat(b'x').take(length), &mut stream);
        });
        let body = gateway.send(&ApiRequest::get("/v1/sessions/w/screen")).unwrap().bytes();
        thread.join().unwrap();
        match body {
            Ok(body) => assert!(fits && body.len() as u64 == length),
            Err(error) => assert!(!fits && error.to_string().ends_with("is longer than 64 MiB"), "{error}"),
        }
    }
}

#[test]
fn r37_a_command_gets_the_whole_response_whatever_its_status() {
    use bowline_proto::post::Response as CommandResponse;

    use crate::post::Deliver;
    let deliver = |response: &str| {
        let (gateway, thread) = serve(respond(response));
        let result = gateway.deliver("k3v9x0q2m7aa", "c1", &Value::Null, TIMEOUT);
        thread.join().unwrap();
        result
    };
    let full =
        "HTTP/1.1 429 Too Many Requests\r\nBowline-Code: too_many\r\nRetry-After: 5\r\nContent-Length: 2\r\n\r\n{}";
    let expected = CommandResponse::Http {
        status: 429,
        code: Some("too_many".to_owned()),
        retry_after: Some(Duration::from_secs(5)),
        body: "{}".to_owned(),
    };
    assert_eq!(deliver(full), expected);
    let proxy = CommandResponse::Http { status: 502, code: None, retry_after: None, body: String::new() };
    assert_eq!(deliver("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"), proxy);
    for cut in ["", "HTTP/1.1 202 Accepted\r\nContent-Length: 9\r\n\r\n{"] {
        assert!(matches!(deliver(cut), CommandResponse::Missing { .. }), "{cut:?}");
    }
}

#[test]
fn a_command_for_an_id_that_is_not_a_session_id_is_refused_without_a_request() {
    use bowline_proto::post::Response as CommandResponse;

    use crate::post::Deliver;
    let gateway = Gateway::new("http://localhost:1".parse().unwrap(), TOKEN).unwrap();
    for session in ["", "..", "a/../../v1/tokens", "k3v9x0q2m7aa?x=1", "k3v9x0q2m7aa#", "é"] {
        let response = gateway.deliver(session, "c1", &Value::Null, TIMEOUT);
        let is_refused =
            matches!(&response, CommandResponse::Http { code: Some(code), .. } if code == "unknown_session");
        assert!(is_refused, "{session}: {response:?}");
    }
}

#[test]
fn a_command_without_a_response_ends_in_time() {
    use bowline_proto::post::Response as CommandResponse;

    use crate::post::Deliver;
    let (gateway, thread) = serve(|mut stream| {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    });
    let response = gateway.deliver("k3v9x0q2m7aa", "c1", &Value::Null, Duration::from_millis(200));
    assert!(matches!(response, CommandResponse::Missing { why } if why.contains("timed out")));
    drop(gateway);
    thread.join().unwrap();
}
