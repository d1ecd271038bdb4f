// SentinelClient: a client of Sentinel's frames written on its own, as a second opinion on the
// bytes that src/wire/sentinel produces and accepts.
//
// Thread: one at a time. Blocking, every wait with a deadline.
#ifndef NOWCALLS_SUPPORT_SENTINEL_CLIENT_H_
#define NOWCALLS_SUPPORT_SENTINEL_CLIENT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "support/poll_until.h"

namespace nowcalls::testing {

struct SentinelAnswer {
  bool came = false;  // False: the connection is closed, or nothing came in time.
  int32_t xid = 0;
  int type = 0;
  int status = 0;
  std::string data;

  // The big-endian number of `bytes` bytes at `at` of the data; -1 if there is none.
  int64_t Number(size_t at, size_t bytes) const;
  int64_t remaining() const { return Number(0, 4); }
  int64_t wait_ms() const { return Number(4, 4); }
  int64_t token() const { return Number(0, 8); }
  // "type 3 status 1 data 0000000000000000", or "nothing".
  std::string ToString() const;
};

class SentinelClient {
 public:
  // `address` is 127.0.0.1:PORT. A refused connection gives a client whose answers do not come.
  explicit SentinelClient(const std::string& address);
  ~SentinelClient();
  SentinelClient(SentinelClient&& other) noexcept;
  SentinelClient& operator=(SentinelClient&&) = delete;

  void Close();
  std::string local_address() const;  // HOST:PORT of this end.

  // Each sends one request and waits for its answer.
  SentinelAnswer Ping(const std::string& name_space);
  SentinelAnswer Flow(int64_t flow, int32_t count = 1, bool prioritized = false);
  // Of one value, a string.
  SentinelAnswer ParamFlow(int64_t flow, const std::string& value, int32_t count = 1);
  SentinelAnswer Acquire(int64_t flow, int32_t count = 1, bool prioritized = false);
  SentinelAnswer Release(int64_t token);
  SentinelAnswer Keep(int64_t token);

  // Sends a frame with a new xid, and returns the xid.
  int32_t Send(int type, std::string_view data);
  // Sends bytes as they are. False: the peer does not take them.
  bool SendRaw(std::string_view bytes, int64_t timeout_ms = kPatienceMs) const;
  // The next answer, in the order of arrival.
  SentinelAnswer Receive(int64_t timeout_ms = kPatienceMs);

 private:
  SentinelAnswer Call(int type, std::string_view data);
  bool Fill(size_t bytes, int64_t deadline_ms);

  int fd_ = -1;
  int32_t next_xid_ = 1;
  std::string input_;
};

// `value` in `bytes` bytes, big endian.
std::string BigEndian(int64_t value, size_t bytes);

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_SENTINEL_CLIENT_H_
