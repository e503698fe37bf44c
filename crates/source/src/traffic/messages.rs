//! What flows say where a protocol can be recognised: names in DNS, HTTP and TLS.

use base::Random;

use super::headers::Address;

const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;

/// The name of the server with this rank, in a domain reserved for examples (RFC 2606).
fn name(rank: u32) -> [u8; 22] {
    let mut name = *b"site-00000.example.net";
    let mut left = rank;
    for digit in name[5..10].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    name
}

/// A query for the address of a server (RFC 1035).
pub(super) fn dns_query(message: &mut Vec<u8>, id: u16, rank: u32, v6: bool) {
    dns_question(message, (id, 0x0100), 0, rank, if v6 { TYPE_AAAA } else { TYPE_A });
}

/// Its answer.
pub(super) fn dns_answer(message: &mut Vec<u8>, id: u16, rank: u32, address: Address) {
    let (kind, bytes): (u16, &[u8]) = match &address {
        Address::V4(bytes) => (TYPE_A, bytes),
        Address::V6(bytes) => (TYPE_AAAA, bytes),
    };
    dns_question(message, (id, 0x8180), 1, rank, kind);
    // The name is that of the question, 12 bytes from the start.
    words(message, &[0xc00c, kind, 1, 0, 300, bytes.len() as u16]);
    message.extend_from_slice(bytes);
}

fn dns_question(message: &mut Vec<u8>, head: (u16, u16), answers: u16, rank: u32, kind: u16) {
    message.clear();
    words(message, &[head.0, head.1, 1, answers, 0, 0]);
    for label in name(rank).split(|&byte| byte == b'.') {
        message.push(label.len() as u8);
        message.extend_from_slice(label);
    }
    message.push(0);
    words(message, &[kind, 1]);
}

/// A request for a file of a server.
pub(super) fn http_request(message: &mut Vec<u8>, rank: u32) {
    message.clear();
    message.extend_from_slice(b"GET /file HTTP/1.1\r\nHost: ");
    message.extend_from_slice(&name(rank));
    message.extend_from_slice(b"\r\nAccept: */*\r\n\r\n");
}

/// The start of its answer, whose body ends with the connection.
pub(super) fn http_response(message: &mut Vec<u8>) {
    message.clear();
    message.extend_from_slice(b"HTTP/1.1 200 OK\r\nConnection: close\r\n");
    message.extend_from_slice(b"Content-Type: application/octet-stream\r\n\r\n");
}

/// A ClientHello with a server name (RFC 8446, RFC 6066).
pub(super) fn client_hello(message: &mut Vec<u8>, rank: u32, key: u64) {
    message.clear();
    let mut random = Random::new(key);
    message.extend_from_slice(&[0x16, 3, 1]);
    block(message, |record| {
        handshake(record, 1, |hello| {
            hello.extend_from_slice(&[3, 3]);
            bytes(hello, 32, &mut random);
            hello.push(32);
            bytes(hello, 32, &mut random);
            words(hello, &[6, 0x1301, 0x1302, 0xc02f]);
            hello.extend_from_slice(&[1, 0]);
            block(hello, |extensions| {
                let name = name(rank);
                let length = name.len() as u16;
                words(extensions, &[0, length + 5, length + 3]);
                extensions.push(0);
                words(extensions, &[length]);
                extensions.extend_from_slice(&name);
                // Groups, signatures, and versions 1.3 and 1.2.
                words(extensions, &[10, 4, 2, 0x001d]);
                words(extensions, &[13, 6, 4, 0x0403, 0x0804]);
                words(extensions, &[43, 5]);
                extensions.push(4);
                words(extensions, &[0x0304, 0x0303]);
                words(extensions, &[51, 38, 36, 0x001d, 32]);
                bytes(extensions, 32, &mut random);
            });
        });
    });
}

/// The ServerHello to it.
pub(super) fn server_hello(message: &mut Vec<u8>, key: u64) {
    message.clear();
    let mut random = Random::new(!key);
    message.extend_from_slice(&[0x16, 3, 3]);
    block(message, |record| {
        handshake(record, 2, |hello| {
            hello.extend_from_slice(&[3, 3]);
            bytes(hello, 32, &mut random);
            hello.push(32);
            // The session is the client's: its random number comes first.
            let mut session = Random::new(key);
            bytes(&mut Vec::new(), 32, &mut session);
            bytes(hello, 32, &mut session);
            words(hello, &[0x1301]);
            hello.push(0);
            block(hello, |extensions| {
                words(extensions, &[43, 2, 0x0304]);
                words(extensions, &[51, 36, 0x001d, 32]);
                bytes(extensions, 32, &mut random);
            });
        });
    });
}

/// The head of a record of application data that fills `length` bytes, with the first byte of its data.
pub(super) const fn application_data(length: u16) -> [u8; 6] {
    let [high, low] = (length - 5).to_be_bytes();
    [0x17, 3, 3, high, low, 0xa5]
}

fn handshake(message: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    // The length has three bytes, of which the highest is 0.
    message.extend_from_slice(&[kind, 0]);
    block(message, body);
}

/// A length of 16 bits, and what has it.
fn block(message: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let at = message.len();
    words(message, &[0]);
    body(message);
    let length = (message.len() - at - 2) as u16;
    message[at..at + 2].copy_from_slice(&length.to_be_bytes());
}

fn words(message: &mut Vec<u8>, words: &[u16]) {
    for word in words {
        message.extend_from_slice(&word.to_be_bytes());
    }
}

fn bytes(message: &mut Vec<u8>, count: usize, random: &mut Random) {
    for _ in 0..count / 8 {
        message.extend_from_slice(&random.bits().to_le_bytes());
    }
}
