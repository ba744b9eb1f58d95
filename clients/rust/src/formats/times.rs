//! Times in text, in UTC, by the proleptic Gregorian calendar.

const DAY: i64 = 86_400_000;

/// Return milliseconds since 1970 of a time with its zone, as in 2026-12-01T00:00:00Z; none if it has another form.
///
/// A fraction has at most 6 digits; the year is not 0000; a second 60 is refused.
pub(crate) fn parse_time(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let form = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    if !(form(4, b'-') && form(7, b'-') && form(10, b'T') && form(13, b':') && form(16, b':')) {
        return None;
    }
    let day = day_number(number(bytes, 0, 4)?, number(bytes, 5, 2)?, number(bytes, 8, 2)?)?;
    let clock = [(11, 24), (14, 60), (17, 60)].map(|(at, end)| number(bytes, at, 2).filter(|&part| part < end));
    let [Some(hour), Some(minute), Some(second)] = clock else { return None };
    let (millis, zone) = fraction(&bytes[19..])?;
    Some(day * DAY + ((hour * 60 + minute - offset(zone)?) * 60 + second) * 1000 + millis)
}

/// Return a time as in 2026-12-01T00:00:00.000Z.
pub(crate) fn time_text(millis: i64) -> String {
    let within = millis.rem_euclid(DAY);
    let (hour, minute, second) = (within / 3_600_000, within / 60_000 % 60, within / 1000 % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}.{:03}Z", day_text(millis), within % 1000)
}

/// Return the UTC day of a time, as in 2026-12-01.
pub(crate) fn day_text(millis: i64) -> String {
    // Days are counted in years that begin in March, so that a leap day is the last day of a year.
    let days = millis.div_euclid(DAY) + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    format!("{:04}-{month:02}-{day:02}", year + 400 * era + i64::from(month <= 2))
}

/// Return the days from 1970 to a date; none if the month has no such day.
fn day_number(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if year == 0 || !(1..=12).contains(&month) || !(1..=days).contains(&day) {
        return None;
    }
    let (from_march, year) = if month > 2 { (month - 3, year) } else { (month + 9, year - 1) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// Return the milliseconds of a fraction of a second, if there is one, and the bytes after it.
fn fraction(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let Some(rest) = bytes.strip_prefix(b".") else { return Some((0, bytes)) };
    let long = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let millis = (0..3).fold(0, |sum, at| 10 * sum + if at < long { i64::from(rest[at] - b'0') } else { 0 });
    (1..=6).contains(&long).then(|| (millis, &rest[long..]))
}

/// Return the minutes by which a zone is ahead of UTC.
fn offset(zone: &[u8]) -> Option<i64> {
    if zone == b"Z" {
        return Some(0);
    }
    let sign = match zone {
        [b'+', _, _, b':', _, _] => 1,
        [b'-', _, _, b':', _, _] => -1,
        _ => return None,
    };
    let (hours, minutes) = (number(zone, 1, 2)?, number(zone, 4, 2)?);
    (hours < 24 && minutes < 60).then_some(sign * (60 * hours + minutes))
}

fn number(bytes: &[u8], at: usize, length: usize) -> Option<i64> {
    let digits = bytes.get(at..at + length)?;
    let whole = digits.iter().all(u8::is_ascii_digit);
    whole.then(|| digits.iter().fold(0, |sum, digit| 10 * sum + i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_it_is_written() {
        for day in (-719_162..2_932_897).step_by(97).chain([-719_162, 0, 11_016, 2_932_896]) {
            let millis = day * DAY + (day * 7919).rem_euclid(DAY);
            assert_eq!(parse_time(&time_text(millis)), Some(millis), "{}", time_text(millis));
        }
        assert_eq!(time_text(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(parse_time("2026-12-01T01:30:00.5+01:30"), parse_time("2026-12-01T00:00:00.500000Z"));
        for wrong in ["2026-02-29T00:00:00Z", "0000-01-01T00:00:00Z", "2026-12-01T24:00:00Z", "2026-12-01T00:00:60Z"] {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
        for wrong in
            ["2026-12-01T00:00:00", "2026-12-01T00:00:00.Z", "2026-12-01T00:00:00+24:00", "2026-12-01 00:00:00Z"]
        {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
    }
}
