// The client's half of the protocol: requests to bytes, responses from bytes.
//
// Thread: any.
#ifndef NOWCALLS_WIRE_CLIENT_MESSAGES_H_
#define NOWCALLS_WIRE_CLIENT_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nowcalls/param.h"
#include "nowcalls/status.h"
#include "wire/messages.h"
#include "wire/output_buffer.h"

namespace nowcalls::wire {

void EncodeHelloRequest(uint32_t msgid, const HelloParams& params, OutputBuffer* out);
// Empty secret: who does the server take me for?
void EncodeIdentifyRequest(uint32_t msgid, std::string_view secret, OutputBuffer* out);
void EncodePlainRequest(uint32_t msgid, Method method, OutputBuffer* out);  // ping, info
void EncodeAcquireRequest(uint32_t msgid, const AcquireParams& params, OutputBuffer* out);
void EncodeAcquireAllRequest(uint32_t msgid, const AcquireAllParams& params, OutputBuffer* out);
void EncodeRateRequest(uint32_t msgid, const RateParams& params, OutputBuffer* out);
void EncodeValueRateRequest(uint32_t msgid, const ValueRateParams& params,
                            std::span<const Param> values, OutputBuffer* out);
void EncodeCancelRequest(uint32_t msgid, uint64_t request_id, OutputBuffer* out);
void EncodeTokenRequest(uint32_t msgid, Method method, uint64_t token_id, OutputBuffer* out);
// Tells how the call ended; with kOk as EncodeTokenRequest.
void EncodeReleaseRequest(uint32_t msgid, uint64_t token_id, CallOutcome outcome,
                          OutputBuffer* out);
void EncodeReclaimRequest(uint32_t msgid, const ReclaimParams& params, OutputBuffer* out);
void EncodeFlowRequest(uint32_t msgid, const FlowParams& params, OutputBuffer* out);
void EncodePageRequest(uint32_t msgid, Method method, const PageParams& page, OutputBuffer* out);
void EncodeParamsRequest(uint32_t msgid, const ValuesParams& params, OutputBuffer* out);
void EncodeWaitersRequest(uint32_t msgid, const WaitersParams& params, OutputBuffer* out);
void EncodeRulesListRequest(uint32_t msgid, const RulesListParams& params, OutputBuffer* out);
void EncodeTokensRequest(uint32_t msgid, const TokensParams& params, OutputBuffer* out);
// `json`: all rules.
void EncodeRulesLoadRequest(uint32_t msgid, std::string_view name_space, std::string_view json,
                            OutputBuffer* out);

struct Response {
  uint32_t msgid = 0;
  std::optional<RequestError> error;
  std::string_view result;  // The encoded result; valid when there is no error.
};
Result<Response> DecodeResponse(std::string_view message);

struct LostNotice {
  uint64_t token_id = 0;
  int64_t flow_id = 0;
  std::string reason;  // Of EndReasonName, or a word of a later server.
};
// nullopt: unknown to this client.
bool IsNotification(std::string_view message);
Result<std::optional<LostNotice>> DecodeNotification(std::string_view message);

RefusedBy RefusedByFromName(std::string_view name);  // kOther: this client does not know the word.

// A grant, refusal, release or answer about calls a second.
struct CommonReply {
  uint32_t msgid = 0;
  TokenStatus status = TokenStatus::kFail;  // kOk, kBlocked or kReleaseOk.
  RefusedBy refused_by = RefusedBy::kNone;
  uint64_t token_id = 0;  // Of a grant.
};
// Takes one off the front of a stream. False, nothing taken: another kind or form, or cut off. Then
// use MessageSplitter, DecodeResponse and the decoders below.
bool TakeCommonReply(std::string_view* input, CommonReply* reply);

Result<HelloReply> DecodeHelloReply(std::string_view result);
Result<IdentifyReply> DecodeIdentifyReply(std::string_view result);
Result<AcquireReply> DecodeAcquireReply(std::string_view result);
Result<AcquireAllReply> DecodeAcquireAllReply(std::string_view result);
Result<RateReply> DecodeRateReply(std::string_view result);
Result<TokenStatus> DecodeStatusReply(std::string_view result);
Result<KeepReply> DecodeKeepReply(std::string_view result);
Result<uint64_t> DecodeUintReply(std::string_view result);  // ping, rules_load

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_CLIENT_MESSAGES_H_
