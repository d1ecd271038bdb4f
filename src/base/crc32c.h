// CRC-32C (Castagnoli), the checksum of RocksDB's log records.
//
// Thread: any; pure. Some gigabytes a second where the processor has an instruction for it, which
// those of the last fifteen years have; a tenth of that elsewhere.
#ifndef NOWCALLS_BASE_CRC32C_H_
#define NOWCALLS_BASE_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace nowcalls {

// That of some bytes, of which `crc` is the checksum, and of `more` behind them. That of none is 0.
uint32_t ExtendCrc32c(uint32_t crc, std::string_view more);

inline uint32_t Crc32c(std::string_view bytes) { return ExtendCrc32c(0, bytes); }

// The same without that instruction; for tests.
uint32_t ExtendCrc32cByTable(uint32_t crc, std::string_view more);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_CRC32C_H_
