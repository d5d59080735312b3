//! The description of `/api/v1` for programs (OpenAPI 3.1), built when somebody asks for it. Its forms are those of docs/json.md; a test
//! holds them against what is really written.

use serde_json::{Map, Value, json};

use crate::web::described::{DescribedRead, DescribedWrite, FORMS, Form, READINGS, WRITINGS};

/// The description. `base` is the address below which everything is.
pub(super) fn document(base: &str) -> Value {
    let forms: Map<String, Value> = FORMS.iter().map(|(name, fields)| ((*name).to_owned(), form(fields))).collect();
    let reads = READINGS.iter().map(|read| (read.path.to_owned(), path(read)));
    let writes = WRITINGS.iter().map(|write| (write.path.to_owned(), post(write)));
    // No address is both.
    let paths: Map<String, Value> = reads.chain(writes).collect();
    json!({
        "openapi": "3.1.0",
        "info": { "title": "cronward", "version": env!("CARGO_PKG_VERSION"), "license": { "name": "MIT OR Apache-2.0" } },
        "servers": [{ "url": if base.is_empty() { "/" } else { base } }],
        "security": [{}, { "token": [] }],
        "paths": paths,
        "components": {
            "schemas": forms,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn form(fields: &[(&str, &str)]) -> Value {
    let properties: Map<String, Value> = fields.iter().map(|(name, of)| ((*name).to_owned(), kind(of))).collect();
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

fn kind(text: &str) -> Value {
    if let Some(of) = text.strip_suffix('?') {
        return json!({ "anyOf": [kind(of), { "type": "null" }] });
    }
    if let Some(of) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return json!({ "type": "array", "items": kind(of) });
    }
    match text {
        "string" | "integer" | "number" | "boolean" | "object" => json!({ "type": text }),
        "time" => json!({ "type": "string", "format": "date-time" }),
        "positive" => json!({ "type": "integer", "minimum": 1 }),
        "page" => json!({ "type": "integer", "minimum": 1, "maximum": 500 }),
        "ticks" => json!({ "type": "integer", "minimum": 1, "maximum": 1000 }),
        "count" => json!({ "type": "integer", "minimum": 1, "maximum": 999 }),
        form => json!({ "$ref": format!("#/components/schemas/{form}") }),
    }
}

/// The parts of an address that are filled in.
fn of_path(path: &str) -> impl Iterator<Item = Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| {
        let schema = match name {
            "action" => json!({ "type": "string", "enum": ["reset", "unlock", "mark-done", "trigger", "retry"] }),
            _ => kind("string"),
        };
        json!({ "name": name, "in": "path", "required": true, "schema": schema, "description": meaning(name) })
    })
}

/// What any request may be answered instead: by the address, by who asks, by what is found.
const REFUSALS: [u16; 9] = [400, 401, 403, 404, 414, 421, 429, 500, 503];
/// The same for what writes, besides.
const REFUSALS_OF_WRITES: [u16; 3] = [409, 413, 415];

/// These answers, and why not. Each is named: a status that is not there is a fault.
fn responses(own: Value, refusals: impl IntoIterator<Item = u16>) -> Value {
    let Value::Object(mut all) = own else { return own };
    all.extend(refusals.into_iter().map(|status| (status.to_string(), problem())));
    Value::Object(all)
}

/// Why something was not answered.
fn problem() -> Value {
    let content = json!({ "application/problem+json": { "schema": kind("Problem") } });
    json!({ "description": "why not, with a word in type", "content": content })
}

fn post(write: &DescribedWrite) -> Value {
    let sign = json!({ "name": "X-Cronward", "in": "header", "required": true, "schema": { "type": "string", "enum": ["1"] } });
    let parameters: Vec<Value> = of_path(write.path).chain([sign]).collect();
    let answer = json!({ "application/json": { "schema": kind(write.answer) } });
    let fields = json!({
        "reason": kind("string"),
        "past": kind("boolean"),
        "expect": kind("string?"),
        "until": kind("string?"),
    });
    let taken = if write.takes { fields } else { json!({}) };
    let body = json!({ "type": "object", "properties": taken, "additionalProperties": false });
    let answers = json!({
        "200": { "description": "it is so now", "content": answer },
        "202": { "description": "this node has begun it", "content": answer },
    });
    json!({ "post": {
        "summary": write.summary,
        "parameters": parameters,
        "requestBody": { "content": { "application/json": { "schema": body } } },
        "responses": responses(answers, REFUSALS.into_iter().chain(REFUSALS_OF_WRITES)),
    } })
}

fn path(read: &DescribedRead) -> Value {
    let of_query = read.query.iter().map(|(name, of)| json!({ "name": name, "in": "query", "schema": kind(of) }));
    let content = match read.answer {
        Form::Json(of) => json!({ "application/json": { "schema": kind(of) } }),
        Form::Object => json!({ "application/json": { "schema": { "type": "object" } } }),
        Form::Text => json!({ "text/plain": { "schema": { "type": "string" } } }),
        Form::Events => json!({ "text/event-stream": { "schema": { "type": "string" } } }),
    };
    let parameters: Vec<Value> = of_path(read.path).chain(of_query).collect();
    let answers = json!({
        "200": { "description": "what was asked for", "content": content },
        "304": { "description": "it has not changed: If-None-Match names what there is" },
    });
    json!({ "get": {
        "summary": read.summary,
        "parameters": parameters,
        "responses": responses(answers, REFUSALS),
    } })
}

fn meaning(name: &str) -> &'static str {
    match name {
        "job" => "the job's name",
        "action" => "what is done",
        _ => "the slot's key, its start in UTC, like 2026-11-21T14Z; or -1 for the one before the current one",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::fixture::{self, NOON, at};
    use crate::board::{Concern, ConcernKind, StoreStanding};
    use crate::job::NodeName;
    use crate::observe::view::{FailingView, JobView, LatestView, LockView, NodeView, PauseView, SlotView, TickView};
    use crate::slot::{Slot, SlotRecord, Verdict};
    use crate::store::{NodeEntry, NodeReport};

    /// Where a value is not of its kind.
    fn faults(value: &Value, of: &str, path: &str, found: &mut Vec<String>) {
        if let Some(of) = of.strip_suffix('?') {
            return if value.is_null() {
            } else {
                faults(value, of, path, found);
            };
        }
        if let Some(of) = of.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            match value.as_array() {
                Some(items) => items.iter().for_each(|item| faults(item, of, &format!("{path}[]"), found)),
                None => found.push(format!("{path} is no list: {value}")),
            }
            return;
        }
        let fits = match of {
            "string" => value.is_string(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "object" => value.is_object(),
            "time" => value.as_str().is_some_and(|text| chrono::DateTime::parse_from_rfc3339(text).is_ok()),
            form => return fields(value, form, path, found),
        };
        if !fits {
            found.push(format!("{path} is no {of}: {value}"));
        }
    }

    fn fields(value: &Value, form: &str, path: &str, found: &mut Vec<String>) {
        let (_, wanted) = FORMS.iter().find(|(name, _)| *name == form).unwrap_or_else(|| panic!("{form} at {path}"));
        let Some(object) = value.as_object() else { return found.push(format!("{path} is no {form}: {value}")) };
        for (name, of) in *wanted {
            match object.get(*name) {
                Some(value) => faults(value, of, &format!("{path}.{name}"), found),
                None => found.push(format!("{path}.{name} is missing")),
            }
        }
        // A concern has besides what it is about.
        let more = object.keys().filter(|key| form != "Concern" && wanted.iter().all(|(name, _)| name != key));
        found.extend(more.map(|key| format!("{path}.{key} is not described")));
    }

    fn check(view: &impl serde::Serialize, form: &str) {
        let mut found = Vec::new();
        faults(&serde_json::to_value(view).unwrap(), form, form, &mut found);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn what_is_written_is_as_it_is_described() {
        let now = at(NOON);
        let failing = FailingView {
            since: "2026-11-21T11Z".to_owned(),
            last: "2026-11-21T11Z".to_owned(),
            verdict: Verdict::Missed,
            slots: 1,
        };
        let latest = LatestView { failing: Some(failing), ..LatestView::default() };
        for record in [fixture::running(), fixture::waiting(), fixture::done(), fixture::failed(), fixture::untouched()]
        {
            let slot = SlotView { latest: Some(latest.clone()), ..SlotView::of(&record, now, 3) };
            check(&slot, "Slot");
            let job = JobView {
                current: Some(std::sync::Arc::new(slot)),
                paused: PauseView::of(&fixture::pause(), now),
                latest: latest.clone(),
                ..JobView::of(&fixture::entry("billing"), Some(now))
            };
            check(&job, "Job");
        }
        let report = NodeReport::new(NodeName::new("a").unwrap(), "i", now);
        check(&NodeView::all(&[NodeEntry { report, seen: now }], now), "[Node]");
        let slot = Slot::parse("billing", "2026-11-21T12Z", "2026-11-21T13Z").unwrap();
        check(&TickView::of(&slot, now, "local".to_owned(), vec!["note".to_owned()]), "Tick");
        let lost = ConcernKind::NodeLost { node: NodeName::new("a").unwrap(), running: Vec::new() };
        let concerns = vec![Concern { since: now, what: lost }];
        check(&concerns, "[Concern]");
        let standing = StoreStanding::default();
        let store = crate::web::api::StoreView { store: &standing, now, read: Some(now), jobs: 1, concerns: &concerns };
        check(&store, "Store");
        let lock = crate::resource::LockRecord { lock: "db".parse().unwrap(), entries: Vec::new(), audit: Vec::new() };
        check(&LockView::all(&[lock], now), "[Lock]");
        let _ = SlotRecord::untouched(slot);
    }

    #[test]
    fn every_form_that_is_named_is_described() {
        let text = document("/ops").to_string();
        for part in text.split("#/components/schemas/").skip(1) {
            let name: String = part.chars().take_while(|letter| letter.is_alphanumeric()).collect();
            assert!(FORMS.iter().any(|(known, _)| *known == name), "{name}");
        }
        assert!(text.contains("\"url\":\"/ops\""), "{text}");
    }
}
