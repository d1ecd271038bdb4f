#include "integration/salvaged.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "support/admin.h"

namespace nowcalls::testing {
namespace {

// Takes a text apart from left to right; fails the test where it is another.
class Scanner {
 public:
  explicit Scanner(std::string text) : rest_(std::move(text)) {}

  bool Skip(const std::string& part) {
    const bool is_next = rest_.starts_with(part);
    if (is_next) rest_.erase(0, part.size());
    return is_next;
  }
  void Expect(const std::string& part) {
    CAPTURE(rest_);
    CAPTURE(part);
    REQUIRE(Skip(part));
  }
  uint64_t Number() {
    CAPTURE(rest_);
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    REQUIRE(error == std::errc());
    rest_.erase(0, static_cast<size_t>(end - rest_.data()));
    return number;
  }
  // A number and its noun.
  uint64_t Counted(const std::string& noun) {
    const uint64_t number = Number();
    Expect(" " + noun + (number == 1 ? "" : "s"));
    return number;
  }
  void ExpectEnd() const { REQUIRE(rest_ == ""); }

 private:
  std::string rest_;
};

Told::Sealed ParseDiffers(Scanner line) {
  Told::Sealed sealed;
  line.Expect("batch ");
  sealed.batch = line.Number();
  line.Expect(" was sealed over ");
  sealed.tokens = line.Counted("token");
  line.Expect(" with nowCalls ");
  sealed.now_calls = line.Number();
  sealed.others = line.Skip(", but not these: some are lost, and as many that had ended are back");
  line.ExpectEnd();
  return sealed;
}

void ParseSalvaged(Scanner line, const std::string& to, Told* told) {
  line.Expect("salvaged into " + to + ": ");
  told->tokens = line.Counted("token");
  line.Expect(" with nowCalls ");
  told->now_calls = line.Number();
  line.Expect(", ");
  told->sessions = line.Counted("session");
  line.Expect(", ");
  told->rules = line.Counted("rule");
  line.Expect(", ");
  told->history = line.Counted("history row");
  line.Expect("; fences go on at ");
  told->next_fence = line.Number();
  line.ExpectEnd();
}

template <typename Key>
std::map<Key, Json> By(const char* name, const std::vector<Json>& rows) {
  std::map<Key, Json> by;
  for (const Json& row : rows) by.emplace(row.at(name).get<Key>(), row);
  REQUIRE(by.size() == rows.size());
  return by;
}

template <typename Key>
void CheckSameRows(const char* what, const std::map<Key, Json>& left,
                   const std::map<Key, Json>& right) {
  CAPTURE(what);
  for (const auto& [key, row] : left) {
    const std::string in_left = row.dump();
    const auto other = right.find(key);
    const std::string in_right = other == right.end() ? "not there" : other->second.dump();
    CHECK(in_right == in_left);
  }
  for (const auto& [key, row] : right) {
    const std::string in_right = row.dump();
    CAPTURE(in_right);
    CHECK(left.contains(key));
  }
}

}  // namespace

uint64_t Contents::now_calls() const {
  uint64_t sum = 0;
  for (const auto& [id, row] : tokens) sum += row.at("count").get<uint64_t>();
  return sum;
}

void Contents::DropHistory(uint64_t token_id) {
  const auto is_that = [&](const Json& row) { return row.at("token_id") == token_id; };
  REQUIRE(std::erase_if(history, is_that) == 1);
}

Contents ReadContents(const std::string& data_dir) {
  const Source source = Source::Offline(data_dir);
  Contents contents;
  contents.tokens = By<uint64_t>("token_id", AdminRows(source, {"dump"}));
  contents.sessions = By<uint64_t>("session", AdminRows(source, {"sessions"}));
  for (const Json& rule : AdminRows(source, {"rules", "list"})) {
    contents.rules.emplace(rule.at("clusterConfig").at("flowId").get<int64_t>(), rule);
  }
  contents.flows = By<int64_t>("flow_id", AdminRows(source, {"stat"}));
  contents.sources = AdminRows(source, {"rules", "sources"});
  contents.history = AdminRows(source, {"history", "--limit", "1000"});
  std::reverse(contents.history.begin(), contents.history.end());
  uint64_t first = 0;
  for (size_t i = 0; i < contents.history.size(); ++i) {
    const auto sequence = contents.history[i].at("sequence").get<uint64_t>();
    if (i == 0) first = sequence;
    CHECK(sequence == first + i);
    contents.history[i].erase("sequence");
  }
  const Finished verified = RunAdmin(source, {"verify", "--format", "jsonl"});
  CAPTURE(verified.out);
  CAPTURE(verified.err);
  REQUIRE(verified.exit_code == 0);
  contents.verified = ParseJsonLines(verified.out).at(0);
  const auto removed = static_cast<size_t>(std::count_if(
      contents.flows.begin(), contents.flows.end(),
      [](const auto& flow) { return flow.second.at("removed").template get<bool>(); }));
  CHECK(contents.verified.at("tokens") == contents.tokens.size());
  CHECK(contents.verified.at("now_calls") == contents.now_calls());
  CHECK(contents.verified.at("sessions") == contents.sessions.size());
  CHECK(contents.verified.at("rules") == contents.rules.size() + removed);
  CHECK(contents.verified.at("history") == contents.history.size());
  for (auto& [number, session] : contents.sessions) {
    session.erase("tokens");
    session.erase("now_calls");
  }
  return contents;
}

void CheckSame(const Contents& left, const Contents& right) {
  CheckSameRows("tokens", left.tokens, right.tokens);
  CheckSameRows("sessions", left.sessions, right.sessions);
  CheckSameRows("rules", left.rules, right.rules);
  CHECK(Json(left.sources).dump() == Json(right.sources).dump());
  CHECK(Json(left.history).dump() == Json(right.history).dump());
}

Told ParseTold(const std::string& out, const std::string& to) {
  Told told;
  std::istringstream lines(out);
  bool is_done = false;
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    REQUIRE_FALSE(is_done);
    Scanner rest(line);
    if (rest.Skip("lost: ")) {
      told.lost.push_back(line.substr(6));
    } else if (rest.Skip("changed: ")) {
      told.changed.push_back(line.substr(9));
    } else if (rest.Skip("differs: ")) {
      REQUIRE_FALSE(told.differs.has_value());
      told.differs = ParseDiffers(rest);
    } else {
      ParseSalvaged(rest, to, &told);
      is_done = true;
    }
  }
  REQUIRE(is_done);
  return told;
}

Contents CheckTold(const Told& told, const std::string& to, const Contents* sealed) {
  Contents there = ReadContents(to);
  CHECK(told.tokens == there.tokens.size());
  CHECK(told.now_calls == there.now_calls());
  CHECK(told.sessions == there.sessions.size());
  CHECK(told.rules == there.verified.at("rules"));
  CHECK(told.history == there.history.size());
  std::set<uint64_t> numbers;
  for (const auto& [id, row] : there.tokens) numbers.insert(row.at("fence").get<uint64_t>());
  for (const auto& [number, row] : there.sessions) numbers.insert(number);
  for (const Json& row : there.history) numbers.insert(row.at("fence").get<uint64_t>());
  if (!numbers.empty()) CHECK(told.next_fence > *numbers.rbegin());
  if (sealed == nullptr) return there;
  std::set<uint64_t> ids_sealed;
  std::set<uint64_t> ids_there;
  for (const auto& [id, row] : sealed->tokens) ids_sealed.insert(id);
  for (const auto& [id, row] : there.tokens) ids_there.insert(id);
  CHECK(told.differs.has_value() == (ids_sealed != ids_there));
  if (!told.differs.has_value()) return there;
  CHECK(told.differs->batch == sealed->batch());
  CHECK(told.differs->tokens == sealed->tokens.size());
  CHECK(told.differs->now_calls == sealed->now_calls());
  CHECK(told.differs->others ==
        (sealed->tokens.size() == there.tokens.size() && sealed->now_calls() == there.now_calls()));
  return there;
}

}  // namespace nowcalls::testing
