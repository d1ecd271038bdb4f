#include "support/rpc_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <msgpack.hpp>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "support/tcp.h"

namespace nowcalls::testing {
namespace {

using SbufferPacker = msgpack::packer<msgpack::sbuffer>;

// msgpack::packer makes an integer of a whole double, which is not what a test asked for.
void PackDouble(double value, msgpack::sbuffer* buffer) {
  constexpr char kFloat64 = '\xcb';
  auto bits = std::bit_cast<uint64_t>(value);
  char bytes[9] = {kFloat64};
  for (int i = 8; i > 0; --i, bits >>= 8) bytes[i] = static_cast<char>(bits & 0xff);
  buffer->write(bytes, sizeof(bytes));
}

void Pack(const Json& value, msgpack::sbuffer* buffer) {
  SbufferPacker packer(*buffer);
  if (value.is_array()) {
    packer.pack_array(static_cast<uint32_t>(value.size()));
    for (const Json& element : value) Pack(element, buffer);
  } else if (value.is_object()) {
    packer.pack_map(static_cast<uint32_t>(value.size()));
    for (const auto& [name, member] : value.items()) {
      packer.pack(name);
      Pack(member, buffer);
    }
  } else if (value.is_string()) {
    packer.pack(value.get<std::string>());
  } else if (value.is_bool()) {
    packer.pack(value.get<bool>());
  } else if (value.is_number_unsigned()) {
    packer.pack(value.get<uint64_t>());
  } else if (value.is_number_integer()) {
    packer.pack(value.get<int64_t>());
  } else if (value.is_number()) {
    PackDouble(value.get<double>(), buffer);
  } else {
    packer.pack_nil();
  }
}

Json ToJson(const msgpack::object& object) {
  switch (object.type) {
    case msgpack::type::BOOLEAN: return object.via.boolean;
    case msgpack::type::POSITIVE_INTEGER: return object.via.u64;
    case msgpack::type::NEGATIVE_INTEGER: return object.via.i64;
    case msgpack::type::FLOAT32:
    case msgpack::type::FLOAT64: return object.via.f64;
    case msgpack::type::STR: return std::string(object.via.str.ptr, object.via.str.size);
    case msgpack::type::ARRAY: {
      Json array = Json::array();
      for (uint32_t i = 0; i < object.via.array.size; ++i) {
        array.push_back(ToJson(object.via.array.ptr[i]));
      }
      return array;
    }
    case msgpack::type::MAP: {
      Json map = Json::object();
      for (uint32_t i = 0; i < object.via.map.size; ++i) {
        const auto& entry = object.via.map.ptr[i];
        map[entry.key.as<std::string>()] = ToJson(entry.val);
      }
      return map;
    }
    default: return nullptr;
  }
}

Reply Garbage(const std::string& what) {
  Reply reply;
  reply.kind = Reply::Kind::kGarbage;
  reply.error_message = what;
  return reply;
}

bool IsNotification(const Json& message) {
  return message.is_array() && message.size() == 3 && message[0] == 2 && message[1].is_string();
}

// A response is [1, msgid, error, result], with error nil or [code, name, message].
Reply ParseResponse(const Json& message) {
  const bool shaped = message.is_array() && message.size() == 4 && message[0] == 1 &&
                      message[1].is_number_unsigned();
  if (!shaped) return Garbage("not a response: " + message.dump());
  Reply reply;
  reply.msgid = message[1].get<uint64_t>();
  if (message[2].is_null()) {
    reply.kind = Reply::Kind::kResult;
    reply.result = message[3];
    return reply;
  }
  const Json& error = message[2];
  if (!error.is_array() || error.size() != 3 || !error[0].is_number_integer() ||
      !error[1].is_string() || !error[2].is_string() || !message[3].is_null()) {
    return Garbage("not an error: " + message.dump());
  }
  reply.kind = Reply::Kind::kError;
  reply.error_code = error[0].get<int64_t>();
  reply.error_name = error[1].get<std::string>();
  reply.error_message = error[2].get<std::string>();
  return reply;
}

}  // namespace

struct RpcClient::Impl {
  int fd = -1;
  uint32_t next_msgid = 1;
  std::vector<Json> notifications;
  msgpack::unpacker unpacker;

  ~Impl() { Close(); }

  void Close() {
    if (fd >= 0) close(fd);
    fd = -1;
  }

  // Bytes read; 0: the peer closed; -1: nothing came in time.
  ssize_t Read(int64_t deadline_ms) {
    constexpr size_t kReadBytes = 64 * 1024;
    unpacker.reserve_buffer(kReadBytes);
    for (;;) {
      const ssize_t count = recv(fd, unpacker.buffer(), kReadBytes, 0);
      if (count >= 0) return count;
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return 0;
      if (!WaitFor(fd, POLLIN, deadline_ms)) return -1;
    }
  }
};

std::string Reply::ToString() const {
  switch (kind) {
    case Kind::kResult: return "result " + result.dump();
    case Kind::kError:
      return "error " + std::to_string(error_code) + " " + error_name + ": " + error_message;
    case Kind::kClosed: return "connection closed";
    case Kind::kTimeout: return "no answer in time";
    case Kind::kGarbage: return "garbage: " + error_message;
  }
  return "?";
}

RpcClient::RpcClient() : impl_(std::make_unique<Impl>()) {}
RpcClient::~RpcClient() = default;
RpcClient::RpcClient(RpcClient&&) noexcept = default;
RpcClient& RpcClient::operator=(RpcClient&&) noexcept = default;

RpcClient::RpcClient(const std::string& address, const std::string& source) : RpcClient() {
  impl_->fd = ConnectTo(address, source);
}

bool RpcClient::connected() const { return impl_->fd >= 0; }

void RpcClient::Close() { impl_->Close(); }

void RpcClient::EndInput() { shutdown(impl_->fd, SHUT_WR); }

std::string RpcClient::local_address() const { return LocalAddressOf(impl_->fd); }

std::string ToMessagePack(const Json& value) {
  msgpack::sbuffer buffer;
  Pack(value, &buffer);
  return {buffer.data(), buffer.size()};
}

Json FromMessagePack(std::string_view bytes) {
  try {
    size_t end = 0;
    const msgpack::object_handle handle = msgpack::unpack(bytes.data(), bytes.size(), end);
    return end == bytes.size() ? ToJson(handle.get()) : Json();
  } catch (const std::exception&) {
    return nullptr;
  }
}

std::string EncodeRequest(uint32_t msgid, std::string_view method, const Json& params) {
  msgpack::sbuffer buffer;
  SbufferPacker packer(buffer);
  packer.pack_array(4).pack(0).pack(msgid).pack(std::string(method));
  Pack(params, &buffer);
  return {buffer.data(), buffer.size()};
}

uint32_t RpcClient::Send(std::string_view method, const Json& params) {
  const uint32_t msgid = impl_->next_msgid++;
  SendRaw(EncodeRequest(msgid, method, params));
  return msgid;
}

void RpcClient::SendNotification(std::string_view method, const Json& params) {
  msgpack::sbuffer buffer;
  SbufferPacker packer(buffer);
  packer.pack_array(3).pack(2).pack(std::string(method));
  Pack(params, &buffer);
  SendRaw({buffer.data(), buffer.size()});
}

Reply RpcClient::Receive(int64_t timeout_ms) {
  const int64_t deadline_ms = BoottimeMs() + timeout_ms;
  Reply reply;
  reply.kind = Reply::Kind::kClosed;
  while (impl_->fd >= 0) {
    try {
      msgpack::object_handle handle;
      if (impl_->unpacker.next(handle)) {
        Json message = ToJson(handle.get());
        if (!IsNotification(message)) return ParseResponse(message);
        impl_->notifications.push_back(std::move(message));
        continue;
      }
    } catch (const std::exception& error) {
      return Garbage(error.what());
    }
    const ssize_t count = impl_->Read(deadline_ms);
    if (count < 0) {
      reply.kind = Reply::Kind::kTimeout;
      return reply;
    }
    if (count == 0) break;
    impl_->unpacker.buffer_consumed(static_cast<size_t>(count));
  }
  impl_->Close();
  return reply;
}

std::vector<Json> RpcClient::TakeNotifications() { return std::exchange(impl_->notifications, {}); }

Reply RpcClient::Call(std::string_view method, const Json& params, int64_t timeout_ms) {
  const int64_t deadline_ms = BoottimeMs() + timeout_ms;
  const uint32_t msgid = Send(method, params);
  for (;;) {
    Reply reply = Receive(std::max<int64_t>(0, deadline_ms - BoottimeMs()));
    if (!reply.answered() || reply.msgid == msgid) return reply;
  }
}

bool RpcClient::SendRaw(std::string_view bytes, int64_t timeout_ms) {
  const int64_t deadline_ms = BoottimeMs() + timeout_ms;
  while (!bytes.empty()) {
    if (impl_->fd < 0) return false;
    const ssize_t sent = send(impl_->fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!WaitFor(impl_->fd, POLLOUT, deadline_ms)) return false;
    } else if (errno != EINTR) {
      return false;  // Stays open: answers may still be waiting to be read.
    }
  }
  return true;
}

bool RpcClient::SeesEof(int64_t timeout_ms) {
  const int64_t deadline_ms = BoottimeMs() + timeout_ms;
  while (impl_->fd >= 0) {
    const ssize_t count = impl_->Read(deadline_ms);
    if (count < 0 || (count > 0 && BoottimeMs() > deadline_ms)) return false;
    if (count == 0) impl_->Close();
  }
  return true;
}

}  // namespace nowcalls::testing
