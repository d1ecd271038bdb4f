// The table of methods against the document, and the seam between protocols and the engine.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "engine/rpc/methods.h"
#include "test_paths.h"

namespace nowcalls::engine::rpc {
namespace {

std::string TextOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  REQUIRE(file.good());
  return text.str();
}

std::string ProtocolText() { return TextOf(NOWCALLS_SOURCE_DIR "/src/wire/PROTOCOL.md"); }

// Whether the method is in a heading, "## a" or "### a, b", or has a line of the listings' table:
// "    a  params [...]".
bool IsDocumented(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("    " + name + " ") && line.find(" params [") != std::string::npos) {
      return true;
    }
    if (!line.starts_with("##")) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word == name || word == name + ",") return true;
    }
  }
  return false;
}

// The methods in the headings "### a, b" of a section.
std::set<std::string> MethodsOfSection(const std::string& title) {
  const std::string text = ProtocolText();
  size_t at = text.find("\n## " + title + "\n");
  REQUIRE(at != std::string::npos);
  const size_t end = text.find("\n## ", at + 1);
  std::set<std::string> methods;
  for (at = text.find("\n### ", at); at < end; at = text.find("\n### ", at + 1)) {
    std::istringstream names(text.substr(at + 5, text.find('\n', at + 1) - at - 5));
    for (std::string name; names >> name;) {
      if (name.ends_with(',')) name.pop_back();
      methods.insert(name);
    }
  }
  return methods;
}

TEST_CASE("methods for administrators are those that PROTOCOL.md shows as such") {
  std::set<std::string> documented = MethodsOfSection("Administration");
  documented.merge(MethodsOfSection("Rules"));
  std::set<std::string> in_table;
  for (const MethodRow& method : AllMethods()) {
    if (method.needs.role == access::Role::kAdministrator)
      in_table.emplace(wire::MethodName(method.id));
  }
  CHECK(in_table == documented);
}

TEST_CASE("PROTOCOL.md names every method, and says which may be notifications") {
  const std::string text = ProtocolText();
  std::string notifications;
  for (const MethodRow& method : AllMethods()) {
    const std::string name(wire::MethodName(method.id));
    CAPTURE(name);
    CHECK(IsDocumented(text, name));
    if (!method.as_notification) continue;
    notifications += (notifications.empty() ? "`" : " and `") + name + "`";
  }
  CHECK(text.find(notifications + " may be sent as notifications") != std::string::npos);
}

TEST_CASE("a method that shows records is for observers") {
  for (const MethodRow& method : AllMethods()) {
    CAPTURE(wire::MethodName(method.id));
    CHECK(FindMethod(method.id) == &method);
    // What is shown are records, and they may not be durable yet.
    if (method.cost.shows) CHECK(method.needs.role == access::Role::kObserver);
  }
  CHECK(FindMethod(wire::Method::kUnknown) == nullptr);
}

TEST_CASE("replies that show records are those of the listings in PROTOCOL.md") {
  std::string text = ProtocolText();
  text = text.substr(text.find("\n## Listings\n"));
  text = text.substr(0, text.find("\n## ", 1));
  for (const MethodRow& method : AllMethods()) {
    const std::string name(wire::MethodName(method.id));
    CAPTURE(name);
    const bool is_listing = text.find("    " + name + " ") != std::string::npos;
    CHECK(method.cost.shows == is_listing);
  }
}

TEST_CASE("the engine knows protocols through their seam only") {
  const std::set<std::string> may_know_all = {"protocols.cc", "engine_impl.h"};
  const std::filesystem::path folder = NOWCALLS_SOURCE_DIR "/src/engine";
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || may_know_all.contains(name)) continue;
    CAPTURE(name);
    const std::string text = TextOf(entry.path());
    CHECK(text.find("#include \"engine/rpc/") == std::string::npos);
    CHECK(text.find("#include \"wire/messages.h\"") == std::string::npos);
    CHECK(text.find("#include \"wire/splitter.h\"") == std::string::npos);
    ++files;
  }
  CHECK(files > 20);
}

}  // namespace
}  // namespace nowcalls::engine::rpc
