// SPDX-License-Identifier: GPL-2.0-only
#include "app/analysis/timeline_trace.hpp"

#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/basics/error.hpp"

namespace weft {
namespace {

constexpr std::size_t first_free_thread = 100;  // of operations without a stream

/// Picoseconds as microseconds, exactly.
std::string microseconds(Time time) { return fmt::format("{}.{:06}", time.ps() / 1'000'000, time.ps() % 1'000'000); }

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class TraceWriter {
 public:
  explicit TraceWriter(const std::string& path) : path_(path), file_(path) {
    file_ << "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  }

  void write(const Workload& workload, const ScheduledRank& rank) {
    name("process_name", rank.rank, 0, fmt::format("rank {}", rank.rank));
    std::vector<bool> named(stream_count);
    std::vector<Time> busy_until;  // of threads for operations without a stream
    const auto program = workload.program(Rank(rank.rank));
    std::size_t at = 0;
    for (Operation operation; program->next(operation); operation = Operation(), ++at) {
      const ScheduledOperation& one = rank.operations[at];
      std::size_t thread = static_cast<std::size_t>(operation.stream);
      if (operation.stream == Stream::none) {
        std::size_t free = 0;
        while (free < busy_until.size() && busy_until[free] > one.start) ++free;
        if (free == busy_until.size()) {
          busy_until.emplace_back();
          name("thread_name", rank.rank, first_free_thread + free, fmt::format("messages {}", free));
        }
        busy_until[free] = one.end;
        thread = first_free_thread + free;
      } else if (!named[thread]) {
        named[thread] = true;
        name("thread_name", rank.rank, thread, std::string(to_text(operation.stream)));
      }
      event(rank.rank, thread, operation, one);
    }
  }

  void finish() {
    file_ << "\n]}\n";
    file_.close();
    if (!file_) throw EnvironmentError("cannot write '" + path_ + "'");
  }

 private:
  void begin() {
    file_ << (first_ ? "\n" : ",\n");
    first_ = false;
  }

  void name(const char* what, std::uint32_t rank, std::size_t thread, const std::string& text) {
    begin();
    file_ << fmt::format(R"({{"ph": "M", "name": "{}", "pid": {}, "tid": {}, "args": {{"name": {}}}}})", what, rank,
                         thread, json_text(text));
  }

  void event(std::uint32_t rank, std::size_t thread, const Operation& operation, const ScheduledOperation& one) {
    const char* kinds[] = {"compute", "collective", "send", "recv"};
    const char* kind = kinds[static_cast<std::size_t>(operation.kind)];
    begin();
    file_ << fmt::format(R"({{"ph": "X", "name": {}, "cat": "{}", "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": )",
                         json_text(operation.label.empty() ? kind : operation.label.text()), kind, rank, thread,
                         microseconds(one.start), microseconds(one.end - one.start));
    file_ << fmt::format(R"({{"operation": {})", operation.id);
    if (!operation.phase.empty()) file_ << R"(, "phase": )" << json_text(std::string(operation.phase));
    if (!operation.group.empty()) file_ << R"(, "communicator": )" << json_text(std::string(operation.group));
    if (operation.call)
      file_ << fmt::format(R"(, "collective": {}, "kind": "{}", "bytes": {})", operation.call->id,
                           to_text(operation.call->kind), operation.call->size.count());
    if (operation.kind == Operation::Kind::send || operation.kind == Operation::Kind::recv)
      file_ << fmt::format(R"(, "peer": {}, "tag": {}, "bytes": {})", operation.peer.value(), operation.tag,
                           operation.bytes.count());
    file_ << "}}";
  }

  std::string path_;
  std::ofstream file_;
  bool first_ = true;
};

}  // namespace

void write_timeline(const std::string& path, const Workload& workload, const IdealSchedule& schedule,
                    const std::vector<std::uint32_t>& ranks) {
  TraceWriter writer(path);
  for (const std::uint32_t rank : ranks)
    if (const ScheduledRank* found = schedule.find(rank)) writer.write(workload, *found);
  writer.finish();
}

}  // namespace weft
