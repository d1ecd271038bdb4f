// LedgerEnv: the Env of every ledger that RocksDB opens. Its clock never shows a time before 1970,
// which RocksDB asserts.
//
// Thread: any.
#ifndef NOWCALLS_STORE_ROCKS_LEDGER_ENV_H_
#define NOWCALLS_STORE_ROCKS_LEDGER_ENV_H_

#include <rocksdb/env.h>

#include <memory>

namespace nowcalls::store {

class LedgerEnv : public rocksdb::EnvWrapper {
 public:
  // Has the file system of `env`.
  explicit LedgerEnv(std::unique_ptr<rocksdb::Env> env);

  static rocksdb::Env* OfDisk();

  const char* Name() const override { return "nowcalls.LedgerEnv"; }
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_LEDGER_ENV_H_
