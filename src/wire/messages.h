// MessagePack-RPC requests and replies as structs (PROTOCOL.md).
//
// Thread: any. Views in decoded structs point into the message. Hot requests and replies allocate
// nothing.
#ifndef NOWCALLS_WIRE_MESSAGES_H_
#define NOWCALLS_WIRE_MESSAGES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/call_outcome.h"
#include "nowcalls/flow_kind.h"
#include "nowcalls/param.h"
#include "nowcalls/status.h"
#include "nowcalls/types.h"
#include "wire/method.h"
#include "wire/output_buffer.h"

namespace nowcalls::wire {

class ParamList;

inline constexpr int64_t kProtocolVersion = 1;

// Errors of requests (PROTOCOL.md); a refusal is a result.
enum class ErrorCode : int8_t {
  kMalformed = 1,      // Not a request: arity, types or order of the envelope.
  kUnknownMethod = 2,  //
  kBadParams = 3,      // The message names the parameter.
  kHelloState = 4,     // hello twice, or after the first acquire.
  kOverloaded = 5,     // A limit of the server; the message names it.
  kUnsupported = 6,    // A parameter or protocol version this server does not have.
  kConflict = 7,       // rules_load: a flowId or the namespace belongs to another.
  kInternal = 8,
  kPermission = 9,  // The principal may not; the message says what it lacks.
};
std::string_view ErrorCodeName(ErrorCode code);

struct RequestError {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

struct Envelope {
  bool notification = false;
  uint32_t msgid = 0;
  Method method = Method::kUnknown;
  std::string_view method_name;
  std::string_view params;  // The encoded parameter array.
};

// Takes apart one whole message of the splitter. False: no request; `error` is filled, and the
// envelope as far as it was read.
bool DecodeEnvelope(std::string_view message, Envelope* envelope, RequestError* error);

// The msgid of bytes that begin like a request.
std::optional<uint32_t> FindMsgid(std::string_view message);

// The flow of an acquire or request, or the token of a release, at the front; else 0. The rest is
// not checked.
struct Subject {
  int64_t flow = 0;
  uint64_t token = 0;
};
Subject SubjectAhead(std::string_view bytes);

// Parameters by method. Missing trailing parameters and nil take the defaults; surplus parameters
// and unknown keys are errors. Names are checked (base/text.h). flow_id and count may be any 64-bit
// integer: out of range they are answered BAD_REQUEST, not with an error. A flow_name, the resource
// of a rule, stands instead of flow_id; empty: none.
struct HelloParams {
  int64_t protocol = kProtocolVersion;  // Any other is refused with kUnsupported.
  std::string_view name_space{};
  std::optional<std::string_view> client_id{};
  bool lost = false;       // The connection wants EncodeLost.
  bool exclusive = false;  // Refused while the client id is online as another process.
  uint64_t instance = 0;   // Of the client id, at most INT64_MAX.
  bool terms = false;      // Grants and keeps of the connection tell Terms.
};
struct IdentifyParams {
  std::string_view secret{};  // Empty: none. At most kSecretBytesMax.
};
struct AcquireParams {
  int64_t flow_id = 0;
  int64_t count = 0;
  bool prioritized = false;
  std::optional<uint64_t> wait_ms{};  // 0 .. kWaitMsMax
  uint64_t request_id = 0;            // 0: none.
  uint64_t hold_ms = 0;               // At most INT64_MAX; 0: the rule's.
  // Of the rule's parameter. Decoded numbers lie in `number`: a copy does not outlive the struct.
  std::optional<Param> param{};
  std::array<char, 8> number{};
  std::string_view flow_name{};
};
struct AcquireAllParams {
  struct Item {
    int64_t flow_id = 0;
    int64_t count = 0;
    std::optional<Param> param{};  // As of AcquireParams.
    bool rate = false;             // It asks for calls a second, not for a token.
    std::array<char, 8> number{};
    std::string_view flow_name{};
  };
  // 1 .. kAcquireAllMax, no two of the same flow, param and rate. Decoded params point here.
  std::vector<Item> items;
  bool prioritized = false;
  std::optional<uint64_t> wait_ms{};
  uint64_t request_id = 0;
  uint64_t hold_ms = 0;
};
struct CancelParams {
  uint64_t request_id = 0;  // >= 1
};
struct RateParams {  // request
  int64_t flow_id = 0;
  int64_t count = 0;
  bool prioritized = false;
  std::string_view flow_name{};
};
struct ValueRateParams {  // request_param; the values are in a ParamList.
  int64_t flow_id = 0;
  int64_t count = 0;
  std::string_view flow_name{};
};
struct TokenParams {  // release, keep
  uint64_t token_id = 0;
  CallOutcome outcome = CallOutcome::kOk;  // release only.
};
struct ReclaimParams {
  uint64_t token_id = 0;
  std::string_view reason;
};
struct FlowParams {
  int64_t flow_id = 0;
  std::optional<FlowKind> kind{};
  std::string_view flow_name{};
};
struct PageParams {  // flows, sessions, history, namespaces
  uint32_t limit = 0;
  uint64_t cursor = 0;  // 0: from the beginning.
};
struct ValuesParams {  // params
  int64_t flow_id = 0;
  uint32_t limit = 0;
  bool by_minute = false;  // The order is that of the last minute, not of the last interval.
  std::string_view flow_name{};
};
struct WaitersParams {
  std::optional<int64_t> flow_id{};
  std::optional<std::string_view> client_id{};
  uint32_t limit = 0;
  std::optional<FlowKind> kind{};
  std::optional<uint64_t> instance{};  // Of the client id.
  std::string_view flow_name{};
};
struct RulesListParams {
  std::optional<std::string_view> name_space;
  PageParams page;
  std::optional<int64_t> flow_id{};  // Only the rules of this flow, at once.
  std::string_view flow_name{};
};
struct TokensParams {
  std::optional<int64_t> flow_id{};
  std::optional<std::string_view> client_id{};
  int64_t min_age_ms = 0;
  PageParams page;
  std::optional<uint64_t> session{};  // By its number.
  std::optional<FlowKind> kind{};
  std::optional<uint64_t> instance{};  // Of the client id.
  std::string_view flow_name{};
};
struct RulesLoadParams {
  std::string_view name_space;
  std::string json;  // The rules as JSON text, also when they came as MessagePack maps.
};

bool DecodeHello(std::string_view params, HelloParams* out, RequestError* error);
// No error shows any of the secret.
bool DecodeIdentify(std::string_view params, IdentifyParams* out, RequestError* error);
// `method`: for the error.
bool DecodeNoParams(Method method, std::string_view params, RequestError* error);  // ping, info
bool DecodeAcquire(std::string_view params, AcquireParams* out, RequestError* error);
bool DecodeAcquireAll(std::string_view params, AcquireAllParams* out, RequestError* error);
// kBadParams: two items are alike. Decoded ones are checked; resolved names want another look.
bool CheckItems(const std::vector<AcquireAllParams::Item>& items, RequestError* error);
bool DecodeRequest(std::string_view params, RateParams* out, RequestError* error);
// `values`: 0 .. kElementsMax.
bool DecodeRequestParam(std::string_view params, ValueRateParams* out, ParamList* values,
                        RequestError* error);
bool DecodeCancel(std::string_view params, CancelParams* out, RequestError* error);
bool DecodeToken(Method method, std::string_view params, TokenParams* out, RequestError* error);
bool DecodeReclaim(std::string_view params, ReclaimParams* out, RequestError* error);
bool DecodeFlow(std::string_view params, FlowParams* out, RequestError* error);
bool DecodePage(Method method, std::string_view params, PageParams* out, RequestError* error);
bool DecodeParams(std::string_view params, ValuesParams* out, RequestError* error);
bool DecodeWaiters(std::string_view params, WaitersParams* out, RequestError* error);
bool DecodeRulesList(std::string_view params, RulesListParams* out, RequestError* error);
bool DecodeTokens(std::string_view params, TokensParams* out, RequestError* error);
bool DecodeRulesLoad(std::string_view params, RulesLoadParams* out, RequestError* error);

// Replies. Each Encode appends one whole response.
struct HelloReply {
  std::string server_version;
  uint64_t session = 0;
  uint64_t sessions_online = 0;  // Of the namespace.
  uint64_t resumed_tokens = 0;
};
struct IdentifyReply {
  std::string name{};   // Of the principal; empty: the connection is nobody's yet.
  std::string role{};   // "anybody", "observer", "client" or "administrator".
  std::string proof{};  // "open", "network", "certificate", "machine", "secret" or "nothing".
  std::optional<std::vector<std::string>> namespaces{};  // Patterns; none: all.
};
// The rule's terms for a token's end, if hello asked.
struct Terms {
  uint64_t strategy = 0;  // resourceTimeoutStrategy.
  uint64_t resource_timeout_ms = 0;
  uint64_t client_offline_ms = 0;

  bool operator==(const Terms&) const = default;
};
struct AcquireReply {
  TokenStatus status = TokenStatus::kFail;
  uint64_t token_id = 0;
  uint64_t fence = 0;
  uint64_t now_calls = 0;
  uint64_t level = 0;
  uint64_t hold_ms = 0;
  RefusedBy refused_by = RefusedBy::kNone;
  std::optional<Param> value{};  // Whose limit refuses; encoded only.
  std::optional<Terms> terms{};  // Of a grant. REQUIRES: no value.
};
struct AcquireAllReply {
  // For a rate: 0, 0, and the ms until the calls may be made.
  struct Token {
    uint64_t token_id = 0;
    uint64_t fence = 0;
    uint64_t hold_ms = 0;
    std::optional<Terms> terms{};
  };
  TokenStatus status = TokenStatus::kFail;
  std::vector<Token> tokens{};  // In the order of the request; none when refused.
  RefusedBy refused_by = RefusedBy::kNone;
  int64_t flow_id = 0;  // Whose refusal it is; 0: no one rule's.
  uint64_t now_calls = 0;
  uint64_t level = 0;
  std::optional<Param> value{};  // As of AcquireReply.
};
struct KeepReply {
  TokenStatus status = TokenStatus::kFail;
  uint64_t hold_ms = 0;
  std::optional<Terms> terms{};
};
struct RateReply {
  TokenStatus status = TokenStatus::kFail;
  int64_t remaining = 0;
  uint64_t wait_ms = 0;
  RefusedBy refused_by = RefusedBy::kNone;
  std::optional<Param> value{};  // As of AcquireReply.
};

void EncodeError(uint32_t msgid, const RequestError& error, OutputBuffer* out);
void EncodeHello(uint32_t msgid, const HelloReply& reply, OutputBuffer* out);
void EncodeIdentify(uint32_t msgid, const IdentifyReply& reply, OutputBuffer* out);
void EncodePing(uint32_t msgid, uint64_t ledger_ms, OutputBuffer* out);
void EncodeAcquire(uint32_t msgid, const AcquireReply& reply, OutputBuffer* out);
void EncodeAcquireAll(uint32_t msgid, const AcquireAllReply& reply, OutputBuffer* out);
void EncodeRate(uint32_t msgid, const RateReply& reply, OutputBuffer* out);
// A notification.
void EncodeLost(uint64_t token_id, int64_t flow_id, EndReason reason, OutputBuffer* out);
void EncodeStatus(uint32_t msgid, TokenStatus status,
                  OutputBuffer* out);  // release, reclaim, cancel
void EncodeKeep(uint32_t msgid, const KeepReply& reply, OutputBuffer* out);
void EncodeRulesLoad(uint32_t msgid, uint64_t loaded, OutputBuffer* out);

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_MESSAGES_H_
