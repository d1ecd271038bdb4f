// verify on the records of namespaces.
#include <doctest/doctest.h>

#include <string>

#include "admin/verify.h"
#include "unit/admin/ledger_builder.h"

namespace nowcalls::admin {
namespace {

// "namespace: DETAIL\n" for each problem.
std::string ProblemsOf(LedgerBuilder builder) {
  store::MemoryStore store = builder.Build();
  Progress progress(false, "tokens", [](std::string_view) {});
  std::string text;
  const auto summary = Verify(
      &store, 100,
      [&](const Problem& problem) {
        text += std::string(ProblemName(problem.kind)) + ": " + problem.detail + "\n";
      },
      &progress);
  REQUIRE(summary.ok());
  return text;
}

TEST_CASE("a namespace with its rules is sound, and so is one without a record") {
  CHECK(ProblemsOf(SampleLedger().Namespace("shop", "file:/etc/shop.json")) == "");
  CHECK(ProblemsOf(SampleLedger()) == "");
}

TEST_CASE("a namespace whose rules are gone or only removed ones is a problem") {
  CHECK(ProblemsOf(SampleLedger().Namespace("solo", "rpc")) ==
        "namespace: namespace 'solo' with rules from 'rpc' has no active rule\n");
  LedgerBuilder removed = SampleLedger();
  removed.Rule("solo", GlobalRule(77, 1), ledger::RuleState::kRemoved);
  removed.Token(20, 77, 1, kSealedMs - 1000).Namespace("solo", "rpc");
  CHECK(ProblemsOf(removed) ==
        "namespace: namespace 'solo' with rules from 'rpc' has no active rule\n");
}

TEST_CASE("a source that no server would write is a problem") {
  CHECK(
      ProblemsOf(SampleLedger().Namespace("shop", "a\nb")).find("has a bad source: it must be ") !=
      std::string::npos);
}

}  // namespace
}  // namespace nowcalls::admin
