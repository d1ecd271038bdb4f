#include "base/near_name.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace nowcalls {
namespace {

const std::vector<std::string> kNames = {"data_dir", "tokens_max", "sessions_max", "rules"};

TEST_CASE("a name is near that differs by case, hyphens or two letters") {
  for (const char* wrong :
       {"data_dir", "data-dir", "DATA_DIR", "datadir", "d-a-t-a-d-i-r", "dta_di", "xdata_dirx"}) {
    CAPTURE(wrong);
    CHECK(NearName(wrong, kNames) == "data_dir");
  }
  CHECK(NearName("token_max", kNames) == "tokens_max");
  CHECK(DidYouMean("rule", kNames) == "; did you mean rules?");
}

TEST_CASE("what differs by more letters is near nothing") {
  for (const std::string& wrong :
       {std::string("dat_xx"), std::string("limits"), std::string(""), std::string(100'000, 'x')}) {
    CHECK(NearName(wrong, kNames).empty());
    CHECK(DidYouMean(wrong, kNames).empty());
  }
}

TEST_CASE("of several near names the nearest is taken") {
  CHECK(NearName("abce", {"abcd", "abce", "abcf"}) == "abce");
  CHECK(NearName("abcde", {"abxx", "abcd"}) == "abcd");
}

TEST_CASE("a plain name is the same in every case, with hyphens and with underscores") {
  for (const char* name : {"flowId", "FlowID", "flow_id", "flow-id", "_FLOW__ID-"}) {
    CHECK(PlainName(name) == "flowid");
  }
  CHECK(PlainName("flow id") == "flow id");
  CHECK(PlainName("").empty());
}

}  // namespace
}  // namespace nowcalls
