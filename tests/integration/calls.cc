#include "integration/calls.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "support/poll_until.h"
#include "support/server_process.h"

namespace nowcalls::testing {

Json ResultOf(RpcClient* client, const std::string& method, const Json& params) {
  const Reply reply = client->Call(method, params);
  CAPTURE(method);
  CAPTURE(reply.ToString());
  REQUIRE(reply.ok());
  return reply.result;
}

Reply ErrorOf(RpcClient* client, const std::string& method, const Json& params) {
  Reply reply = client->Call(method, params);
  CAPTURE(method);
  CAPTURE(params.dump());
  CAPTURE(reply.ToString());
  REQUIRE(reply.kind == Reply::Kind::kError);
  return reply;
}

bool Names(const Reply& error, const std::string& part) {
  return Contains(error.error_message, part);
}

Grant Acquire(RpcClient* client, int64_t flow_id, int64_t count) {
  const Json result = ResultOf(client, "acquire", {flow_id, count});
  REQUIRE(result.size() == 7);
  Grant grant{result[0].get<int64_t>(),
              result[1].get<uint64_t>(),
              result[2].get<uint64_t>(),
              result[3].get<int64_t>(),
              result[4].get<int64_t>(),
              result[5].get<int64_t>(),
              ""};
  if (!result[6].is_null()) grant.refused_by = result[6].get<std::string>();
  return grant;
}

int64_t Release(RpcClient* client, uint64_t token_id) {
  return ResultOf(client, "release", Json::array({token_id})).at(0).get<int64_t>();
}

int64_t Keep(RpcClient* client, uint64_t token_id) {
  return ResultOf(client, "keep", Json::array({token_id})).at(0).get<int64_t>();
}

int64_t NowCalls(RpcClient* client, int64_t flow_id) {
  return ResultOf(client, "flow", Json::array({flow_id})).at("now_calls").get<int64_t>();
}

Json LoadRules(RpcClient* client, const Json& rules, const std::string& name_space) {
  return ResultOf(client, "rules_load", {name_space, RuleSet(rules)});
}

bool ReachesLevel(const std::string& address, int64_t flow_id, int64_t level) {
  return PollUntil(kPatienceMs, [&] {
    const Reply flow = RpcClient(address).Call("flow", Json::array({flow_id}));
    return flow.ok() && flow.result.contains("level") && flow.result.at("level") == level;
  });
}

std::vector<Json> ListAll(RpcClient* client, const std::string& method, const Json& params,
                          int64_t limit) {
  std::vector<Json> rows;
  Json cursor = nullptr;
  do {
    Json page_params = params;
    page_params.push_back(limit);
    page_params.push_back(cursor);
    const Json page = ResultOf(client, method, page_params);
    REQUIRE(page.size() == 2);
    REQUIRE(page[0].size() <= static_cast<size_t>(limit));
    rows.insert(rows.end(), page[0].begin(), page[0].end());
    cursor = page[1];
  } while (!cursor.is_null());
  return rows;
}

std::vector<uint64_t> AcquireMany(RpcClient* client, int64_t flow_id, size_t total) {
  constexpr size_t kInFlight = 500;
  std::vector<uint64_t> tokens;
  size_t sent = 0;
  while (tokens.size() < total) {
    for (; sent < std::min(total, tokens.size() + kInFlight); ++sent) {
      client->Send("acquire", {flow_id, 1});
    }
    const Reply reply = client->Receive();
    CAPTURE(reply.ToString());
    REQUIRE(reply.ok());
    REQUIRE(reply.result.at(0) == kStatusOk);
    tokens.push_back(reply.result.at(1).get<uint64_t>());
  }
  return tokens;
}

}  // namespace nowcalls::testing
