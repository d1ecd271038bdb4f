// Watched rule files: real files and a real loop in front of a real core.
#include "server/rules/file_rule_source.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/fingerprint.h"
#include "core/tables/flow_table.h"
#include "engine/rule_intake.h"
#include "support/core_harness.h"
#include "support/only_flow.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/server/loop_fixture.h"

namespace nowcalls::server {
namespace {

namespace fs = std::filesystem;
using testing::RuleOptions;
using testing::RulesJson;
using testing::WriteStringToFile;

// A sink that counts what gets through.
class CountingSink final : public RuleSink {
 public:
  explicit CountingSink(testing::CoreHarness* h) : intake_(&h->core(), [h] { return h->step(); }) {}

  Result<CheckedSet> Check(std::string_view source, std::string_view name_space,
                           std::string_view json) const override {
    return intake_.Check(source, name_space, json);
  }
  Status Claim(const RuleClaim& claim) override { return intake_.Claim(claim); }
  Status Replace(const std::vector<CheckedSet>& sets) override {
    Status status = intake_.Replace(sets);
    if (status.ok()) ++replaced;
    return status;
  }

  void NoteRefused(std::string_view source, std::string_view name_space,
                   const Status& why) override {
    intake_.NoteRefused(source, name_space, why);
    if (!why.ok()) ++refused;
  }

  int replaced = 0;
  int refused = 0;

 private:
  engine::RuleIntake intake_;
};

// Files NAMESPACE.json in a directory of its own; at the start all are empty sets and loaded.
class Watched {
 public:
  explicit Watched(const std::vector<std::string>& namespaces, size_t watches_max = 100)
      : sink(&h) {
    for (const std::string& name_space : namespaces) {
      files_.push_back({name_space, Path(name_space)});
      Write(name_space, {});
    }
    options_.settle_ms = 5;
    options_.poll_ms = 5;
    options_.watches_max = watches_max;
  }
  ~Watched() {
    if (source == nullptr) return;
    source->Stop();
    uv_run(loop.get(), UV_RUN_DEFAULT);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  std::string Path(const std::string& name_space) const { return dir.Sub(name_space + ".json"); }
  void Write(const std::string& name_space, const std::vector<RuleOptions>& rules) const {
    WriteStringToFile(Path(name_space), RulesJson(rules));
  }
  // As editors do.
  void Rename(const std::string& name_space, const std::string& text) const {
    WriteStringToFile(Path(name_space) + "~", text);
    fs::rename(Path(name_space) + "~", Path(name_space));
  }

  // Begins to watch; what the files hold now counts as loaded. Returns when all is quiet.
  void Start() {
    std::vector<RulesAtStart> at_start;
    for (const RuleFile& file : files_) {
      at_start.push_back({.fingerprint = Fingerprint(testing::ReadFileToString(file.path))});
    }
    source = std::make_unique<FileRuleSource>(
        loop.get(), files_, at_start, options_,
        [this](Severity severity, const std::string& text, const LogFields&) {
          log += std::string(SeverityName(severity)) + " " + text + "\n";
        });
    REQUIRE(source->Start(&sink).ToString() == "ok");
    // The look of the start, and the one after the watches are set.
    Await([this] { return source->idle(); });
  }

  void Await(const std::function<bool()>& holds) {
    const bool held = loop.RunUntil(holds);
    INFO(log);
    REQUIRE(held);
  }
  void AwaitLevel(int64_t flow, double count) {
    Await([=, this] { return Level(flow) == count; });
  }
  void AwaitLog(const std::string& text) {
    Await([&] { return log.find(text) != std::string::npos; });
  }
  void SetStrict() { options_.strict = true; }
  const core::RuleLoads& Loads(const std::string& name_space) {
    const core::FlowTable& flows = h.core().flows();
    const core::NamespaceSlot slot = flows.FindNamespace(name_space);
    REQUIRE(slot != core::kNoNamespace);
    return flows.name_space(slot).loads;
  }
  // -1: it has no rule.
  double Level(int64_t flow) {
    const core::FlowTable& flows = h.core().flows();
    const core::FlowSlot slot = OnlyFlow(flows, flow);
    return slot == core::kNoFlow ? -1 : flows.at(slot).rule->count;
  }
  int Logged(const std::string& text) const {
    int count = 0;
    for (size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++count;
    return count;
  }

  testing::TempDir dir;
  testing::CoreHarness h;
  CountingSink sink;
  TestLoop loop;
  std::string log;
  std::unique_ptr<FileRuleSource> source;

 private:
  std::vector<RuleFile> files_;
  FileRuleSourceOptions options_;
};

TEST_CASE("a file that is renamed over, as editors do, is loaded") {
  Watched w({"shop"});
  w.Start();
  w.Rename("shop", RulesJson({{.flow = 1, .count = 7}}));
  w.AwaitLevel(1, 7);
  w.Rename("shop", RulesJson({{.flow = 1, .count = 8}, {.flow = 2}}));
  w.AwaitLevel(1, 8);
  CHECK(w.Logged("info rule file " + w.Path("shop") +
                 ": loaded, 2 rules of namespace 'shop' in force\n") == 1);
  CHECK(w.log.find("warn") == std::string::npos);
}

TEST_CASE("a file that is truncated and written is loaded, and a half of it is not") {
  Watched w({"shop"});
  w.Write("shop", {{.flow = 1, .count = 3}});
  w.Start();
  const std::string text = RulesJson({{.flow = 1, .count = 4}});
  WriteStringToFile(w.Path("shop"), text.substr(0, text.size() / 2));
  w.AwaitLog("not valid JSON");
  CHECK(w.Level(1) == -1);  // Not loaded by anybody yet: what is there counts as loaded.
  WriteStringToFile(w.Path("shop"), text);
  w.AwaitLevel(1, 4);
}

TEST_CASE("a bad set is refused once, by file, rule and field, and the rules of before stay") {
  Watched w({"shop", "bank"});
  w.Start();
  w.Write("shop", {{.flow = 1, .count = 7}});
  w.AwaitLevel(1, 7);
  w.Write("shop", {{.flow = 1, .count = 8}, {.flow = 2, .count = -1}});
  const std::string refusal = "warn rule file " + w.Path("shop") +
                              ": rule 2 (resource \"r2\", flowId 2): count must be >= 0; the rules "
                              "of before stay in force\n";
  w.AwaitLog(refusal);
  CHECK(w.Level(1) == 7);
  // Written again without a change it is looked at, together with another, and not told again.
  w.Write("shop", {{.flow = 1, .count = 8}, {.flow = 2, .count = -1}});
  w.Write("bank", {{.flow = 3, .count = 1}});
  w.AwaitLevel(3, 1);
  CHECK(w.Logged(refusal) == 1);
  CHECK(w.Level(1) == 7);
  w.Write("shop", {{.flow = 1, .count = 9}});
  w.AwaitLevel(1, 9);
}

TEST_CASE(
    "a set that is warned of is refused where warnings are errors, and the rules of before stay") {
  Watched w({"shop"});
  w.SetStrict();
  w.Start();
  w.Write("shop", {{.flow = 1, .count = 7}});
  w.AwaitLevel(1, 7);
  w.Rename("shop", R"([{"resource": "r", "count": 3, "clusterMode": true, "limitApp": "appA",
                        "clusterConfig": {"flowId": 1}}])");
  w.AwaitLog(
      "1 warning, and rules-strict takes none; the first: rule 1 (resource \"r\", flowId 1): "
      "limitApp");
  CHECK(w.Level(1) == 7);
  w.Write("shop", {{.flow = 1, .count = 8}});
  w.AwaitLevel(1, 8);
}

TEST_CASE("the namespace tells that its file was refused or is gone, until it is right again") {
  Watched w({"shop"});
  w.Start();
  w.Write("shop", {{.flow = 1, .count = 7}});
  w.AwaitLevel(1, 7);
  CHECK(w.Loads("shop").refused_ms == 0);
  CHECK(w.Loads("shop").loaded_ms > 0);
  w.Write("shop", {{.flow = 1, .count = -1}});
  w.Await([&] { return w.Loads("shop").refused_ms > 0; });
  CHECK(w.Loads("shop").refusal.find("count must be >= 0") != std::string::npos);
  w.Write("shop", {{.flow = 1, .count = 8}});
  w.AwaitLevel(1, 8);
  CHECK(w.Loads("shop").refused_ms == 0);
  const std::string text = testing::ReadFileToString(w.Path("shop"));
  fs::remove(w.Path("shop"));
  w.Await([&] { return w.Loads("shop").refused_ms > 0; });
  CHECK(w.Loads("shop").refusal.find("is gone") != std::string::npos);
  WriteStringToFile(w.Path("shop"), text);
  w.Await([&] { return w.Loads("shop").refused_ms == 0; });
}

TEST_CASE("what goes on being wrong with a file counts as one refusal") {
  Watched w({"shop", "bank"}, /*watches_max=*/0);  // Each look is at both.
  REQUIRE(testing::ReplaceRules(&w.h.core(), w.h.step(), "taken", RulesJson({{.flow = 9}})).ok());
  w.Start();
  SUBCASE("it is gone") {
    fs::remove(w.Path("shop"));
    w.AwaitLog("is gone");
  }
  SUBCASE("another namespace has its flow") {
    w.Write("shop", {{.flow = 9}});
    w.AwaitLog("belongs to namespace taken");
  }
  CHECK(w.sink.refused == 1);
  for (int count = 1; count <= 5; ++count) {
    w.Write("bank", {{.flow = 3, .count = static_cast<double>(count)}});
    w.AwaitLevel(3, count);
  }
  CHECK(w.sink.refused == 1);
}

TEST_CASE("a bad file that comes back as it was is refused for what is wrong with it") {
  Watched w({"shop"});
  w.Start();
  w.Write("shop", {{.flow = 1, .count = -1}});
  w.AwaitLog("count must be >= 0");
  fs::rename(w.Path("shop"), w.Path("away"));
  w.AwaitLog("is gone");
  CHECK(w.Loads("shop").refusal.find("is gone") != std::string::npos);
  fs::rename(w.Path("away"), w.Path("shop"));
  w.Await([&] { return w.Logged("count must be >= 0") == 2; });
  CHECK(w.Loads("shop").refusal.find("count must be >= 0") != std::string::npos);
}

TEST_CASE("a file that is written without a change of its content does nothing") {
  Watched w({"shop", "bank"});
  w.Write("shop", {{.flow = 1, .count = 7}});
  w.Start();
  w.Write("shop", {{.flow = 1, .count = 7}});
  w.Rename("shop", RulesJson({{.flow = 1, .count = 7}}));
  w.Write("bank", {{.flow = 3, .count = 1}});
  w.AwaitLevel(3, 1);
  CHECK(w.sink.replaced == 1);
  CHECK(w.Logged("shop.json") == 0);
}

TEST_CASE("the rules of a deleted file stay, and it is loaded when it is back with others") {
  Watched w({"shop"});
  w.Start();
  w.Write("shop", {{.flow = 1, .count = 7}});
  w.AwaitLevel(1, 7);
  fs::remove(w.Path("shop"));
  w.AwaitLog("warn rule file " + w.Path("shop") +
             ": is gone; its rules stay in force until it is back with others\n");
  CHECK(w.Level(1) == 7);
  SUBCASE("with other rules") {
    w.Write("shop", {{.flow = 1, .count = 8}});
    w.AwaitLevel(1, 8);
  }
  SUBCASE("with the same") {
    const int replaced = w.sink.replaced;
    w.Write("shop", {{.flow = 1, .count = 7}});
    w.AwaitLog("info rule file " + w.Path("shop") + ": is back, unchanged\n");
    CHECK(w.sink.replaced == replaced);
  }
}

TEST_CASE("a symbolic link that is swapped on the way to the file, as Kubernetes does, is seen") {
  testing::TempDir other;
  Watched w({"shop"});
  const fs::path dir = w.dir.path();
  const auto publish = [&](const std::string& version, double count) {
    fs::create_directory(dir / version);
    WriteStringToFile((dir / version / "shop.json").string(),
                      RulesJson({{.flow = 1, .count = count}}));
    fs::create_symlink(version, dir / "..data_tmp");
    fs::rename(dir / "..data_tmp", dir / "..data");
  };
  publish("..v1", 1);
  fs::remove(w.Path("shop"));
  fs::create_symlink("..data/shop.json", w.Path("shop"));
  w.Start();
  publish("..v2", 2);
  w.AwaitLevel(1, 2);
  fs::remove_all(dir / "..v1");
  publish("..v3", 3);
  w.AwaitLevel(1, 3);
  // A link that leads elsewhere, and a change there.
  WriteStringToFile(other.Sub("shop.json"), RulesJson({{.flow = 1, .count = 4}}));
  fs::create_symlink(other.path(), dir / "..data_tmp");
  fs::rename(dir / "..data_tmp", dir / "..data");
  w.AwaitLevel(1, 4);
  WriteStringToFile(other.Sub("shop.json"), RulesJson({{.flow = 1, .count = 5}}));
  w.AwaitLevel(1, 5);
}

TEST_CASE("a directory that is removed and made again is watched again") {
  Watched w({"shop"});
  const fs::path dir = w.dir.Sub("sub");
  const auto write = [&](double count) {
    fs::create_directories(dir);
    WriteStringToFile((dir / "shop.json").string(), RulesJson({{.flow = 1, .count = count}}));
  };
  write(1);
  fs::remove(w.Path("shop"));
  fs::create_symlink("sub/shop.json", w.Path("shop"));
  w.Start();
  fs::remove_all(dir);
  w.AwaitLog("is gone");
  write(2);
  w.AwaitLevel(1, 2);
  write(3);
  w.AwaitLevel(1, 3);
  // Another one in its place at one stroke.
  fs::rename(dir, w.dir.Sub("old"));
  write(4);
  w.AwaitLevel(1, 4);
  write(5);
  w.AwaitLevel(1, 5);
}

TEST_CASE("files that change together are put in force together, so that flows can be swapped") {
  Watched w({"shop", "bank"});
  w.Start();
  w.Write("shop", {{.flow = 1, .count = 1}});
  w.Write("bank", {{.flow = 2, .count = 2}});
  w.AwaitLevel(2, 2);
  CHECK(w.Level(1) == 1);
  const int replaced = w.sink.replaced;
  w.Write("shop", {{.flow = 2, .count = 20}});
  w.Write("bank", {{.flow = 1, .count = 10}});
  w.AwaitLevel(2, 20);
  CHECK(w.Level(1) == 10);
  CHECK(w.sink.replaced == replaced + 1);
  CHECK(w.log.find("warn") == std::string::npos);
}

TEST_CASE("a set that is refused does not hold the others up, and waits for what is in its way") {
  Watched w({"shop", "bank", "zoo"});
  REQUIRE(testing::ReplaceRules(&w.h.core(), w.h.step(), "taken", RulesJson({{.flow = 9}})).ok());
  w.Start();
  w.Write("shop", {{.flow = 1, .count = 1}});
  w.Write("bank", {{.flow = 9, .count = 9}});
  w.Write("zoo", {{.flow = 3, .count = 3}});
  w.AwaitLevel(3, 3);
  CHECK(w.Level(1) == 1);
  w.AwaitLog("clusterConfig.flowId 9 belongs to namespace taken");
  // Once the flow is free, the next look finds that the set fits.
  REQUIRE(testing::ReplaceRules(&w.h.core(), w.h.step(), "taken", "[]").ok());
  w.Write("zoo", {{.flow = 3, .count = 4}});
  w.AwaitLevel(9, 9);
  CHECK(w.Level(3) == 4);
  CHECK(w.Logged("belongs to namespace taken") == 1);
}

TEST_CASE("a set that is refused goes with its file, and comes with it again") {
  Watched w({"shop", "bank"});
  REQUIRE(testing::ReplaceRules(&w.h.core(), w.h.step(), "taken", RulesJson({{.flow = 9}})).ok());
  w.Start();
  w.Write("bank", {{.flow = 9, .count = 9}});
  w.AwaitLog("clusterConfig.flowId 9 belongs to namespace taken");
  REQUIRE(fs::remove(w.Path("bank")));
  SUBCASE("gone") { w.AwaitLog(w.Path("bank") + ": is gone"); }
  SUBCASE("unreadable") {
    fs::create_symlink("bank.json", w.Path("bank"));
    w.AwaitLog(w.Path("bank") + ": cannot be opened: Too many levels of symbolic links");
  }
  SUBCASE("no regular file") {
    REQUIRE(mkfifo(w.Path("bank").c_str(), 0600) == 0);
    w.AwaitLog(w.Path("bank") + ": is no regular file");
  }
  // Though the flow is free now, nobody asks for the rule any more.
  REQUIRE(testing::ReplaceRules(&w.h.core(), w.h.step(), "taken", "[]").ok());
  w.Write("shop", {{.flow = 1, .count = 4}});
  w.AwaitLevel(1, 4);
  CHECK(w.Level(9) == -1);  // There is no such rule.
  fs::remove(w.Path("bank"));
  w.Write("bank", {{.flow = 9, .count = 9}});
  w.AwaitLevel(9, 9);
}

TEST_CASE("where nothing can be watched the files are looked at from time to time") {
  Watched w({"shop"}, /*watches_max=*/0);
  w.Start();
  w.AwaitLog("warn cannot watch " + w.dir.path() +
             " (at most 0 directories are watched); the rule files there are looked at every 5 ms "
             "instead\n");
  w.Write("shop", {{.flow = 1, .count = 7}});
  w.AwaitLevel(1, 7);
  fs::remove(w.Path("shop"));
  w.AwaitLog("is gone");
  w.Write("shop", {{.flow = 1, .count = 8}});
  w.AwaitLevel(1, 8);
  CHECK(w.Logged("cannot watch") == 1);
  CHECK(w.Logged("is gone") == 1);
}

TEST_CASE("changes that leave the size of the file as it is are seen by looking, too") {
  Watched w({"shop"}, /*watches_max=*/0);
  w.Start();
  for (int count = 1; count < 10; ++count) {
    w.Write("shop", {{.flow = 1, .count = static_cast<double>(count)}});
    w.AwaitLevel(1, count);
  }
}

TEST_CASE("a file whose time is too far off for nanoseconds is loaded as others") {
  Watched w({"shop"}, /*watches_max=*/0);
  w.Start();
  for (const int64_t seconds : {13'000'000'000, 13'000'000'001}) {  // The year 2381.
    w.Write("shop~", {{.flow = 1, .count = static_cast<double>(seconds % 10 + 1)}});
    const timespec times[] = {{seconds, 0}, {seconds, 0}};
    REQUIRE(utimensat(AT_FDCWD, w.Path("shop~").c_str(), times, 0) == 0);
    fs::rename(w.Path("shop~"), w.Path("shop"));
    w.AwaitLevel(1, static_cast<double>(seconds % 10 + 1));
  }
}

TEST_CASE("a reload loads every file, changed or not, and tells how each went") {
  Watched w({"shop", "bank", "zoo"});
  w.Write("shop", {{.flow = 1, .count = 7}});
  w.Start();
  WriteStringToFile(w.Path("bank"), "[]]");
  w.AwaitLog("bank.json: not valid JSON");
  fs::remove(w.Path("zoo"));
  w.AwaitLog("zoo.json: is gone");
  w.log.clear();
  w.source->ReloadAll();
  w.AwaitLog("zoo.json: is gone");
  w.AwaitLog("bank.json: not valid JSON");
  w.AwaitLog("info rule file " + w.Path("shop") +
             ": reloaded, 1 rule of namespace 'shop' in force\n");
  CHECK(w.Level(1) == 7);
}

TEST_CASE("a pipe in the place of a file is neither waited for nor read") {
  Watched w({"shop", "bank"});
  w.Start();
  fs::remove(w.Path("shop"));
  REQUIRE(mkfifo(w.Path("shop").c_str(), 0600) == 0);
  w.AwaitLog("warn rule file " + w.Path("shop") +
             ": is no regular file: it is read at the start of the server only\n");
  w.Write("bank", {{.flow = 3, .count = 1}});
  w.AwaitLevel(3, 1);
}

TEST_CASE(
    "what was told of a file at the start is not told again, but what else happens to it is") {
  Watched w({"shop"});
  w.Start();
  w.source->Stop();
  uv_run(w.loop.get(), UV_RUN_DEFAULT);
  w.source.reset();
  fs::remove(w.Path("shop"));
  std::string said;
  FileRuleSource source(
      w.loop.get(), {{"shop", w.Path("shop")}}, {{.fingerprint = 0, .is_refused = true}}, {},
      [&](Severity, const std::string& text, const LogFields&) { said += text + "\n"; });
  REQUIRE(source.Start(&w.sink).ok());
  w.Await([&] { return source.idle(); });
  CHECK(said.empty());
  REQUIRE(mkfifo(w.Path("shop").c_str(), 0600) == 0);
  w.Await([&] { return said.find("is no regular file") != std::string::npos; });
  source.Stop();
  uv_run(w.loop.get(), UV_RUN_DEFAULT);
}

TEST_CASE("a change between the loading of a file and the first look at it is not missed") {
  Watched w({"shop"});
  w.Start();
  w.source->Stop();
  uv_run(w.loop.get(), UV_RUN_DEFAULT);
  w.source.reset();
  // What Start takes for loaded is what the file held then.
  FileRuleSource late(w.loop.get(), {{"shop", w.Path("shop")}}, {RulesAtStart{Fingerprint("[]")}},
                      {}, [](Severity, const std::string&, const LogFields&) {});
  w.Write("shop", {{.flow = 1, .count = 7}});
  REQUIRE(late.Start(&w.sink).ok());
  w.AwaitLevel(1, 7);
  late.Stop();
  uv_run(w.loop.get(), UV_RUN_DEFAULT);
}

TEST_CASE(
    "a source whose namespace is another's does not start, and one that is stopped is quiet") {
  Watched w({"shop"});
  REQUIRE(testing::ReplaceRules(&w.h.core(), w.h.step(), "shop", RulesJson({{.flow = 1}})).ok());
  FileRuleSource refused(w.loop.get(), {{"shop", w.Path("shop")}}, {RulesAtStart{}}, {},
                         [](Severity, const std::string&, const LogFields&) {});
  CHECK(refused.Start(&w.sink).code() == StatusCode::kAlreadyExists);
  FileRuleSourceOptions options;
  options.takeover = true;
  FileRuleSource stopped(w.loop.get(), {{"shop", w.Path("shop")}}, {RulesAtStart{}}, options,
                         [](Severity, const std::string&, const LogFields&) {});
  REQUIRE(stopped.Start(&w.sink).ok());
  // Its first look is on its way, and finds a content that is not the one loaded.
  stopped.Stop();
  refused.Stop();
  uv_run(w.loop.get(), UV_RUN_DEFAULT);
  CHECK(stopped.idle());
  CHECK(w.sink.replaced == 0);
}

TEST_CASE("a file's name as a source is its absolute path") {
  CHECK(FileSourceName("/etc/nowcalls/./shop.json") == "file:/etc/nowcalls/shop.json");
  CHECK(FileSourceName("shop.json") == "file:" + fs::current_path().string() + "/shop.json");
}

}  // namespace
}  // namespace nowcalls::server
