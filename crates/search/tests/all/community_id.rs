//! Community ID against the values that its specification publishes.

use std::net::IpAddr;

use longtake_search::{CommunityId, Direction, Flow, Transport, community_id, protocol};

/// A packet, and what its flow is called.
type Published = (u8, &'static str, &'static str, Option<(u16, u16)>, &'static str, &'static str);

/// Protocol, source, destination, then ports or ICMP type and code, then the ids with seed 0 and seed 1: the baseline of
/// <https://github.com/corelight/community-id-spec>.
const BASELINE: &[Published] = &[
    (
        58,
        "fe80::200:86ff:fe05:80da",
        "fe80::260:97ff:fe07:69ea",
        Some((135, 0)),
        "dGHyGvjMfljg6Bppwm3bg0LO8TY=",
        "kHa1FhMYIT6Ym2Vm2AOtoOARDzY=",
    ),
    (
        58,
        "fe80::260:97ff:fe07:69ea",
        "fe80::200:86ff:fe05:80da",
        Some((136, 0)),
        "dGHyGvjMfljg6Bppwm3bg0LO8TY=",
        "kHa1FhMYIT6Ym2Vm2AOtoOARDzY=",
    ),
    (
        58,
        "fe80::260:97ff:fe07:69ea",
        "fe80::200:86ff:fe05:80da",
        Some((135, 0)),
        "zavyT/cezQr1fmImYCwYnMXbgck=",
        "2hSqmsDZ2kdcY9kbiUzOEBic0iM=",
    ),
    (
        58,
        "fe80::200:86ff:fe05:80da",
        "fe80::260:97ff:fe07:69ea",
        Some((136, 0)),
        "zavyT/cezQr1fmImYCwYnMXbgck=",
        "2hSqmsDZ2kdcY9kbiUzOEBic0iM=",
    ),
    (
        58,
        "3ffe:501:1800:2345::2",
        "3ffe:507:0:1:200:86ff:fe05:80da",
        Some((3, 0)),
        "2ObVBgIn28oZvibYZhZMBgh7WdQ=",
        "lVEtCZpYu84Xqaa++3lXFyuu2n4=",
    ),
    (
        58,
        "3ffe:501:410:0:2c0:dfff:fe47:33e",
        "3ffe:507:0:1:200:86ff:fe05:80da",
        Some((1, 4)),
        "hLZd0XGWojozrvxqE0dWB1iM6R0=",
        "W8MHwXpWzpoSTD+cGcaJr4u0ys8=",
    ),
    (
        58,
        "3ffe:507:0:1:200:86ff:fe05:80da",
        "3ffe:501:0:1001::2",
        Some((128, 0)),
        "+TW+HtLHvV1xnGhV1lv7XoJrqQg=",
        "GfZxjAkDk2MkegpBYHV6tadtFXQ=",
    ),
    (
        58,
        "3ffe:501:0:1001::2",
        "3ffe:507:0:1:200:86ff:fe05:80da",
        Some((129, 0)),
        "+TW+HtLHvV1xnGhV1lv7XoJrqQg=",
        "GfZxjAkDk2MkegpBYHV6tadtFXQ=",
    ),
    (
        58,
        "fe80::200:86ff:fe05:80da",
        "ff02::2",
        Some((133, 0)),
        "hO+sN4H+MG5MY/8hIrXPqc4ZQz0=",
        "L7Ka0ZMYu+J3bL4ulW2PrqyXNo8=",
    ),
    (
        58,
        "fe80::260:97ff:fe07:69ea",
        "ff02::1",
        Some((134, 0)),
        "pkvHqCL88/tg1k4cPigmZXUtL00=",
        "K/ee5UCqAMAQXDorP5nSa2CGLjc=",
    ),
    (
        1,
        "192.168.0.89",
        "192.168.0.1",
        Some((8, 0)),
        "X0snYXpgwiv9TZtqg64sgzUn6Dk=",
        "03g6IloqVBdcZlPyX8r0hgoE7kA=",
    ),
    (
        1,
        "192.168.0.1",
        "192.168.0.89",
        Some((0, 0)),
        "X0snYXpgwiv9TZtqg64sgzUn6Dk=",
        "03g6IloqVBdcZlPyX8r0hgoE7kA=",
    ),
    (
        1,
        "10.0.0.1",
        "10.0.0.2",
        Some((11, 0)),
        "YHxtAirCG//0OzkcVAukqKQN9xM=",
        "XjUibYHaafLQ3pxQeiMI8g25q20=",
    ),
    (
        6,
        "2001:470:e5bf:dead:4957:2174:e82c:4887",
        "2607:f8b0:400c:c03::1a",
        Some((63943, 25)),
        "/qFaeAR+gFe1KYjMzVDsMv+wgU4=",
        "eJYTW6AOzFLlSUoESovMjnu7rMw=",
    ),
    (
        6,
        "2607:f8b0:400c:c03::1a",
        "2001:470:e5bf:dead:4957:2174:e82c:4887",
        Some((25, 63943)),
        "/qFaeAR+gFe1KYjMzVDsMv+wgU4=",
        "eJYTW6AOzFLlSUoESovMjnu7rMw=",
    ),
    (
        132,
        "192.168.170.8",
        "192.168.170.56",
        Some((7, 7)),
        "MP2EtRCAUIZvTw6MxJHLV7N7JDs=",
        "5w3ZRjeKBzqT3zsaEECDGjUbYeg=",
    ),
    (
        132,
        "192.168.170.56",
        "192.168.170.8",
        Some((7, 7)),
        "MP2EtRCAUIZvTw6MxJHLV7N7JDs=",
        "5w3ZRjeKBzqT3zsaEECDGjUbYeg=",
    ),
    (
        6,
        "128.232.110.120",
        "66.35.250.204",
        Some((34855, 80)),
        "LQU9qZlK+B5F3KDmev6m5PMibrg=",
        "3V71V58M3Ksw/yuFALMcW0LAHvc=",
    ),
    (
        6,
        "66.35.250.204",
        "128.232.110.120",
        Some((80, 34855)),
        "LQU9qZlK+B5F3KDmev6m5PMibrg=",
        "3V71V58M3Ksw/yuFALMcW0LAHvc=",
    ),
    (
        17,
        "192.168.1.52",
        "8.8.8.8",
        Some((54585, 53)),
        "d/FP5EW3wiY1vCndhwleRRKHowQ=",
        "Q9We8WO3piVF8yEQBNJF4uiSVrI=",
    ),
    (
        17,
        "8.8.8.8",
        "192.168.1.52",
        Some((53, 54585)),
        "d/FP5EW3wiY1vCndhwleRRKHowQ=",
        "Q9We8WO3piVF8yEQBNJF4uiSVrI=",
    ),
    (
        46,
        "10.1.12.1",
        "10.1.12.2",
        None,
        "KHlLkgoJW7ifUTyTSgyVfkFHzKw=",
        "rYir8gphR31noO9iDRQmF/BteEI=",
    ),
    (
        46,
        "10.1.12.2",
        "10.1.12.1",
        None,
        "KHlLkgoJW7ifUTyTSgyVfkFHzKw=",
        "rYir8gphR31noO9iDRQmF/BteEI=",
    ),
];

fn address(text: &str) -> IpAddr {
    text.parse().expect("it is an address")
}

#[test]
fn ids_are_those_of_the_specification() {
    for &(protocol, source, destination, ports, seed0, seed1) in BASELINE {
        let transport = match (protocol, ports) {
            (_, None) => Transport::Unknown,
            (protocol::ICMP | protocol::ICMPV6, Some((kind, code))) => {
                Transport::Icmp { kind: kind as u8, code: code as u8 }
            }
            (_, Some((source, destination))) => Transport::Ports { source, destination },
        };
        let (flow, direction) =
            Flow::new(address(source), address(destination), protocol, transport);
        for (seed, expected) in [(0, seed0), (1, seed1)] {
            let id = community_id(&flow, seed).expect("its ports are known");
            assert_eq!(id.to_string(), format!("1:{expected}"), "{source} {destination}");
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        let [(from, _), (to, _)] = flow.ends(direction);
        assert_eq!((from, to), (address(source), address(destination)));
    }
}

#[test]
fn both_directions_are_one_flow_and_a_message_without_an_answer_is_not() {
    let [a, b] = ["10.0.0.9", "10.0.0.1"].map(address);
    let ports = |source, destination| Transport::Ports { source, destination };
    let (there, forward) = Flow::new(a, b, 6, ports(1, 2));
    let (back, backward) = Flow::new(b, a, 6, ports(2, 1));
    assert_eq!((there, forward), (back, backward.reversed()));
    assert_eq!(forward, Direction::Backward);
    // The same addresses: the ports decide.
    let (one, other) = (Flow::new(a, a, 17, ports(9, 8)), Flow::new(a, a, 17, ports(8, 9)));
    assert_eq!((one.0, one.1), (other.0, other.1.reversed()));
    let unreachable = |from, to| Flow::new(from, to, 1, Transport::Icmp { kind: 3, code: 1 });
    assert_ne!(unreachable(a, b).0, unreachable(b, a).0);
    assert_eq!(unreachable(a, b).1, Direction::Forward);
}

#[test]
fn a_flow_whose_ports_are_not_known_has_no_id_and_other_texts_are_refused() {
    let [a, b] = ["10.0.0.9", "10.0.0.1"].map(address);
    let (flow, _) = Flow::new(a, b, 17, Transport::Unknown);
    assert_eq!(community_id(&flow, 0), None);
    for wrong in
        ["", "1:", "1:AAAA", "2:LQU9qZlK+B5F3KDmev6m5PMibrg=", "LQU9qZlK+B5F3KDmev6m5PMibrg="]
    {
        let error = wrong.parse::<CommunityId>().expect_err(wrong);
        assert!(error.to_string().contains("1:LQU9"), "{error}");
    }
}
