#include "web/snapshot.h"

#include <doctest/doctest.h>

namespace nowcalls::web {
namespace {

constexpr auto kRate = static_cast<size_t>(RefusedBy::kRate);
constexpr auto kLevel = static_cast<size_t>(RefusedBy::kLevel);

TEST_CASE("a blocked request counts as the calls that it asked for, and once") {
  wire::FlowRow row;
  row.counters.emplace();
  row.counters->granted = 4;
  row.counters->refused[kLevel] = 2;
  row.counters->refused[kRate] = 3;
  CHECK(TotalsOf(row).granted == 4);
  CHECK(TotalsOf(row).refused == 5);
  row.rate.emplace();
  row.rate->passed = 20;
  row.rate->borrowed = 1;
  row.rate->blocked = 30;
  row.rate->requests_blocked = 3;
  CHECK(TotalsOf(row).granted == 25);
  CHECK(TotalsOf(row).refused == 32);
}

}  // namespace
}  // namespace nowcalls::web
