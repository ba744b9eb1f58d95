//! What a budget's reports have cost, in sentences that an app can show to the person.

use super::figures::{change_of_odds, epsilon_text, grouped, small};
use super::ledger::SpentOn;
use super::spent::{Spent, StreamSpent};

/// Return the sentences, as the clients in other languages write them.
pub(crate) fn words_of(spent: &Spent) -> Vec<String> {
    let Spent { epsilon, per_day, lifetime, .. } = *spent;
    let mut words = Vec::new();
    if spent.opted_out {
        words.push("You opted out: this device makes no report until you opt in again.".to_owned());
    }
    words.extend(spent.streams.iter().flat_map(words_of_stream));
    words.push(if epsilon > 0.0 {
        format!(
            "All reports together change the odds that you sent one value rather than another by {}, {}.",
            change_of_odds(epsilon, spent.delta),
            condition(&spent.streams)
        )
    } else {
        "No report of this device has told anything of you yet.".to_owned()
    });
    let today = format!("On {} (UTC)", spent.day);
    words.push(limit_words(&today, "a day", spent.today, per_day, spent.left_today));
    words.push(limit_words("Altogether", "the lifetime of this app", epsilon, lifetime, spent.left));
    if per_day.min(lifetime).is_finite() {
        // Reports that repeat an answer that was charged before may still be made.
        let instead =
            if spent.silent { "that tells more of you is made" } else { "tells more of you, although some are sent" };
        words.push(format!("When too little is left for a report, no report {instead}."));
    }
    words
}

fn words_of_stream(spent: &StreamSpent) -> Vec<String> {
    let StreamSpent { campaign, reports, blank, .. } = spent;
    let (kind, more, purpose) = match spent.stream {
        SpentOn::Reports => ("blurred", "", "to count values"),
        SpentOn::Sealed => ("sealed", ", not randomised,", "to count values"),
        SpentOn::Discovery => ("sealed", "", "to find values that are on no list"),
    };
    let mut words = Vec::new();
    if *reports > 0 {
        let delta = if spent.delta > 0.0 { format!(" and delta {}", small(spent.delta)) } else { String::new() };
        words.push(format!(
            "Campaign {campaign}: this device made {}{more} {purpose}, for epsilon {}{delta}.",
            counted(*reports, &format!("{kind} report")),
            epsilon_text(spent.epsilon)
        ));
    }
    if *blank > 0 {
        words.push(format!(
            "Campaign {campaign}: {} {purpose} told nothing of you, because the budget was spent.",
            counted(*blank, "report")
        ));
    }
    words
}

/// Return on what it depends that the odds change by no more.
fn condition(streams: &[StreamSpent]) -> &'static str {
    let has = |kind| streams.iter().any(|each| each.stream == kind && each.epsilon > 0.0);
    if has(SpentOn::Discovery) {
        "as long as the parties that handle them keep to their roles"
    } else if has(SpentOn::Sealed) {
        "as long as one of the two parties that mix them keeps to its role"
    } else {
        "even if all parties that handle them broke their promises together"
    }
}

fn limit_words(when: &str, span: &str, spent: f64, limit: f64, left: f64) -> String {
    let [spent, limited, left] = [spent, limit, left].map(epsilon_text);
    if limit.is_infinite() {
        return format!("{when} epsilon {spent} was spent; no limit is set for {span}.");
    }
    format!("{when} epsilon {spent} of {limited} was spent, and {left} is left.")
}

fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(&number.to_string()), if number == 1 { "" } else { "s" })
}
