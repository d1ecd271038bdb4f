// What the vectors of data/golden/sessions have in common: a client, answers of its server, and the
// file that a script is compared with.
#ifndef NOWCALLS_UNIT_CLIENT_VECTOR_CASES_H_
#define NOWCALLS_UNIT_CLIENT_VECTOR_CASES_H_

#include <cstdint>
#include <filesystem>

#include "support/json.h"
#include "unit/client/vector_script.h"

namespace nowcalls::client {

const std::filesystem::path& VectorDirectory();

ClientOptions Shop(Fallback fallback = Fallback::kFail);
VectorScript Begin(const char* name, ClientOptions options = Shop());

// Under a rule with a resourceTimeout of 2 s.
Json Terms(int strategy, int64_t offline_ms = 60'000);
Json Granted(const Json& terms, uint64_t token = 101, uint64_t hold_ms = 4000);
Json KeptUnder(const Json& terms);
Json Blocked(const char* limit);
extern const Json kReleased;

// A page of rules_list with one rule.
Json Rules(int64_t flow, double count, bool local, const char* kind = "flow",
           Json config = Json::object());

// Plays what another test has written, or writes it, as NOWCALLS_WRITE_VECTORS says.
void Check(const VectorScript& script);

}  // namespace nowcalls::client

#endif  // NOWCALLS_UNIT_CLIENT_VECTOR_CASES_H_
