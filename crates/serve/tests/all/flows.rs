//! Flows over HTTP are those that the library counts.

use longtake::array::{FlowOptions, Group, Order};
use longtake::{Selection, json};

use crate::harness::Recorded;

#[test]
fn flows_are_those_of_the_program() {
    let recorded = Recorded::traffic(3_000_000);
    let service = recorded.served();
    let all = FlowOptions { top: Some(100), ..FlowOptions::default() };
    let hosts = FlowOptions { group: Group::Hosts, order: Order::Packets, top: Some(3), ..all };
    let tcp = Selection {
        filter: "tcp".to_owned(),
        take: Some("last".to_owned()),
        ..Selection::default()
    };
    for (query, selection, options) in [
        ("", Selection::default(), all),
        ("?group=hosts&by=packets&top=3", Selection::default(), hosts),
        ("?filter=tcp&take=last", tcp, all),
    ] {
        let shown = service.json(&format!("/api/v1/arrays/radar/flows{query}"));
        assert_eq!(shown["completeness"]["complete"], true);
        let flows = recorded.open().flows(&selection, &options).expect("they can be counted");
        assert!(flows.ranking.total.packets > 100, "{query}");
        assert_eq!(shown, json::flows(&flows, true), "{query}");
    }
}

#[test]
fn a_span_that_ends_early_counts_less() {
    let recorded = Recorded::traffic(3_000_000);
    let service = recorded.served();
    let first = recorded.open().takes().expect("they can be read")[0].first_ns;
    let seconds = format!("{}.{:09}", first / 1_000_000_000, first % 1_000_000_000);
    let path = "/api/v1/arrays/radar/flows";
    let [all, one] = ["".to_owned(), format!("?until={seconds}")]
        .map(|query| service.json(&format!("{path}{query}"))["total"]["packets"].as_u64());
    assert!(one >= Some(1) && one < all, "{one:?} of {all:?}");
}

#[test]
fn wrong_parameters_are_named() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served();
    for (query, named) in [
        ("filter=nonsense", "nonsense"),
        ("since=yesterday", "since=yesterday"),
        ("since=2&until=1", "lies after"),
        ("group=colours", "group=colours"),
        ("by=beauty", "by=beauty"),
        ("top=10001", "10000"),
        ("top=-1", "top"),
        ("tpo=1", "tpo"),
        ("take=last&take=last", "take"),
    ] {
        let failure = service.failure(400, &format!("/api/v1/arrays/radar/flows?{query}"));
        assert!(failure["error"].as_str().expect("a text").contains(named), "{query}: {failure}");
    }
    service.failure(404, "/api/v1/arrays/radar/flows?take=zzz");
}
