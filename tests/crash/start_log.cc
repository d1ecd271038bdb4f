#include "crash/start_log.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

namespace nowcalls::crash {
namespace {

constexpr char kFirst[] = "nowcalls-server ";
constexpr char kRecovered[] = "recovered ";
constexpr char kServing[] = "serving on ";
constexpr size_t kRemembered = 5;

bool Has(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

std::string NameOf(StartStage stage) {
  switch (stage) {
    case StartStage::kBefore: return "before it";
    case StartStage::kIn: return "in it";
    case StartStage::kAfter: return "after it";
  }
  return {};
}

void StartLog::Begin() {
  begin_ = std::filesystem::exists(log_) ? std::filesystem::file_size(log_) : 0;
}

std::string StartLog::Lines() const {
  std::ifstream in(log_, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(begin_));
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Polls faster than PollUntil does, since a recovery may be over within its pause.
bool StartLog::WaitForFirstLine(testing::Process* server) const {
  while (server->Running()) {
    if (Has(Lines(), kFirst)) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return false;
}

StartStage StartLog::End() {
  const std::string lines = Lines();
  const size_t recovered = lines.find(kRecovered);
  if (recovered != std::string::npos) {
    const std::string line = lines.substr(recovered, lines.find('\n', recovered) - recovered);
    const size_t in = line.rfind(" in ");
    if (in != std::string::npos) took_ms_.push_back(std::atoll(line.c_str() + in + 4));
    if (took_ms_.size() > kRemembered) took_ms_.pop_front();
  }
  const bool after =
      recovered != std::string::npos || Has(lines, kServing) || std::filesystem::exists(port_);
  if (after) return StartStage::kAfter;
  return Has(lines, kFirst) ? StartStage::kIn : StartStage::kBefore;
}

int64_t StartLog::RecoveryUs() const {
  constexpr int64_t kUsPerMs = 1'000;
  constexpr int64_t kGuessMs = 10;  // Before the first one.
  if (took_ms_.empty()) return kGuessMs * kUsPerMs;
  std::vector<int64_t> sorted(took_ms_.begin(), took_ms_.end());
  std::sort(sorted.begin(), sorted.end());
  return std::max<int64_t>(1, sorted[sorted.size() / 2]) * kUsPerMs;
}

}  // namespace nowcalls::crash
