#include "core/text/jinja/strftime.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace headroom::text::jinja {
namespace {

constexpr std::string_view kDays[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                                        "July",    "August",   "September", "October", "November", "December"};

class Clock {
public:
    explicit Clock(std::chrono::local_seconds time) {
        const auto days = std::chrono::floor<std::chrono::days>(time);
        const std::chrono::year_month_day date(days);
        const std::chrono::hh_mm_ss clock(time - days);
        year_ = static_cast<int>(date.year());
        month_ = static_cast<int>(static_cast<unsigned>(date.month()));
        day_ = static_cast<int>(static_cast<unsigned>(date.day()));
        weekday_ = static_cast<int>(std::chrono::weekday(days).c_encoding());
        day_of_year_ = static_cast<int>((days - std::chrono::local_days(date.year() / 1 / 1)).count());
        hour_ = static_cast<int>(clock.hours().count());
        minute_ = static_cast<int>(clock.minutes().count());
        second_ = static_cast<int>(clock.seconds().count());
    }

    // The text of one conversion; nothing for an unknown one.
    [[nodiscard]] std::optional<std::string> convert(char conversion, char flag) const {
        const auto number = [&](int value, int width, char fill = '0') {
            if (flag == '-') return fmt::format("{}", value);
            if (flag == '_') fill = ' ';
            if (flag == '0') fill = '0';
            return fill == '0' ? fmt::format("{:0{}}", value, width) : fmt::format("{:{}}", value, width);
        };
        const auto word = [&](std::string_view text) {
            std::string result(text);
            if (flag == '^' || flag == '#') std::transform(result.begin(), result.end(), result.begin(), upper);
            return result;
        };
        const auto all = [&](std::string_view format) { return expand(format); };
        const int hour12 = hour_ % 12 == 0 ? 12 : hour_ % 12;
        const std::string_view day = kDays[weekday_];
        const std::string_view month = kMonths[month_ - 1];
        switch (conversion) {
            case 'a': return word(day.substr(0, 3));
            case 'A': return word(day);
            case 'b':
            case 'h': return word(month.substr(0, 3));
            case 'B': return word(month);
            case 'c': return all("%a %b %e %H:%M:%S %Y");
            case 'C': return number(year_ / 100, 2);
            case 'd': return number(day_, 2);
            case 'D':
            case 'x': return all("%m/%d/%y");
            case 'e': return number(day_, 2, ' ');
            case 'f': return "000000";  // Python's microseconds
            case 'F': return all("%Y-%m-%d");
            case 'g': return number(iso_week().year % 100, 2);
            case 'G': return number(iso_week().year, 4);
            case 'H': return number(hour_, 2);
            case 'I': return number(hour12, 2);
            case 'j': return number(day_of_year_ + 1, 3);
            case 'k': return number(hour_, 2, ' ');
            case 'l': return number(hour12, 2, ' ');
            case 'm': return number(month_, 2);
            case 'M': return number(minute_, 2);
            case 'n': return "\n";
            case 'p': return flag == '#' ? (hour_ < 12 ? "am" : "pm") : (hour_ < 12 ? "AM" : "PM");
            case 'P': return hour_ < 12 ? "am" : "pm";
            case 'r': return all("%I:%M:%S %p");
            case 'R': return all("%H:%M");
            case 'S': return number(second_, 2);
            case 't': return "\t";
            case 'T':
            case 'X': return all("%H:%M:%S");
            case 'u': return number(weekday_ == 0 ? 7 : weekday_, 1);
            case 'U': return number((day_of_year_ + 7 - weekday_) / 7, 2);
            case 'V': return number(iso_week().week, 2);
            case 'w': return number(weekday_, 1);
            case 'W': return number((day_of_year_ + 7 - (weekday_ + 6) % 7) / 7, 2);
            case 'y': return number(year_ % 100, 2);
            case 'Y': return number(year_, 1);
            case 'z':
            case 'Z': return "";  // the time has no zone
            case '%': return "%";
            default: return std::nullopt;
        }
    }

    [[nodiscard]] std::string expand(std::string_view format) const {
        std::string result;
        for (std::size_t at = 0; at < format.size();) {
            const std::size_t percent = format.find('%', at);
            result += format.substr(at, percent - at);
            if (percent == std::string_view::npos) break;
            std::size_t next = percent + 1;
            char flag = '\0';
            while (next < format.size() && std::string_view("-_0^#").find(format[next]) != std::string_view::npos)
                flag = format[next++];
            if (next < format.size() && (format[next] == 'E' || format[next] == 'O')) ++next;  // other digits and eras: none here
            const auto text = next < format.size() ? convert(format[next], flag) : std::nullopt;
            if (!text)
                result += format.substr(percent, next + 1 - percent);
            else
                result += *text;
            at = next + 1;
        }
        return result;
    }

private:
    struct IsoWeek {
        int year, week;
    };

    static char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }

    // Week 1 is the one with the year's first Thursday.
    [[nodiscard]] IsoWeek iso_week() const {
        using std::chrono::days, std::chrono::local_days, std::chrono::year;
        const local_days first(year{year_} / 1 / 1);
        const local_days thursday = first + days(day_of_year_) + days(4 - (weekday_ == 0 ? 7 : weekday_));
        const year of(std::chrono::year_month_day(thursday).year());
        return {static_cast<int>(of), static_cast<int>((thursday - local_days(of / 1 / 1)).count() / 7 + 1)};
    }

    int year_, month_, day_, weekday_, day_of_year_, hour_, minute_, second_;
};

}  // namespace

std::string strftime(std::string_view format, std::chrono::local_seconds time) { return Clock(time).expand(format); }

}  // namespace headroom::text::jinja
