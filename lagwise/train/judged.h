#pragma once

#include "lagwise/models/model.h"

namespace lagwise {

/// A model in evaluation mode for as long as this lives: no dropout.
class Judged {
 public:
  explicit Judged(Model& model) : model_(model), training_(model.is_training()) {
    model_.eval();
  }
  ~Judged() { model_.train(training_); }
  Judged(const Judged&) = delete;
  Judged& operator=(const Judged&) = delete;

 private:
  Model& model_;
  bool training_;
};

}  // namespace lagwise
