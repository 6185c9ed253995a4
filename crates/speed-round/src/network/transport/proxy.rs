//! The header of the PROXY protocol, version 2: the address of a proxy's client
//! (<https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>, section 2.2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The beginning of every header.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// The largest number of bytes after the fixed part of a header that is read.
const MAX_REST: usize = 2048;

/// The reason why a connection's header was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyError {
    #[error("expected a header of the PROXY protocol, version 2: {0}")]
    Io(#[from] std::io::Error),
    #[error("expected a header of the PROXY protocol, version 2, found {0:02x?}")]
    Other([u8; 16]),
    #[error("expected at most {MAX_REST} bytes in a header of the PROXY protocol, found {0}")]
    Long(usize),
}

/// Reads the header from the beginning of a connection. Returns the client's address, or `None` for a connection of the proxy itself or of
/// another family of addresses.
pub(crate) async fn client_address(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<IpAddr>, ProxyError> {
    let mut head = [0; 16];
    stream.read_exact(&mut head).await?;
    let [version_and_command, family, high, low] = [head[12], head[13], head[14], head[15]];
    if head[..12] != SIGNATURE || !matches!(version_and_command, 0x20 | 0x21) {
        return Err(ProxyError::Other(head));
    }
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > MAX_REST {
        return Err(ProxyError::Long(length));
    }
    let mut rest = [0; MAX_REST];
    let rest = &mut rest[..length];
    stream.read_exact(rest).await?;
    // The upper half is the family, the lower one the transport: TCP. The source's address comes first.
    let address = match (version_and_command, family) {
        (0x21, 0x11) if length >= 12 => rest.first_chunk::<4>().map(|source| IpAddr::V4(Ipv4Addr::from(*source))),
        (0x21, 0x21) if length >= 36 => rest.first_chunk::<16>().map(|source| IpAddr::V6(Ipv6Addr::from(*source))),
        (0x21, 0x11 | 0x21) => return Err(ProxyError::Other(head)),
        _ => None,
    };
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(command: u8, family: u8, length: u16, rest: &[u8]) -> Vec<u8> {
        [&SIGNATURE[..], &[command, family], &length.to_be_bytes(), rest].concat()
    }

    async fn read(bytes: &[u8]) -> (Result<Option<IpAddr>, String>, usize) {
        let mut left = bytes;
        let found = client_address(&mut left).await.map_err(|error| error.to_string());
        (found, left.len())
    }

    #[tokio::test]
    async fn addresses_are_read_and_what_follows_is_left() {
        let v4 = [203, 0, 113, 5, 192, 0, 2, 1, 0x1f, 0x90, 0x1e, 0xc6];
        let v6: Vec<u8> = (0..36).collect();
        let with_options = [&v4[..], &[4, 0, 2, 1, 2]].concat();
        let expected = Some("203.0.113.5".parse().expect("an address"));
        let all = |bytes: Vec<u8>| [bytes, b"TLS".to_vec()].concat();
        assert_eq!(read(&all(header(0x21, 0x11, 12, &v4))).await, (Ok(expected), 3));
        assert_eq!(read(&all(header(0x21, 0x11, 17, &with_options))).await, (Ok(expected), 3));
        let v6_address = Some("1:203:405:607:809:a0b:c0d:e0f".parse().expect("an address"));
        assert_eq!(read(&all(header(0x21, 0x21, 36, &v6))).await, (Ok(v6_address), 3));
        // The proxy's own check of the server, and an unknown family.
        assert_eq!(read(&all(header(0x20, 0, 0, &[]))).await, (Ok(None), 3));
        assert_eq!(read(&all(header(0x21, 0, 3, &[1, 2, 3]))).await, (Ok(None), 3));
    }

    #[tokio::test]
    async fn anything_else_is_refused() {
        let v4 = [203, 0, 113, 5, 192, 0, 2, 1, 0x1f, 0x90, 0x1e, 0xc6];
        let mut other = header(0x21, 0x11, 12, &v4);
        other[3] ^= 1;
        let refused = [
            b"PROXY TCP4 203.0.113.5 192.0.2.1 8080 7878\r\n".to_vec(),
            other,
            header(0x11, 0x11, 12, &v4),
            header(0x22, 0x11, 12, &v4),
            header(0x21, 0x11, 11, &v4),
            header(0x21, 0x21, 12, &v4),
            header(0x21, 0x11, 12, &v4[..11]),
            header(0x21, 0x11, u16::MAX, &[0; 70_000]),
            Vec::new(),
        ];
        for bytes in refused {
            let found = read(&bytes).await.0;
            assert!(found.as_ref().is_err_and(|error| error.contains("the PROXY protocol")), "{bytes:02x?}: {found:?}");
        }
    }
}
