// SPDX-License-Identifier: GPL-2.0-only
// The targets of the fuzzers: each reader of users' files. An InputError is a valid answer, all other exceptions are
// errors.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include "schedule/collective/collective.hpp"
#include "schedule/program/workload.hpp"
#include "support/documents/spec.hpp"
#include "tests/fuzz/experiment_target.hpp"
#include "topologies/files/machine_file.hpp"
#include "workloads/chakra/chakra_trace.hpp"
#include "workloads/compute/kernel_time.hpp"
#include "workloads/compute/operator_times.hpp"
#include "workloads/configuration/deepspeed_config.hpp"
#include "workloads/configuration/hugging_face_fields.hpp"
#include "workloads/configuration/megatron_arguments.hpp"
#include "workloads/configuration/trainer_arguments.hpp"
#include "workloads/importers/goal_file.hpp"
#include "workloads/importers/layer_table.hpp"
#include "workloads/reading/device.hpp"
#include "workloads/reading/reading.hpp"

namespace weft::fuzz {

inline std::optional<std::string> no_variables(const std::string&) { return std::nullopt; }

/// Completes and checks the result, as for every job.
inline void settle(TrainingDescription description) {
  if (description.sequence_length == 0) description.sequence_length = 64;
  settle_description(description, 0, {"input", 0});
}

/// A job that files without a model are laid over.
inline TrainingDescription small_job() {
  TrainingDescription description;
  description.model = read_model(JsonConfig::parse(R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 4,
 "n_positions": 1024, "vocab_size": 100})",
                                                   "config.json"));
  return description;
}

inline void read_config_json(const std::string& text) {
  const JsonConfig config = JsonConfig::parse(text, "config.json");
  TrainingDescription description;
  description.model = read_model(config);
  static_cast<void>(unknown_fields(config));
  static_cast<void>(description.model.parameters() + description.model.active_parameters());
  settle(std::move(description));
}

inline void read_megatron_script(const std::string& text) {
  TrainingDescription description;
  apply_megatron_options(read_megatron_shell(text, "run.sh", no_variables), description);
  settle(std::move(description));
}

inline void read_megatron_map(const std::string& text) {
  TrainingDescription description;
  const Spec spec = Spec::parse(text, "job.yaml");
  apply_megatron_options(read_megatron_yaml(spec, "job.yaml", no_variables), description);
  settle(std::move(description));
}

inline void read_deepspeed_json(const std::string& text) {
  TrainingDescription description = small_job();
  apply_deepspeed(JsonConfig::parse(text, "ds.json"), description);
  settle(std::move(description));
}

inline void read_trainer_map(const std::string& text) {
  TrainingDescription description = small_job();
  // A folder in which nothing is: a fuzzer must not find files.
  apply_trainer_arguments(Spec::parse(text, "args.yaml"), "/nonexistent", description);
  settle(std::move(description));
}

inline WorkloadContext small_machine() {
  WorkloadContext context;
  context.hosts = 16;
  context.seed = 1;
  context.host_rate = Bandwidth::from_gbps(400);
  context.mtu = Bytes(4096);
  context.packet_overhead = Bytes(82);
  context.directory = "/nonexistent";
  return context;
}

/// An experiment's `workload:` of kind program.
inline void read_program(const std::string& text) {
  const Spec spec = Spec::parse(text, "program.yaml");
  const auto workload = WorkloadRegistry::instance().find("program")->make()->read(spec, small_machine());
  const std::uint32_t ranks = std::min(workload->ranks(), 64U);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto program = workload->program(Rank(rank));
    Operation operation;
    for (int steps = 0; steps < 10'000 && program->next(operation); ++steps) {
    }
  }
}

/// Two ranks with the same Chakra trace: an accepted trace can be executed to its end.
inline void read_chakra(const std::string& text) {
  if (text.empty()) throw InputError({"trace.0.et", 0}, "empty");
  const Spec where = Spec::parse("file: trace", "experiment.yaml").at("file");
  for (const bool as_astra_sim : {true, false}) {
    ChakraOptions options;
    options.as_astra_sim = as_astra_sim;
    for (const std::string& name : collective_kind_names()) {
      const CollectiveKind kind = *parse_collective_kind(name);
      options.algorithms[kind] = default_algorithm(small_machine(), kind);
    }
    const ChakraTrace trace({{"trace.0.et", text}, {"trace.1.et", text}}, options, where, small_machine());
    for (std::uint32_t id = 0; id < trace.call_count(); ++id) static_cast<void>(trace.call(id));
    static_cast<void>(trace.description());
  }
}

/// Layers of ASTRA-sim 1.0 and SimAI.
inline void read_layers(const std::string& text) {
  static_cast<void>(read_layer_table(ByteSource("layers.txt", text)));
}

/// A GOAL schedule, text or binary, all ranks.
inline void read_goal(const std::string& text) {
  const auto file = open_goal([&text] { return ByteSource("schedule.goal", text); });
  GoalOperation operation;
  std::vector<std::uint32_t> dependencies;
  for (std::uint32_t rank = 0; rank < file->ranks(); ++rank)
    for (const auto stream = file->stream(rank); stream->next(operation, dependencies);) {
    }
}

/// Machines in the formats of other programs: the first line names the format.
inline void read_machine(const std::string& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string::npos) return;
  const auto* format = MachineFormatRegistry::instance().find(text.substr(0, end));
  if (format != nullptr) static_cast<void>(format->make()->read(text.substr(end + 1), "machine.txt"));
}

/// A CSV file of measured kernels.
inline void read_operators(const std::string& text) {
  const MeasuredOperators operators = MeasuredOperators::parse(text, "operators.csv");
  Kernel kernel;
  kernel.m = kernel.n = kernel.k = 64;
  static_cast<void>(operators.find(kernel));
}

/// A device file: an accepted one gives no times below 0.
inline void read_device_file(const std::string& text) {
  const Device device = read_device(Spec::parse(text, "device.yaml"));
  const auto check = [](Time time) {
    if (time < Time()) throw std::logic_error("a kernel ends before it begins");
  };
  for (const auto& [precision, rate] : device.peak) {
    Kernel kernel;
    kernel.precision = precision;
    kernel.m = kernel.n = kernel.k = 4096;
    check(kernel_time(device, kernel));
    kernel.kind = Kernel::Kind::memory;
    kernel.bytes = 1 << 30;
    check(kernel_time(device, kernel));
    kernel.flops = 1e12;
    check(kernel_time(device, kernel));
    check(roofline_time(device, precision, 0, Bytes(kernel.bytes)));
    check(roofline_time(device, precision, kernel.flops, Bytes(kernel.bytes)));
  }
}

/// A collective's steps, as a file of that ending: an accepted file has been replayed.
inline void read_schedule(const std::string& ending, const std::string& text) {
  struct Scratch {
    std::filesystem::path path;
    ~Scratch() {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
    }
  };
  const Scratch file{std::filesystem::temp_directory_path() / ("weft-fuzz-" + std::to_string(getpid()) + "." + ending)};
  std::ofstream(file.path, std::ios::binary) << text;
  const auto algorithm = ScheduleReaderRegistry::instance().find(ending)->make()->read(file.path.string());
  static_cast<void>(algorithm->schedule_text());
}
inline void read_msccl_xml(const std::string& text) { read_schedule("xml", text); }
inline void read_mscclpp_json(const std::string& text) { read_schedule("json", text); }
inline void read_schedule_text(const std::string& text) { read_schedule("schedule", text); }

/// All targets by name.
inline const std::map<std::string, std::function<void(const std::string&)>>& targets() {
  static const std::map<std::string, std::function<void(const std::string&)>> all = {
      {"config_json", read_config_json},
      {"megatron_shell", read_megatron_script},
      {"megatron_yaml", read_megatron_map},
      {"deepspeed_json", read_deepspeed_json},
      {"trainer_yaml", read_trainer_map},
      {"program_yaml", read_program},
      {"machine_file", read_machine},
      {"operators_csv", read_operators},
      {"msccl_xml", read_msccl_xml},
      {"mscclpp_json", read_mscclpp_json},
      {"schedule_text", read_schedule_text},
      {"device_yaml", read_device_file},
      {"experiment_yaml", read_experiment_file},
      {"chakra", read_chakra},
      {"layer_table", read_layers},
      {"goal", read_goal}};
  return all;
}

/// Feeds one target; false if it has complained.
inline bool feed(const std::string& name, const std::string& text) {
  try {
    targets().at(name)(text);
  } catch (const InputError&) {
    return false;
  }
  return true;
}

}  // namespace weft::fuzz
