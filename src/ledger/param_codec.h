// The parameter of a token as bytes: type | size | bytes.
//
// Thread: any; pure. FORMAT.md specifies the layout; data/golden/ledger_values.hex holds examples.
#ifndef NOWCALLS_LEDGER_PARAM_CODEC_H_
#define NOWCALLS_LEDGER_PARAM_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "nowcalls/param.h"

namespace nowcalls::ledger {

inline constexpr size_t kParamHeadBytes = 3;
inline constexpr size_t kParamCodedBytesMax = kParamHeadBytes + kParamBytesMax;
// In place of a type: there is no parameter. No type has this number.
inline constexpr uint8_t kNoParamType = 0xff;

// Why a ledger cannot hold the parameter; nullptr: it can. A text may not hold zero bytes: many of
// them would look like a sector that a power cut has left unwritten (FORMAT.md, "The log").
const char* ParamProblem(const Param& param);

inline size_t ParamCodedBytes(const Param& param) { return kParamHeadBytes + param.bytes.size(); }

// Writes the parameter at `out`, which has room for ParamCodedBytes; returns the byte behind it.
// REQUIRES: ParamProblem is nullptr.
char* StoreParam(const Param& param, char* out);
void AppendParam(const Param& param, std::string* out);

// Takes a parameter off the reader. The caller checks reader->ok() and ParamProblem.
Param ReadParam(ByteReader* reader);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_PARAM_CODEC_H_
