// LedgerReader: a ledger opened by a tool that is not its server. Changes nothing in its directory.
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
  // kBesideServer when FindLedgerHolder names somebody, kAtRest otherwise. kNotFound when there is
  // no ledger, kInvalidArgument when `data_dir` cannot be a data directory, kUnavailable when a
  // busy server changes the ledger faster than it can be read, else as RocksStore::Open.
  static Result<std::unique_ptr<LedgerReader>> Open(const std::string& data_dir);
  // The ledger whose lock this process has, so that nobody writes it: kAtRest.
  static Result<std::unique_ptr<LedgerReader>> Open(const LedgerLock& lock);

  ~LedgerReader() override;

  // Shows all tokens, where a server's Load starts at the watermark.
  Status Load(LedgerVisitor* visitor) override;

  // kFailedPrecondition with kBesideServer: the server makes backups.
  Result<std::vector<CopiedFile>> CopyTo(const std::string& to,
                                         const std::atomic<bool>& stop) const override;

  ReadMode mode() const;
  // What an operator should know of what was opened though it was not refused, as sentences.
  const std::vector<std::string>& notes() const;

 private:
  struct Impl;
  explicit LedgerReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_LEDGER_READER_H_
