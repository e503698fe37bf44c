//! The document that describes the addresses is true: each of its answers is given, with the fields that it names.

use std::collections::BTreeSet;
use std::fs;

use longtake_serve::Limits;
use serde_json::Value;

use crate::events::EventStream;
use crate::harness::{Recorded, Service};

/// In which state a service gives an answer.
#[derive(Clone, Copy)]
enum With {
    Array,
    /// As many requests read packets, and as many clients receive events, as may.
    Busy,
    /// The array's files are not there any more.
    Broken,
}

const LEDGER: &str = "/api/v1/arrays/{array}/takes/{take}/ledger";

/// Each address and status of the document, and a request that is answered so. `@` stands for a digit that two takes begin with.
const ANSWERS: [(&str, u16, With, &str); 26] = [
    ("/api/v1/openapi.json", 200, With::Array, "/api/v1/openapi.json"),
    ("/metrics", 200, With::Array, "/metrics"),
    ("/api/v1/events", 200, With::Array, "/api/v1/events"),
    ("/api/v1/events", 503, With::Busy, "/api/v1/events"),
    ("/api/v1/arrays", 200, With::Array, "/api/v1/arrays"),
    ("/api/v1/arrays/{array}", 200, With::Array, "/api/v1/arrays/radar"),
    ("/api/v1/arrays/{array}", 404, With::Array, "/api/v1/arrays/sonar"),
    ("/api/v1/arrays/{array}", 500, With::Broken, "/api/v1/arrays/radar"),
    ("/api/v1/arrays/{array}/takes", 200, With::Array, "/api/v1/arrays/radar/takes"),
    ("/api/v1/arrays/{array}/takes", 404, With::Array, "/api/v1/arrays/sonar/takes"),
    ("/api/v1/arrays/{array}/takes", 500, With::Broken, "/api/v1/arrays/radar/takes"),
    (LEDGER, 200, With::Array, "/api/v1/arrays/radar/takes/last/ledger"),
    (LEDGER, 400, With::Array, "/api/v1/arrays/radar/takes/@/ledger"),
    (LEDGER, 404, With::Array, "/api/v1/arrays/radar/takes/zzz/ledger"),
    (LEDGER, 500, With::Broken, "/api/v1/arrays/radar/takes/last/ledger"),
    ("/api/v1/arrays/{array}/flows", 200, With::Array, "/api/v1/arrays/radar/flows"),
    ("/api/v1/arrays/{array}/flows", 400, With::Array, "/api/v1/arrays/radar/flows?top=x"),
    ("/api/v1/arrays/{array}/flows", 404, With::Array, "/api/v1/arrays/sonar/flows"),
    ("/api/v1/arrays/{array}/flows", 500, With::Broken, "/api/v1/arrays/radar/flows"),
    ("/api/v1/arrays/{array}/flows", 503, With::Busy, "/api/v1/arrays/radar/flows"),
    ("/api/v1/arrays/{array}/packets", 200, With::Array, "/api/v1/arrays/radar/packets"),
    ("/api/v1/arrays/{array}/packets", 400, With::Array, "/api/v1/arrays/radar/packets?since=x"),
    ("/api/v1/arrays/{array}/packets", 404, With::Array, "/api/v1/arrays/sonar/packets"),
    ("/api/v1/arrays/{array}/packets", 500, With::Broken, "/api/v1/arrays/radar/packets"),
    ("/api/v1/arrays/{array}/packets", 503, With::Busy, "/api/v1/arrays/radar/packets"),
    (
        "/api/v1/arrays/{array}/packets",
        200,
        With::Array,
        "/api/v1/arrays/radar/packets?format=jsonl",
    ),
];

/// An array with two takes whose UUIDs begin with the same digit, and the digit.
fn recorded() -> (Recorded, char) {
    let recorded = Recorded::empty();
    let mut seen = BTreeSet::new();
    loop {
        recorded.record(100_000);
        let take = recorded.open().ledger("last").expect("it is there");
        let digit = take.id.uuid.to_string().chars().next().expect("it has digits");
        if !seen.insert(digit) {
            return (recorded, digit);
        }
    }
}

/// Follows a reference to a schema of the document.
fn resolved<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    match schema["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).expect("it refers to something"),
        None => schema,
    }
}

/// Fails unless an answer has the fields that its schema names, and no others.
pub fn has_form(document: &Value, schema: &Value, value: &Value, path: &str) {
    let schema = resolved(document, schema);
    if let Some(properties) = schema["properties"].as_object() {
        let fields = value.as_object().unwrap_or_else(|| panic!("{path}: {value}"));
        let names: Vec<&String> = fields.keys().collect();
        assert_eq!(names, properties.keys().collect::<Vec<_>>(), "{path}");
        for (name, schema) in properties {
            has_form(document, schema, &fields[name], &format!("{path}.{name}"));
        }
    } else if let Some(items) = value.as_array().filter(|_| schema["type"] == "array") {
        items.iter().for_each(|item| has_form(document, &schema["items"], item, path));
    }
}

fn check(service: &Service, document: &Value, answer: (&str, u16, &str)) {
    let (path, status, example) = answer;
    if (path, status) == ("/api/v1/events", 200) {
        let content = &document["paths"][path]["get"]["responses"]["200"]["content"];
        let (_, event) = EventStream::open(service).event();
        return has_form(document, &content["text/event-stream"]["schema"], &event, example);
    }
    let given = service.get(example);
    assert_eq!(given.status, status, "{example}: {}", given.text());
    let described = &document["paths"][path]["get"]["responses"][status.to_string()];
    let content = described["content"].as_object().unwrap_or_else(|| panic!("{path}: {document}"));
    let kind = given.headers["content-type"].split(';').next().expect("a type");
    let schema = &content.get(kind).unwrap_or_else(|| panic!("{path}: {kind}"))["schema"];
    if kind == "application/json" {
        has_form(document, schema, &given.json(), example);
    }
}

#[test]
fn every_documented_answer_is_given_and_every_address_is_documented() {
    let (recorded, digit) = recorded();
    let service = recorded.served();
    let busy =
        recorded.served_within(Limits { reading_max: 0, events_max: 0, ..Limits::default() });
    let document = service.json("/api/v1/openapi.json");
    let mut documented = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("an object") {
        // protected.rs does so for what changes something.
        let Some(get) = item.get("get") else { continue };
        for status in get["responses"].as_object().expect("an object").keys() {
            documented.insert((path.clone(), status.clone()));
        }
    }
    let known = ANSWERS.iter().map(|(path, status, ..)| ((*path).to_owned(), status.to_string()));
    assert_eq!(documented, known.collect());
    for (path, status, with, example) in ANSWERS {
        let example = example.replace('@', &digit.to_string());
        match with {
            With::Array => check(&service, &document, (path, status, &example)),
            With::Busy => check(&busy, &document, (path, status, &example)),
            With::Broken => {}
        }
    }
    fs::remove_dir_all(recorded.path()).expect("it is there");
    for (path, status, _, example) in
        ANSWERS.iter().filter(|answer| matches!(answer.2, With::Broken))
    {
        check(&service, &document, (path, *status, example));
    }
}

#[test]
fn every_parameter_that_is_documented_is_accepted() {
    let recorded = Recorded::traffic(1_000_000);
    let service = recorded.served();
    let document = service.json("/api/v1/openapi.json");
    let values = [
        ("since", "-1h"),
        ("until", "now"),
        ("take", "last"),
        ("filter", "ip"),
        ("group", "ports"),
        ("by", "packets"),
        ("top", "5"),
        ("format", "jsonl"),
        ("community_id", "1:U6yJrEUylvY0UpslGBqUe5oAlFI%3D"),
    ];
    for name in ["flows", "packets"] {
        let described =
            &document["paths"][format!("/api/v1/arrays/{{array}}/{name}")]["get"]["parameters"];
        let parameters = described.as_array().expect("a list").iter();
        let names: Vec<&str> = parameters
            .filter(|parameter| parameter["in"] == "query")
            .map(|parameter| parameter["name"].as_str().expect("a name"))
            .collect();
        assert!(names.len() >= 6, "{names:?}");
        for parameter in names {
            let (_, value) = values.iter().find(|(name, _)| *name == parameter).expect(parameter);
            let path = format!("/api/v1/arrays/radar/{name}?{parameter}={value}");
            assert_eq!(service.get(&path).status, 200, "{path}");
        }
    }
}
