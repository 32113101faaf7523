// SPDX-License-Identifier: GPL-2.0-only
// Reading workloads from text, walking their programs, and looking at complaints.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "schedule/program/workload.hpp"
#include "support/documents/spec.hpp"
#include "units/text.hpp"

namespace weft::test {

/// The folder of the ready-made jobs.
inline std::string workloads_folder() {
  const char* source = std::getenv("WEFT_SOURCE");
  return std::string(source != nullptr ? source : ".") + "/workloads";
}

inline WorkloadContext context_of(std::uint32_t hosts) {
  WorkloadContext context;
  context.hosts = hosts;
  context.seed = 1;
  context.host_rate = Bandwidth::from_gbps(400);
  context.mtu = Bytes(4096);
  context.packet_overhead = Bytes(82);
  context.directory = workloads_folder();
  return context;
}

/// Reads the text of a `workload:` map that is in "x.yaml" from line 1 on.
inline std::unique_ptr<Workload> read_workload(const std::string& text, const WorkloadContext& context) {
  const Spec spec = Spec::parse(text, "x.yaml");
  return WorkloadRegistry::instance().find(spec.at("kind").text())->make()->read(spec, context);
}

/// The complaint about a text, or "".
inline std::string complaint(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}
inline std::string complaint_about(const std::string& text, const WorkloadContext& context) {
  return complaint([&] { read_workload(text, context); });
}

inline void expect_complaint(const std::string& text, const WorkloadContext& context, const std::string& place,
                             const std::vector<std::string>& parts) {
  const std::string message = complaint_about(text, context);
  EXPECT_TRUE(message.starts_with(place + ":")) << message << "\n" << text;
  for (const auto& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
}

/// All operations of a rank, with the contract of every program checked: ids increase and `after` names earlier ones.
inline std::vector<Operation> operations_of(const Workload& workload, std::uint32_t rank) {
  std::vector<Operation> operations;
  std::vector<std::uint64_t> ids;
  const auto program = workload.program(Rank(rank));
  for (Operation operation; program->next(operation);) {
    EXPECT_TRUE(ids.empty() || ids.back() < operation.id);
    operation.label = operation.label.text();  // may outlive the workload
    for (const auto earlier : operation.after) EXPECT_TRUE(std::binary_search(ids.begin(), ids.end(), earlier));
    if (operation.kind == Operation::Kind::collective) {
      EXPECT_NE(operation.call, nullptr);
      const CollectiveCall call = workload.call(operation.call->id);
      EXPECT_EQ(operation.call->size, call.size);
      EXPECT_EQ(operation.call->kind, call.kind);
      EXPECT_EQ(operation.call->label, call.label);
      EXPECT_EQ(operation.call->communicator, call.communicator);
    }
    ids.push_back(operation.id);
    operations.push_back(operation);
  }
  return operations;
}

/// All calls of a workload.
inline std::vector<CollectiveCall> calls_of(const Workload& workload) {
  std::vector<CollectiveCall> calls;
  for (std::uint32_t id = 0; id < workload.call_count(); ++id) calls.push_back(workload.call(id));
  return calls;
}

/// A file that exists as long as this object, in a separate folder.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& text) {
    std::string pattern = (std::filesystem::temp_directory_path() / "weft-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/" + name;
    std::ofstream(path_) << text;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove_all(folder_); }
  const std::string& path() const { return path_; }

 private:
  std::string folder_, path_;
};

}  // namespace weft::test
