#include "server/config/config_watch.h"

#include <sys/stat.h>

#include <memory>
#include <utility>

#include "base/check.h"

namespace nowcalls::server {

// The worker has it alone until the loop is told; `owner` is the loop's.
struct ConfigWatch::Work {
  uv_work_t request{};
  ConfigWatch* owner = nullptr;
  std::string file;
  Read read;  // Empty: looks at the file only.
  bool asked = false;
  Stamps stamps{};
  std::optional<Result<Invocation>> result;
};

ConfigWatch::ConfigWatch(std::string file, Read read, Apply apply,
                         const ConfigWatchOptions& options)
    : file_(std::move(file)), read_(std::move(read)), apply_(std::move(apply)), options_(options) {}

ConfigWatch::~ConfigWatch() { NOWCALLS_CHECK(loop_ == nullptr || (stopped_ && !working_)); }

// A pipe is empty after the first read, and another read would wait for its writer.
Status ConfigWatch::CheckReadable(const std::string& file) {
  struct stat found {};
  const bool once = !file.empty() && stat(file.c_str(), &found) == 0 && !S_ISREG(found.st_mode);
  if (!once) return {};
  return Status::InvalidArgument(file + " is no regular file, so it is read at the start only");
}

ConfigWatch::Stamps ConfigWatch::StampsOf(const std::string& file) {
  struct stat found {};
  if (stat(file.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  const auto ns = [](const timespec& time) { return time.tv_sec * kNsPerSecond + time.tv_nsec; };
  return {static_cast<int64_t>(found.st_dev), static_cast<int64_t>(found.st_ino), found.st_size,
          ns(found.st_mtim), ns(found.st_ctim)};
}

void ConfigWatch::Start(uv_loop_t* loop) {
  loop_ = loop;
  timer_.data = this;
  NOWCALLS_CHECK(uv_timer_init(loop, &timer_) == 0);
  if (file_.empty()) return;
  NOWCALLS_CHECK(uv_timer_start(
                     &timer_,
                     [](uv_timer_t* timer) { static_cast<ConfigWatch*>(timer->data)->Look(); },
                     options_.poll_ms, options_.poll_ms) == 0);
  // The first look leads to a read: the file may have changed since the process read it.
  Look();
}

void ConfigWatch::Stop() {
  if (loop_ == nullptr || std::exchange(stopped_, true)) return;
  uv_close(reinterpret_cast<uv_handle_t*>(&timer_), nullptr);
}

void ConfigWatch::ReadNow() {
  wants_read_ = true;
  asked_ = true;
  // Otherwise OnDone begins it: the read under way may have missed the change.
  if (!working_ && !stopped_) Begin(/*reads=*/true);
}

void ConfigWatch::Look() {
  if (!working_ && !stopped_) Begin(/*reads=*/false);
}

void ConfigWatch::Begin(bool reads) {
  // A worker of libuv, not the loop: the file may be on a file server that hangs, and addresses are
  // names to resolve.
  auto work = std::make_unique<Work>();
  work->owner = this;
  work->file = file_;
  if (reads) {
    work->read = read_;
    work->asked = std::exchange(asked_, false);
    wants_read_ = false;
  }
  work->request.data = work.get();
  working_ = true;
  NOWCALLS_CHECK(uv_queue_work(
                     loop_, &work.release()->request,
                     [](uv_work_t* request) {
                       auto* mine = static_cast<Work*>(request->data);
                       mine->stamps = StampsOf(mine->file);
                       if (!mine->read) return;
                       const Status readable = CheckReadable(mine->file);
                       mine->result.emplace(readable.ok() ? mine->read() : readable);
                     },
                     [](uv_work_t* request, int /*status*/) {
                       const std::unique_ptr<Work> done(static_cast<Work*>(request->data));
                       done->owner->OnDone(*done);
                     }) == 0);
}

void ConfigWatch::OnDone(const Work& work) {
  working_ = false;
  // Stop came while the worker was at it: nobody is told.
  if (stopped_) return;
  // A read leaves the stamps of the last look: a change meanwhile shows at the next one.
  if (work.result.has_value()) {
    apply_(*work.result, work.asked);
  } else {
    TakeStamps(work.stamps);
  }
  if (wants_read_ && !stopped_) Begin(/*reads=*/true);
}

// Waits until a writer has come to rest: settle_ms without a change, or settle_ms_max for a file
// that never rests.
void ConfigWatch::TakeStamps(const Stamps& stamps) {
  const bool is_first = !stamps_.has_value();
  const bool changed = !is_first && *stamps_ != stamps;
  stamps_ = stamps;
  // A regular file is read once at the start; stamps of 0 are no file, or a pipe.
  if (is_first && stamps != Stamps{}) wants_read_ = true;
  const uint64_t now_ms = uv_now(loop_);
  if (changed) changed_ = {changed_ ? changed_->first_ms : now_ms, now_ms};
  if (changed_ && (now_ms - changed_->last_ms >= options_.settle_ms ||
                   now_ms - changed_->first_ms >= options_.settle_ms_max)) {
    changed_.reset();
    wants_read_ = true;
  }
}

}  // namespace nowcalls::server
