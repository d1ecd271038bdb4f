#include "base/clock.h"

#include <sys/random.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "base/check.h"
#include "base/hex.h"
#include "base/os_error.h"

namespace nowcalls {
namespace {

constexpr char kBootIdPath[] = "/proc/sys/kernel/random/boot_id";

int64_t ReadClockNs(clockid_t id) {
  timespec now{};
  NOWCALLS_CHECK(clock_gettime(id, &now) == 0);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

int64_t ReadClockUs(clockid_t id) { return ReadClockNs(id) / 1000; }

// The largest reading of CLOCK_BOOTTIME of this process.
std::atomic<int64_t> g_latest_boottime_us{INT64_MIN};

Result<BootId> ReadBootId() {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(kBootIdPath, "re"), &std::fclose);
  // Without the boot id a start cannot tell a reboot from a restart, so there is no default.
  if (file == nullptr) {
    return Status::IoError(OsError("open", kBootIdPath).message() +
                           "; mount all of /proc (without subset=pid): by that file a start knows "
                           "whether the machine was booted anew");
  }
  std::string digits;  // Without the dashes of the UUID form.
  for (int c = std::fgetc(file.get()); c != EOF && c != '\n'; c = std::fgetc(file.get())) {
    if (c != '-') digits += static_cast<char>(c);
  }
  const Result<std::string> bytes = FromHex(digits);
  BootId id{};
  if (!bytes.ok() || bytes->size() != id.size()) {
    return Status::IoError(std::string(kBootIdPath) + " is not a UUID");
  }
  std::memcpy(id.data(), bytes->data(), id.size());
  return id;
}

}  // namespace

Result<ClockSample> SampleClocks() {
  Result<BootId> boot_id = ReadBootId();
  if (!boot_id.ok()) return boot_id.status();
  return ClockSample{BoottimeMs(), WallMs(), *boot_id};
}

int64_t BoottimeMs() { return BoottimeUs() / 1000; }

int64_t BoottimeUs() {
  // A hypervisor or the kernel may set the clock back all the same. Then all threads get the
  // largest reading of the process until the clock has passed it.
  const int64_t now_us = ReadClockUs(CLOCK_BOOTTIME);
  int64_t latest_us = g_latest_boottime_us.load(std::memory_order_relaxed);
  while (latest_us < now_us && !g_latest_boottime_us.compare_exchange_weak(
                                   latest_us, now_us, std::memory_order_relaxed)) {
  }
  return std::max(latest_us, now_us);
}

int64_t MonotonicNs() { return ReadClockNs(CLOCK_MONOTONIC); }
int64_t WallMs() { return std::max<int64_t>(0, ReadClockUs(CLOCK_REALTIME) / 1000); }

std::string WallText(int64_t wall_ms) {
  const auto seconds = static_cast<time_t>(wall_ms / 1000);
  tm utc{};
  gmtime_r(&seconds, &utc);
  char text[64];
  std::snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900,
                utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                static_cast<int>(wall_ms % 1000));
  return text;
}

std::array<uint64_t, 2> RandomBits128() {
  std::array<uint64_t, 2> bits{};
  NOWCALLS_CHECK(getrandom(bits.data(), sizeof(bits), 0) == static_cast<ssize_t>(sizeof(bits)));
  return bits;
}

}  // namespace nowcalls
