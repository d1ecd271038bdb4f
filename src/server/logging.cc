#include "server/logging.h"

#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "base/exit_codes.h"

namespace nowcalls::server {
namespace {

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarn: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

LogLevel LevelOf(spdlog::level::level_enum level) {
  if (level <= spdlog::level::debug) return LogLevel::kDebug;
  if (level == spdlog::level::info) return LogLevel::kInfo;
  if (level == spdlog::level::warn) return LogLevel::kWarn;
  return LogLevel::kError;
}

class LineFormatter : public spdlog::formatter {
 public:
  explicit LineFormatter(LogFormat format) : format_(format) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    using std::chrono::milliseconds;
    const auto since_epoch = message.time.time_since_epoch();
    const std::string line =
        FormatLogLine(format_, std::chrono::duration_cast<milliseconds>(since_epoch).count(),
                      LevelOf(message.level), {message.payload.data(), message.payload.size()});
    out.append(line.data(), line.data() + line.size());
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LineFormatter>(format_);
  }

 private:
  LogFormat format_;
};

}  // namespace

void SetUpLogging(LogLevel level, LogFormat format) {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>("nowcalls", std::move(sink));
  logger->set_formatter(std::make_unique<LineFormatter>(format));
  logger->set_level(SpdlogLevel(level));
  spdlog::set_default_logger(std::move(logger));
}

void LogAt(LogLevel level, std::string_view text) {
  spdlog::default_logger_raw()->log(SpdlogLevel(level),
                                    spdlog::string_view_t(text.data(), text.size()));
}

void DieOfIoError(std::string_view what, const Status& failure) {
  spdlog::error("{} failed: {}; exiting, a restart recovers the ledger", what, failure.message());
  std::_Exit(kExitIoError);
}

}  // namespace nowcalls::server
