#include "server/config/config_file.h"

#include <doctest/doctest.h>

#include <string>

#include "server/config/settings.h"

namespace nowcalls::server {
namespace {

std::string ErrorOf(std::string_view text) {
  const auto values = ParseConfigFile("nowcalls.toml", text);
  if (values.ok()) return "no error";
  CHECK(values.status().code() == StatusCode::kInvalidArgument);
  return values.status().message();
}

TEST_CASE("each kind of setting is taken from its TOML type") {
  const auto values = ParseConfigFile("nowcalls.toml", R"(# a comment
data_dir = "/var/lib/nowcalls"
sweep_interval_ms = 250
insecure_listen = true
rules = ["shop=shop.json", "llm.json"]
resource_timeout_factor = 2.5
)");
  REQUIRE(values.ok());
  REQUIRE(values->size() == 5);
  ServerConfig config;
  for (const FileValue& value : *values) {
    REQUIRE(Settings()[value.setting].set(value.values, &config).ok());
    if (Settings()[value.setting].name == "rules") CHECK(value.line == 5);
  }
  CHECK(config.data_dir == "/var/lib/nowcalls");
  CHECK(config.core.sweep_interval_ms == 250);
  CHECK(config.insecure_listen);
  CHECK(config.rules.size() == 2);
  CHECK(config.core.resource_timeout_factor == 2.5);
}

TEST_CASE("a table of integers is the list of its entries") {
  const auto values =
      ParseConfigFile("nowcalls.toml", "[namespace_guard]\nshop = 50_000\n\"a b\" = 0\n");
  REQUIRE(values.status().ToString() == "ok");
  REQUIRE(values->size() == 1);
  ServerConfig config;
  REQUIRE(Settings()[values->front().setting].set(values->front().values, &config).ok());
  CHECK(config.core.guards().Of("shop") == 50'000);
  CHECK(config.core.guards().Of("a b") == 0);
  CHECK(config.core.guards().Of("else") == 30'000);
  const auto error = [](const char* text) {
    return ParseConfigFile("nowcalls.toml", text).status().message();
  };
  CHECK(error("[namespace_guard]\nshop = \"many\"\n") ==
        "nowcalls.toml:1: namespace_guard must be a table of integers, but shop is a string");
  CHECK(error("namespace_guard = 5\n") ==
        "nowcalls.toml:1: namespace_guard must be a table of integers, got an integer");
}

TEST_CASE("a whole number may stand for a factor") {
  const auto values = ParseConfigFile("nowcalls.toml", "resource_timeout_factor = 3");
  REQUIRE(values.ok());
  CHECK(values->front().values.front() == "3");
}

TEST_CASE("a key of the file that is no setting is refused with its line") {
  CHECK(ErrorOf("\n\ndatadir = 'x'\n") ==
        "nowcalls.toml:3: unknown key 'datadir'; did you mean data_dir?");
  CHECK(ErrorOf("[limits]\nconnections_max = 1\n") == "nowcalls.toml:1: unknown key 'limits'");
  CHECK(ErrorOf("data-dir = 'x'\n") ==
        "nowcalls.toml:1: unknown key 'data-dir'; did you mean data_dir?");
}

TEST_CASE("a value of the file that has the wrong type is refused with its line and both types") {
  CHECK(ErrorOf("data_dir = 'x'\nsweep_interval_ms = '5'\n") ==
        "nowcalls.toml:2: sweep_interval_ms must be an integer, got a string");
  CHECK(ErrorOf("sweep_interval_ms = 5.0") ==
        "nowcalls.toml:1: sweep_interval_ms must be an integer, got a float");
  CHECK(ErrorOf("data_dir = 5") == "nowcalls.toml:1: data_dir must be a string, got an integer");
  CHECK(ErrorOf("insecure_listen = 1") ==
        "nowcalls.toml:1: insecure_listen must be true or false, got an integer");
  CHECK(ErrorOf("rules = 5") ==
        "nowcalls.toml:1: rules must be a string or an array of strings, got an integer");
  CHECK(ErrorOf("rules = ['a.json', 5]") ==
        "nowcalls.toml:1: rules must be a string or an array of strings, but element 2 is an "
        "integer");
  CHECK(
      ErrorOf("rules = [['a.json']]") ==
      "nowcalls.toml:1: rules must be a string or an array of strings, but element 1 is an array");
  CHECK(ErrorOf("data_dir = ['a']") == "nowcalls.toml:1: data_dir must be a string, got an array");
  CHECK(ErrorOf("durability = 1979-05-27") ==
        "nowcalls.toml:1: durability must be a string, got a date or time");
}

TEST_CASE("a file that is not TOML is refused with the line") {
  CHECK(ErrorOf("data_dir = 'x'\nlisten =\n").starts_with("nowcalls.toml:2: not valid TOML: "));
  CHECK(
      ErrorOf("data_dir = 'a'\ndata_dir = 'b'\n").starts_with("nowcalls.toml:2: not valid TOML: "));
  CHECK(ErrorOf(std::string("\xff\xfe\x00\x01", 4)).starts_with("nowcalls.toml:1: "));
}

TEST_CASE("keys of very many parts are refused before they are parsed") {
  const auto dotted = [](int parts) {
    std::string key = "a";
    for (int i = 1; i < parts; ++i) key += ".a";
    return key;
  };
  constexpr const char* kTooMany =
      "nowcalls.toml: more than 4000 dots outside of strings; the keys of settings have none";
  CHECK(ErrorOf("# dots...\n" + dotted(300'000) + " = 1") == kTooMany);
  CHECK(ErrorOf("[" + dotted(300'000) + "]") == kTooMany);
  CHECK(ErrorOf(dotted(4000) + " = 1").starts_with("nowcalls.toml:1: unknown key"));
  std::string levels = "x = [";
  for (int level = 0; level < 200; ++level) levels += "\n{" + dotted(1000) + " = [";
  CHECK(ErrorOf(levels) == kTooMany);
  // Wherever something may begin that the parser sees and we do not.
  for (const char* hidden : {"# '\n", "# '\v", "# '\f", "# '\r", "# '\xc2\x85", "# '\xe2\x80\xa8",
                             "# '\xe2\x80\xa9", "# \"\\\n", "# \"\\\"\n"}) {
    CAPTURE(hidden);
    CHECK(ErrorOf(hidden + dotted(300'000) + " = '\"") == kTooMany);
  }
  for (const std::string quotes : {R"(""")", "'''"}) {
    CHECK(ErrorOf("data_dir = " + quotes + "\n") ==
          "nowcalls.toml: " + quotes + " begins a string of several lines, which no setting needs");
  }
  CHECK(ErrorOf("data_dir = \"" + dotted(5000) + "\\\"\"\nlisten = '" + dotted(5000) + "'") ==
        "no error");
}

TEST_CASE("a text of the file has no NUL, behind which nobody would see it") {
  CHECK(ErrorOf("data_dir = \"a\\u0000b\"") == "nowcalls.toml:1: data_dir has a U+0000");
  CHECK(ErrorOf("rules = ['a', \"b\\u0000\"]") == "nowcalls.toml:1: rules has a U+0000");
}

}  // namespace
}  // namespace nowcalls::server
