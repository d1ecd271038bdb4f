// LedgerReader: a ledger opened by a tool beside or without its server. Changes nothing on disk.
//
// Thread: one.
#ifndef NOWCALLS_STORE_ROCKS_LEDGER_READER_H_
#define NOWCALLS_STORE_ROCKS_LEDGER_READER_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "store/disk/ledger_lock.h"
#include "store/ledger_source.h"
#include "store/rocks/copy_source.h"

namespace nowcalls::store {

enum class ReadMode {
  kAtRest,        // Nobody has the ledger open.
  kBesideServer,  // A server has it open, perhaps hung: what it had logged at one moment.
};

class LedgerReader : public LedgerSource, public CopySource {
 public:
  // kBesideServer if FindLedgerHolder finds a holder. kNotFound: no ledger; kInvalidArgument: no
  // data directory; kUnavailable: a server changes it too fast; else as RocksStore::Open.
  static Result<std::unique_ptr<LedgerReader>> Open(const std::string& data_dir);
  // kAtRest: this process holds the lock.
  static Result<std::unique_ptr<LedgerReader>> Open(const LedgerLock& lock);

  ~LedgerReader() override;

  // All tokens, also below the watermark.
  Status Load(ledger::EntityVisitor* visitor) override;

  // kFailedPrecondition if kBesideServer: servers make backups.
  Result<std::vector<CopiedFile>> CopyTo(const std::string& to,
                                         const std::atomic<bool>& stop) const override;

  ReadMode mode() const;
  // As RocksStore::notes.
  const std::vector<std::string>& notes() const;

 private:
  struct Impl;
  explicit LedgerReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_LEDGER_READER_H_
