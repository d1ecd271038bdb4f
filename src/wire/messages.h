// MessagePack-RPC requests and replies of nowcalls as structs (PROTOCOL.md).
//
// Thread: any. Views in decoded structs point into the message they were decoded from. Decoding a
// hot request and encoding its reply allocate nothing.
#ifndef NOWCALLS_WIRE_MESSAGES_H_
#define NOWCALLS_WIRE_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/status.h"
#include "nowcalls/types.h"
#include "wire/output_buffer.h"

namespace nowcalls::wire {

inline constexpr int64_t kProtocolVersion = 1;

enum class Method : uint8_t {
  kUnknown,
  kHello,
  kPing,
  kAcquire,
  kRelease,
  kKeep,
  kRulesList,
  kRulesLoad,
  kFlow,
  kFlows,
  kTokens,
  kSessions,
  kInfo,
  kReclaim,
  kCancel,
  kHistory,
  kReclaimClient,
  kReclaimFlow,
  kPurge,
  kDrain,
  kNamespaces,
  kBackup,
};

std::string_view MethodName(Method method);
Method MethodFromName(std::string_view name);  // kUnknown when it is none.

// What is wrong with a request, as opposed to a refusal, which is a result. The numbers and names
// are part of the protocol.
enum class ErrorCode : int8_t {
  kMalformed = 1,      // Not a request: arity, types or order of the envelope.
  kUnknownMethod = 2,  //
  kBadParams = 3,      // The message names the parameter.
  kHelloState = 4,     // hello twice, or after the first acquire.
  kOverloaded = 5,     // A limit of the server; the message names it.
  kUnsupported = 6,    // A parameter or protocol version this server does not have.
  kConflict = 7,       // rules_load: a flowId or the namespace belongs to another.
  kInternal = 8,
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

// Takes apart one whole message as the splitter found it. False: not a request (error filled, and
// of the envelope what was read before).
bool DecodeEnvelope(std::string_view message, Envelope* envelope, RequestError* error);

// The msgid of what begins like a request, whatever follows: for telling its sender what is wrong.
std::optional<uint32_t> FindMsgid(std::string_view message);

// What the request is about that the bytes begin with: the flow of an acquire, the token of a
// release. Both 0 when they begin with anything else, or end before it. For who prepares for a
// request: no more of it is looked at.
struct Subject {
  int64_t flow = 0;
  uint64_t token = 0;
};
Subject SubjectAhead(std::string_view bytes);

// Parameters by method. Missing trailing parameters take the defaults; nil stands for a missing
// one; more parameters than known and unknown option keys are errors, so that nothing a client
// asks for is silently ignored. Names are checked here (base/text.h); flow_id and count may be any
// 64-bit integer, what is out of their range is answered with BAD_REQUEST, not with an error.
struct HelloParams {
  int64_t protocol = kProtocolVersion;  // Any other is refused with kUnsupported.
  std::string_view name_space;
  std::optional<std::string_view> client_id;
};
struct AcquireParams {
  int64_t flow_id = 0;
  int64_t count = 0;
  bool prioritized = false;
  std::optional<uint64_t> wait_ms{};  // 0 .. kWaitMsMax
  uint64_t request_id = 0;            // 0: none.
};
struct CancelParams {
  uint64_t request_id = 0;  // >= 1
};
struct TokenParams {  // release, keep
  uint64_t token_id = 0;
};
struct ReclaimParams {
  uint64_t token_id = 0;
  std::string_view reason;
};
struct FlowParams {
  int64_t flow_id = 0;
};
struct PageParams {  // flows, sessions, history, namespaces
  uint32_t limit = 0;
  uint64_t cursor = 0;  // 0: from the beginning.
};
struct RulesListParams {
  std::optional<std::string_view> name_space;
  PageParams page;
};
struct TokensParams {
  std::optional<int64_t> flow_id;
  std::optional<std::string_view> client_id;
  int64_t min_age_ms = 0;
  PageParams page;
};
struct RulesLoadParams {
  std::string_view name_space;
  std::string json;  // The rules as JSON text, also when they came as MessagePack maps.
};

bool DecodeHello(std::string_view params, HelloParams* out, RequestError* error);
// Those that several methods share are told which, for the message of an error.
bool DecodeNoParams(Method method, std::string_view params, RequestError* error);  // ping, info
bool DecodeAcquire(std::string_view params, AcquireParams* out, RequestError* error);
bool DecodeCancel(std::string_view params, CancelParams* out, RequestError* error);
bool DecodeToken(Method method, std::string_view params, TokenParams* out, RequestError* error);
bool DecodeReclaim(std::string_view params, ReclaimParams* out, RequestError* error);
bool DecodeFlow(std::string_view params, FlowParams* out, RequestError* error);
bool DecodePage(Method method, std::string_view params, PageParams* out, RequestError* error);
bool DecodeRulesList(std::string_view params, RulesListParams* out, RequestError* error);
bool DecodeTokens(std::string_view params, TokensParams* out, RequestError* error);
bool DecodeRulesLoad(std::string_view params, RulesLoadParams* out, RequestError* error);

// Replies. Each Encode appends one whole response message.
struct HelloReply {
  std::string server_version;
  uint64_t session = 0;
  uint64_t sessions_online = 0;  // Of the namespace.
  uint64_t resumed_tokens = 0;
};
struct AcquireReply {
  TokenStatus status = TokenStatus::kFail;
  uint64_t token_id = 0;
  uint64_t fence = 0;
  uint64_t now_calls = 0;
  uint64_t level = 0;
  uint64_t hold_ms = 0;
  RefusedBy refused_by = RefusedBy::kNone;
};

void EncodeError(uint32_t msgid, const RequestError& error, OutputBuffer* out);
void EncodeHello(uint32_t msgid, const HelloReply& reply, OutputBuffer* out);
void EncodePing(uint32_t msgid, uint64_t ledger_ms, OutputBuffer* out);
void EncodeAcquire(uint32_t msgid, const AcquireReply& reply, OutputBuffer* out);
void EncodeStatus(uint32_t msgid, TokenStatus status,
                  OutputBuffer* out);  // release, reclaim, cancel
void EncodeKeep(uint32_t msgid, TokenStatus status, uint64_t hold_ms, OutputBuffer* out);
void EncodeRulesLoad(uint32_t msgid, uint64_t loaded, OutputBuffer* out);

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_MESSAGES_H_
