// RpcClient: a MessagePack-RPC client written on msgpack-c alone, as a second opinion on the bytes
// that src/wire produces and accepts.
//
// Thread: one at a time. Blocking, every wait with a deadline. Parameters and results are JSON
// values, which MessagePack-RPC of nowcalls maps to one by one.
#ifndef NOWCALLS_SUPPORT_RPC_CLIENT_H_
#define NOWCALLS_SUPPORT_RPC_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/json.h"
#include "support/poll_until.h"

namespace nowcalls::testing {

struct Reply {
  enum class Kind { kResult, kError, kClosed, kTimeout, kGarbage };

  Kind kind = Kind::kTimeout;
  uint64_t msgid = 0;
  Json result;
  int64_t error_code = 0;
  std::string error_name;
  std::string error_message;

  bool ok() const { return kind == Kind::kResult; }
  bool answered() const { return kind == Kind::kResult || kind == Kind::kError; }
  // For messages of failed tests: the result, the error or what happened instead.
  std::string ToString() const;
};

class RpcClient {
 public:
  // An unconnected client: every call answers kClosed.
  RpcClient();
  ~RpcClient();
  RpcClient(RpcClient&&) noexcept;
  RpcClient& operator=(RpcClient&&) noexcept;

  // `address` is 127.0.0.1:PORT. A refused connection gives an unconnected client.
  // `source`, an address of this machine, is where it then comes from.
  explicit RpcClient(const std::string& address, const std::string& source = {});

  bool connected() const;
  std::string local_address() const;  // HOST:PORT of this end.
  void Close();
  // Says that nothing more will be sent; what comes can still be received.
  void EndInput();

  // Sends one request and returns its msgid. A failed send shows as kClosed in Receive.
  uint32_t Send(std::string_view method, const Json& params = Json::array());
  void SendNotification(std::string_view method, const Json& params = Json::array());
  // The next response, in the order of arrival; notifications before it are kept.
  Reply Receive(int64_t timeout_ms = kPatienceMs);
  // Send, and Receive until the response with that msgid (others are dropped).
  Reply Call(std::string_view method, const Json& params = Json::array(),
             int64_t timeout_ms = kPatienceMs);

  // What the server has said unasked, since the last call: [2, method, params] each.
  std::vector<Json> TakeNotifications();

  // Sends bytes as they are; gives up when the peer does not take them. True: all were sent.
  bool SendRaw(std::string_view bytes, int64_t timeout_ms = kPatienceMs);
  // Reads and drops what comes until the peer closes. False: it did not within the timeout.
  bool SeesEof(int64_t timeout_ms = kPatienceMs);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string ToMessagePack(const Json& value);
// Null if the bytes are not one whole value.
Json FromMessagePack(std::string_view bytes);

// One request as bytes, for tests that cut or repeat them.
std::string EncodeRequest(uint32_t msgid, std::string_view method, const Json& params);

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_RPC_CLIENT_H_
