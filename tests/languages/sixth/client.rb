# Client: a session with a socket, for one thread. Its calls wait for the server, and it looks after
# its tokens and its connection while they do.
require "securerandom"
require "socket"
require_relative "session"

class Client
  DIAL_S = 2

  def initialize(address, namespace, client_id)
    ids = -> { SecureRandom.random_number(1..2**63 - 1) }
    options = { "lost" => true, "instance" => ids.call, "terms" => true }
    @session = Session.new(addresses: [address], hello: [namespace, client_id, options],
                           timeout: 5000, request_ids: ids, draw: ->(low, high) { rand(low..high) },
                           now: now)
  end

  # Asks, and returns the answer once there is one.
  def acquire(flow) = wait_for { |tell| @session.acquire(flow, now: now, &tell) }
  def release(held) = wait_for { |tell| @session.release(held, now: now, &tell) }

  # Asks without a wait: the answer is the first of the array, once it is there.
  def ask(flow)
    answers = []
    @session.acquire(flow, now: now) { |answer| answers << answer }
    flush
    answers
  end

  def valid?(held) = held.state == :held && now < @session.valid_until(held)
  def settle = (turn until @session.settled?)

  def turn
    dial if @socket.nil? && now >= @session.dial_at
    flush
    read if !@socket.nil? && @socket.wait_readable(pause)
    sleep(pause) if @socket.nil? # Until the next dial.
    refusal = @session.tick(now) and hang_up(refusal)
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_BOOTTIME, :millisecond)
  def pause = ((@session.wakeup - now) / 1000.0).clamp(0, 1)

  def wait_for
    answers = []
    yield ->(answer) { answers << answer }
    turn while answers.empty?
    answers.first
  end

  def dial
    @session.dial
    @socket = Socket.tcp(*@session.address.split(":"), connect_timeout: DIAL_S)
    @session.connected(now)
  rescue SystemCallError, SocketError
    @session.dial_failed(now)
  end

  def flush
    return if @socket.nil? || @session.output.empty?
    @socket.write(@session.output)
    @session.output.clear
  rescue SystemCallError => error
    hang_up(error.message)
  end

  def read
    refusal = @session.received(@socket.read_nonblock(65_536), now) and hang_up(refusal)
  rescue IO::WaitReadable
    nil
  rescue SystemCallError, EOFError => error
    hang_up(error.message)
  end

  def hang_up(_reason)
    @socket.close
    @socket = nil
    @session.disconnected(now)
  end
end
