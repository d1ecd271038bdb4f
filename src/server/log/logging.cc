#include "server/log/logging.h"

#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "server/log/line_writer.h"

namespace nowcalls::server {
namespace {

spdlog::level::level_enum SpdlogLevel(Severity severity) {
  switch (severity) {
    case Severity::kDebug: return spdlog::level::debug;
    case Severity::kInfo: return spdlog::level::info;
    case Severity::kWarn: return spdlog::level::warn;
    case Severity::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

Severity SeverityOf(spdlog::level::level_enum level) {
  if (level <= spdlog::level::debug) return Severity::kDebug;
  if (level == spdlog::level::info) return Severity::kInfo;
  if (level == spdlog::level::warn) return Severity::kWarn;
  return Severity::kError;
}

// Fields of the line that this thread is logging; nullptr: none. They bypass spdlog, which takes
// text alone and calls the sink within its own call.
thread_local const LogFields* fields_of_line = nullptr;

// Some 40,000 lines, twice.
constexpr size_t kWaitingBytesMax = 4 * 1024 * 1024;

// How long the end of the process waits for the log's reader.
constexpr int64_t kFlushMsMax = 1'000;

// Without a lock of its own: the writer's is never held during a write, so threads do not wait for
// each other.
class LineSink : public spdlog::sinks::sink {
 public:
  explicit LineSink(LogFormat format)
      : format_(format), writer_(STDERR_FILENO, kWaitingBytesMax, [format](uint64_t lines) {
          return FormatLogLine(format, WallMs(), Severity::kWarn, LostText(lines));
        }) {}

  void log(const spdlog::details::log_msg& message) override {
    using std::chrono::milliseconds;
    const auto since_epoch = message.time.time_since_epoch();
    const int64_t wall_ms = std::chrono::duration_cast<milliseconds>(since_epoch).count();
    const std::string_view text(message.payload.data(), message.payload.size());
    const LogFields& fields = fields_of_line == nullptr ? kNoFields : *fields_of_line;
    // The level critical marks last words, which LineWriter keeps beyond its bound.
    writer_.Append(FormatLogLine(format_, wall_ms, SeverityOf(message.level), text, fields),
                   message.level == kUrgent);
  }
  void flush() override { writer_.Flush(kFlushMsMax); }
  void set_pattern(const std::string& /*pattern*/) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter> /*formatter*/) override {}

  static constexpr auto kUrgent = spdlog::level::critical;

 private:
  inline static const LogFields kNoFields;

  static std::string LostText(uint64_t lines) {
    return std::to_string(lines) + (lines == 1 ? " log line was" : " log lines were") +
           " lost here: stderr took no more";
  }

  const LogFormat format_;
  LineWriter writer_;
};

}  // namespace

void SetUpLogging(Severity least, LogFormat format) {
  auto logger = std::make_shared<spdlog::logger>("nowcalls", std::make_shared<LineSink>(format));
  logger->set_level(SpdlogLevel(least));
  spdlog::set_default_logger(std::move(logger));
}

void SetLogLevel(Severity least) { spdlog::default_logger_raw()->set_level(SpdlogLevel(least)); }

void LogAt(Severity severity, std::string_view text, const LogFields& fields) {
  fields_of_line = &fields;
  spdlog::default_logger_raw()->log(SpdlogLevel(severity),
                                    spdlog::string_view_t(text.data(), text.size()));
  fields_of_line = nullptr;
}

void FlushLog() { spdlog::default_logger_raw()->flush(); }

void ExitNow(int exit_code) {
  FlushLog();
  std::_Exit(exit_code);
}

void DieOfIoError(std::string_view what, const Status& failure) {
  // Memory may say more than the ledger: nothing may be written or answered any more.
  const bool damaged = failure.code() == StatusCode::kCorruption;
  const bool displaced = failure.code() == StatusCode::kAlreadyExists;
  spdlog::log(LineSink::kUrgent, "{} failed: {}; exiting{}", what, failure.message(),
              damaged || displaced ? "" : ", a restart recovers the ledger");
  // No restart repairs damage: another exit code, so that supervisors can tell.
  ExitNow(damaged ? kExitCorruption : kExitIoError);
}

}  // namespace nowcalls::server
