#include "server/log/line_writer.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace nowcalls::server {
namespace {

uint64_t LinesIn(std::string_view text) {
  return static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

// Returns how many bytes the descriptor took before it refused one.
size_t WriteUntilRefused(int fd, std::string_view text) {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t size = write(fd, text.data() + written, text.size() - written);
    if (size >= 0) {
      written += static_cast<size_t>(size);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // Another process that shares the open file has made it non-blocking.
      pollfd writable{fd, POLLOUT, 0};
      poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      break;
    }
  }
  return written;
}

}  // namespace

// Shared with the thread, which may be stuck in a write for ever: the state lives as long as the
// thread, and no wait for the thread is without bound.
struct LineWriter::State {
  State(int descriptor, size_t max, LostNote note)
      : fd(descriptor), bytes_max(max), lost_note(std::move(note)) {}

  void WriteBatch(const std::string& lines, uint64_t lost);

  const int fd;
  const size_t bytes_max;
  const LostNote lost_note;

  // The writer's alone.
  uint64_t refused = 0;  // Lines that the descriptor refused and that no line tells of yet.
  bool torn = false;     // It took part of a line.

  std::mutex mutex;  // Guards all that follows.
  std::condition_variable appended;
  std::condition_variable handled;
  std::string pending;
  uint64_t lost = 0;  // Behind `pending`; until the writer has taken that, all lines are.
  uint64_t appends = 0;
  uint64_t appends_handled = 0;
  bool working = false;
  bool stop = false;
};

// Thread: the writer.
void LineWriter::State::WriteBatch(const std::string& lines, uint64_t lost_lines) {
  const auto put = [this](const std::string& text) {
    const size_t written = WriteUntilRefused(fd, text);
    if (written > 0) torn = text[written - 1] != '\n';
    return written;
  };
  // 1. The rest of a torn line is lost; a newline keeps the next one whole.
  if (torn && put("\n") == 0) {
    refused += LinesIn(lines) + lost_lines;
    return;
  }
  // 2. First the count of lines refused before: the gap is in its place.
  if (refused > 0) {
    const std::string note = lost_note(refused);
    if (put(note) < note.size()) {
      refused += LinesIn(lines) + lost_lines;
      return;
    }
    refused = 0;
  }
  // 3. The lines. A line that was torn counts as refused.
  std::string_view unwritten = lines;
  unwritten.remove_prefix(put(lines));
  refused = LinesIn(unwritten);
  if (refused > 0 || lost_lines == 0) {
    refused += lost_lines;
    return;
  }
  // 4. The count of lines dropped behind these, for want of room.
  const std::string note = lost_note(lost_lines);
  if (put(note) < note.size()) refused = lost_lines;
}

LineWriter::LineWriter(int fd, size_t bytes_max, LostNote lost_note)
    : state_(std::make_shared<State>(fd, bytes_max, std::move(lost_note))),
      thread_([state = state_] { Run(state); }) {
  pthread_setname_np(thread_.native_handle(), "nc-log");
}

LineWriter::~LineWriter() {
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  // A thread in a write may never return: leave it behind, with its state.
  const bool stuck = state_->working;
  lock.unlock();
  state_->appended.notify_one();
  if (stuck) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void LineWriter::Append(std::string_view line, bool urgent) {
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    ++state.appends;
    // The newest line is dropped, not the oldest: lines that led to the stall survive, noise cannot
    // wash them out, and the gap is in one place. Once a line was dropped, all are until the writer
    // has caught up.
    const bool full = state.lost > 0 || (!state.pending.empty() &&
                                         state.pending.size() + line.size() > state.bytes_max);
    if (full && !urgent) {
      ++state.lost;
      return;
    }
    // An urgent line behind a gap: the gap is told first.
    if (state.lost > 0) state.pending += state.lost_note(std::exchange(state.lost, 0));
    state.pending += line;
  }
  state.appended.notify_one();
}

bool LineWriter::Flush(int64_t timeout_ms) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  return state.handled.wait_for(
      lock, std::chrono::milliseconds(timeout_ms),
      [&state, upto = state.appends] { return state.appends_handled >= upto; });
}

void LineWriter::Run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (true) {
    state->appended.wait(lock, [&] { return state->stop || !state->pending.empty(); });
    if (state->stop) return;
    const std::string lines = std::exchange(state->pending, {});
    const uint64_t lost = std::exchange(state->lost, 0);
    const uint64_t appends = state->appends;
    state->working = true;
    lock.unlock();
    // Without the mutex: callers of Append do not wait for the descriptor.
    state->WriteBatch(lines, lost);
    lock.lock();
    state->working = false;
    state->appends_handled = appends;
    state->handled.notify_all();
  }
}

}  // namespace nowcalls::server
