//! A bad network: a TCP proxy whose connections are cut, half-closed, stalled, slowed and reset, by a seed.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A small generator, so that a failing seed replays.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// What happens to a connection once so many bytes have come from the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// Both ways are closed.
    Cut(u64),
    /// What the client sends no longer arrives, and the server is told so.
    HalfClose(u64),
    /// Nothing arrives any more, and nobody is told.
    Stall(u64),
    /// The connection is reset.
    Reset(u64),
    /// Each piece comes this much later.
    Delay(Duration),
    /// At most so many bytes a second, both ways.
    Slow(u64),
}

impl Fault {
    fn choose(random: &mut Random) -> Fault {
        let after = random.below(200_000);
        match random.below(10) {
            0 | 1 => Fault::Cut(after),
            2 => Fault::HalfClose(after),
            3 => Fault::Stall(after),
            4 => Fault::Reset(after),
            5 => Fault::Delay(Duration::from_millis(1 + random.below(10))),
            6 => Fault::Slow(100_000),
            _ => Fault::None,
        }
    }
}

/// The bad network before one server.
pub(crate) struct Network {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    wires: Arc<Mutex<Vec<TcpStream>>>,
    pub(crate) faults: Arc<AtomicU64>,
}

impl Network {
    /// Random faults, by the seed, until [`Network::mend`].
    pub(crate) fn faulty(server: SocketAddr, seed: u64) -> Network {
        let mut random = Random::new(seed);
        Network::start(server, move || Fault::choose(&mut random))
    }

    /// The same fault for every connection.
    pub(crate) fn with(server: SocketAddr, fault: Fault) -> Network {
        Network::start(server, move || fault)
    }

    fn start(server: SocketAddr, mut choose: impl FnMut() -> Fault + Send + 'static) -> Network {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let network = Network {
            address: listener.local_addr().unwrap(),
            stop: Arc::default(),
            wires: Arc::default(),
            faults: Arc::default(),
        };
        let (stop, wires, faults) = (network.stop.clone(), network.wires.clone(), network.faults.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let fault = choose();
                let Ok(server) = TcpStream::connect(server) else {
                    reset(&client); // as a machine without a gateway would
                    continue;
                };
                let mut all = wires.lock().unwrap();
                all.retain(|wire| wire.peer_addr().is_ok());
                all.extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
                drop(all);
                carry(client, server, fault, &faults);
            }
        });
        network
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        for wire in self.wires.lock().unwrap().drain(..) {
            let _ = wire.shutdown(Shutdown::Both);
        }
    }
}

fn carry(client: TcpStream, server: TcpStream, fault: Fault, faults: &Arc<AtomicU64>) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    if let Fault::Slow(_) = fault {
        // A slow link has no deep buffers; without this, the kernel's would hide it.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(server.as_fd(), 16 << 10);
    }
    let (up_from, up_to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || pump(up_from, up_to, fault, false, &AtomicU64::new(0)));
    let faults = faults.clone();
    std::thread::spawn(move || pump(server, client, fault, true, &faults));
}

/// Carries bytes one way. Faults that wait for a count happen on the way down.
fn pump(mut from: TcpStream, mut to: TcpStream, fault: Fault, down: bool, faults: &AtomicU64) {
    let mut piece = [0; 4096];
    let mut carried = 0;
    while let Ok(n @ 1..) = from.read(&mut piece) {
        carried += n as u64;
        match fault {
            Fault::Cut(after) if down && carried > after => break,
            Fault::Reset(after) if down && carried > after => {
                faults.fetch_add(1, Ordering::SeqCst);
                return reset(&to);
            }
            Fault::HalfClose(after) if down && carried > after => {
                let _ = from.shutdown(Shutdown::Write);
            }
            Fault::Stall(after) if down && carried > after => {
                faults.fetch_add(1, Ordering::SeqCst);
                // Until the client gives up on it, and closes.
                while let Ok(1..) = to.read(&mut piece) {}
                break;
            }
            Fault::Delay(time) => std::thread::sleep(time),
            Fault::Slow(rate) => std::thread::sleep(Duration::from_secs_f64(n as f64 / rate as f64)),
            _ => {}
        }
        if to.write_all(&piece[..n]).is_err() {
            break;
        }
    }
    if down && fault != Fault::None {
        faults.fetch_add(1, Ordering::SeqCst);
    }
    let _ = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
}

/// Ends a connection without a goodbye, whoever else holds it.
fn reset(stream: &TcpStream) {
    let _ = rustix::net::sockopt::set_socket_linger(stream.as_fd(), Some(Duration::ZERO));
    let _ = rustix::net::connect_unspec(stream.as_fd());
}
