// SPDX-License-Identifier: GPL-2.0-only
// Arguments of the Hugging Face Trainer (transformers/training_args.py) in JSON or YAML.
#include "workloads/configuration/trainer_arguments.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "workloads/configuration/deepspeed_config.hpp"

namespace weft {
namespace {

constexpr std::int64_t max_of_an_argument = std::int64_t{1} << 24;

class TrainerApplication {
 public:
  TrainerApplication(const Spec& spec, std::string directory, TrainingDescription& description)
      : spec_(spec), directory_(std::move(directory)), d_(description), p_(description.parallel) {}

  void apply() {
    if (!spec_.is_map()) throw spec_.error("expected a map of the Trainer's arguments");
    read_batches();
    read_precision();
    if (boolean("gradient_checkpointing")) recompute_all(*find("gradient_checkpointing"));
    read_fsdp();
    read_deepspeed();
    for (const auto& [key, value] : spec_.entries()) ignore(key);
  }

 private:
  /// The value of an argument, unless it is null.
  std::optional<Spec> find(const std::string& key) {
    read_.insert(key);
    auto value = spec_.find(key);
    return value && !value->is_null() ? value : std::nullopt;
  }
  bool boolean(const std::string& key) {
    const auto value = find(key);
    return value && value->boolean();
  }
  void ignore(const std::string& key) {
    if (!read_.contains(key) && std::find(d_.ignored.begin(), d_.ignored.end(), key) == d_.ignored.end())
      d_.ignored.push_back(key);
  }
  /// The Trainer has a value for each of these, said or not.
  std::int64_t count(const char* field, const std::string& key, std::int64_t otherwise) {
    const auto value = find(key);
    d_.where[field] = value ? value->where() : SourceLine{spec_.where().file, 0};
    return value ? value->integer(1, max_of_an_argument) : otherwise;
  }

  void read_batches() {
    d_.micro_batch = count("micro_batch", "per_device_train_batch_size", 8);
    d_.micro_batches = count("micro_batches", "gradient_accumulation_steps", 1);
    // Names of the length in SFTTrainer's and LLaMA-Factory's arguments.
    for (const char* key : {"max_length", "max_seq_length", "cutoff_len", "block_size"})
      if (const auto length = find(key)) {
        d_.sequence_length = length->integer(1, max_of_an_argument);
        d_.where["sequence_length"] = length->where();
      }
    const auto norm = find("max_grad_norm");
    d_.clip_gradients = !norm || norm->number(0) > 0;
    d_.where["clip_gradients"] = norm ? norm->where() : spec_.where();
    if (const auto bucket = find("ddp_bucket_cap_mb"))
      d_.buckets.first = d_.buckets.further = Bytes::mib(bucket->integer(1, max_of_an_argument));
  }

  /// Mixed precision keeps weights and gradients in fp32 unless the model is loaded in 16 bits.
  void read_precision() {
    const bool bf16 = boolean("bf16");
    const bool fp16 = boolean("fp16");
    if (bf16 && fp16) throw find("fp16")->error("bf16 is also true; leave one of them out");
    d_.precision = bf16 ? "bf16" : fp16 ? "fp16" : boolean("tf32") ? "tf32" : "fp32";
    d_.where["precision"] = spec_.where();
    for (const char* key : {"fp16", "bf16"})
      if (const auto value = find(key)) d_.where["precision"] = value->where();
    d_.parameter_precision = "fp32";
    for (const char* key : {"torch_dtype", "dtype"})
      if (const auto type = find(key)) {
        const std::string name = type->text();
        if (name == "bfloat16" || name == "float16") d_.parameter_precision = name == "bfloat16" ? "bf16" : "fp16";
      }
    d_.gradient_precision = d_.parameter_precision;
  }

  void recompute_all(const Spec& where) {
    d_.recompute = Recompute::full;
    d_.where["recompute"] = where.where();
  }

  // FSDP -------------------------------------------------------------------------------------------------------------
  void read_fsdp() {
    const auto fsdp = find("fsdp");
    const auto words = fsdp ? fsdp_words(*fsdp) : std::vector<std::string>{};
    if (!words.empty()) {
      for (const std::string& word : words) apply_fsdp(*fsdp, word);
      // accelerate gathers and reduces in the precision of the GEMMs.
      if (d_.precision == "bf16" || d_.precision == "fp16")
        d_.parameter_precision = d_.gradient_precision = d_.precision;
    }
    const auto config = find("fsdp_config");
    if (!config) return;
    if (config->is_map()) return read_fsdp_config(*config, !words.empty());
    read_fsdp_config(Spec::load(beside(config->text())), !words.empty());
  }
  /// "full_shard auto_wrap", a list of such words, or true.
  static std::vector<std::string> fsdp_words(const Spec& fsdp) {
    std::vector<std::string> words;
    if (fsdp.is_sequence()) {
      for (const Spec& item : fsdp.items()) words.push_back(item.text());
      return words;
    }
    const std::string text = fsdp.text();
    if (text == "true" || text == "True") return {"full_shard"};
    if (text == "false" || text == "False") return {};
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find_first_of(" ,", at), text.size());
      if (end > at) words.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return words;
  }
  void apply_fsdp(const Spec& where, const std::string& word) {
    const auto shard = [&](bool reshard) {
      p_.sharding = Sharding::parameters;
      p_.reshard_after_forward = reshard;
      d_.where["sharding"] = where.where();
    };
    if (word == "full_shard") {
      shard(true);
    } else if (word == "shard_grad_op") {
      shard(false);
    } else if (word == "hybrid_shard" || word == "hybrid_shard_zero2") {
      shard(word == "hybrid_shard");
      if (p_.shard_group == 0)
        throw where.error(
            fmt::format("{} shards within a server, and nothing says how many ranks that is; give the "
                        "number of ranks that share one copy, or use full_shard",
                        word));
    } else if (word == "offload") {
      d_.offload_parameters = d_.offload_optimizer = true;
    } else if (word != "no_shard" && word != "auto_wrap") {
      throw where.error(
          fmt::format("unknown word '{}'; full_shard, shard_grad_op, hybrid_shard, hybrid_shard_zero2, "
                      "no_shard, offload and auto_wrap are known",
                      word));
    }
  }
  void read_fsdp_config(const Spec& config, bool shards) {
    for (const auto& [name, value] : config.entries()) {
      const std::string key = name.starts_with("fsdp_") ? name.substr(5) : name;
      if (value.is_null()) continue;
      if (key == "activation_checkpointing") {
        if (value.boolean() && shards) recompute_all(value);
      } else if (key == "backward_prefetch") {
        const std::string kind = value.text();
        p_.prefetch = kind == "no_prefetch" || kind == "NO_PREFETCH" ? 0 : 1;
      } else if (key == "reshard_after_forward" && (value.text() == "true" || value.text() == "false")) {
        p_.reshard_after_forward = value.boolean();
      } else if (key == "offload_params") {
        d_.offload_parameters = d_.offload_optimizer = value.boolean();
      } else {
        ignore("fsdp_config." + name);
      }
    }
  }

  void read_deepspeed() {
    const auto deepspeed = find("deepspeed");
    if (!deepspeed) return;
    if (!deepspeed->is_scalar()) throw deepspeed->error("expected the path of a JSON file");
    if (const auto fsdp = find("fsdp"); fsdp && p_.sharding != Sharding::none)
      throw deepspeed->error("fsdp is also given; leave one of them out");
    const std::string path = beside(deepspeed->text());
    if (!std::filesystem::is_regular_file(path))
      throw deepspeed->error(fmt::format("there is no file {}; expected the path of a JSON file", path));
    read_deepspeed_config(path, d_);
  }
  std::string beside(const std::string& path) const {
    return (std::filesystem::path(directory_) / path).string();  // an absolute path stays as it is
  }

  const Spec& spec_;
  std::string directory_;
  TrainingDescription& d_;
  ParallelPlan& p_;
  std::set<std::string> read_;
};

}  // namespace

void apply_trainer_arguments(const Spec& spec, const std::string& directory, TrainingDescription& description) {
  TrainerApplication(spec, directory, description).apply();
}

void read_trainer_arguments(const std::string& path, TrainingDescription& description) {
  apply_trainer_arguments(Spec::load(path), std::filesystem::path(path).parent_path().string(), description);
}

}  // namespace weft
