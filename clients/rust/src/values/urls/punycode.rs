//! Punycode (RFC 3492): letters of all scripts, written in those of ASCII.

const BASE: u32 = 36;
const LEAST: u32 = 1;
const MOST: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const FIRST_BIAS: u32 = 72;
const FIRST_CODE: u32 = 0x80;
const DIGITS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
/// The most characters of a text whose Punycode fits into a label of 63 bytes after "xn--"; each takes a byte.
const MOST_CHARACTERS: usize = 59;

/// Return the Punycode of a text (section 6.3); none if it has too many characters for a label.
pub(super) fn punycode(text: &str) -> Option<String> {
    if text.chars().count() > MOST_CHARACTERS {
        return None;
    }
    let mut made: String = text.chars().filter(char::is_ascii).collect();
    let basic = made.len() as u32;
    made.push_str(if basic > 0 { "-" } else { "" });
    // No number overflows: a delta is at most the greatest code point times one more than the number of characters.
    let (mut code, mut delta, mut bias, mut written) = (FIRST_CODE, 0, FIRST_BIAS, basic);
    while let Some(next) = text.chars().map(u32::from).filter(|&other| other >= code).min() {
        delta += (next - code) * (written + 1);
        for other in text.chars().map(u32::from) {
            if other == next {
                write_number(delta, bias, &mut made);
                bias = adapted(delta, written + 1, written == basic);
                delta = 0;
                written += 1;
            }
            delta += u32::from(other < next);
        }
        delta += 1;
        code = next + 1;
    }
    Some(made)
}

/// Write an integer of variable length (section 3.3).
fn write_number(mut rest: u32, bias: u32, to: &mut String) {
    let mut place = BASE;
    loop {
        let threshold = place.saturating_sub(bias).clamp(LEAST, MOST);
        if rest < threshold {
            return write_digit(rest, to);
        }
        write_digit(threshold + (rest - threshold) % (BASE - threshold), to);
        rest = (rest - threshold) / (BASE - threshold);
        place += BASE;
    }
}

fn write_digit(digit: u32, to: &mut String) {
    to.extend(DIGITS.get(digit as usize).map(|&byte| char::from(byte)));
}

/// Return the bias for the next integer (section 6.1).
fn adapted(delta: u32, characters: u32, is_first: bool) -> u32 {
    let mut delta = delta / if is_first { DAMP } else { 2 };
    delta += delta / characters;
    let mut bias = 0;
    while delta > (BASE - LEAST) * MOST / 2 {
        delta /= BASE - LEAST;
        bias += BASE;
    }
    bias + (BASE - LEAST + 1) * delta / (delta + SKEW)
}

#[cfg(test)]
mod tests {
    use super::punycode;

    #[test]
    fn texts_are_written_as_in_rfc_3492() {
        for (text, wanted) in [
            ("ليهمابتكلموشعربي؟", "egbpdaj6bu4bxfgehfvwxn"),
            ("他们为什么不说中文", "ihqwcrb4cv8a8dqg056pqjye"),
            ("3年b組金八先生", "3b-ww4c5e180e575a65lsy2b"),
            ("安室奈美恵-with-super-monkeys", "-with-super-monkeys-pc58ag80a8qai00g7n9n"),
            ("パフィーdeルンバ", "de-jg4avhby1noc0d"),
        ] {
            assert_eq!(punycode(text).as_deref(), Some(wanted));
        }
        assert_eq!(punycode(&"\u{10ffff}".repeat(60)), None);
        assert!(punycode(&format!("{}\u{10ffff}", "a".repeat(58))).is_some());
    }
}
