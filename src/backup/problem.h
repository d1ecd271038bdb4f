// Problem: a finding of verify.
//
// Thread: any.
#ifndef NOWCALLS_BACKUP_PROBLEM_H_
#define NOWCALLS_BACKUP_PROBLEM_H_

#include <string>
#include <string_view>

namespace nowcalls::backup {

// Names are stable: verify's first column.
enum class ProblemKind {
  kUndecodable,      // A record that does not decode, or that nothing should have written.
  kUnreadable,       // A family cannot be read on; its records from there on are not checked.
  kTokenId,          // token_id is not the permutation of the fence.
  kTokenFamily,      // The token may be held for less time than its family is for.
  kTokenTime,        // A deadline that no rule makes.
  kTokenFence,       // Not below the seal's next_fence.
  kTokenSession,     // Its session is not in the ledger.
  kTokenRule,        // Its flow has no rule in the ledger, not even one that was removed.
  kDuplicateFence,   // Two tokens, or a token and a session, have one number.
  kRequestId,        // Tokens that were not issued together have one.
  kWatermark,        // A deadline below it.
  kSession,          // Id or name of a session.
  kDuplicateClient,  // Two sessions of one client id in a namespace.
  kRule,             // JSON that is no rule, a rule of another flow, or one kept for no token.
  kDuplicateFlow,    // Two namespaces own one flow id.
  kNamespace,        // Its name or source, or a record of it without a rule.
  kClock,            // There is a clock mark without a seal, or a seal without a mark.
  kRate,             // A window of calls a second of a flow without a rule.
  kHistory,          // An entry that is missing, or that tells of what cannot have happened.
  kSeal,             // The live tokens are not those the last batch was sealed over.
  kFuture,           // A warning: a time beyond the last batch, or going back. A server accepts it.
};
std::string_view ProblemName(ProblemKind kind);

struct Problem {
  ProblemKind kind = ProblemKind::kUndecodable;
  std::string family;  // Column family; empty when the problem is of the ledger as a whole.
  std::string key;     // In hexadecimal.
  std::string detail;  // A sentence with the decoded ids.
};

}  // namespace nowcalls::backup

#endif  // NOWCALLS_BACKUP_PROBLEM_H_
