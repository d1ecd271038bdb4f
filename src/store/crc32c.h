// CRC-32C (Castagnoli), the checksum of RocksDB's log records.
//
// Thread: any. Some gigabytes a second where the processor has an instruction for it, which those
// of the last fifteen years have; a tenth of that elsewhere.
#ifndef NOWCALLS_STORE_CRC32C_H_
#define NOWCALLS_STORE_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace nowcalls::store {

uint32_t Crc32c(std::string_view bytes);

// The same without that instruction; for tests.
uint32_t Crc32cByTable(std::string_view bytes);

// As it is stored: a checksum over bytes that hold checksums is weak, so RocksDB turns it around.
inline uint32_t MaskedCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8U; }

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_CRC32C_H_
