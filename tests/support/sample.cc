#include "support/sample.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "base/clock.h"
#include "base/prng.h"

namespace nowcalls::testing {

namespace {

std::atomic<bool> sampled{false};

}  // namespace

bool Sampled() { return sampled; }

bool Whole() {
  const char* whole = std::getenv("NOWCALLS_TEST_WHOLE");  // NOLINT(concurrency-mt-unsafe)
  return whole != nullptr && std::string_view(whole) != "0";
}

uint64_t SampleSeed() {
  sampled = true;
  static const uint64_t seed = [] {
    const char* given = std::getenv("NOWCALLS_TEST_SEED");  // NOLINT(concurrency-mt-unsafe)
    if (given != nullptr) return static_cast<uint64_t>(std::strtoull(given, nullptr, 10));
    return RandomBits128()[0] % 1'000'000'000;
  }();
  return seed;
}

std::vector<uint64_t> SampleOf(uint64_t all, uint64_t usual, uint64_t whole) {
  std::vector<uint64_t> sample;
  const uint64_t parts = Whole() ? whole : usual;
  if (all <= parts) {
    for (uint64_t i = 0; i < all; ++i) sample.push_back(i);
    return sample;
  }
  // One of each part.
  Prng prng(SampleSeed());
  sample.push_back(0);
  for (uint64_t part = 1; part + 1 < parts; ++part) {
    const uint64_t begin = part * all / parts;
    const uint64_t end = (part + 1) * all / parts;
    sample.push_back(begin + prng.Below(end - begin));
  }
  sample.push_back(all - 1);
  return sample;
}

}  // namespace nowcalls::testing
