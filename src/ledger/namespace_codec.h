// The record of a namespace as bytes: the source of its active rules.
//
// Thread: any. Errors as in codec.h; layout in FORMAT.md.
#ifndef NOWCALLS_LEDGER_NAMESPACE_CODEC_H_
#define NOWCALLS_LEDGER_NAMESPACE_CODEC_H_

#include <string>
#include <string_view>

#include "ledger/entities.h"
#include "nowcalls/status.h"

namespace nowcalls::ledger {

// Tells a namespace's key from a rule's: its flow is 0.
bool IsNamespaceKey(std::string_view key);

// REQUIRES: 1..kNamespaceBytesMax bytes without a NUL.
std::string EncodeNamespaceKey(std::string_view name_space);
// The view points into `key`.
Result<std::string_view> DecodeNamespaceKey(std::string_view key);

// REQUIRES: 1..kRuleSourceBytesMax bytes.
std::string EncodeNamespaceValue(std::string_view source);
Result<NamespaceEntry> DecodeNamespace(std::string_view key, std::string_view value);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_NAMESPACE_CODEC_H_
