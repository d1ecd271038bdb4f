// LedgerEnv: the Env of each ledger that RocksDB opens: a file system, and a clock that it can
// bear.
//
// RocksDB asserts that no time lies before 1970. A wall clock that was set so would end each start,
// and a server that runs, so it is shown 1970 instead.
//
// Thread: any.
#ifndef NOWCALLS_STORE_ROCKS_LEDGER_ENV_H_
#define NOWCALLS_STORE_ROCKS_LEDGER_ENV_H_

#include <rocksdb/env.h>

#include <memory>

namespace nowcalls::store {

class LedgerEnv : public rocksdb::EnvWrapper {
 public:
  // With the file system of `env`.
  explicit LedgerEnv(std::unique_ptr<rocksdb::Env> env);

  // The real disk, for the whole process.
  static rocksdb::Env* OfDisk();

  const char* Name() const override { return "nowcalls.LedgerEnv"; }
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_LEDGER_ENV_H_
