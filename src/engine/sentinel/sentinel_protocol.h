// SentinelProtocol: Sentinel's frames on one connection (src/wire/SENTINEL.md).
//
// Thread: loop. Every frame but an empty one is answered. The first PING or token request decides
// the namespace and makes a session. Rates need none.
//
//   FLOW, PARAM_FLOW          core::Rates; answered at once
//   ACQUIRE, RELEASE, KEEP    core::Core; OK and what tells of a record leave after the commit
#ifndef NOWCALLS_ENGINE_SENTINEL_SENTINEL_PROTOCOL_H_
#define NOWCALLS_ENGINE_SENTINEL_SENTINEL_PROTOCOL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/protocol.h"
#include "engine/sentinel/service.h"
#include "nowcalls/types.h"
#include "wire/sentinel/frames.h"

namespace nowcalls::engine::sentinel {

class SentinelProtocol final : public Protocol {
 public:
  // `service` outlives it.
  explicit SentinelProtocol(Service* service) : service_(service) {}

  static bool BeginsWith(char first);

  ProtocolKind kind() const override { return ProtocolKind::kSentinel; }
  Taken Take(Connection* connection, std::string_view input, const Visit& visit,
             std::string* why) override;
  void AnswerAcquire(Connection* connection, uint32_t tag,
                     const core::AcquireAnswer& answer) override;
  void AnswerRefused(Connection* connection, std::string_view input, std::string_view why) override;

 private:
  using Request = wire::sentinel::Request;

  size_t Do(Connection* connection, std::string_view payload, const core::Step& step);
  void Ping(Connection* connection, const Request& request, const core::Step& step);
  void Flow(Connection* connection, const Request& request, const core::Step& step);
  size_t ParamFlow(Connection* connection, const Request& request, const core::Step& step);
  void Acquire(Connection* connection, const Request& request, const core::Step& step);
  void Release(Connection* connection, const Request& request, const core::Step& step);
  void Keep(Connection* connection, const Request& request, const core::Step& step);
  // Makes a session if there is none. nullopt: refused.
  std::optional<TokenId> TokenOf(Connection* connection, const Request& request,
                                 const core::Step& step);
  void AnswerRate(Connection* connection, const Request& request, const core::RateAnswer& answer);
  void Refuse(Connection* connection, const Request& request, TokenStatus status);
  bool IsInReach(const Connection& connection, int64_t flow, FlowKind kind) const;
  void NoteNotAllowed(const Connection& connection, const core::Step& step);
  void RefuseNotAllowed(Connection* connection, const Request& request, const core::Step& step);
  void RefuseMalformed(Connection* connection, const Request& request);
  void RefuseOversized(Connection* connection, std::string_view payload);
  TokenStatus Join(Connection* connection, std::string_view name_space, const core::Step& step);
  TokenStatus EnsureSession(Connection* connection, const core::Step& step);

  Service* const service_;
  wire::sentinel::FrameSplitter splitter_;
};

}  // namespace nowcalls::engine::sentinel

#endif  // NOWCALLS_ENGINE_SENTINEL_SENTINEL_PROTOCOL_H_
