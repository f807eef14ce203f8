//! `strftime_now` of a given moment, so that a rendering is a function of its inputs.

use std::fmt::Write;

const SECONDS_PER_DAY: i64 = 86_400;
const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

struct Moment {
    year: i64,
    month: usize,   // 1-12
    day: i64,       // 1-31
    weekday: usize, // 0 = Monday
    year_day: i64,  // 1-366
    hour: i64,
    minute: i64,
    second: i64,
}

impl Moment {
    /// Howard Hinnant's days-from-civil, inverted.
    fn new(seconds: i64) -> Self {
        let days = seconds.div_euclid(SECONDS_PER_DAY);
        let rest = seconds.rem_euclid(SECONDS_PER_DAY);
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let from_march = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * from_march + 2) / 153;
        let day = from_march - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 {
            shifted_month + 3
        } else {
            shifted_month - 9
        };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month as usize - 1];
        Self {
            year,
            month: month as usize,
            day,
            weekday: (days + 3).rem_euclid(7) as usize,
            year_day: before + day + i64::from(leap && month > 2),
            hour: rest / 3_600,
            minute: rest / 60 % 60,
            second: rest % 60,
        }
    }

    fn write(&self, directive: char, padded: bool, out: &mut String) {
        let hour12 = (self.hour + 11) % 12 + 1;
        let mut two = |value: i64| {
            let _ = if padded {
                write!(out, "{value:02}")
            } else {
                write!(out, "{value}")
            };
        };
        match directive {
            'd' => two(self.day),
            'm' => two(self.month as i64),
            'y' => two(self.year.rem_euclid(100)),
            'H' => two(self.hour),
            'I' => two(hour12),
            'M' => two(self.minute),
            'S' => two(self.second),
            'j' if padded => {
                let _ = write!(out, "{:03}", self.year_day);
            }
            'j' => two(self.year_day),
            _ => self.write_text(directive, out),
        }
    }

    fn write_text(&self, directive: char, out: &mut String) {
        match directive {
            'Y' => out.push_str(&self.year.to_string()),
            'A' => out.push_str(WEEKDAYS[self.weekday]),
            'a' => out.push_str(&WEEKDAYS[self.weekday][..3]),
            'B' => out.push_str(MONTHS[self.month - 1]),
            'b' | 'h' => out.push_str(&MONTHS[self.month - 1][..3]),
            'p' => out.push_str(if self.hour < 12 { "AM" } else { "PM" }),
            'u' => out.push_str(&(self.weekday + 1).to_string()),
            'w' => out.push_str(&((self.weekday + 1) % 7).to_string()),
            'e' => {
                let _ = write!(out, "{:2}", self.day);
            }
            'f' => out.push_str("000000"),
            'F' => out.push_str(&strftime("%Y-%m-%d", self.seconds())),
            'T' | 'X' => out.push_str(&strftime("%H:%M:%S", self.seconds())),
            'R' => out.push_str(&strftime("%H:%M", self.seconds())),
            'D' | 'x' => out.push_str(&strftime("%m/%d/%y", self.seconds())),
            'c' => out.push_str(&strftime("%a %b %e %H:%M:%S %Y", self.seconds())),
            'z' | 'Z' => {}
            '%' => out.push('%'),
            other => {
                out.push('%');
                out.push(other);
            }
        }
    }

    fn seconds(&self) -> i64 {
        let year = self.year - 1;
        let days = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400)
            - 719_162
            + self.year_day
            - 1;
        days * SECONDS_PER_DAY + self.hour * 3_600 + self.minute * 60 + self.second
    }
}

/// The directives of C's strftime in the C locale. `%-d` and similar ones drop the padding.
pub fn strftime(format: &str, seconds: i64) -> String {
    let moment = Moment::new(seconds);
    let mut out = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let padded = chars.next_if_eq(&'-').is_none();
        match chars.next() {
            Some(directive) => moment.write(directive, padded, &mut out),
            None => out.push('%'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::strftime;

    #[test]
    fn prints_like_pythons_datetime() {
        let noon = 1_752_148_800; // 2025-07-10 12:00:00, a Thursday
        assert_eq!(strftime("%Y-%m-%d %H:%M:%S", noon), "2025-07-10 12:00:00");
        assert_eq!(
            strftime("%d %b %Y|%B %-d|%A|%a|%j|%I %p|%y%%", noon),
            "10 Jul 2025|July 10|Thursday|Thu|191|12 PM|25%"
        );
        assert_eq!(
            strftime("%c %F %T", noon + 3_661),
            "Thu Jul 10 13:01:01 2025 2025-07-10 13:01:01"
        );
    }

    #[test]
    fn leap_days_and_the_epoch() {
        assert_eq!(strftime("%F %j %a", 0), "1970-01-01 001 Thu");
        assert_eq!(strftime("%F %j %a", 951_782_400), "2000-02-29 060 Tue");
        assert_eq!(strftime("%F %j", 1_735_603_200), "2024-12-31 366");
        assert_eq!(strftime("%F", -1), "1969-12-31");
    }
}
