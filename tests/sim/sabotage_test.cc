// The simulator must be able to fail: servers that are broken on purpose (saboteur.h) are found.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "sim/simulation.h"

namespace nowcalls::sim {
namespace {

// Whether one of 200 seeds ends because `invariant` is broken. One that ends for another, which the
// same sabotage may break too, does not count.
bool IsFoundAs(const std::string& invariant, Sabotage sabotage) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const RunResult result = Run({.seed = seed, .sabotage = sabotage});
    if (result.violations.empty()) continue;
    MESSAGE("seed ", seed, ": ", result.violations.front());
    if (result.violations.front().starts_with(invariant)) return true;
  }
  return false;
}

TEST_CASE("a reply before the commit is found as an acknowledged token that is not in the ledger") {
  CHECK(IsFoundAs("I1", Sabotage::kReplyBeforeCommit));
}

TEST_CASE("a lost release is found as a released token that is still there") {
  CHECK(IsFoundAs("I2", Sabotage::kLostRelease));
}

TEST_CASE("a token that is granted to two is found as one that was given before") {
  CHECK(IsFoundAs("I6", Sabotage::kDoubleGrant));
}

TEST_CASE("a fence that is given out twice is found as one that was given before") {
  CHECK(IsFoundAs("I6", Sabotage::kFenceReused));
}

TEST_CASE("a level that is off by one is found") { CHECK(IsFoundAs("I5", Sabotage::kHighLevel)); }

TEST_CASE("a sweep that finds nothing is found by the tokens that are left") {
  CHECK(IsFoundAs("I7", Sabotage::kNoSweep));
}

TEST_CASE("a sweep that is half a minute late is found by tokens that should have ended") {
  CHECK(IsFoundAs("I7", Sabotage::kLateSweep));
}

TEST_CASE("a grant that tells of calls that nobody makes is found") {
  CHECK(IsFoundAs("I4", Sabotage::kWrongFigures));
}

TEST_CASE("a refusal that nothing stands behind is found") {
  CHECK(IsFoundAs("S1", Sabotage::kFalseRefusal));
}

TEST_CASE("a grant whose hold is not the one that was asked for is found") {
  CHECK(IsFoundAs("S6", Sabotage::kHoldIgnored));
}

TEST_CASE("a notice that a released token is lost is found") {
  CHECK(IsFoundAs("S7", Sabotage::kLostReleased));
}

// oracle_lost_test.cc has the crash between the two notices, after which the token is still there.
TEST_CASE("a notice before the commit is found as one that comes again behind it") {
  CHECK(IsFoundAs("S7", Sabotage::kLostEarly));
}

TEST_CASE("a session that is not told of its losses is found") {
  CHECK(IsFoundAs("S7", Sabotage::kLostWithheld));
}

TEST_CASE("a reboot that the server does not notice is found by fences that come again") {
  CHECK(IsFoundAs("I6", Sabotage::kUnnoticedReboot));
}

TEST_CASE("a recovery that does not replay the log is found by a token that is gone") {
  CHECK(IsFoundAs("I1", Sabotage::kLogNotReplayed));
}

TEST_CASE("a writer that answers after it was deposed is found by a token that is gone") {
  CHECK(IsFoundAs("I1", Sabotage::kDeposedAnswers));
}

TEST_CASE("an append that does not compare the claim is found by what two writers acknowledge") {
  CHECK(IsFoundAs("I1", Sabotage::kClaimNotCompared));
}

TEST_CASE("a writer that answers before its transaction is found by a token that is gone") {
  CHECK(IsFoundAs("I1", Sabotage::kTxnNotAwaited));
}

TEST_CASE("a writer that does not look at its lease is found by what it answers behind it") {
  CHECK(IsFoundAs("S9", Sabotage::kNoFence));
}

TEST_CASE("a takeover that trusts another machine's clock is found by tokens that end early") {
  CHECK(IsFoundAs("I1", Sabotage::kForeignClock));
}

TEST_CASE("a takeover without the last batch is found by counts that are not its ledger's") {
  CHECK(IsFoundAs("I4", Sabotage::kLastBatchMissed));
}

TEST_CASE("a turn that is not woken for a deadline is found by a token that should have ended") {
  CHECK(IsFoundAs("I7", Sabotage::kLostWake));
}

// A result of the scan before does no harm: the core asks its own tables what is due.
TEST_CASE("a turn that never hears of a scan is found by a token that should have ended") {
  CHECK(IsFoundAs("I7", Sabotage::kLostScan));
}

TEST_CASE("calls a second that pass beyond the window are found") {
  CHECK(IsFoundAs("S4", Sabotage::kFreeCalls));
}

TEST_CASE("calls of a value that pass beyond its window are found") {
  CHECK(IsFoundAs("S4", Sabotage::kFreeValues));
}

TEST_CASE("requests that pass beyond the guard of their namespace are found") {
  CHECK(IsFoundAs("S4", Sabotage::kFreeRequests));
}

TEST_CASE("calls a second that are blocked though there is room are found") {
  CHECK(IsFoundAs("S5", Sabotage::kFalseBlock));
}

TEST_CASE("a restart that forgets long windows is found by calls that pass beyond them") {
  CHECK(IsFoundAs("S4", Sabotage::kWindowsForgotten));
}

TEST_CASE("a PING that tells of a session too many is found") {
  CHECK(IsFoundAs("I4", Sabotage::kWrongOnline));
}

TEST_CASE("a token that is granted to two in frames is found as one that was given before") {
  CHECK(IsFoundAs("I6", Sabotage::kFrameTwice));
}

TEST_CASE("a lost release in a frame is found as a released token that is still there") {
  CHECK(IsFoundAs("I2", Sabotage::kFrameDropped));
}

TEST_CASE("a session that does not ask again is found") {
  CHECK(IsFoundAs("C4 an acquire without an answer", Sabotage::kSessionAsksOnce));
}

TEST_CASE("a session that forgets a release whose answer was lost is found") {
  CHECK(IsFoundAs("C4 a release", Sabotage::kSessionForgetsRelease));
}

TEST_CASE("a session that forgets its cancels is found") {
  CHECK(IsFoundAs("C4 an acquire that was given up", Sabotage::kSessionForgetsCancel));
}

TEST_CASE("a session that keeps nothing is found") {
  CHECK(IsFoundAs("C5", Sabotage::kSessionForgetsKeep));
}

TEST_CASE("a session that does not hear that a token is lost is found") {
  CHECK(IsFoundAs("C6", Sabotage::kSessionDeaf));
}

TEST_CASE("a session that leaves a caller without an answer is found") {
  CHECK(IsFoundAs("C1", Sabotage::kSessionSilent));
}

}  // namespace
}  // namespace nowcalls::sim
