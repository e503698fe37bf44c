//! What holds for all requests and answers: the name that the service is called by, and headers for browsers.
//!
//! A page of another site can have its own name resolve to a loopback address (DNS rebinding), and would then be of the same origin
//! as the service. Therefore a service on a loopback address answers only requests for `localhost` or a loopback address, which no
//! other site can own. A service on another address may have any name, because a page of another site has no token, and a browser that
//! has a client certificate shows it to nobody whose own certificate does not have the name of the page.

use std::net::{IpAddr, SocketAddr};

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::Response;

/// Headers of every answer.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; base-uri 'none'"),
    ),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// Gives every answer its headers.
pub async fn guard(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    // The dashboard's page may do more than other answers.
    let of_page = response.headers_mut().remove(header::CONTENT_SECURITY_POLICY);
    response.headers_mut().extend(HEADERS);
    if let Some(policy) = of_page {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// Whether one Host header, and the address of the request if that names a host, name this machine's loopback interface.
pub fn is_called_rightly(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (host, others) = (hosts.next(), hosts.next());
    let host = host.and_then(|host| host.to_str().ok()).is_some_and(is_loopback);
    host && others.is_none() && uri.authority().is_none_or(|to| is_loopback(to.as_str()))
}

/// Whether it is `localhost` or a loopback address, with or without a port.
fn is_loopback(host: &str) -> bool {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return address.ip().is_loopback();
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    if let Ok(address) = bare.unwrap_or(host).parse::<IpAddr>() {
        return address.is_loopback();
    }
    let (name, port) = host.split_once(':').unwrap_or((host, "0"));
    name.eq_ignore_ascii_case("localhost") && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_are_answered() {
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:7878", "[::1]:80", "[::1]"]
        {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "example.org",
            "localhost.example.org",
            "127.0.0.1.example.org:80",
            "10.0.0.1:7878",
            "[::2]:80",
            "localhost:",
            "localhost:x",
            "user@localhost",
            "0.0.0.0",
            "127.0.0.1:99999",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
