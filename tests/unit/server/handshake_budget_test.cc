#include "server/loop/handshake_budget.h"

#include <doctest/doctest.h>

namespace nowcalls::server {
namespace {

int OfATurn(HandshakeBudget* budget) {
  budget->BeginTurn();
  int taken = 0;
  while (budget->Take()) ++taken;
  return taken;
}

TEST_CASE("a turn has four handshakes, and fewer of dear ones, but one at least") {
  HandshakeBudget budget;
  CHECK(OfATurn(&budget) == 4);
  budget.Took(550'000);
  CHECK(OfATurn(&budget) == 4);
  budget.Took(2'000'000);
  CHECK(OfATurn(&budget) == 2);
  budget.Took(6'000'000);
  CHECK(OfATurn(&budget) == 1);
}

TEST_CASE("cheap steps between dear ones do not make these cheap, but many of them do") {
  HandshakeBudget budget;
  budget.Took(6'000'000);
  budget.Took(50'000);
  CHECK(OfATurn(&budget) == 1);
  for (int i = 0; i < 100; ++i) budget.Took(50'000);
  CHECK(OfATurn(&budget) == 4);
}

}  // namespace
}  // namespace nowcalls::server
