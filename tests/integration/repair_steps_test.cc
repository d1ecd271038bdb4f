// nowcalls-admin repair, step by step: of a ledger of which is known what each batch did, single
// batches, logs and data files are taken away. What is missing and what is back afterwards must be
// what these did, to the last field, and what is told must be that.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "integration/calls.h"
#include "integration/salvaged.h"
#include "ledger/witness.h"
#include "support/admin.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMany = 300;

std::string LedgerFile(const std::string& data_dir, const std::string& ending) {
  std::string last;
  for (const auto& entry : fs::directory_iterator(data_dir + "/ledger")) {
    if (entry.path().string().ends_with(ending)) last = std::max(last, entry.path().string());
  }
  REQUIRE_FALSE(last.empty());
  return last;
}

// A call that a client or an operator made, and the batch that it became.
struct Step {
  uint64_t begin = 0;  // Bytes of the log.
  uint64_t end = 0;
  uint64_t batch = 0;
  Contents before;
  Contents after;
};

// A server's life: what it did in two runs is in data files, what it did in the third in its log.
// Lived once, since every case damages a copy.
class Life {
 public:
  static const Life& Get() {
    static const Life& life = *new Life;
    return life;
  }

  const std::string& data_dir() const { return data_dir_; }
  const Step& step(const std::string& name) const { return steps_.at(name); }
  const Contents& first() const { return first_; }    // As the data files of the first run have it.
  const Contents& closed() const { return closed_; }  // As the data files have it.
  const Contents& last() const { return last_; }

 private:
  Life();
  void FirstRun(TestServer* server);
  void SecondRun(TestServer* server);
  void ThirdRun(TestServer* server);
  void Do(const TestServer& server, const std::string& name, const std::function<void()>& act);
  static void Reclaim(const TestServer& server, uint64_t token, const std::string& reason) {
    const Source live = Source::Live(server.address());
    REQUIRE(RunAdmin(live, {"reclaim", std::to_string(token), "--reason", reason}).exit_code == 0);
  }

  const TempDir dir_;
  const std::string data_dir_ = dir_.Sub("data");
  std::map<std::string, Step> steps_;
  Contents first_;
  Contents closed_;
  Contents last_;
  std::vector<uint64_t> many_;  // Of alice.
  std::vector<uint64_t> few_;   // Of bob, with the counts 3, 4 and 5.
};

// Its tokens outlive the more than a hundred runs of the tool that this life has.
Json Lasting(int64_t flow, double level) {
  return RuleJson(flow, level, {{"resourceTimeout", 600'000}, {"clientOfflineTime", 600'000}});
}

Life::Life() {
  TestServer server(Json{Lasting(1, 100'000), Lasting(2, 100)});
  FirstRun(&server);
  SecondRun(&server);
  ThirdRun(&server);
  server.server().Kill9();
  CopyTree(server.data_dir(), data_dir_);
  last_ = ReadContents(data_dir_);
  CheckSame(last_, steps_.at("last").after);
}

void Life::FirstRun(TestServer* server) {
  RpcClient alice = server->Connect("alice");
  RpcClient bob = server->Connect("bob");
  RpcClient nobody = server->Connect();
  LoadRules(&alice, Lasting(7, 10), "shop");
  RpcClient carol = server->Connect("carol", "shop");
  many_ = AcquireMany(&alice, 1, kMany);
  for (const int64_t count : {3, 4, 5}) few_.push_back(Acquire(&bob, 2, count).token_id);
  Acquire(&carol, 7, 2);
  Acquire(&nobody, 1, 6);
  for (size_t i = 0; i < 20; ++i) REQUIRE(Release(&alice, many_[i]) == kStatusReleaseOk);
  Reclaim(*server, many_[20], "first");
  REQUIRE(server->server().Terminate() == 0);
  first_ = ReadContents(server->data_dir());
}

void Life::SecondRun(TestServer* server) {
  server->server().Start();
  RpcClient alice = server->Connect("alice");
  for (size_t i = 100; i < 120; ++i) REQUIRE(Release(&alice, many_[i]) == kStatusReleaseOk);
  Reclaim(*server, many_[120], "second");
  LoadRules(&alice, Lasting(7, 20), "shop");
  REQUIRE(server->server().Terminate() == 0);
  closed_ = ReadContents(server->data_dir());
}

void Life::Do(const TestServer& server, const std::string& name, const std::function<void()>& act) {
  const auto written = [&] {
    const std::string log = ReadFileToString(LedgerFile(server.data_dir(), ".log"));
    return log.find_last_not_of('\0') + 1;
  };
  Step step;
  step.before = ReadContents(server.data_dir());
  step.begin = written();
  act();
  step.end = written();
  step.after = ReadContents(server.data_dir());
  step.batch = step.after.batch();
  REQUIRE(step.before.batch() + 1 == step.batch);
  steps_.emplace(name, std::move(step));
}

void Life::ThirdRun(TestServer* server) {
  server->server().Start();
  RpcClient alice = server->Connect("alice");
  RpcClient bob = server->Connect("bob");
  RpcClient dave = server->Connect("dave");
  const auto act = [&](const std::string& name, const std::function<void()>& what) {
    Do(*server, name, what);
  };
  act("first", [&] { CHECK(Acquire(&alice, 1).status == kStatusOk); });
  act("release", [&] { CHECK(Release(&bob, few_[0]) == kStatusReleaseOk); });
  act("keep", [&] { CHECK(Keep(&alice, many_[200]) == 0); });
  act("grant", [&] { CHECK(Acquire(&bob, 2, 3).status == kStatusOk); });
  act("between", [&] { CHECK(Acquire(&alice, 1, 9).status == kStatusOk); });
  act("reclaim", [&] { Reclaim(*server, many_[201], "third"); });
  act("session", [&] { CHECK(Acquire(&dave, 1, 7).status == kStatusOk); });
  act("reclaim again", [&] { Reclaim(*server, many_[202], "fourth"); });
  act("rules", [&] { LoadRules(&alice, {Lasting(1, 5'000), Lasting(3, 50)}); });
  act("new flow", [&] { CHECK(Acquire(&dave, 3, 8).status == kStatusOk); });
  act("last", [&] { CHECK(Release(&alice, many_[203]) == kStatusReleaseOk); });
  // The witness comes within a second or so.
  REQUIRE(PollUntil(kPatienceMs, [&] {
    const auto found =
        ledger::DecodeWitnessFile(ReadFileToString(server->data_dir() + "/ledger/witness"));
    return found.witness.has_value() && found.witness->batch_number == steps_.at("last").batch;
  }));
}

// What a ledger without the batch of a step has, where no later step builds on that.
void Undo(const Step& step, Contents* contents) {
  for (const auto& [id, row] : step.after.tokens) {
    if (!step.before.tokens.contains(id)) contents->tokens.erase(id);
  }
  for (const auto& [id, row] : step.before.tokens) {
    const auto after = step.after.tokens.find(id);
    if (after == step.after.tokens.end() || after->second != row) contents->tokens[id] = row;
  }
  for (size_t i = step.before.history.size(); i < step.after.history.size(); ++i) {
    contents->DropHistory(step.after.history[i].at("token_id").get<uint64_t>());
  }
  if (step.before.rules != step.after.rules) {
    contents->rules = step.before.rules;
    contents->sources = step.before.sources;
  }
}

// A copy of that life's ledger, to be damaged.
class Damaged {
 public:
  Damaged() { fs::copy(life.data_dir(), from, fs::copy_options::recursive); }

  std::string Log() const { return LedgerFile(from, ".log"); }
  std::vector<std::string> DataFilesWith(const std::string& text) const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(from + "/ledger")) {
      const bool has = entry.path().extension() == ".sst" &&
                       ReadFileToString(entry.path()).find(text) != std::string::npos;
      if (has) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    REQUIRE_FALSE(files.empty());
    return files;
  }
  std::string LargestDataFile() const {
    const std::vector<std::string> files = DataFilesWith("");
    return *std::max_element(files.begin(), files.end(), [](const auto& a, const auto& b) {
      return fs::file_size(a) < fs::file_size(b);
    });
  }
  void Flip(const std::string& path, size_t offset) const {
    std::string bytes = ReadFileToString(path);
    bytes.at(offset) = static_cast<char>(bytes[offset] ^ 0x5a);
    WriteStringToFile(path, bytes);
  }
  // So that RocksDB cannot open it.
  void SpoilManifest() const {
    const std::string current = ReadFileToString(from + "/ledger/CURRENT");
    const std::string path = from + "/ledger/" + current.substr(0, current.find('\n'));
    Flip(path, fs::file_size(path) / 2);
  }
  void Lose(const Step& step) const { Flip(Log(), (step.begin + step.end) / 2); }

  // `sealed` as in CheckTold.
  void Repair(const Contents* sealed) {
    const auto files = Files();
    const Finished repaired = RunAdmin(Source::Offline(from), {"repair", "--to", to});
    CAPTURE(repaired.err);
    REQUIRE(repaired.exit_code == 0);
    CHECK((Files() == files));
    told = ParseTold(repaired.out, to);
    there = CheckTold(told, to, sealed);
  }
  void CheckToldLost(const std::vector<const Step*>& steps) const {
    REQUIRE(told.lost.size() == steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::regex form(
          "(.*): bytes ([0-9]+) to ([0-9]+) are no sound record, batch ([0-9]+) "
          "is missing there");
      std::smatch parts;
      CAPTURE(told.lost[i]);
      REQUIRE(std::regex_match(told.lost[i], parts, form));
      CHECK(parts[1] == Log());
      // The last bytes of a record may be zeros.
      constexpr uint64_t kZerosMax = 16;
      CHECK(std::stoull(parts[2]) >= steps[i]->begin);
      CHECK(std::stoull(parts[2]) <= steps[i]->begin + kZerosMax);
      CHECK(std::stoull(parts[3]) + 1 >= steps[i]->end);
      CHECK(std::stoull(parts[3]) + 1 <= steps[i]->end + kZerosMax);
      CHECK(std::stoull(parts[4]) == steps[i]->batch);
    }
  }

  const Life& life = Life::Get();
  const TempDir dir;
  const std::string from = dir.Sub("data");
  const std::string to = dir.Sub("salvaged");
  Told told;
  Contents there;

 private:
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(from)) {
      if (entry.is_regular_file()) files[entry.path()] = ReadFileToString(entry.path());
    }
    return files;
  }
};

TEST_CASE_FIXTURE(Damaged, "of a ledger that is whole every field of every row is salvaged") {
  Repair(&life.last());
  CHECK(told.lost.empty());
  CHECK_FALSE(told.differs.has_value());
  CHECK(told.changed.empty());
  CheckSame(there, life.last());
}

TEST_CASE_FIXTURE(Damaged, "what a lost batch granted is missing, and what it released is back") {
  const Step* step = &life.step("grant");
  bool differs = true;
  SUBCASE("a grant") {}
  SUBCASE("a release") { step = &life.step("release"); }
  SUBCASE("a reclaim, with its entry in the history") { step = &life.step("reclaim"); }
  SUBCASE("a keep") {
    step = &life.step("keep");
    differs = false;
  }
  Contents expected = life.last();
  Undo(*step, &expected);
  CHECK((expected.tokens != life.last().tokens));
  Lose(*step);
  Repair(&life.last());
  CheckToldLost({step});
  CHECK(told.differs.has_value() == differs);
  CHECK(told.changed.empty());
  CheckSame(there, expected);
}

TEST_CASE_FIXTURE(Damaged, "a grant and a release that were lost together are told of") {
  Contents expected = life.last();
  for (const char* name : {"release", "grant"}) {
    Undo(life.step(name), &expected);
    Lose(life.step(name));
  }
  Repair(&life.last());
  CheckToldLost({&life.step("release"), &life.step("grant")});
  REQUIRE(told.differs.has_value());
  CHECK(told.differs->others);
  CheckSame(there, expected);
}

TEST_CASE_FIXTURE(Damaged, "a token that is back is its client's, and can be released again") {
  Lose(life.step("release"));
  Repair(&life.last());
  const TempDir serving;
  fs::copy(to, serving.Sub("data"), fs::copy_options::recursive);
  ServerProcess server(serving.path());
  server.Start();
  RpcClient bob(server.address());
  ResultOf(&bob, "hello", {1, "default", "bob"});
  CHECK(NowCalls(&bob, 2) == 3 + 3 + 4 + 5);
  const Contents& before = life.step("release").before;
  const Contents& after = life.step("release").after;
  for (const auto& [id, row] : before.tokens) {
    if (!after.tokens.contains(id)) CHECK(Release(&bob, id) == kStatusReleaseOk);
  }
  CHECK(NowCalls(&bob, 2) == 3 + 4 + 5);
}

TEST_CASE_FIXTURE(Damaged, "the tokens of a session that was lost keep counting, in one made up") {
  const Step& step = life.step("session");
  Lose(step);
  Repair(&life.last());
  CheckToldLost({&step});
  uint64_t number = 0;
  for (const auto& [session, row] : step.after.sessions) {
    if (!step.before.sessions.contains(session)) number = session;
  }
  const std::string made_up = "@salvaged:" + std::to_string(number);
  CHECK(Json(told.changed) ==
        Json::array({"session " + std::to_string(number) + " is lost: its tokens belong to " +
                     made_up + ", and nobody can come back to it"}));
  Contents expected = life.last();
  Undo(step, &expected);
  size_t of_it = 0;
  for (auto& [id, row] : expected.tokens) {
    if (row.at("session") != number) continue;
    row["client_id"] = made_up;
    ++of_it;
  }
  CHECK(of_it == 1);
  Json& session = expected.sessions.at(number);
  session["client_id"] = made_up;
  session["kind"] = there.sessions.at(number).at("kind");
  CHECK(session["kind"] == "connection");
  session["opened_ms"] = there.sessions.at(number).at("opened_ms");
  CheckSame(there, expected);
}

TEST_CASE_FIXTURE(Damaged, "without the batch that changed the rules those before are in force") {
  const Step& step = life.step("rules");
  Lose(step);
  Repair(&life.last());
  CheckToldLost({&step});
  CHECK(Json(told.changed) ==
        Json::array({"the rule of flow 3 in namespace 'default' is lost: its tokens have "
                     "one that counts as removed"}));
  Contents expected = life.last();
  Undo(step, &expected);
  CheckSame(there, expected);
  CHECK(there.flows.at(3).at("removed") == true);
  CHECK(there.flows.at(3).at("now_calls") == 8);
}

TEST_CASE_FIXTURE(Damaged, "without the newest log the ledger is what the data files have") {
  const std::string log = Log();
  SUBCASE("gone") { fs::remove(log); }
  SUBCASE("empty") { fs::resize_file(log, 0); }
  Repair(&life.closed());
  const uint64_t first = life.closed().batch();
  const std::string batches =
      std::to_string(first + 1) + " to " + std::to_string(life.last().batch());
  CHECK(told.lost ==
        std::vector<std::string>{
            "batches " + batches +
            ", and perhaps later ones that nothing tells of: the last that is left is batch " +
            std::to_string(first)});
  CHECK(told.changed.empty());
  CheckSame(there, life.closed());
}

TEST_CASE_FIXTURE(Damaged, "put together from data files and the log, all is as it was") {
  SpoilManifest();
  Repair(&life.last());
  CHECK(told.lost.size() == 1);
  CHECK(told.changed.empty());
  CheckSame(there, life.last());
}

TEST_CASE_FIXTURE(Damaged, "tokens whose release was in a data file that is gone come back") {
  const std::vector<std::string> files = DataFilesWith("tokens_long");
  REQUIRE(files.size() == 2);
  fs::remove(files[1]);
  Repair(&life.last());
  REQUIRE(told.lost.size() == 1);
  CHECK(told.lost[0].find(fs::path(files[1]).filename().string()) != std::string::npos);
  CHECK(told.lost[0].find("tokens that had ended may have come back") != std::string::npos);
  Contents expected = life.last();
  std::string reclaimed;
  for (const auto& [id, row] : life.first().tokens) {
    if (life.closed().tokens.contains(id)) continue;
    const bool is_told =
        std::any_of(life.closed().history.begin(), life.closed().history.end(),
                    [id = id](const Json& entry) { return entry.at("token_id") == id; });
    if (is_told) reclaimed += std::to_string(id);
    if (!is_told) expected.tokens.emplace(id, row);
  }
  CHECK(expected.tokens.size() == life.last().tokens.size() + 20);
  REQUIRE(told.differs.has_value());
  CHECK(told.tokens - told.differs->tokens == 20);
  REQUIRE(told.changed.size() == 1);
  CHECK(told.changed[0].starts_with("token " + reclaimed + " "));
  CHECK(told.changed[0].ends_with(" is left out: the history tells of its end"));
  CheckSame(there, expected);
}

TEST_CASE_FIXTURE(Damaged, "without the data files of the rules those of the log are in force") {
  for (const std::string& file : DataFilesWith("\"resource\"")) fs::remove(file);
  Repair(&life.last());
  CHECK_FALSE(told.differs.has_value());
  CHECK(Json(told.changed) ==
        Json::array({"the rule of flow 7 in namespace 'shop' is lost: its tokens have one "
                     "that counts as removed"}));
  Contents expected = life.last();
  expected.rules.erase(7);
  for (Json& row : expected.sources) {
    row["source"] = nullptr;  // Any source may replace them.
    if (row.at("namespace") == "shop") row["rules"] = 0;
  }
  CheckSame(there, expected);
}

TEST_CASE_FIXTURE(Damaged, "without the data files of the history that of the log is left") {
  for (const std::string& file : DataFilesWith("history")) fs::remove(file);
  Repair(&life.last());
  CHECK_FALSE(told.differs.has_value());
  CHECK(told.changed.empty());
  Contents expected = life.last();
  expected.history.erase(expected.history.begin(), expected.history.begin() + 2);
  CHECK(expected.history.size() == 2);
  CheckSame(there, expected);
}

TEST_CASE_FIXTURE(Damaged, "without the data files of the sessions all tokens count on") {
  for (const std::string& file : DataFilesWith("sessions")) fs::remove(file);
  Repair(&life.last());
  CHECK_FALSE(told.differs.has_value());
  Contents expected = life.last();
  for (const auto& [number, row] : life.closed().sessions) {
    const std::string made_up = "@salvaged:" + std::to_string(number);
    CAPTURE(made_up);
    for (auto& [id, token] : expected.tokens) {
      if (token.at("session") == number) token["client_id"] = made_up;
    }
    const Json& made = there.sessions.at(number);
    CHECK(made.at("client_id") == made_up);
    CHECK(made.at("namespace") == row.at("namespace"));
    expected.sessions[number] = made;
  }
  CHECK(told.changed.size() == life.closed().sessions.size());
  CheckSame(there, expected);
}

TEST_CASE_FIXTURE(Damaged, "of a data file that is damaged in the middle only a block is missing") {
  const std::string file = LargestDataFile();
  REQUIRE(fs::file_size(file) > 12'000);
  Flip(file, 6'000);
  Repair(&life.last());
  REQUIRE(told.lost.size() == 1);
  CHECK(told.lost[0].find(fs::path(file).filename().string()) != std::string::npos);
  CHECK(told.changed.empty());
  REQUIRE(told.differs.has_value());
  CHECK(there.tokens.size() + 100 > life.last().tokens.size());
  Contents expected = life.last();
  std::erase_if(expected.tokens, [&](const auto& token) {
    return token.second.at("flow_id") == 1 && !there.tokens.contains(token.first);
  });
  CheckSame(there, expected);
}

}  // namespace
}  // namespace nowcalls::testing
