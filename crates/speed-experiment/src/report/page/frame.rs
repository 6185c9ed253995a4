//! The frame of every page, which allows only the page's own text, style and pictures.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");

/// The page uses no scripts, network, forms or frames, so a locked-down browser shows it completely.
const POLICY: &str =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A part of a page that the table of contents links to: its id, title and body.
pub(super) type Section = (&'static str, &'static str, Markup);

/// Returns a complete page. `lead` precedes its sections, and `style` is specific to this page.
pub(super) fn page(title: &str, lead: &Markup, sections: &[Section], style: &str) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(style)) }
            }
            body {
                header {
                    h1 { (title) }
                    (lead)
                    nav aria-label="Contents" {
                        ul { @for (id, title, _) in sections { li { a href={ "#" (id) } { (title) } } } }
                    }
                }
                main {
                    @for (id, title, body) in sections {
                        section id=(id) {
                            h2 { (title) }
                            (body)
                        }
                    }
                }
                footer { p { "Made by speed " (env!("CARGO_PKG_VERSION")) ". One file: no script, no network." } }
            }
        }
    };
    markup.into_string() + "\n"
}

/// Returns wide content that can be scrolled sideways by touch or keyboard.
pub(super) fn wide(label: &str, body: &Markup) -> Markup {
    html! { div.wide role="region" aria-label=(label) tabindex="0" { (body) } }
}

/// Returns verbatim text that can be scrolled sideways by touch or keyboard.
pub(super) fn verbatim(label: &str, text: &str) -> Markup {
    html! { pre role="region" aria-label=(label) tabindex="0" { code { (text) } } }
}

/// Returns pairs of names and values; pairs without a value are left out.
pub(super) fn facts(facts: &[(&str, String)]) -> Markup {
    html! {
        dl { @for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) { div { dt { (name) } dd { (value) } } } }
    }
}

/// Returns details that are folded on the screen but printed completely.
pub(super) fn folded(summary: &str, body: &Markup) -> Markup {
    html! { details { summary { (summary) } (body) } }
}

/// Returns a plot with its title, and with the name of the file of its figures if readers may see that file.
pub(super) fn plot(svg: &str, title: &str, source: Option<&str>) -> Markup {
    html! {
        figure.plot {
            img src=(data_uri("image/svg+xml", svg.as_bytes())) alt=(title);
            figcaption { (title) "." @if let Some(source) = source { " The same figures: " code { (source) } } }
        }
    }
}

pub(super) fn data_uri(kind: &str, bytes: &[u8]) -> String {
    format!("data:{kind};base64,{}", STANDARD.encode(bytes))
}

pub(super) fn simulation() -> Markup {
    html! {
        p.warning { strong { "SIMULATION" } ": noise and keys come from the seed. Reproducible, not private." }
    }
}
