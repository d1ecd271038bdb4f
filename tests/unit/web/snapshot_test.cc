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

wire::FlowRow Granted(uint64_t granted) {
  wire::FlowRow row;
  row.counters.emplace();
  row.counters->granted = granted;
  return row;
}

TEST_CASE("a flow that is renewed twice in a look has what came before both, and the last rate") {
  FlowLook flow = LookOf(Granted(10), nullptr, 5'000);
  CHECK(flow.came.granted == 0);
  flow = LookOf(Granted(17), &flow, 6'000);
  flow = LookOf(Granted(20), &flow, 6'500);
  CHECK(flow.came.granted == 7 + 3);
  CHECK(flow.granted_per_s == 6);
}

TEST_CASE("a flow of a server that started anew has what this server counted") {
  FlowLook flow = LookOf(Granted(10), nullptr, 5'000);
  flow = LookOf(Granted(4), &flow, 6'000);
  CHECK(flow.came.granted == 4);
}

}  // namespace
}  // namespace nowcalls::web
