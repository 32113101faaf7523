// SPDX-License-Identifier: GPL-2.0-only
// The trained model, and the division of the work.
#include "workloads/parallel/training_description.hpp"

namespace weft {

InputError TrainingDescription::error(const std::string& field, const std::string& message,
                                      const SourceLine& otherwise) const {
  const auto said = where.find(field);
  return InputError(said == where.end() ? otherwise : said->second, message);
}

}  // namespace weft
