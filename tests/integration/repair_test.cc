// nowcalls-admin repair: ledgers that were damaged on disk, what is salvaged of them, and that the
// result serves. The damaged one is never changed.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "integration/calls.h"
#include "ledger/fence_line.h"
#include "support/admin.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

namespace fs = std::filesystem;

constexpr size_t kClosedTokens = 300;
constexpr size_t kLoggedTokens = 100;

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A server that was killed: some tokens are in data files, some in the log only.
class DamagedLedger {
 public:
  DamagedLedger() : server_({RuleJson(1, 100'000, {{"resourceTimeout", 600'000}})}) {
    for (const size_t tokens : {kClosedTokens, kLoggedTokens}) {
      RpcClient alice = server_.Connect("alice");
      AcquireMany(&alice, 1, tokens);
      const Grant last = Acquire(&alice, 1);
      last_fence_ = last.fence;
      if (tokens == kClosedTokens) {
        REQUIRE(server_.server().Terminate() == 0);
        server_.server().Start();
      }
    }
    server_.server().Kill9();
    before_ = AdminRows(Source::Offline(server_.data_dir()), {"dump"});
    REQUIRE(before_.size() == kClosedTokens + kLoggedTokens + 2);
  }

  std::string File(const std::string& part) const {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(server_.data_dir() + "/ledger")) {
      if (!Contains(entry.path().filename().string(), part)) continue;
      if (found.empty() || entry.file_size() > fs::file_size(found)) found = entry.path();
    }
    REQUIRE_FALSE(found.empty());
    return found.string();
  }

  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(server_.data_dir())) {
      if (entry.is_regular_file()) files[entry.path()] = ReadFileToString(entry.path());
    }
    return files;
  }

  std::string to() const { return server_.Sub("salvaged"); }
  std::string from() const { return server_.data_dir(); }
  const std::vector<Json>& before() const { return before_; }

  Finished Repair() const {
    return RunAdmin(Source::Offline(server_.data_dir()), {"repair", "--to", to()});
  }

  // Repairs, and proves what holds whatever is damaged: the result is sound and serves, its tokens
  // are those of before, and no fence comes twice. Returns what repair printed; `kept` is the
  // number of tokens.
  std::string Salvage(size_t* kept) {
    const auto files = Files();
    const Finished repaired = Repair();
    CAPTURE(repaired.out);
    CAPTURE(repaired.err);
    CHECK(repaired.exit_code == 0);
    CHECK((Files() == files));
    const Finished verified = RunAdmin(Source::Offline(to()), {"verify"});
    CAPTURE(verified.out);
    CHECK(verified.exit_code == 0);
    const std::vector<Json> rows = AdminRows(Source::Offline(to()), {"dump"});
    *kept = rows.size();
    std::set<uint64_t> ids;
    for (const Json& row : before_) ids.insert(row.at("token_id").get<uint64_t>());
    for (const Json& row : rows) CHECK(ids.contains(row.at("token_id").get<uint64_t>()));
    CheckServes(rows.size());
    return repaired.out;
  }

 private:
  void CheckServes(size_t tokens) const {
    const TempDir dir;
    fs::copy(to(), dir.Sub("data"), fs::copy_options::recursive);
    ServerProcess server(dir.path());
    server.Start();
    RpcClient bob(server.address());
    LoadRules(&bob, RuleJson(1, 100'000));
    CHECK(NowCalls(&bob, 1) == static_cast<int64_t>(tokens));
    const Grant grant = Acquire(&bob, 1);
    CHECK(grant.status == kStatusOk);
    CHECK(grant.fence > last_fence_ + ledger::kFencesSkippedBlindly);
  }

  TestServer server_;
  uint64_t last_fence_ = 0;
  std::vector<Json> before_;
};

void FlipByte(const std::string& path, size_t offset) {
  std::string bytes = ReadFileToString(path);
  bytes[offset] = static_cast<char>(bytes[offset] ^ 0x5a);
  WriteStringToFile(path, bytes);
}

TEST_CASE_FIXTURE(DamagedLedger, "of a ledger that is whole everything is salvaged") {
  size_t kept = 0;
  const std::string out = Salvage(&kept);
  CHECK(kept == before().size());
  CHECK_FALSE(Contains(out, "lost: "));
  CHECK_FALSE(Contains(out, "differs: "));
  CHECK(Contains(out, "salvaged into " + to() + ": 402 tokens with nowCalls 402, "));
}

TEST_CASE_FIXTURE(DamagedLedger, "of a log with a damaged batch the others are salvaged") {
  const std::string log = File(".log");
  FlipByte(log, ReadFileToString(log).find_last_not_of('\0') / 2);
  CHECK(RunAdmin(Source::Offline(from()), {"verify"}).exit_code == 65);
  size_t kept = 0;
  const std::string out = Salvage(&kept);
  CHECK(kept >= kClosedTokens);
  CHECK(kept < before().size());
  CHECK(Contains(out, "lost: " + log + ": bytes "));
  CHECK(Contains(out, "differs: batch "));
}

TEST_CASE_FIXTURE(DamagedLedger, "of a ledger whose log was emptied the data files are salvaged") {
  const std::string log = File(".log");
  fs::resize_file(log, 0);
  const Finished verified = RunAdmin(Source::Offline(from()), {"verify"});
  CHECK(verified.exit_code == 65);
  CHECK(Contains(verified.err, "has lost batch"));
  size_t kept = 0;
  const std::string out = Salvage(&kept);
  CHECK(kept == kClosedTokens + 1);
  CHECK(Contains(out, "lost: batches "));
}

TEST_CASE_FIXTURE(DamagedLedger, "of a ledger with a damaged manifest everything is salvaged") {
  const std::string manifest = File("MANIFEST");
  SUBCASE("a byte") { FlipByte(manifest, fs::file_size(manifest) / 2); }
  SUBCASE("its end") { fs::resize_file(manifest, fs::file_size(manifest) / 2); }
  size_t kept = 0;
  const std::string out = Salvage(&kept);
  CHECK(kept == before().size());
  CHECK(Contains(out, "it is put together from the data files"));
}

TEST_CASE_FIXTURE(DamagedLedger,
                  "without CURRENT, and with a witness only in part, all is salvaged") {
  fs::remove(File("CURRENT"));
  FlipByte(File("witness"), 20);
  size_t kept = 0;
  Salvage(&kept);
  CHECK(kept == before().size());
}

TEST_CASE_FIXTURE(DamagedLedger,
                  "without the data file of the tokens those of the log are salvaged") {
  const std::string file = File(".sst");
  SUBCASE("gone") { fs::remove(file); }
  SUBCASE("its end is damaged") { FlipByte(file, fs::file_size(file) - 5); }
  size_t kept = 0;
  const std::string out = Salvage(&kept);
  CHECK(kept >= kLoggedTokens);
  CHECK(kept < before().size());
  CHECK(Contains(out, "differs: batch "));
}

TEST_CASE_FIXTURE(DamagedLedger,
                  "of a data file with a damaged block the other blocks are salvaged") {
  const std::string file = File(".sst");
  REQUIRE(fs::file_size(file) > 12'000);
  FlipByte(file, 6'000);
  size_t kept = 0;
  const std::string out = Salvage(&kept);
  CHECK(kept > before().size() - 100);
  CHECK(kept < before().size());
  CHECK(Contains(out, fs::path(file).filename().string()));
}

TEST_CASE_FIXTURE(DamagedLedger, "repair refuses a target that exists, no ledger, and a live one") {
  fs::create_directory(to());
  Finished refused = Repair();
  CHECK(refused.exit_code == 64);
  CHECK(Contains(refused.err, to() + " exists"));
  CHECK(fs::is_empty(to()));
  refused = RunAdmin(Source::Offline(to()), {"repair", "--to", to() + "2"});
  CHECK(refused.exit_code == 64);
  CHECK(Contains(refused.err, "nowcalls-admin: --data-dir: there is no ledger"));
  CHECK_FALSE(fs::exists(to() + "2"));
  refused = RunAdmin(Source::Offline(from()), {"repair", "--to", from() + "/ledger/repaired"});
  CHECK(refused.exit_code == 64);
  CHECK(Contains(refused.err, "nowcalls-admin: --to: "));
  CHECK(Contains(refused.err, "lies within the ledger"));
  CHECK_FALSE(fs::exists(from() + "/ledger/repaired.partial"));
  ServerProcess server(fs::path(from()).parent_path().string());
  server.Start();
  refused = RunAdmin(Source::Offline(from()), {"repair", "--to", to() + "2"});
  CHECK(refused.exit_code == 74);
  CHECK(Contains(refused.err, "stop it first"));
  CHECK_FALSE(fs::exists(to() + "2"));
}

}  // namespace
}  // namespace nowcalls::testing
