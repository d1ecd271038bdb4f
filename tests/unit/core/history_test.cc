// The history by itself: numbers, bound, pages, and what it records.
#include "core/tables/history.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "ledger/codec.h"
#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using ledger::CommitBatch;
using ledger::HistoryBlock;
using ledger::HistoryEntry;
using testing::ReadLedger;

HistoryEntry EntryOf(uint64_t token) {
  HistoryEntry entry;
  entry.ended_ms = static_cast<int64_t>(token) * 10;
  entry.reason = EndReason::kAdmin;
  entry.token_id = TokenId(token);
  entry.flow = FlowId(1);
  entry.session = SessionId(1);
  entry.count = 1;
  entry.fence = Fence(token);
  entry.name_space = "app";
  entry.client_id = "a";
  return entry;
}

HistoryEntry NumberedEntry(uint64_t sequence) {
  HistoryEntry entry = EntryOf(sequence);
  entry.sequence = sequence;
  return entry;
}

// "5 4 3 next 3"
std::string Text(const HistoryPage& page) {
  std::string text;
  for (const HistoryEntry* entry : page.entries) text += std::to_string(entry->sequence) + " ";
  return text + "next " + std::to_string(page.next_cursor);
}

void AddMany(uint64_t first, uint64_t last, History* history) {
  for (uint64_t token = first; token <= last; ++token) history->Add(EntryOf(token));
}

// "1 2|3|": the entries of each block that a ledger holds after the batch.
std::string Stored(CommitBatch* batch, store::MemoryStore* store) {
  batch->Sealed({.batch_number = store->applied() + 1});
  REQUIRE(store->Commit(*batch).ok());
  batch->Clear();
  const testing::LedgerContent content = ReadLedger(store);
  std::string text;
  size_t next = 0;
  for (const size_t size : content.history_blocks) {
    for (size_t i = 0; i < size; ++i) {
      text += (i == 0 ? "" : " ") + std::to_string(content.history[next++].sequence);
    }
    text += "|";
  }
  return text;
}

// The sizes of a history's blocks.
std::vector<size_t> Blocks(const History& history) {
  std::vector<size_t> sizes;
  for (const HistoryBlock& block : history.blocks()) sizes.push_back(block.size());
  return sizes;
}

TEST_CASE("ends are numbered one after the other from 1, and recorded once, in one record") {
  History history(10);
  CommitBatch batch;
  AddMany(100, 102, &history);
  REQUIRE(history.size() == 3);
  REQUIRE(Blocks(history) == std::vector<size_t>{3});
  CHECK(history.blocks()[0][0].sequence == 1);
  CHECK(history.blocks()[0][2].sequence == 3);
  CHECK(history.blocks()[0][2].token_id == TokenId(102));
  history.Record(&batch);
  CHECK(batch.records() == 1);
  history.Record(&batch);
  CHECK(batch.records() == 1);
}

TEST_CASE("beyond the bound single ends drop the oldest, in the batch that adds them") {
  History history(3);
  CommitBatch batch;
  store::MemoryStore store{ledger::Format{}};
  for (const char* stored : {"1|", "1|2|", "1|2|3|", "2|3|4|", "3|4|5|"}) {
    AddMany(1, 1, &history);
    history.Record(&batch);
    CHECK(batch.records() == (history.size() == 3 && stored[0] != '1' ? 2 : 1));
    CHECK(Stored(&batch, &store) == stored);
  }
  CHECK(history.size() == 3);
}

TEST_CASE("a block goes as a whole, when what is behind it is enough") {
  History history(3);
  CommitBatch batch;
  store::MemoryStore store{ledger::Format{}};
  AddMany(1, 3, &history);
  history.Record(&batch);
  CHECK(Stored(&batch, &store) == "1 2 3|");
  AddMany(4, 5, &history);
  history.Record(&batch);
  CHECK(batch.records() == 1);
  CHECK(Stored(&batch, &store) == "1 2 3|4 5|");
  CHECK(history.size() == 5);
  AddMany(6, 6, &history);
  history.Record(&batch);
  CHECK(batch.records() == 2);
  CHECK(Stored(&batch, &store) == "4 5|6|");
  CHECK(history.size() == 3);
}

TEST_CASE("blocks have at most 256 entries, and no more than are to be kept") {
  History history(1000);
  AddMany(1, 600, &history);
  CHECK(Blocks(history) == std::vector<size_t>{256, 256, 88});
  CommitBatch batch;
  history.Record(&batch);
  CHECK(batch.records() == 3);
  // A block that was recorded gets no more.
  AddMany(601, 601, &history);
  CHECK(Blocks(history) == std::vector<size_t>{256, 256, 88, 1});
  AddMany(602, 1255, &history);
  CHECK(history.size() == 1255);
  AddMany(1256, 1256, &history);
  CHECK(history.size() == 1000);
  History small(10);
  AddMany(1, 25, &small);
  CHECK(Blocks(small) == std::vector<size_t>{10, 5});
}

TEST_CASE("what comes and goes within one batch is not written") {
  History history(3);
  CommitBatch batch;
  store::MemoryStore store{ledger::Format{}};
  AddMany(1, 2, &history);
  history.Record(&batch);
  CHECK(Stored(&batch, &store) == "1 2|");
  AddMany(3, 100'003, &history);
  history.Record(&batch);
  CHECK(batch.records() == 1 + 2);
  CHECK(Stored(&batch, &store) == "99999 100000 100001|100002 100003|");
  // Nor is it dropped later on.
  AddMany(100'004, 100'004, &history);
  history.Record(&batch);
  CHECK(batch.records() == 2);
  CHECK(Stored(&batch, &store) == "100002 100003|100004|");
}

TEST_CASE("the bytes that a batch will get are known before it gets them") {
  CHECK(History(3).unrecorded_bytes() == 0);
  constexpr size_t kHead = 1 + 8 + 4;  // Type, key, size.
  constexpr size_t kEntry = 57 + 4;
  const struct {
    uint64_t ends;
    size_t bytes;
  } cases[] = {{1, kHead + 1 + kEntry},
               {2, kHead + 3 + 2 * kEntry},
               {3, kHead + 3 + 3 * kEntry},
               {5, kHead + 3 + 3 * kEntry + kHead + 3 + 2 * kEntry},
               {6, kHead + 3 + 3 * kEntry}};
  for (const auto& c : cases) {
    CAPTURE(c.ends);
    History history(3);
    CommitBatch batch;
    AddMany(1, c.ends, &history);
    CHECK(history.unrecorded_bytes() == c.bytes);
    history.Record(&batch);
    CHECK(batch.bytes().size() == c.bytes);
    CHECK(history.unrecorded_bytes() == 0);
  }
  History many(1000);
  CommitBatch batch;
  AddMany(1, 777, &many);
  const size_t expected = many.unrecorded_bytes();
  many.Record(&batch);
  CHECK(batch.bytes().size() == expected);
}

TEST_CASE("a history of 0 entries keeps and records nothing") {
  History history(0);
  CommitBatch batch;
  AddMany(1, 3, &history);
  history.Record(&batch);
  CHECK(history.size() == 0);
  CHECK(history.unrecorded_bytes() == 0);
  CHECK(batch.empty());
  CHECK(Text(history.Page(0, 10)) == "next 0");
}

TEST_CASE("pages come newest first and go on where the page before ended, whatever the blocks") {
  CommitBatch ignored;
  for (const uint64_t batch_size : {1, 2, 3, 7}) {
    CAPTURE(batch_size);
    History history(10);
    for (uint64_t token = 1; token <= 7; ++token) {
      AddMany(token, token, &history);
      if (token % batch_size == 0) history.Record(&ignored);
    }
    CHECK(Text(history.Page(0, 3)) == "7 6 5 next 5");
    CHECK(Text(history.Page(5, 3)) == "4 3 2 next 2");
    CHECK(Text(history.Page(2, 3)) == "1 next 0");
    CHECK(Text(history.Page(0, 7)) == "7 6 5 4 3 2 1 next 0");
    CHECK(Text(history.Page(0, 1000)) == "7 6 5 4 3 2 1 next 0");
  }
}

TEST_CASE("a cursor stays true while entries come, and ends when those behind it are dropped") {
  History history(4);
  CommitBatch ignored;
  for (uint64_t token = 1; token <= 4; ++token) {
    AddMany(token, token, &history);
    history.Record(&ignored);
  }
  CHECK(Text(history.Page(0, 2)) == "4 3 next 3");
  AddMany(5, 6, &history);
  CHECK(Text(history.Page(3, 2)) == "next 0");
  CHECK(Text(history.Page(4, 2)) == "3 next 0");
  CHECK(Text(history.Page(UINT64_MAX, 2)) == "6 5 next 5");
  CHECK(Text(history.Page(1, 2)) == "next 0");
}

TEST_CASE("a loaded history goes on with the next number") {
  History history(10);
  REQUIRE(history.Load({NumberedEntry(7), NumberedEntry(8)}).ok());
  REQUIRE(history.Load({NumberedEntry(9)}).ok());
  history.Add(EntryOf(100));
  CHECK(Blocks(history) == std::vector<size_t>{2, 1, 1});
  CHECK(Text(history.Page(0, 10)) == "10 9 8 7 next 0");
  CommitBatch batch;
  history.Record(&batch);
  CHECK(batch.records() == 1);
}

// What a history says to a block behind entry 7.
std::string LoadErrorBehind7(ledger::HistoryBlock block) {
  History history(10);
  REQUIRE(history.Load({NumberedEntry(7)}).ok());
  return history.Load(std::move(block)).ToString();
}

TEST_CASE("a loaded history with a gap or a repeated number is refused") {
  CHECK(LoadErrorBehind7({NumberedEntry(8), NumberedEntry(9)}) == "ok");
  CHECK(LoadErrorBehind7({NumberedEntry(9)}) ==
        "corruption: history: entry 9 follows entry 7: entries are missing");
  CHECK(LoadErrorBehind7({NumberedEntry(7)}) ==
        "corruption: history: entry 7 follows entry 7: entries are missing");
}

TEST_CASE("more than this server keeps is dropped in pieces, the oldest first") {
  History history(2);
  CommitBatch batch;
  store::MemoryStore store{ledger::Format{}};
  REQUIRE(history.Load({NumberedEntry(1), NumberedEntry(2), NumberedEntry(3)}).ok());
  for (const uint64_t sequence : {4, 5, 6}) {
    REQUIRE(history.Load({NumberedEntry(sequence)}).ok());
  }
  for (const HistoryBlock& block : history.blocks()) batch.HistoryAdded(block);
  CHECK(Stored(&batch, &store) == "1 2 3|4|5|6|");
  CHECK(history.has_surplus());
  history.DropSurplus(1, &batch);
  CHECK(Stored(&batch, &store) == "4|5|6|");
  CHECK(history.has_surplus());
  // An end in between displaces one more.
  AddMany(100, 100, &history);
  history.Record(&batch);
  CHECK(Stored(&batch, &store) == "5|6|7|");
  AddMany(101, 101, &history);
  history.DropSurplus(1, &batch);
  history.Record(&batch);
  CHECK(Stored(&batch, &store) == "7|8|");
  CHECK_FALSE(history.has_surplus());
  history.DropSurplus(3, &batch);
  CHECK(batch.empty());
}

}  // namespace
}  // namespace nowcalls::core
