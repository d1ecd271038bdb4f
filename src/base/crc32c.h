// CRC-32C (Castagnoli), the checksum of RocksDB's log records.
//
// Thread: any; pure.
#ifndef NOWCALLS_BASE_CRC32C_H_
#define NOWCALLS_BASE_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace nowcalls {

// `crc`: of the bytes before `more`; 0: of none.
uint32_t ExtendCrc32c(uint32_t crc, std::string_view more);

inline uint32_t Crc32c(std::string_view bytes) { return ExtendCrc32c(0, bytes); }

// Without the instruction; for tests.
uint32_t ExtendCrc32cByTable(uint32_t crc, std::string_view more);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_CRC32C_H_
