// The history by itself: numbers, bound, pages, and what it records.
#include "core/history.h"

#include <doctest/doctest.h>

#include <string>

#include "ledger/codec.h"
#include "support/core_harness.h"

namespace nowcalls::core {
namespace {

using ledger::CommitBatch;
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

// "3 4 5": what a ledger holds after the batch.
std::string Stored(CommitBatch* batch, store::MemoryStore* store) {
  static uint64_t number = 0;
  batch->Sealed({.batch_number = ++number});
  REQUIRE(store->Commit(*batch).ok());
  batch->Clear();
  std::string text;
  for (const HistoryEntry& entry : ReadLedger(store).history) {
    text += std::to_string(entry.sequence) + " ";
  }
  return text;
}

TEST_CASE("ends are numbered one after the other from 1, and recorded once") {
  History history(10);
  CommitBatch batch;
  AddMany(100, 102, &history);
  REQUIRE(history.size() == 3);
  CHECK(history.entries()[0].sequence == 1);
  CHECK(history.entries()[2].sequence == 3);
  CHECK(history.entries()[2].token_id == TokenId(102));
  history.Record(&batch);
  CHECK(batch.records() == 3);
  history.Record(&batch);
  CHECK(batch.records() == 3);
}

TEST_CASE("beyond the bound each end drops the oldest, in the batch that adds it") {
  History history(3);
  CommitBatch batch;
  store::MemoryStore store{ledger::Format{}};
  AddMany(1, 3, &history);
  history.Record(&batch);
  CHECK(Stored(&batch, &store) == "1 2 3 ");
  AddMany(4, 5, &history);
  history.Record(&batch);
  CHECK(batch.records() == 4);
  CHECK(Stored(&batch, &store) == "3 4 5 ");
  CHECK(history.size() == 3);
  AddMany(6, 6, &history);
  history.Record(&batch);
  CHECK(Stored(&batch, &store) == "4 5 6 ");
}

TEST_CASE("what comes and goes within one batch is not written") {
  History history(3);
  CommitBatch batch;
  store::MemoryStore store{ledger::Format{}};
  AddMany(1, 2, &history);
  history.Record(&batch);
  CHECK(Stored(&batch, &store) == "1 2 ");
  AddMany(3, 100'002, &history);
  history.Record(&batch);
  CHECK(batch.records() == 2 + 3);
  CHECK(Stored(&batch, &store) == "100000 100001 100002 ");
  // Nor is it dropped later on.
  AddMany(100'003, 100'003, &history);
  history.Record(&batch);
  CHECK(batch.records() == 2);
  CHECK(Stored(&batch, &store) == "100001 100002 100003 ");
}

TEST_CASE("the bytes that a batch will get are known before it gets them") {
  History history(3);
  CHECK(history.unrecorded_bytes() == 0);
  for (uint64_t last = 1; last <= 3; ++last) {
    CommitBatch batch;
    AddMany(1, last, &history);
    const size_t expected = history.unrecorded_bytes();
    CHECK(expected == last * (1 + 8 + 2 + 58 + 4));
    store::MemoryStore store{ledger::Format{}};
    History other(3);
    AddMany(1, last, &other);
    other.Record(&batch);
    CHECK(batch.bytes().size() == expected);
    CommitBatch ignored;
    history.Record(&ignored);
    CHECK(history.unrecorded_bytes() == 0);
  }
  AddMany(1, 500, &history);
  CHECK(history.unrecorded_bytes() == 3 * (1 + 8 + 2 + 58 + 4));
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

TEST_CASE("pages come newest first and go on where the page before ended") {
  History history(10);
  AddMany(1, 7, &history);
  CHECK(Text(history.Page(0, 3)) == "7 6 5 next 5");
  CHECK(Text(history.Page(5, 3)) == "4 3 2 next 2");
  CHECK(Text(history.Page(2, 3)) == "1 next 0");
  CHECK(Text(history.Page(0, 7)) == "7 6 5 4 3 2 1 next 0");
  CHECK(Text(history.Page(0, 1000)) == "7 6 5 4 3 2 1 next 0");
}

TEST_CASE("a cursor stays true while entries come, and ends when those behind it are dropped") {
  History history(4);
  AddMany(1, 4, &history);
  CHECK(Text(history.Page(0, 2)) == "4 3 next 3");
  AddMany(5, 6, &history);
  CHECK(Text(history.Page(3, 2)) == "next 0");
  CHECK(Text(history.Page(4, 2)) == "3 next 0");
  CHECK(Text(history.Page(UINT64_MAX, 2)) == "6 5 next 5");
  CHECK(Text(history.Page(1, 2)) == "next 0");
}

TEST_CASE("a loaded history goes on with the next number") {
  History history(10);
  for (const uint64_t sequence : {7, 8, 9}) REQUIRE(history.Load(NumberedEntry(sequence)).ok());
  history.Add(EntryOf(100));
  CHECK(Text(history.Page(0, 10)) == "10 9 8 7 next 0");
}

TEST_CASE("a loaded history with a gap, a repeated number or times that go back is refused") {
  History gap(10);
  REQUIRE(gap.Load(NumberedEntry(7)).ok());
  CHECK(gap.Load(NumberedEntry(9)).ToString() ==
        "corruption: history: entry 9 follows entry 7: entries are missing");
  History repeated(10);
  REQUIRE(repeated.Load(NumberedEntry(7)).ok());
  CHECK(repeated.Load(NumberedEntry(7)).code() == StatusCode::kCorruption);
  History back(10);
  REQUIRE(back.Load(NumberedEntry(7)).ok());
  HistoryEntry early = NumberedEntry(8);
  early.ended_ms = 69;
  CHECK(back.Load(early).ToString() ==
        "corruption: history: entry 8 tells of an end before that of the entry before it");
}

TEST_CASE("more than this server keeps is dropped in pieces, the oldest first") {
  History history(2);
  CommitBatch batch;
  store::MemoryStore store{ledger::Format{}};
  History before(10);
  AddMany(1, 7, &before);
  before.Record(&batch);
  CHECK(Stored(&batch, &store) == "1 2 3 4 5 6 7 ");
  for (const HistoryEntry& entry : ReadLedger(&store).history) REQUIRE(history.Load(entry).ok());
  CHECK(history.has_surplus());
  history.DropSurplus(3, &batch);
  CHECK(Stored(&batch, &store) == "4 5 6 7 ");
  CHECK(history.has_surplus());
  // An end in between displaces one more.
  AddMany(100, 100, &history);
  history.Record(&batch);
  CHECK(Stored(&batch, &store) == "5 6 7 8 ");
  AddMany(101, 101, &history);
  history.DropSurplus(1, &batch);
  history.Record(&batch);
  CHECK(Stored(&batch, &store) == "7 8 9 ");
  history.DropSurplus(3, &batch);
  CHECK_FALSE(history.has_surplus());
  CHECK(Stored(&batch, &store) == "8 9 ");
  history.DropSurplus(3, &batch);
  CHECK(batch.empty());
}

}  // namespace
}  // namespace nowcalls::core
