// What nowcalls-admin repair says, taken apart, and what a ledger on disk holds, row by row: so
// that what it says can be held against what is so.
//
// Thread: that of the test.
#ifndef NOWCALLS_INTEGRATION_SALVAGED_H_
#define NOWCALLS_INTEGRATION_SALVAGED_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/rpc_client.h"

namespace nowcalls::testing {

// Everything that the admin tool shows of a ledger on disk, each row with all its columns.
struct Contents {
  std::map<uint64_t, Json> tokens;    // By token id.
  std::map<uint64_t, Json> sessions;  // By number, without what sums up their tokens.
  std::map<int64_t, Json> rules;      // Those in force, by flow.
  std::map<int64_t, Json> flows;      // With nowCalls, tokens, and whether the rule was removed.
  std::vector<Json> sources;
  std::vector<Json> history;  // The oldest first, without the sequence numbers.
  Json verified;              // The summary of `verify`.

  uint64_t now_calls() const;
  uint64_t batch() const { return verified.at("batch_number").get<uint64_t>(); }
  void DropHistory(uint64_t token_id);
};
// Fails the test when the ledger does not verify, or when the counts of `verify` are not those of
// the rows. A server may have it open.
Contents ReadContents(const std::string& data_dir);
// Fails the test where these two differ.
void CheckSame(const Contents& left, const Contents& right);

// The lines of `repair` with their numbers.
struct Told {
  struct Sealed {
    uint64_t batch = 0;
    uint64_t tokens = 0;
    uint64_t now_calls = 0;
    bool others = false;  // As many, but not those that are there.
  };
  std::vector<std::string> lost;
  std::optional<Sealed> differs;
  std::vector<std::string> changed;
  uint64_t tokens = 0;
  uint64_t now_calls = 0;
  uint64_t sessions = 0;
  uint64_t rules = 0;
  uint64_t history = 0;
  uint64_t next_fence = 0;
};
// Fails the test for a line of another form.
Told ParseTold(const std::string& out, const std::string& to);

// Proves of a finished repair that the ledger in `to` is sound and has what was counted, and that
// a line "differs" is there, with the right numbers, if and only if other tokens are there than in
// `sealed`: the ledger after the last batch whose seal is left; nullptr: unknown. Returns what is
// there.
Contents CheckTold(const Told& told, const std::string& to, const Contents* sealed);

}  // namespace nowcalls::testing

#endif  // NOWCALLS_INTEGRATION_SALVAGED_H_
