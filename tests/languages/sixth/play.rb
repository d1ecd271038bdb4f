# Plays the vectors of data/golden/sessions that vectors.txt names, as its README.md says.
require "json"
require_relative "session"

ROOT = File.expand_path("../../..", __dir__)
SESSIONS = File.join(ROOT, "data", "golden", "sessions")

# A session and its owner, who does what the steps say.
class Player
  def initialize(script)
    @client = script["client"]
    options = { "lost" => true, "instance" => @client["instance"], "terms" => true }
    options.delete("instance") if @client["instance"].zero?
    options = { "lost" => true, "exclusive" => true }.merge(options) if @client["exclusive"]
    ids = script["request_ids"].each
    @now, @permits, @valid, @dials = 0, {}, {}, @client["addresses"].first
    @session = Session.new(addresses: @client["addresses"], timeout: @client["timeout_ms"],
                           hello: [@client["namespace"], @client["client_id"], options],
                           request_ids: -> { ids.next }, draw: method(:draw))
  end

  def draw(low, high)
    pause = @step["pause_ms"] || low
    raise "a pause of #{low} to #{high} ms, not #{pause}" unless pause.between?(low, high)
    pause
  end

  # What came of a step, as the step has it.
  def play(step)
    @step, @now, @answers = step, step["at_ms"], []
    due = @session.wakeup
    raise "it wants to be told at #{due} ms" if step["due"] && due != @now
    hangs_up = send(:"do_#{step["do"]}")
    came = { "sent" => @session.output.unpack1("H*"), "answers" => @answers, "lost" => lost }
    @session.output.clear
    came["hangs_up"] = hangs_up.is_a?(String) if %w[received tick].include?(step["do"])
    came.merge("valid_until_ms" => changed_validity, "dials" => changed_address)
  end

  private

  def do_dial = @session.dial
  def do_connected = @session.connected(@now)
  def do_dial_failed = @session.dial_failed(@now)
  def do_disconnected = @session.disconnected(@now)
  def do_received = @session.received([@step["bytes"]].pack("H*"), @now)
  def do_tick = @session.tick(@now)

  def do_acquire
    %w[prioritized keep hold_ms].zip([false, "rule", 0]).each do |option, left_out|
      raise "it has no #{option}" unless @step[option] == left_out
    end
    call = @step["call"]
    options = { wait: @step["wait_ms"], timeout: @step["timeout_ms"], param: @step["param"] }
    @session.acquire(@step["flow"], @step["count"], **options, now: @now) do |answer|
      @permits[call] = answer.delete("held") if answer["held"]
      @answers << { "call" => call }.merge(answer)
    end
  end

  def do_release
    call = "release #{@step["permit"]}"
    @session.release(@permits.fetch(@step["permit"]), @step["outcome"], now: @now) do |answer|
      @answers << { "call" => call }.merge(answer)
    end
  end

  def lost
    taken = @session.lost.map { |held, why| { "permit" => @permits.key(held), "reason" => why } }
    @session.lost.clear
    taken
  end

  def changed_validity
    held = @permits.select { |_, one| one.state == :held }
    valid = held.transform_values { |one| @session.valid_until(one) }
    changed = valid.reject { |name, at| @valid[name] == at }
    @valid.merge!(valid)
    changed
  end

  def changed_address
    before, @dials = @dials, @session.address
    before == @dials ? nil : @dials
  end
end

NOTHING = { "sent" => "", "answers" => [], "lost" => [], "valid_until_ms" => {},
            "dials" => nil }.freeze

# What is different, or nil.
def difference(name)
  script = JSON.parse(File.read(File.join(SESSIONS, "#{name}.json")))
  player = Player.new(script)
  script["steps"].each_with_index do |step, number|
    came = player.play(step)
    wanted = NOTHING.to_h { |key, nothing| [key, step.fetch(key, nothing)] }
    wanted["hangs_up"] = step.key?("hangs_up") if came.key?("hangs_up")
    key = wanted.keys.find { |one| came[one] != wanted[one] } or next
    return "step #{number}: #{step["do"]}: #{key} is #{came[key]}, not #{wanted[key]}"
  rescue StandardError => error
    return "step #{number}: #{step["do"]}: #{error.message} #{error.backtrace.first}"
  end
  nil
end

if $PROGRAM_NAME == __FILE__
  names = ARGV.empty? ? File.readlines(File.join(__dir__, "vectors.txt"), chomp: true) : ARGV
  failed = names.to_h { |name| [name, difference(name)] }.compact
  failed.each { |name, what| puts "#{name}: #{what}" }
  puts "#{names.size - failed.size} of #{names.size} vectors"
  exit(failed.empty? && !names.empty?)
end
