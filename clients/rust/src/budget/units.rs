//! Privacy costs as exact integers: epsilon in billionths, delta in units of 1e-18.

/// Units of one epsilon, and of one delta, as powers of ten.
pub(crate) const EPSILON_DIGITS: i32 = 9;
pub(crate) const DELTA_DIGITS: i32 = 18;
/// A delta of 1 in units.
pub(crate) const WHOLE_DELTA: u64 = 1_000_000_000_000_000_000;
/// The greatest limit of epsilon; also used if no limit is set.
pub(crate) const MOST_EPSILON: f64 = 1e6;

/// Return `times / parts` of a double's decimal value in whole units, rounded up; 0.1 counts as exactly a tenth.
///
/// The greatest u64 stands for all greater costs, and for what is no cost: no budget has so much.
pub(crate) fn cost_units(value: f64, digits: i32, times: u64, parts: u64) -> u64 {
    fraction(value, digits).map_or(u64::MAX, |(above, below)| {
        let units = above.saturating_mul(times.into()).div_ceil(below.saturating_mul(parts.max(1).into()));
        u64::try_from(units).unwrap_or(u64::MAX)
    })
}

/// Return a limit of epsilon in billionths, rounded down; infinity is the greatest limit.
pub(crate) fn limit_units(value: f64) -> u64 {
    let units = fraction(value.min(MOST_EPSILON), EPSILON_DIGITS).map_or(0, |(above, below)| above / below);
    u64::try_from(units).unwrap_or(0)
}

/// Return a number of units as the nearest double.
pub(crate) fn of_units(units: u64, digits: i32) -> f64 {
    format!("{units}e-{digits}").parse().unwrap_or(f64::INFINITY)
}

/// Return the shortest decimal number that is read as this double, as `whole * 10**exponent`; whole is below 10**17.
///
/// None: it is negative or not finite.
pub(crate) fn decimal(value: f64) -> Option<(u64, i32)> {
    let text = format!("{:e}", value.abs());
    let (number, exponent) = text.split_once('e').filter(|_| value >= 0.0)?;
    let (first, rest) = number.split_once('.').unwrap_or((number, ""));
    let places = i32::try_from(rest.len()).ok()?;
    Some((format!("{first}{rest}").parse().ok()?, exponent.parse::<i32>().ok()? - places))
}

/// Return a double's decimal value in units as a fraction.
///
/// The greatest u128 stands for greater numbers: a numerator without it is below 10**18, so a fraction with this
/// denominator is less than a unit, even 2**64 times.
fn fraction(value: f64, digits: i32) -> Option<(u128, u128)> {
    let (whole, exponent) = decimal(value)?;
    let scale = |power: i32| 10u128.saturating_pow(power.max(0).unsigned_abs());
    let power = exponent + digits;
    Some((u128::from(whole).saturating_mul(scale(power)), scale(-power)))
}
