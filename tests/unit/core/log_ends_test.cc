// Ended tokens that are logged, a line each.
#include "core/log_ends.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;

CoreOptions Logging(const LogEnds& ends) {
  CoreOptions options = testing::HarnessOptions();
  options.log_ends = ends;
  return options;
}

// The notices about ends, since the last call.
std::vector<Notice> Ends(CoreHarness* h) {
  std::vector<Notice> ends;
  for (Notice& notice : h->core().TakeNotices()) {
    if (notice.topic == LogTopic::kEnd) ends.push_back(std::move(notice));
  }
  return ends;
}

std::string TextOf(const Notice& notice) {
  std::string text = notice.text + "\n";
  for (const LogField& field : notice.fields) {
    text += std::string(field.name) + (field.number ? ":" : "=") + field.value + " ";
  }
  return text;
}

TEST_CASE("a line tells of a call that failed, and of the instance where there are several") {
  CoreHarness h(Logging({.all = true}));
  h.Rules({{.flow = 1}});
  const auto hello = [&h](uint64_t instance) {
    return h.core().Hello(h.step(), {"app", "a", "@x", instance})->session;
  };
  const SessionSlot one = hello(1);
  h.core().Release(h.step(), one, h.Take(one, 1), TokenScope::kSession, CallOutcome::kFailed);
  std::vector<Notice> ends = Ends(&h);
  REQUIRE(ends.size() == 1);
  CHECK(
      TextOf(ends[0]).find(" from client a of namespace app ended: released, call failed after") !=
      std::string::npos);
  CHECK(TextOf(ends[0]).find("outcome=failed ") != std::string::npos);
  CHECK(TextOf(ends[0]).find("instance") == std::string::npos);
  hello(2);
  h.core().Release(h.step(), one, h.Take(one, 1));
  ends = Ends(&h);
  REQUIRE(ends.size() == 1);
  CHECK(TextOf(ends[0]).find("client a, instance 1 of namespace app") != std::string::npos);
  CHECK(TextOf(ends[0]).find("instance=1 ") != std::string::npos);
  CHECK(TextOf(ends[0]).find("outcome") == std::string::npos);
}

TEST_CASE("each end of a chosen flow is a line with all that is known of it") {
  CoreHarness h(Logging({.flows = {1}}));
  h.Rules({{.flow = 1}, {.flow = 2}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1, 3);
  const int64_t issued_ms = h.now().ms;
  h.Take(a, 2);
  h.Sleep(70);
  CHECK(Ends(&h).empty());
  h.Release(a, token);
  const std::vector<Notice> ends = Ends(&h);
  REQUIRE(ends.size() == 1);
  const std::string id = std::to_string(token.value);
  CHECK_FALSE(ends[0].warning);
  CHECK(TextOf(ends[0]) == "token " + id +
                               " of flow 1 from client a of namespace app ended: released "
                               "after 70 ms\ntoken=" +
                               id +
                               " flow:1 namespace=app client=a count:3 fence:2 "
                               "reason=released held_ms:70 issued_ms:" +
                               std::to_string(issued_ms) + " ");
}

TEST_CASE("ends are chosen by flow, by the namespace of the client, or all of them") {
  const auto lines = [](const LogEnds& ends) {
    CoreHarness h(Logging(ends));
    h.Rules({{.flow = 1}, {.flow = 2}});
    const SessionSlot a = h.Hello("a");
    for (const int64_t flow : {1, 2, 2}) h.Release(a, h.Take(a, flow));
    return Ends(&h).size();
  };
  CHECK(lines({}) == 0);
  CHECK(lines({.flows = {2, 3}}) == 2);
  CHECK(lines({.namespaces = {"app"}}) == 3);
  CHECK(lines({.namespaces = {"other"}}) == 0);
  CHECK(lines({.all = true}) == 3);
}

TEST_CASE("tokens that are taken back are logged too, with the reason and the parameter's value") {
  CoreHarness h(Logging({.all = true}));
  h.Rules({{.flow = 1, .resource_timeout_ms = 100, .param = ParamRule{}}});
  const SessionSlot a = h.Hello("a");
  REQUIRE(h.Ask(a, {.flow = FlowId{1}, .param = Param{ParamType::kString, "red"}}, 1).has_value());
  h.Pass(10'000);
  const std::vector<Notice> ends = Ends(&h);
  REQUIRE(ends.size() == 1);
  CHECK(TextOf(ends[0]).find(" reason=resource_timeout ") != std::string::npos);
  CHECK(TextOf(ends[0]).ends_with(" param=red "));
}

}  // namespace
}  // namespace nowcalls::core
