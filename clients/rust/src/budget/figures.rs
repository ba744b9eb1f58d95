//! Privacy figures as text for people, rounded so that no figure claims more privacy than is guaranteed.

use super::units::decimal;

/// The probability that the change of odds exceeds the stated change is at most this multiple of delta.
const ROOM: f64 = 10.0;
/// From this epsilon on, no factor bounds the odds that a double can hold.
const LARGEST: f64 = 700.0;

/// Return the largest change of odds under (epsilon, delta), and the probability that the change is larger.
///
/// `Pr[|L| > t] <= (1 + exp(-t)) delta / (1 - exp(epsilon - t))`, solved for the least t at which this is at most ten
/// times delta: `docs/mathematics.md` section 7, `hushcount/maths/odds.py`.
pub(crate) fn change_of_odds(epsilon: f64, delta: f64) -> String {
    if delta <= 0.0 {
        return factor(epsilon);
    }
    let chance = (ROOM * delta).min(1.0 - f64::EPSILON / 2.0);
    let loss = if delta < chance {
        epsilon + ((chance + delta * (-epsilon).exp()) / (chance - delta)).ln()
    } else {
        f64::INFINITY
    };
    // Two significant digits, because 1 in 9,090,909 would seem exact.
    let whole = (1.0 / chance).floor() as u64;
    let scale = 10u64.pow(whole.checked_ilog10().unwrap_or(0).saturating_sub(1));
    format!("{}, except with a chance of 1 in {}", factor(loss), grouped(&(whole / scale * scale).to_string()))
}

/// Return a positive number in four significant digits, rounded up, as in 0.001199 and 1.334e-09.
pub(crate) fn small(value: f64) -> String {
    let (whole, exponent) = rounded_up(value, 4);
    let (digits, first) = (whole.to_string(), whole.checked_ilog10().unwrap_or(0).cast_signed() + exponent);
    if first >= -4 {
        return plain(whole, exponent);
    }
    let (one, rest) = digits.trim_end_matches('0').split_at(1);
    format!("{one}{}{rest}e-{:02}", if rest.is_empty() { "" } else { "." }, -first)
}

/// Return an epsilon, a whole number of billionths, in its exact decimal digits.
pub(crate) fn epsilon_text(value: f64) -> String {
    let text = format!("{value:.9}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    format!("{}{fraction}", grouped(whole))
}

/// Return digits with a comma after each thousand.
pub(crate) fn grouped(digits: &str) -> String {
    let comma = |place: usize| place > 0 && (digits.len() - place).is_multiple_of(3);
    digits
        .chars()
        .enumerate()
        .flat_map(|(place, digit)| comma(place).then_some(',').into_iter().chain([digit]))
        .collect()
}

fn factor(epsilon: f64) -> String {
    if epsilon >= LARGEST {
        return "any factor".to_owned();
    }
    let gain = epsilon.exp_m1();
    let (whole, exponent) = if gain < 1.0 { rounded_up(100.0 * gain, 2) } else { rounded_up(gain + 1.0, 3) };
    let figure = plain(whole, exponent);
    if gain < 1.0 { format!("{figure} % at most") } else { format!("a factor of {figure} at most") }
}

/// Round a decimal number up to so many significant digits; return it as `whole * 10**exponent`.
fn rounded_up(value: f64, digits: u32) -> (u64, i32) {
    let (whole, exponent) = decimal(value).unwrap_or((0, 0));
    let surplus = (whole.checked_ilog10().unwrap_or(0) + 1).saturating_sub(digits);
    (whole.div_ceil(10u64.pow(surplus)), exponent + surplus.cast_signed())
}

/// Return `whole * 10**exponent` in digits, without zeros at the end of the fraction.
fn plain(whole: u64, exponent: i32) -> String {
    let places = usize::try_from(-exponent).unwrap_or(0);
    let zeros = usize::try_from(exponent).unwrap_or(0);
    let digits = format!("{whole:0>width$}{}", "0".repeat(zeros), width = places + 1);
    let (before, after) = digits.split_at(digits.len() - places);
    let after = after.trim_end_matches('0');
    format!("{before}{}{after}", if after.is_empty() { "" } else { "." })
}
