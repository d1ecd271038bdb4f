// Comparison: what the rounds of one scenario have found, judged against its targets.
//
// Thread: any.
#ifndef NOWCALLS_BENCH_COMPARISON_H_
#define NOWCALLS_BENCH_COMPARISON_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bench_figures.h"
#include "bench/statistics.h"

namespace nowcalls::compare {

struct Target {
  enum class Kind : uint8_t {
    kRatioAtLeast,
    kRatioAtMost,
    kAtMost
  };  // kAtMost: of the first side.
  Kind kind = Kind::kAtMost;
  double limit = 0;
};

// What a scenario measures. `key` is its name in Values and in JSON.
struct FigureKind {
  std::string key;
  std::string label;  // With its unit: "p99, us".
  int digits = 0;     // Behind the point, where it is shown.
  std::optional<Target> target;
};

enum class Verdict : uint8_t { kNoTarget, kReached, kMissed, kNotMeasured };
std::string_view VerdictName(Verdict verdict);

class Comparison {
 public:
  static constexpr size_t kSides = 2;
  using Sides = std::array<std::string, kSides>;  // What is compared; the second may be empty.

  Comparison(std::string name, std::string title, Sides sides, std::vector<FigureKind> kinds);

  void Add(size_t side, const Values& values);
  // The side could not do what the scenario asks for, which is a result and no failure.
  void AddOverload(size_t side, const std::string& message);
  // A round that could not be measured.
  void AddFailure(const std::string& message) { failures_.push_back(message); }

  const std::string& name() const { return name_; }
  const std::vector<std::string>& failures() const { return failures_; }
  std::optional<Spread> SpreadOf(size_t side, const std::string& key) const;
  Verdict Judge(const FigureKind& kind) const;
  // How many targets there are with this verdict.
  size_t Count(Verdict verdict) const;

  // Lines for a terminal.
  std::string Table() const;
  Json ToJson() const;

 private:
  std::string SpreadCell(size_t side, const FigureKind& kind) const;
  std::vector<std::string> Row(const FigureKind& kind) const;
  bool has_second() const { return !sides_[1].empty(); }

  std::string name_;
  std::string title_;
  Sides sides_;
  std::vector<FigureKind> kinds_;
  std::array<std::vector<Values>, kSides> rounds_;
  std::array<bool, kSides> overloaded_{};
  std::vector<std::string> notes_;
  std::vector<std::string> failures_;
};

// Rows with columns of equal width, the first to the left and the others to the right, each line
// after `indent` blanks.
std::string AlignedRows(const std::vector<std::vector<std::string>>& rows, size_t indent);

}  // namespace nowcalls::compare

#endif  // NOWCALLS_BENCH_COMPARISON_H_
