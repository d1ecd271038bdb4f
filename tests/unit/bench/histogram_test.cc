#include "bench/histogram.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/prng.h"

namespace nowcalls::bench {
namespace {

constexpr uint64_t kQuantiles[] = {0, 1, 100'000, 500'000, 900'000, 990'000, 999'900, 1'000'000};

// The value that `parts` per million of the sorted samples do not exceed, by definition.
int64_t Exact(const std::vector<int64_t>& sorted, uint64_t parts) {
  const uint64_t rank = (sorted.size() * parts + 999'999) / 1'000'000;
  return sorted[std::max<uint64_t>(rank, 1) - 1];
}

void CheckAgainst(const Histogram& histogram, std::vector<int64_t> samples) {
  std::sort(samples.begin(), samples.end());
  CHECK(histogram.count() == samples.size());
  CHECK(histogram.max() == samples.back());
  for (const uint64_t parts : kQuantiles) {
    CAPTURE(parts);
    const int64_t exact = Exact(samples, parts);
    const int64_t shown = histogram.Quantile(parts);
    CHECK(shown >= exact);
    CHECK(shown <= exact + exact / 1000);
  }
}

TEST_CASE("a histogram's quantiles are those of the sorted samples, at most 0.1 % too large") {
  Prng prng(1);
  for (int scale = 1; scale <= 37; ++scale) {
    CAPTURE(scale);
    auto histogram = std::make_unique<Histogram>();
    std::vector<int64_t> samples;
    for (int i = 0; i < 2000; ++i) {
      samples.push_back(static_cast<int64_t>(prng.Below(uint64_t{1} << scale)));
      histogram->Record(samples.back());
    }
    CheckAgainst(*histogram, samples);
  }
}

TEST_CASE("a histogram's quantiles are right over seven powers of ten") {
  Prng prng(2);
  auto histogram = std::make_unique<Histogram>();
  std::vector<int64_t> samples;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t bound = uint64_t{1} << prng.Between(10, 36);
    samples.push_back(static_cast<int64_t>(prng.Below(bound)));
    histogram->Record(samples.back());
  }
  CheckAgainst(*histogram, samples);
}

TEST_CASE("a histogram keeps each single value to 0.1 %, at every power of two too") {
  for (int bit = 0; bit < 37; ++bit) {
    for (const int64_t offset : {-1, 0, 1}) {
      const int64_t value = (int64_t{1} << bit) + offset;
      CAPTURE(value);
      auto histogram = std::make_unique<Histogram>();
      histogram->Record(value);
      histogram->Record(value + value / 2 + 1000);  // So that the maximum does not help.
      CheckAgainst(*histogram, {value, value + value / 2 + 1000});
    }
  }
}

TEST_CASE("merged histograms say what one with all values says") {
  Prng prng(3);
  auto first = std::make_unique<Histogram>();
  auto second = std::make_unique<Histogram>();
  std::vector<int64_t> samples;
  for (int i = 0; i < 10'000; ++i) {
    samples.push_back(prng.Between(0, 1'000'000));
    (i % 3 == 0 ? first : second)->Record(samples.back());
  }
  first->Merge(*second);
  CheckAgainst(*first, samples);
}

TEST_CASE("a histogram takes what is too long or negative, and is empty when cleared") {
  auto histogram = std::make_unique<Histogram>();
  CHECK(histogram->Quantile(500'000) == 0);
  histogram->Record(-5);
  CHECK(histogram->Quantile(1'000'000) == 0);
  histogram->Record(INT64_MAX);
  CHECK(histogram->count() == 2);
  CHECK(histogram->max() == INT64_MAX);
  CHECK(histogram->Quantile(1'000'000) == INT64_MAX);
  histogram->Clear();
  CHECK(histogram->count() == 0);
  CHECK(histogram->max() == 0);
  CHECK(histogram->Quantile(1'000'000) == 0);
}

}  // namespace
}  // namespace nowcalls::bench
