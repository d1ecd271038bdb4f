// The listing of a parameter's values: both halves of a row, its bounds, and its errors.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/limits.h"
#include "support/engine_harness.h"
#include "wire/client_messages.h"
#include "wire/rows.h"

namespace nowcalls::engine {
namespace {

using testing::EngineHarness;
using testing::EngineReply;
using wire::OutputBuffer;
using wire::ParamRow;

// Of each value two calls, in progress or a second.
struct ValueServer {
  ValueServer() {
    OutputBuffer load;
    wire::EncodeRulesLoadRequest(1, "default",
                                 R"([{"resource": "chat", "paramIdx": 0, "count": 2,
                                      "paramFlowItemList": [
                                        {"object": "vip", "classType": "String", "count": 9}],
                                      "clusterMode": true,
                                      "clusterConfig": {"flowId": 7, "thresholdType": 1}}])",
                                 &load);
    client = h.Connect();
    REQUIRE(h.Call(client, load.view()).ErrorText() == "ok");
  }

  void Hold(const std::string& value) {
    wire::AcquireParams acquire{.flow_id = 7, .count = 1};
    acquire.param = Param{ParamType::kString, value};
    OutputBuffer out;
    wire::EncodeAcquireRequest(2, acquire, &out);
    REQUIRE(h.Call(client, out.view()).acquire().status == TokenStatus::kOk);
  }
  void Ask(const std::string& value, int64_t calls) {
    const Param param{ParamType::kString, value};
    OutputBuffer out;
    wire::EncodeValueRateRequest(3, {.flow_id = 7, .count = calls}, {&param, 1}, &out);
    REQUIRE(h.Call(client, out.view()).ErrorText() == "ok");
  }
  EngineReply Params(const wire::ValuesParams& params) {
    OutputBuffer out;
    wire::EncodeParamsRequest(4, params, &out);
    return h.Call(client, out.view());
  }
  std::vector<ParamRow> Rows(uint32_t limit = 0) {
    const EngineReply reply = Params({.flow_id = 7, .limit = limit});
    REQUIRE(reply.ErrorText() == "ok");
    Result<std::vector<ParamRow>> rows = wire::DecodeParamRows(reply.result);
    REQUIRE(rows.status().ToString() == "ok");
    return *std::move(rows);
  }

  EngineHarness h{Limits(), {}};
  ConnectionId client = 0;
};

ParamValue Text(const std::string& text) { return {ParamType::kString, text}; }

TEST_CASE("params shows calls in progress and calls a second of a value in one row") {
  ValueServer s;
  s.Ask("vip", 3);
  s.Ask("vip", 7);
  s.Ask("rate", 2);
  s.Hold("held");
  s.Hold("both");
  s.Hold("both");
  s.Ask("both", 1);
  const std::vector<ParamRow> expected = {
      {.param = Text("both"),
       .now_calls = 2,
       .tokens = 2,
       .level = 2,
       .waiters = 0,
       .passed = 1,
       .blocked = 0,
       .minute_passed = 1,
       .minute_blocked = 0},
      {.param = Text("held"), .now_calls = 1, .tokens = 1, .level = 2, .waiters = 0},
      {.param = Text("vip"),
       .level = 9,
       .waiters = 0,
       .passed = 3,
       .blocked = 7,
       .minute_passed = 3,
       .minute_blocked = 7},
      {.param = Text("rate"),
       .level = 2,
       .waiters = 0,
       .passed = 2,
       .blocked = 0,
       .minute_passed = 2,
       .minute_blocked = 0},
  };
  CHECK(s.Rows() == expected);
  CHECK(s.Rows(1) == std::vector<ParamRow>{expected[0]});
  // Nothing is asked for any more, but was in the last minute.
  s.h.Sleep(1500);
  const std::vector<ParamRow> later = s.Rows();
  REQUIRE(later.size() == 4);
  CHECK(later[2].passed == 0);
  CHECK(later[2].minute_passed == 3);
}

TEST_CASE("params orders by the last minute if it is asked to") {
  ValueServer s;
  s.h.Sleep(60'000 - s.h.now().ms % 60'000);
  s.Ask("before", 2);
  s.Ask("vip", 9);
  s.h.Sleep(2000);
  s.Ask("now", 1);
  CHECK(s.Rows(1)[0].param == Text("now"));
  const EngineReply reply = s.Params({.flow_id = 7, .limit = 2, .by_minute = true});
  Result<std::vector<ParamRow>> rows = wire::DecodeParamRows(reply.result);
  REQUIRE(rows.status().ToString() == "ok");
  REQUIRE(rows->size() == 2);
  CHECK((*rows)[0].param == Text("vip"));
  CHECK((*rows)[0].minute_passed == 9);
  CHECK((*rows)[1].param == Text("before"));
}

TEST_CASE("params gives 100 rows if it is not told, and never more than 1000") {
  ValueServer s;
  for (int i = 0; i < 1100; ++i) s.Ask("value " + std::to_string(i), 1 + i % 2);
  CHECK(s.Rows().size() == kListRowsDefault);
  const std::vector<ParamRow> most = s.Rows(kListRowsMax);
  REQUIRE(most.size() == kListRowsMax);
  CHECK(most[549].passed == 2);
  CHECK(most[550].passed == 1);
  CHECK(s.Params({.flow_id = 7, .limit = kListRowsMax + 1}).ErrorText() ==
        "BAD_PARAMS: params: limit must be 1..1000, got 1001");
}

TEST_CASE("params refuses a flow that is not there, and shows no values of a rule without any") {
  ValueServer s;
  CHECK(s.Params({.flow_id = 8}).ErrorText() ==
        "BAD_PARAMS: params: flow_id 8 has neither a rule nor tokens");
  CHECK(s.Rows().empty());
  s.Hold("held");
  OutputBuffer none;
  wire::EncodeRulesLoadRequest(1, "default", "[]", &none);
  REQUIRE(s.h.Call(s.client, none.view()).ErrorText() == "ok");
  CHECK(s.Rows() ==
        std::vector<ParamRow>{{.param = Text("held"), .now_calls = 1, .tokens = 1, .waiters = 0}});
}

}  // namespace
}  // namespace nowcalls::engine
