//! What filter expressions become.

use longtake_search::{Condition, condition_of};

fn of(expression: &str) -> String {
    condition_of(expression)
        .map_or_else(|word| format!("? {word}"), |condition| condition.to_string())
}

#[test]
fn expressions_become_conditions_on_keys() {
    let table = [
        ("", "anything"),
        ("host 10.1.2.3", "host 10.1.2.3"),
        ("src 10.1.2.3 && tcp", "host 10.1.2.3 and protocol TCP"),
        ("10.1.2.3 or 2001:db8::1", "host 10.1.2.3 or host 2001:db8::1"),
        ("port 80 or 443", "port 80 or port 443"),
        ("tcp dst port 443", "port 443 and protocol TCP"),
        ("src or dst port 443", "port 443"),
        ("udp and not port 53", "protocol UDP"),
        ("host 10.1.2.3 and tcp[13] & 2 != 0", "host 10.1.2.3"),
        ("host 10.1.2.3 and greater 100", "host 10.1.2.3"),
        ("(ip or ip6) and vlan 5 and host ::1", "VLAN 5 and host ::1"),
        ("mpls 16 and host 10.1.2.3", "MPLS label 16"),
        // Where the tag is not asked for, libpcap looks behind it all the same.
        ("vlan 5 or host ::1", "anything"),
        ("(udp or vlan 5) and host ::1", "protocol UDP or VLAN 5"),
        ("not vlan 5 and host ::1", "anything"),
        ("net 10.0.0.0/31", "host 10.0.0.0 or host 10.0.0.1"),
        ("net 10.0.0.0/8 and port 5", "port 5"),
        ("portrange 7-8", "port 7 or port 8"),
        ("portrange 1-1000", "anything"),
        // Octal to libpcap.
        ("port 010", "anything"),
        ("ip proto 021", "anything"),
        ("portrange 010-020", "anything"),
        ("net 10.1.2.0/030", "anything"),
        ("vlan 010", "? 010"),
        ("ip proto \\icmp", "protocol ICMP"),
        ("ip proto 51", "anything"),
        ("host www.example.org and port 80", "port 80"),
        // They bind alike, from left to right.
        ("port 1 or port 2 and port 3", "(port 1 or port 2) and port 3"),
        ("port 1 and port 2 or port 3", "(port 1 and port 2) or port 3"),
        // What changes the meaning of what follows is not guessed.
        ("geneve and host 10.1.2.3", "? geneve"),
        ("host 10.1.2.3 and geneve and host 10.1.2.4", "? geneve"),
        ("pppoes and host 10.1.2.3", "? pppoes"),
        ("ether host 1:2:3:4:5:6", "? ether"),
        ("port (80 or 443)", "? ("),
        ("host 10.1.2.3 and", "? the end of the expression"),
        ("(host 10.1.2.3", "? the end of the expression"),
    ];
    for (expression, condition) in table {
        assert_eq!(of(expression), condition, "{expression}");
    }
}

#[test]
fn two_hosts_and_two_ports_are_a_flow() {
    let text = of("host 10.0.0.1 and port 5000 and host 10.0.0.2 and port 53 and udp");
    let Some((flows, rest)) = text.split_once(") and ") else { panic!("{text}") };
    assert_eq!(flows.matches("flow 1:").count(), 2, "{text}");
    assert_eq!(rest, "host 10.0.0.1 and port 5000 and host 10.0.0.2 and port 53 and protocol UDP");
    assert!(!of("host 10.0.0.1 and port 53 and port 5000").contains("flow"));
    let six = condition_of("port 1 and port 2 and host ::1 and host ::2").unwrap();
    assert_eq!(six.keys().len(), 4 + 6);
}

#[test]
fn any_text_is_read_to_some_end() {
    let deep = "(".repeat(10_000);
    assert!(condition_of(&deep).is_err());
    assert!(condition_of(&"not ".repeat(10_000)).is_err());
    assert!(condition_of(&"port 1 or port 2 and ".repeat(100_000)).is_err());
    for text in [
        "ä",
        "host",
        "src",
        "!",
        "!!",
        "tcp[",
        "&&",
        "vlan x",
        "\\",
        "net /",
        "portrange -",
        "net 1.2.3.4.5",
    ] {
        // An error or a condition; libpcap judges what means something.
        let condition = condition_of(text);
        assert!(condition.is_err() || condition == Ok(Condition::Any), "{text}: {condition:?}");
    }
}
