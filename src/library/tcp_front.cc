// TcpFront: the loop that polls, threads that dial, and waiting threads that read.
//
// Happy path: a thread asks and sends, then polls the socket itself; the loop meanwhile polls only
// the eventfd. The reader takes in the answers of all, and wakes their threads.
//
// Failure modes:
//   the socket is full     the rest is buffered; the loop polls for POLLOUT
//   sending fails          broken_ is set, the loop disconnects
//   breaks during a read   the socket is retired until the reader is back
//   no answer in 20 ms     the thread becomes patient: it sleeps, the loop reads
//   a dial hangs           its thread ends at the deadline, with or without the front
#include "library/tcp_front.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/os_error.h"
#include "base/quiet_thread.h"
#include "client/answers.h"
#include "client/exchange.h"
#include "net/endpoint.h"

namespace nowcalls::library {
namespace {

Status EndBeforeHello(const Status& end, bool encrypted) {
  const std::string text = end.message() + ", before hello was answered";
  if (encrypted) return Status::Unavailable(text);
  return Status::Unavailable(client::DoubtOfPeer(text) + "; or does it speak TLS only?");
}

int PollTimeout(int64_t until_ms) {
  // poll counts whole milliseconds from now on, so it may end one too early.
  return static_cast<int>(std::clamp<int64_t>(until_ms - BoottimeMs(), 0, INT_MAX));
}

}  // namespace

TcpFront::Doorbell::~Doorbell() {
  if (fd >= 0) close(fd);
}

void TcpFront::Doorbell::Ring() const {
  const uint64_t one = 1;
  // It fails only if nobody has listened 2^64 times.
  [[maybe_unused]] const ssize_t written = write(fd, &one, sizeof(one));
}

void TcpFront::Doorbell::Silence() const {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t taken = read(fd, &count, sizeof(count));
}

Result<std::shared_ptr<TcpFront>> TcpFront::Start(const ClientOptions& options) {
  auto doorbell = std::make_shared<Doorbell>();
  doorbell->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (doorbell->fd < 0) return OsError("make", "an eventfd");
  std::shared_ptr<TcpFront> front(new TcpFront(options, std::move(doorbell)));
  NOWCALLS_RETURN_IF_ERROR(front->StartLoop());
  return front;
}

void TcpFront::RunLoop() {
  Lock lock(mutex_);
  while (!stopping()) {
    // 1. Callbacks, until there are none; they may ask further calls.
    if (Deliver(&lock)) continue;
    // 2. The session: a broken socket, time, dials, bytes.
    const int64_t now_ms = BoottimeMs();
    if (broken_) Disconnect(*std::exchange(broken_, std::nullopt), now_ms);
    const Status ticked = session()->Tick(now_ms);
    if (!ticked.ok()) Disconnect(ticked, now_ms);
    Dial(now_ms);
    Flush(/*waits=*/false);
    if (session()->has_events() || broken_) continue;
    // 3. Sleep. While a waiting thread reads, or has just read, the socket is left to it.
    int64_t until_ms = SleepUntil(now_ms);
    const bool leaves = LeavesReading(now_ms);
    if (leaves) until_ms = std::min(until_ms, now_ms + kLeaveReadingMs);
    pollfd fds[2] = {{doorbell_->fd, POLLIN, 0}, {-1, 0, 0}};
    if (socket_) {
      if (!leaves) fds[1].events |= POLLIN;
      if (socket_->has_unsent()) fds[1].events |= POLLOUT;
      if (fds[1].events != 0) fds[1].fd = socket_->fd();
    }
    loop_reads_ = !leaves;
    lock.unlock();
    poll(fds, 2, PollTimeout(until_ms));
    lock.lock();
    loop_reads_ = false;
    Awake();
    // 4. Take in a dial's result and bytes. Another thread may have changed the socket meanwhile.
    if (fds[0].revents != 0) {
      doorbell_->Silence();
      TakeDialled(BoottimeMs());
    }
    if (fds[1].revents != 0 && socket_ && socket_->fd() == fds[1].fd) Receive(BoottimeMs());
  }
  Disconnect(Status::Unavailable("the client is closed"), BoottimeMs());
}

// Reads the socket for a while if no other thread does. Answers to others' calls wake them.
void TcpFront::WaitFor(Waiter* waiter, Lock* lock) {
  constexpr int kReadMs = 20;
  // The reader's turn is taken, or this thread has waited long: sleep until told.
  if (waiter->patient || reading_ || !socket_ || broken_) {
    const auto place = waiting_.insert(waiting_.end(), waiter);
    waiter->changed.wait(*lock);
    waiting_.erase(place);
    return;
  }
  // Take the turn. The loop wakes to leave the socket, or both would read.
  reading_ = true;
  if (loop_reads_) Wake();
  pollfd readable{socket_->fd(), POLLIN, 0};
  lock->unlock();
  const int ready = poll(&readable, 1, kReadMs);
  lock->lock();
  reading_ = false;
  // Back with the mutex. A socket that broke meanwhile is in retired_ and closes here.
  read_ms_ = BoottimeMs();
  if (ready > 0 && !retired_ && !broken_) Receive(read_ms_);
  retired_.reset();
  Flush(/*waits=*/false);
  waiter->patient = ready <= 0;
  if (waiter->patient) read_ms_ -= kLeaveReadingMs;  // From now on the loop reads.
  if (session()->has_events() || waiter->patient) Wake();
  // Hand the turn on.
  for (Waiter* other : waiting_) {
    if (!other->told && !other->patient) return other->changed.notify_one();
  }
}

void TcpFront::Flush(bool /*waits*/) {
  if (!socket_ || broken_) return;
  wire::OutputBuffer* const output = session()->output();
  if (output->empty() && !socket_->has_unsent()) return;
  const Status sent = socket_->SendNow(output->view());
  output->Clear();
  if (sent.ok()) return;
  broken_ = sent;
  if (!OnLoopThread()) Wake();
}

void TcpFront::Dial(int64_t now_ms) {
  const client::Dialing& dialing = session()->dialing();
  if (socket_ || dialling_ || now_ms < dialing.at_ms()) return;
  // getaddrinfo cannot be interrupted and a filter may swallow a connect: a thread for each dial.
  dialling_ = true;
  session()->dialing().Begin();
  const int64_t deadline_ms = now_ms + dialing.share_ms(timeout_ms_);
  Result<std::thread> thread = StartQuietThread(
      [doorbell = doorbell_, security = security_, address = dialing.address(), deadline_ms] {
        const Result<net::Endpoint> peer = net::ParseServer(address);  // Checked by Client::Start.
        Result<net::Socket> socket =
            peer.ok() ? client::Dial(*peer, *security, deadline_ms) : peer.status();
        {
          const std::lock_guard lock(doorbell->mutex);
          doorbell->dialled.emplace(std::move(socket));
        }
        doorbell->Ring();
      });
  if (thread.ok()) return thread->detach();
  dialling_ = false;
  session()->DialFailed(thread.status().message(), now_ms);
}

void TcpFront::TakeDialled(int64_t now_ms) {
  std::optional<Result<net::Socket>> dialled;
  {
    const std::lock_guard lock(doorbell_->mutex);
    dialled = std::exchange(doorbell_->dialled, std::nullopt);
  }
  if (!dialled) return;
  dialling_ = false;
  if (!dialled->ok()) {
    const Status& why = dialled->status();
    if (why.code() == StatusCode::kInvalidArgument) {
      session()->Deny(client::BadRequestOf(why.message()), now_ms);
    } else if (why.code() == StatusCode::kPermissionDenied) {
      session()->Deny(client::PermissionDeniedOf(why.message()), now_ms);
    }
    return session()->DialFailed(why.message(), now_ms);
  }
  socket_.emplace(**std::move(dialled));
  session()->Connected(now_ms);
}

void TcpFront::Receive(int64_t now_ms) {
  received_.clear();
  const Status status = socket_->ReceiveNow(&received_);
  // Bytes may have come before the end, the answer to hello among them.
  if (!received_.empty()) {
    const Status understood = session()->Received(received_, now_ms);
    if (!understood.ok()) return Disconnect(understood, now_ms);
  }
  if (!status.ok()) {
    if (status.code() == StatusCode::kPermissionDenied)
      session()->Deny(client::PermissionDeniedOf(status.message()), now_ms);
    return Disconnect(session()->ready() ? status : EndBeforeHello(status, socket_->encrypted()),
                      now_ms);
  }
  TellChange();
}

void TcpFront::Disconnect(const Status& reason, int64_t now_ms) {
  if (!socket_) return;
  socket_->Shutdown();  // A forked child may have a copy, which would keep the session online.
  // The reader still polls this descriptor: its number must not become another file's.
  if (reading_ && !retired_) retired_.swap(socket_);
  socket_.reset();
  session()->Disconnected(reason.message(), now_ms);
}

}  // namespace nowcalls::library
