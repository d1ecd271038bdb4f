// A library that is loaded before all others (LD_PRELOAD) and gives the server a machine whose wall
// clock is set, that was booted anew, whose disk is slow or that gives dead peers up sooner. The
// calls below are those of the C library; the rest of the server is the real one.
//
// Thread: any of the server's. Without the file that the environment names it changes nothing.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "shim/machine_control.h"
#include "shim/next_call.h"

namespace {

using nowcalls::testing::MachineControl;
using nowcalls::testing::Next;

MachineControl* MapControl() {
  static MachineControl none{};
  const char* path = std::getenv(nowcalls::testing::kMachineControlVariable);
  const int fd = path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return &none;
  void* mapped = mmap(nullptr, sizeof(MachineControl), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return mapped == MAP_FAILED ? &none : static_cast<MachineControl*>(mapped);
}

MachineControl& Control() {
  static MachineControl* const control = MapControl();
  return *control;
}

void Add(int64_t offset_ms, timespec* time) {
  constexpr int64_t kNsPerS = 1'000'000'000;
  const int64_t ns = time->tv_nsec + offset_ms % 1'000 * 1'000'000 + kNsPerS;
  time->tv_sec += offset_ms / 1'000 + ns / kNsPerS - 1;
  time->tv_nsec = ns % kNsPerS;
}

int Sync(int (*next)(int), int fd) {
  constexpr int64_t kLookMs = 5;
  const timespec look{0, kLookMs * 1'000'000};
  if (gettid() == getpid()) ++Control().loop_syncs_begun;
  ++Control().syncs_begun;
  for (int64_t ms = 0; ms < Control().sync_takes_ms; ms += kLookMs) nanosleep(&look, nullptr);
  const int result = Control().sync_is_free > 0 ? 0 : next(fd);
  ++Control().syncs;
  if (gettid() == getpid()) ++Control().loop_syncs;
  return result;
}

}  // namespace

// Parameters have the names that the C library's headers give them.
extern "C" {

int clock_gettime(clockid_t clock_id, timespec* tp) noexcept {
  static auto* const next = Next<int(clockid_t, timespec*)>("clock_gettime");
  const int result = next(clock_id, tp);
  if (result != 0) return result;
  if (clock_id == CLOCK_REALTIME) Add(Control().wall_offset_ms, tp);
  if (clock_id == CLOCK_BOOTTIME) Add(Control().boot_offset_ms, tp);
  return result;
}

// The C library's own do not come by clock_gettime.
int gettimeofday(timeval* __restrict tv, void* __restrict /*tz*/) noexcept {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  tv->tv_sec = now.tv_sec;
  tv->tv_usec = now.tv_nsec / 1'000;
  return result;
}

time_t time(time_t* timer) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (timer != nullptr) *timer = now.tv_sec;
  return now.tv_sec;
}

FILE* fopen(const char* filename, const char* modes) {
  static auto* const next = Next<FILE*(const char*, const char*)>("fopen");
  const int64_t boot = Control().boot;
  if (boot == 0 || filename != std::string_view("/proc/sys/kernel/random/boot_id")) {
    return next(filename, modes);
  }
  char id[64];
  std::snprintf(id, sizeof(id), "00000000-0000-0000-0000-%012d\n", static_cast<int>(boot));
  FILE* file = std::tmpfile();
  if (file == nullptr) return nullptr;
  std::fputs(id, file);
  std::rewind(file);
  return file;
}

int fdatasync(int fildes) {
  static auto* const next = Next<int(int)>("fdatasync");
  return Sync(next, fildes);
}

int fsync(int fd) {
  static auto* const next = Next<int(int)>("fsync");
  return Sync(next, fd);
}

int setsockopt(int fd, int level, int optname, const void* optval, socklen_t optlen) noexcept {
  static auto* const next = Next<int(int, int, int, const void*, socklen_t)>("setsockopt");
  const int64_t hurry = Control().tcp_hurry;
  const bool is_time =
      optname == TCP_KEEPIDLE || optname == TCP_KEEPINTVL || optname == TCP_USER_TIMEOUT;
  if (hurry == 0 || level != IPPROTO_TCP || !is_time || optlen != sizeof(int)) {
    return next(fd, level, optname, optval, optlen);
  }
  const int sooner = static_cast<int>(*static_cast<const int*>(optval) / hurry);
  return next(fd, level, optname, &sooner, optlen);
}

}  // extern "C"
