// RpcProtocol: MessagePack-RPC on one connection (src/wire/PROTOCOL.md).
//
// Thread: loop. Looks a message's method up in the table (methods.h) and calls its handler.
#ifndef NOWCALLS_ENGINE_RPC_RPC_PROTOCOL_H_
#define NOWCALLS_ENGINE_RPC_RPC_PROTOCOL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/protocol.h"
#include "engine/rpc/service.h"
#include "wire/splitter.h"

namespace nowcalls::engine::rpc {

class RpcProtocol final : public Protocol {
 public:
  // `service` outlives it.
  explicit RpcProtocol(Service* service) : service_(service) {}

  // Whether a message may begin with this byte.
  static bool BeginsWith(char first);

  ProtocolKind kind() const override { return ProtocolKind::kMessagePackRpc; }
  Taken Take(Connection* connection, std::string_view input, const Visit& visit,
             std::string* why) override;
  void AnswerAcquire(Connection* connection, uint32_t tag,
                     const core::AcquireAnswer& answer) override;
  void AnswerAcquireAll(Connection* connection, uint32_t tag,
                        const core::AcquireAllAnswer& answer) override;
  void TellLoss(Connection* connection, const core::Loss& loss) override;
  void AnswerBackup(Connection* connection, const Result<wire::BackupReply>& made) override;
  void AnswerWrongSecret(Connection* connection) override;
  void AnswerRefused(Connection* connection, std::string_view input, std::string_view why) override;

 private:
  Taken Do(Connection* connection, std::string_view message, const Visit& visit, std::string* why);
  void ReplyUnknown(Connection* connection, const wire::Envelope& request) const;
  size_t ValuesOf(wire::Method method) const;

  Service* const service_;
  wire::MessageSplitter splitter_ = wire::RequestSplitter();
  LateMsgids late_;
};

}  // namespace nowcalls::engine::rpc

#endif  // NOWCALLS_ENGINE_RPC_RPC_PROTOCOL_H_
