// Requests of administrators, in both directions.
//
// Thread: any. Views and errors as in messages.h.
#ifndef NOWCALLS_WIRE_ADMIN_MESSAGES_H_
#define NOWCALLS_WIRE_ADMIN_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/limits.h"
#include "nowcalls/status.h"
#include "nowcalls/types.h"
#include "wire/messages.h"
#include "wire/output_buffer.h"

namespace nowcalls::wire {

struct ReclaimClientParams {
  std::string_view name_space;
  std::string_view client_id;  // "@HOST:PORT" for sessions of connections.
  std::string_view reason;
  uint32_t limit = kReclaimTokensMax;
  std::optional<uint64_t> instance{};  // Of the client id; none: all.
};
struct ReclaimFlowParams {
  int64_t flow_id = 0;
  std::string_view reason;
  uint32_t limit = kReclaimTokensMax;
  std::optional<FlowKind> kind{};  // None: both, here and below.
  std::string_view flow_name{};
};
struct PurgeParams {
  int64_t flow_id = 0;
  uint32_t limit = kReclaimTokensMax;
  std::string_view reason{};  // Empty: none.
  std::optional<FlowKind> kind{};
  std::string_view flow_name{};
};
struct DrainParams {
  int64_t flow_id = 0;
  bool on = false;
  std::string_view reason{};  // Empty: none.
  std::optional<FlowKind> kind{};
  std::string_view flow_name{};
};

// In pieces. `first_flow`: next_flow of the reply before; 0: the first piece.
struct ReclaimNamespaceParams {
  std::string_view name_space;
  std::string_view reason;
  uint32_t limit = kReclaimTokensMax;  // Tokens.
  uint64_t first_flow = 0;
};
struct DrainNamespaceParams {
  std::string_view name_space;
  bool on = false;
  std::string_view reason{};           // Empty: none.
  uint32_t limit = kReclaimTokensMax;  // Rules.
  uint64_t first_flow = 0;
};

struct BackupParams {
  std::string_view to;  // An absolute path on the server's machine.
};

// A piece of the copy that was made last, for a member of a cluster.
struct CopyPieceParams {
  std::string_view file;  // Its name within the copy, at most two names with '/' between them.
  uint64_t offset = 0;
};

bool DecodeReclaimClient(std::string_view params, ReclaimClientParams* out, RequestError* error);
bool DecodeReclaimFlow(std::string_view params, ReclaimFlowParams* out, RequestError* error);
bool DecodePurge(std::string_view params, PurgeParams* out, RequestError* error);
bool DecodeDrain(std::string_view params, DrainParams* out, RequestError* error);
bool DecodeReclaimNamespace(std::string_view params, ReclaimNamespaceParams* out,
                            RequestError* error);
bool DecodeDrainNamespace(std::string_view params, DrainNamespaceParams* out, RequestError* error);
bool DecodeBackup(std::string_view params, BackupParams* out, RequestError* error);
bool DecodeCopyPiece(std::string_view params, CopyPieceParams* out, RequestError* error);

// Without instance, reason or kind, requests are as older servers understand them.
void EncodeReclaimClientRequest(uint32_t msgid, const ReclaimClientParams& params,
                                OutputBuffer* out);
void EncodeReclaimFlowRequest(uint32_t msgid, const ReclaimFlowParams& params, OutputBuffer* out);
void EncodePurgeRequest(uint32_t msgid, const PurgeParams& params, OutputBuffer* out);
void EncodeDrainRequest(uint32_t msgid, const DrainParams& params, OutputBuffer* out);
void EncodeReclaimNamespaceRequest(uint32_t msgid, const ReclaimNamespaceParams& params,
                                   OutputBuffer* out);
void EncodeDrainNamespaceRequest(uint32_t msgid, const DrainNamespaceParams& params,
                                 OutputBuffer* out);
void EncodeBackupRequest(uint32_t msgid, const BackupParams& params, OutputBuffer* out);
void EncodeCopyPieceRequest(uint32_t msgid, const CopyPieceParams& params, OutputBuffer* out);

struct ReclaimedReply {  // reclaim_client, reclaim_flow, purge
  uint64_t reclaimed = 0;
  bool more = false;  // Tokens are left: ask again.

  bool operator==(const ReclaimedReply&) const = default;
};
struct DrainReply {
  TokenStatus status = TokenStatus::kFail;  // kOk or kNoRuleExists.
  uint64_t now_calls = 0;
  uint64_t tokens = 0;

  bool operator==(const DrainReply&) const = default;
};

struct ReclaimNamespaceReply {
  uint64_t reclaimed = 0;
  uint64_t next_flow = 0;  // Where the next piece begins; 0: this was the last.

  bool operator==(const ReclaimNamespaceReply&) const = default;
};
struct DrainNamespaceReply {
  TokenStatus status = TokenStatus::kFail;  // kOk or kNoRuleExists.
  uint64_t now_calls = 0;                   // Of the rules of this piece, as the next two.
  uint64_t tokens = 0;
  uint64_t rules = 0;
  uint64_t next_flow = 0;

  bool operator==(const DrainNamespaceReply&) const = default;
};

struct BackupReply {  // What the backup holds.
  uint64_t batch_number = 0;
  uint64_t tokens = 0;
  uint64_t now_calls = 0;
  uint64_t sessions = 0;
  uint64_t rules = 0;
  uint64_t history = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;

  bool operator==(const BackupReply&) const = default;
};

void EncodeReclaimed(uint32_t msgid, const ReclaimedReply& reply, OutputBuffer* out);
void EncodeDrain(uint32_t msgid, const DrainReply& reply, OutputBuffer* out);
void EncodeReclaimNamespace(uint32_t msgid, const ReclaimNamespaceReply& reply, OutputBuffer* out);
void EncodeDrainNamespace(uint32_t msgid, const DrainNamespaceReply& reply, OutputBuffer* out);
void EncodeBackup(uint32_t msgid, const BackupReply& reply, OutputBuffer* out);
void EncodeCopyPiece(uint32_t msgid, std::string_view bytes, OutputBuffer* out);

// kCorruption: not such a reply.
Result<ReclaimedReply> DecodeReclaimedReply(std::string_view result);
Result<DrainReply> DecodeDrainReply(std::string_view result);
Result<ReclaimNamespaceReply> DecodeReclaimNamespaceReply(std::string_view result);
Result<DrainNamespaceReply> DecodeDrainNamespaceReply(std::string_view result);
Result<BackupReply> DecodeBackupReply(std::string_view result);
// A view into `result`.
Result<std::string_view> DecodeCopyPieceReply(std::string_view result);

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_ADMIN_MESSAGES_H_
