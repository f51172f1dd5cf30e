//! A bad network: a TCP proxy that cuts, half-closes, stalls, slows and resets connections, with a seed.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A small random number generator with a seed, so that a failure can be replayed.
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

/// What happens to a connection; a number is after how many bytes from the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    None,
    /// Closes both directions.
    Cut(u64),
    /// Closes the direction to the server.
    HalfClose(u64),
    /// Delivers nothing more, and does not close.
    Stall(u64),
    /// Resets the connection.
    Reset(u64),
    /// Delays each piece by this time.
    Delay(Duration),
    /// Limits both directions to this many bytes a second.
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

/// A proxy with faults in front of one server.
pub(crate) struct Network {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    wires: Arc<Mutex<Vec<TcpStream>>>,
    pub(crate) faults: Arc<AtomicU64>,
}

impl Network {
    /// Chooses a random fault for each connection.
    pub(crate) fn faulty(server: SocketAddr, seed: u64) -> Network {
        let mut random = Random::new(seed);
        Network::start(server, move || Fault::choose(&mut random))
    }

    /// Uses the same fault for every connection.
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
                    reset(&client); // like a machine without a gateway
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
        // A slow link has small buffers; the kernel's large ones would hide the effect.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(server.as_fd(), 16 << 10);
    }
    let (up_from, up_to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || pump(up_from, up_to, fault, false, &AtomicU64::new(0)));
    let faults = faults.clone();
    std::thread::spawn(move || pump(server, client, fault, true, &faults));
}

/// Copies bytes in one direction. Faults with a byte count apply to the direction from the server.
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
                // Until the client closes the connection.
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

/// Resets a connection, even if other threads hold copies of it.
fn reset(stream: &TcpStream) {
    let _ = rustix::net::sockopt::set_socket_linger(stream.as_fd(), Some(Duration::ZERO));
    let _ = rustix::net::connect_unspec(stream.as_fd());
}
