#include "bench/lab.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "bench/interruption.h"
#include "support/process.h"

namespace nowcalls::compare {
namespace {

constexpr int64_t kBenchMsBesides =
    60'000;  // To connect, to load rules, to await the last answers.
constexpr double kFillPerSecondMin = 5'000;
constexpr char kCannotKeepUp[] = "cannot keep up with the schedule";

void RemoveAll(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

// A contender whose directory goes away with it.
template <typename Base>
class InDirectory : public Base {
 public:
  template <typename... Arguments>
  InDirectory(bool keep, std::string dir, Arguments&&... arguments)
      : Base(std::forward<Arguments>(arguments)..., dir), keep_(keep), path_(std::move(dir)) {}
  ~InDirectory() override {
    if (keep_) return;
    if (this->Running()) this->Kill9();
    RemoveAll(path_);
  }

 private:
  bool keep_;
  std::string path_;
};

std::string WithoutNewlines(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return text;
}

}  // namespace

BenchRun::BenchRun(std::vector<std::string> words, const std::string& output_prefix)
    : words_(std::move(words)),
      out_(output_prefix + ".json"),
      err_(output_prefix + ".err"),
      process_({words_, {}, out_, err_}) {}

Json BenchRun::Finish(int64_t timeout_ms) {
  AwaitEnd(process_.pid(), timeout_ms);
  const std::optional<int> exit_code = process_.Wait(0);
  const std::string said = WithoutNewlines(testing::ReadFileToString(err_));
  if (!exit_code) {
    throw std::runtime_error("nowcalls-bench did not end within " +
                             std::to_string(timeout_ms / 1000) + " s. " + said);
  }
  if (said.find(kCannotKeepUp) != std::string::npos) throw Overload(said);
  if (*exit_code != 0) {
    throw std::runtime_error("nowcalls-bench ended with " + std::to_string(*exit_code) + ": " +
                             said);
  }
  const Result<Json> run = ParseBenchOutput(testing::ReadFileToString(out_));
  if (!run.ok()) throw std::runtime_error(run.status().message());
  return *run;
}

Lab::Lab(LabOptions options) : options_(std::move(options)) {
  std::filesystem::create_directories(options_.parent);
  dir_ = std::filesystem::absolute(options_.parent).string() + "/run-XXXXXX";
  if (::mkdtemp(dir_.data()) == nullptr) throw std::runtime_error("cannot make " + dir_);
}

Lab::~Lab() {
  if (!options_.keep_dir) RemoveAll(dir_);
}

std::string Lab::NewPath(const std::string& name) {
  return dir_ + "/" + std::to_string(++made_) + "-" + name;
}

std::unique_ptr<NowcallsContender> Lab::NewNowcalls() {
  return NewNowcalls(ContenderKind::kNowcalls);
}

std::unique_ptr<NowcallsContender> Lab::NewNowcalls(ContenderKind kind) {
  return std::make_unique<InDirectory<NowcallsContender>>(options_.keep_dir, NewPath("nowcalls"),
                                                          kind);
}

std::unique_ptr<Contender> Lab::NewContender(ContenderKind kind) {
  if (kind == ContenderKind::kNowcalls || kind == ContenderKind::kNowcallsTls) {
    return NewNowcalls(kind);
  }
  return std::make_unique<InDirectory<RedisContender>>(options_.keep_dir, NewPath("redis"), kind,
                                                       options_.redis_program);
}

BenchRun Lab::StartBench(std::vector<std::string> words, const Contender& contender) {
  words.insert(words.begin(), testing::ProductBinary("nowcalls-bench"));
  words.insert(words.end(), {"--target", contender.url(), "--server-pid",
                             std::to_string(contender.pid()), "--format", "json"});
  const std::vector<std::string> tls = contender.TlsWords();
  words.insert(words.end(), tls.begin(), tls.end());
  return {std::move(words), NewPath("bench")};
}

Json Lab::Finish(BenchRun* run, int64_t timeout_ms) {
  Json figures = run->Finish(timeout_ms);
  runs_.push_back(figures);
  return figures;
}

Json Lab::RunBench(std::vector<std::string> words, const Contender& contender, double lasts_s) {
  BenchRun run = StartBench(std::move(words), contender);
  return Finish(&run, static_cast<int64_t>(lasts_s * 1000) + kBenchMsBesides);
}

Json Lab::Fill(uint64_t tokens, const Contender& contender, std::vector<std::string> words) {
  words.insert(words.begin(), {"fill", "--tokens", std::to_string(tokens), "--connections", "50",
                               "--in-flight", "64"});
  return RunBench(std::move(words), contender, static_cast<double>(tokens) / kFillPerSecondMin);
}

void Lab::SyncDisk() const {
  const int fd = ::open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::syncfs(fd);
  ::close(fd);
}

Json Lab::TakeRuns() { return std::exchange(runs_, Json::array()); }

}  // namespace nowcalls::compare
