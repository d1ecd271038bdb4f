// Calls with their results taken apart, for tests: a reply that is not a result fails the test.
//
// Thread: that of the test.
#ifndef NOWCALLS_INTEGRATION_CALLS_H_
#define NOWCALLS_INTEGRATION_CALLS_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "support/rpc_client.h"

namespace nowcalls::testing {

// TokenStatus numbers as the protocol has them.
inline constexpr int64_t kStatusBadRequest = -4;
inline constexpr int64_t kStatusTooManyRequest = -2;
inline constexpr int64_t kStatusOk = 0;
inline constexpr int64_t kStatusBlocked = 1;
inline constexpr int64_t kStatusNoRuleExists = 3;
inline constexpr int64_t kStatusReleaseOk = 6;
inline constexpr int64_t kStatusAlreadyRelease = 7;

// Numbers of request errors.
inline constexpr int64_t kErrorUnknownMethod = 2;
inline constexpr int64_t kErrorBadParams = 3;
inline constexpr int64_t kErrorOverloaded = 5;
inline constexpr int64_t kErrorHelloState = 4;
inline constexpr int64_t kErrorUnsupported = 6;
inline constexpr int64_t kErrorConflict = 7;

struct Grant {
  int64_t status = 0;
  uint64_t token_id = 0;
  uint64_t fence = 0;
  int64_t now_calls = 0;
  int64_t level = 0;
  int64_t hold_ms = 0;
  std::string refused_by;  // Empty for nil.
};

// The result of a call; fails the test when there is none.
Json ResultOf(RpcClient* client, const std::string& method, const Json& params = Json::array());
// The error of a call; fails the test when there is none.
Reply ErrorOf(RpcClient* client, const std::string& method, const Json& params = Json::array());

// Whether the message of an error has `part`.
bool Names(const Reply& error, const std::string& part);

Grant Acquire(RpcClient* client, int64_t flow_id, int64_t count = 1);
int64_t Release(RpcClient* client, uint64_t token_id);
int64_t Keep(RpcClient* client, uint64_t token_id);
int64_t NowCalls(RpcClient* client, int64_t flow_id);
Json LoadRules(RpcClient* client, const Json& rules, const std::string& name_space = "default");
// Whether the flow comes to have that level, after a while.
bool ReachesLevel(const std::string& address, int64_t flow_id, int64_t level);

// All rows of a listing (tokens, sessions, flows, rules_list), page by page. `params` are those in
// front of limit and cursor.
std::vector<Json> ListAll(RpcClient* client, const std::string& method,
                          const Json& params = Json::array(), int64_t limit = 1000);

// The values of one member over all rows.
template <typename T>
std::multiset<T> Column(const std::vector<Json>& rows, const std::string& name) {
  std::multiset<T> values;
  for (const auto& row : rows) values.insert(row.at(name).get<T>());
  return values;
}

// Acquires `total` tokens of count 1 with many requests in flight; ids in the order of the answers.
std::vector<uint64_t> AcquireMany(RpcClient* client, int64_t flow_id, size_t total);

}  // namespace nowcalls::testing

#endif  // NOWCALLS_INTEGRATION_CALLS_H_
