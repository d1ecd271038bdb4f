// The record of a namespace as bytes: where its active rules come from.
//
// Thread: any; pure. It lies in family `rules` in front of the namespace's rules, under the key of
// a rule whose flow is 0, which no rule has. Specified in FORMAT.md, with golden bytes in
// data/golden/ledger_values.hex. As in codec.h, decoders accept exactly what the encoders produce
// (kCorruption, naming the field), and encoders end the process for what could not be read back.
#ifndef NOWCALLS_LEDGER_NAMESPACE_CODEC_H_
#define NOWCALLS_LEDGER_NAMESPACE_CODEC_H_

#include <string>
#include <string_view>

#include "ledger/entities.h"
#include "nowcalls/status.h"

namespace nowcalls::ledger {

// Whether a key of family `rules` is that of a namespace rather than of a rule.
bool IsNamespaceKey(std::string_view key);

// namespace | 0x00 | 0: be64. REQUIRES: 1..kNamespaceBytesMax bytes without a NUL.
std::string EncodeNamespaceKey(std::string_view name_space);
// The view points into `key`.
Result<std::string_view> DecodeNamespaceKey(std::string_view key);

// version | size of the source: be16 | source. REQUIRES: 1..kRuleSourceBytesMax bytes.
std::string EncodeNamespaceValue(std::string_view source);
Result<NamespaceEntry> DecodeNamespace(std::string_view key, std::string_view value);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_NAMESPACE_CODEC_H_
