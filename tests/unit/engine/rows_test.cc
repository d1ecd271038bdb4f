// The row of a flow shows every counter of the core.
#include "engine/rpc/rows.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "wire/flow_figures.h"

namespace nowcalls::engine::rpc {
namespace {

// A member that is added to the counters is one of them, too.
using CounterWords = std::array<uint64_t, sizeof(core::TokenCounters) / sizeof(uint64_t)>;

core::TokenCounters DistinctCounters() {
  CounterWords words;
  std::iota(words.begin(), words.end(), 1'000);
  auto counters = std::bit_cast<core::TokenCounters>(words);
  // The first of these counts nothing.
  counters.ended[0] = 0;
  counters.refused[0] = 0;
  counters.shadow_refused[0] = 0;
  return counters;
}

std::vector<uint64_t> NumbersOf(const wire::FlowValue& value) {
  if (const auto* number = std::get_if<uint64_t>(&value)) return {*number};
  if (const auto* counts = std::get_if<wire::WordedCounts>(&value)) {
    return {counts->counts.begin(), counts->counts.end()};
  }
  if (const auto* times = std::get_if<const wire::Times*>(&value)) return {(*times)->count};
  return {};
}

}  // namespace

TEST_CASE("the row of a flow shows every counter of the core, and has no figure without one") {
  const auto flow = std::make_unique<core::Flow>();
  flow->counters = DistinctCounters();
  flow->held_times.Add(5);
  flow->waited_times = std::make_unique<core::TimeHistogram>();
  flow->waited_times->Add(6);
  wire::FlowRow row;
  FillCounters(*flow, &row);
  std::set<uint64_t> shown;
  for (const wire::FlowFigure& figure : wire::FlowFigures()) {
    const std::vector<uint64_t> numbers = NumbersOf(figure.get(row));
    shown.insert(numbers.begin(), numbers.end());
    if (figure.map != wire::FlowMap::kCounters) continue;
    CAPTURE(std::string(figure.name));
    CHECK(std::accumulate(numbers.begin(), numbers.end(), uint64_t{0}) > 0);
  }
  for (const uint64_t counter : std::bit_cast<CounterWords>(flow->counters)) {
    if (counter > 0) CHECK(shown.count(counter) == 1);
  }
}

}  // namespace nowcalls::engine::rpc
