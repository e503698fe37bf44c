//! The dashboard: one page for an operator, with its styles and scripts. It has no data: it asks the service as other clients do.
//!
//! Its files are compiled in. Its content security policy allows requests to the service alone.

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::routing::get;

/// What the page may do. Scripts set styles through the object model, which the policy does not concern.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
);

/// A file of the page: its address, type and text.
type Asset = (&'static str, &'static str, &'static str);

const SCRIPT: &str = "text/javascript; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// The files of the page. uPlot draws its charts; its licence is in `assets/uplot-LICENSE`.
const ASSETS: [Asset; 10] = [
    ("/", "text/html; charset=utf-8", include_str!("../assets/index.html")),
    ("/style.css", STYLE, include_str!("../assets/style.css")),
    ("/dashboard.js", SCRIPT, include_str!("../assets/dashboard.js")),
    ("/charts.js", SCRIPT, include_str!("../assets/charts.js")),
    ("/service.js", SCRIPT, include_str!("../assets/service.js")),
    ("/timeline.js", SCRIPT, include_str!("../assets/timeline.js")),
    ("/words.js", SCRIPT, include_str!("../assets/words.js")),
    ("/uplot.js", SCRIPT, include_str!("../assets/uplot.js")),
    ("/uplot.css", STYLE, include_str!("../assets/uplot.css")),
    ("/uplot-LICENSE", TEXT, include_str!("../assets/uplot-LICENSE")),
];

/// The addresses of the page and its files.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    ASSETS.into_iter().fold(Router::new(), |router, (path, kind, text)| {
        router.route(path, get(async move || (headers(kind), text)))
    })
}

fn headers(kind: &'static str) -> [(HeaderName, HeaderValue); 2] {
    [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ]
}
