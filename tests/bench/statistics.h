// What is said of a figure that was measured a few times.
//
// Thread: any.
#ifndef NOWCALLS_BENCH_STATISTICS_H_
#define NOWCALLS_BENCH_STATISTICS_H_

#include <optional>
#include <string>
#include <vector>

namespace nowcalls::compare {

struct Spread {
  double median = 0;  // Of an even number of values the mean of the middle two.
  double min = 0;
  double max = 0;
};

// Empty: there are no values.
std::optional<Spread> SpreadOf(std::vector<double> values);

// Empty: one of the two is not known, or there is nothing to divide by.
std::optional<double> Ratio(const std::optional<Spread>& part, const std::optional<Spread>& whole);

// With so many digits behind the point, and a comma between thousands: "1,234,567.8".
std::string Decimal(double value, int digits);

}  // namespace nowcalls::compare

#endif  // NOWCALLS_BENCH_STATISTICS_H_
